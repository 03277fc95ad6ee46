// kgate-probe as a process of its own: what it needs, whom it serves, what it refuses, when it ends.
#include "trace/probe_process.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>

#include "probes/kgate_probe_wire.h"
#include "support/process.h"
#include "target.h"

namespace kgate {
namespace {

using trace::ProbeProcess;
namespace fs = std::filesystem;

constexpr uid_t kNobody = 65534;

// A folder that everyone may enter, with kgate-probe and what it is tried on; kgate-probe has the two capabilities.
class Installation {
 public:
  Installation() {
    fs::permissions(dir_.path(), fs::perms(0755));
    for (const char* file : {KGATE_PROBE_PROGRAM, KGATE_FAKE_DRIVER, KGATE_EXEC_APP})
      fs::copy_file(file, dir_.path() / fs::path(file).filename());
    probe = dir_.path() / fs::path(KGATE_PROBE_PROGRAM).filename();
    driver = dir_.path() / fs::path(KGATE_FAKE_DRIVER).filename();
    app = dir_.path() / fs::path(KGATE_EXEC_APP).filename();
    vfs_cap_data rights{};
    rights.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE;
    rights.data[CAP_TO_INDEX(CAP_BPF)].permitted |= CAP_TO_MASK(CAP_BPF);
    rights.data[CAP_TO_INDEX(CAP_PERFMON)].permitted |= CAP_TO_MASK(CAP_PERFMON);
    if (::setxattr(probe.c_str(), "security.capability", &rights, XATTR_CAPS_SZ_2, 0) != 0)
      problem = std::string("cannot set file capabilities: ") + std::strerror(errno);
  }
  std::string probe, driver, app, problem;

 private:
  TempDir dir_;
};

// Runs `work` in a child without rights; what it returns is the complaint.
std::string as_nobody(const std::function<std::string()>& work) {
  int ends[2];
  if (pipe(ends) != 0) return "pipe";
  pid_t child = fork();
  if (child == 0) {
    std::string text;
    if (setgroups(0, nullptr) != 0 || setgid(kNobody) != 0 || setuid(kNobody) != 0)
      text = "cannot become nobody";
    else
      prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), text = work();  // setuid made it look privileged
    (void)!write(ends[1], text.data(), text.size());
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status)) text += " (died)";
  return text;
}

std::string why(const Failure& failure) { return failure.where + ": " + failure.what + ". " + failure.hint; }

#define NEED_ROOT() \
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give rights away and to have none"

TEST(ProbeProcess, kgate_without_rights_traces_by_a_kgate_probe_that_has_them) {
  NEED_ROOT();
  NEED_EBPF();
  Installation installation;
  if (!installation.problem.empty()) GTEST_SKIP() << installation.problem;
  EXPECT_EQ(as_nobody([&]() -> std::string {
              setenv("KGATE_PROBE", installation.probe.c_str(), 1);
              Target target(installation.driver.c_str(), [](void* handle) {
                call(handle, "cuLaunchKernel", 100);
                call(handle, "cuStreamSynchronize", 3);
              });
              auto probes = HostProbes::attach(target.pid(), installation.driver);
              if (!probes) return why(probes.failure());
              target.run();
              std::map<std::string, int> seen;
              bool slept = false;
              auto symbols = (*probes)->symbols();
              for (const HostEvent& event : (*probes)->take()) {
                if (event.kind == HostEventKind::api) ++seen[symbols.at(event.symbol).name];
                slept |= event.kind == HostEventKind::off_cpu && event.state == 1;
              }
              if (seen["cuLaunchKernel"] != 100 || seen["cuStreamSynchronize"] != 3 || !slept) return "lost events";
              if ((*probes)->hits(ProbeSymbol::Use::launch) != 100) return "lost hits";
              if ((*probes)->health().ns_per_hit <= 0) return "not measured";
              return {};
            }),
            "");
}

TEST(ProbeProcess, without_rights_the_failure_names_the_command_that_gives_them) {
  NEED_ROOT();
  TempDir dir;
  fs::permissions(dir.path(), fs::perms(0755));
  fs::path probe = dir.path() / "kgate-probe";
  fs::copy_file(KGATE_PROBE_PROGRAM, probe);
  std::string complaint = as_nobody([&]() -> std::string {
    setenv("KGATE_PROBE", probe.c_str(), 1);
    return probe_support().hint;
  });
  EXPECT_NE(complaint.find("sudo setcap cap_bpf,cap_perfmon=ep " + probe.string()), std::string::npos) << complaint;
  complaint = as_nobody([&]() -> std::string {
    setenv("KGATE_PROBE", probe.c_str(), 1);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return probe_support().hint;
  });
  EXPECT_NE(complaint.find("no_new_privs"), std::string::npos) << complaint;
}

TEST(ProbeProcess, process_of_another_user_is_not_watched) {
  NEED_ROOT();
  NEED_EBPF();
  Installation installation;
  if (!installation.problem.empty()) GTEST_SKIP() << installation.problem;
  Target others(KGATE_FAKE_DRIVER, [](void*) {});
  std::string complaint = as_nobody([&]() -> std::string {
    setenv("KGATE_PROBE", installation.probe.c_str(), 1);
    auto probes = HostProbes::attach(others.pid(), installation.driver);
    return probes ? "watched" : probes.failure().what;
  });
  EXPECT_NE(complaint.find("is not the caller's"), std::string::npos) << complaint;
}

TEST(ProbeProcess, process_that_becomes_a_set_user_id_program_is_lost_from_sight) {
  NEED_ROOT();
  NEED_EBPF();
  Installation installation;
  if (!installation.problem.empty()) GTEST_SKIP() << installation.problem;
  auto hits = [&] {
    return as_nobody([&]() -> std::string {
      setenv("KGATE_PROBE", installation.probe.c_str(), 1);
      Target target(installation.driver.c_str(), [&](void*) {
        execl(installation.app.c_str(), "app", installation.driver.c_str(), "cuLaunchKernel", "5", nullptr);
      });
      auto probes = HostProbes::attach(target.pid(), installation.driver);
      if (!probes) return why(probes.failure());
      target.run();
      siginfo_t end{};
      waitid(P_PID, static_cast<id_t>(target.pid()), &end, WEXITED | WNOWAIT);
      return std::to_string((*probes)->hits(ProbeSymbol::Use::launch));
    });
  };
  EXPECT_EQ(hits(), "5");
  fs::permissions(installation.app, fs::perms(04755));
  EXPECT_EQ(hits(), "0");
}

TEST(ProbeProcess, process_that_has_still_to_execute_its_program_can_be_watched) {
  NEED_EBPF();
  for (ProbeMode mode : {ProbeMode::session, ProbeMode::multi, ProbeMode::perf}) {
    int go[2];
    ASSERT_EQ(pipe2(go, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
      char byte;
      (void)!read(go[0], &byte, 1);
      execl(KGATE_EXEC_APP, "app", KGATE_FAKE_DRIVER, "cuLaunchKernel", "1000", nullptr);
      _exit(99);
    }
    ProbeOptions options;
    options.mode = mode;
    auto probes = HostProbes::attach(child, KGATE_FAKE_DRIVER, options);
    (void)!write(go[1], "g", 1);
    int status = 0;
    waitpid(child, &status, 0);
    close(go[0]), close(go[1]);
    EXPECT_EQ(status, 0);
    if (!probes) continue;  // Modes says why
    EXPECT_EQ((*probes)->hits(ProbeSymbol::Use::launch), 1000u) << trace::attach_name(mode);
    size_t events = 0;
    for (const HostEvent& event : (*probes)->take()) events += event.kind == HostEventKind::api;
    EXPECT_EQ(events, 1000u) << trace::attach_name(mode);
  }
}

TEST(ProbeProcess, program_that_is_missing_or_another_is_a_failure_that_says_so) {
  auto with = [](const char* path) {
    setenv("KGATE_PROBE", path, 1);
    ProbeSupport support = probe_support();
    unsetenv("KGATE_PROBE");
    EXPECT_FALSE(support.ok);
    return support;
  };
  EXPECT_NE(with("/nonexistent/kgate-probe").detail.find("cannot run kgate-probe"), std::string::npos);
  EXPECT_NE(with("/nonexistent/kgate-probe").hint.find("KGATE_PROBE"), std::string::npos);
  EXPECT_NE(with("/bin/false").detail.find("ended without an answer: exit 1"), std::string::npos)
      << with("/bin/false").detail;
}

// kgate-probe, spoken to by hand.
class Raw {
 public:
  Raw() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("socketpair");
    channel = Fd(ends[0]);
    Fd theirs(ends[1]);
    Command command;
    command.argv = {KGATE_PROBE_PROGRAM};
    command.descriptors = {{theirs.get(), probe::kChannel}};
    command.limits.drop_capabilities = false;
    child.emplace(Child::spawn(command).value_or_throw(Exit::internal));
  }
  // What it answers to these bytes: "ok", or what it complains about.
  std::string answer(std::span<const std::byte> bytes, std::vector<int> descriptors) {
    probe::send_packet(channel.get(), bytes, descriptors);
    probe::Reply reply;
    std::string problem = probe::receive_packet(channel.get(), std::as_writable_bytes(std::span(&reply, 1)), &maps);
    if (!problem.empty()) return problem;
    EXPECT_EQ(maps.size(), reply.ok ? 3u : 0u);
    return reply.ok ? "ok" : probe::get_text(reply.what);
  }
  Fd channel;
  std::optional<Child> child;
  std::vector<Fd> maps;
};

std::string answer(const std::function<void(probe::Request*)>& change, int library = -1) {
  Fd driver = trace::open_library(KGATE_FAKE_DRIVER).value_or_throw(Exit::internal);
  probe::Request request;
  request.process = static_cast<uint32_t>(getpid());
  change(&request);
  Raw raw;
  return raw.answer(std::as_bytes(std::span(&request, 1)), {library >= 0 ? library : driver.get()});
}

TEST(ProbeProcess, requests_that_make_no_sense_are_refused) {
  const std::string nonsense = "the request makes no sense";
  EXPECT_EQ(answer([](auto* r) { r->magic = 7; }), nonsense);
  EXPECT_NE(answer([](auto* r) { r->version = 9; }).find("kgate speaks 9"), std::string::npos);
  EXPECT_EQ(answer([](auto* r) { r->mode = static_cast<probe::Mode>(4); }), nonsense);
  EXPECT_EQ(answer([](auto* r) { r->scheduler = 2; }), nonsense);
  EXPECT_EQ(answer([](auto* r) { r->process = 0; }), nonsense);
  EXPECT_EQ(answer([](auto* r) { r->process = 0xffffffff; }), nonsense);
  EXPECT_EQ(answer([](auto* r) { r->targets = KGATE_MAX_SYMBOLS + 1; }), nonsense);
  EXPECT_EQ(answer([](auto* r) { r->targets = 0xffffffff; }), nonsense);
  EXPECT_EQ(answer([](auto* r) { r->targets = 1, r->target[0] = {0, KGATE_MAX_SYMBOLS}; }), nonsense);
  EXPECT_EQ(answer([](auto* r) { r->targets = 1, r->target[0] = {~0ull, 0}; }), nonsense);
  EXPECT_NE(answer([](auto* r) { r->process = 0x7fffffff; }).find("no process"), std::string::npos);
}

TEST(ProbeProcess, library_must_be_a_file_that_is_open_for_reading) {
  auto nothing = [](auto*) {};
  Fd folder(open("/", O_RDONLY | O_CLOEXEC)), name(open(KGATE_FAKE_DRIVER, O_PATH | O_CLOEXEC));
  Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  TempDir dir;
  Fd write_only(open((dir.path() / "f").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_EQ(answer(nothing, folder.get()), "the library is not a file");
  EXPECT_EQ(answer(nothing, null.get()), "the library is not a file");
  EXPECT_EQ(answer(nothing, name.get()), "the library is not open for reading");
  EXPECT_EQ(answer(nothing, write_only.get()), "the library is not open for reading");
}

TEST(ProbeProcess, packets_of_other_sizes_or_with_other_descriptors_are_refused) {
  Fd driver = trace::open_library(KGATE_FAKE_DRIVER).value_or_throw(Exit::internal);
  probe::Request request;
  request.process = static_cast<uint32_t>(getpid());
  auto whole = std::as_bytes(std::span(&request, 1));
  std::vector<std::byte> longer(whole.begin(), whole.end());
  longer.resize(longer.size() + 100);
  int fd = driver.get();
  EXPECT_NE(Raw().answer(whole.first(40), {fd}).find("a packet of 40 bytes"), std::string::npos);
  EXPECT_NE(Raw().answer(longer, {fd}).find("too long"), std::string::npos);
  EXPECT_NE(Raw().answer(whole, {}).find("without a library"), std::string::npos);
  EXPECT_NE(Raw().answer(whole, {fd, fd}).find("without a library"), std::string::npos);
}

TEST(ProbeProcess, random_requests_are_answered_and_never_crash_it) {
  uint32_t state = 1;
  for (int i = 0; i < 20; ++i) {
    Fd driver = trace::open_library(KGATE_FAKE_DRIVER).value_or_throw(Exit::internal);
    probe::Request request;
    auto bytes = std::as_writable_bytes(std::span(&request, 1)).subspan(i % 2 ? 8 : 0);  // with and without the magic
    for (std::byte& byte : bytes) byte = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24);
    Raw raw;
    EXPECT_FALSE(raw.answer(std::as_bytes(std::span(&request, 1)), {driver.get()}).empty());
    EXPECT_EQ(raw.child->wait(std::chrono::seconds(10)).code, 1);
  }
}

TEST(ProbeProcess, ends_when_its_kgate_does) {
  NEED_EBPF();
  probe::Request request;
  request.process = static_cast<uint32_t>(getpid());
  Fd driver = trace::open_library(KGATE_FAKE_DRIVER).value_or_throw(Exit::internal);
  Raw raw;
  ASSERT_EQ(raw.answer(std::as_bytes(std::span(&request, 1)), {driver.get()}), "ok");
  EXPECT_FALSE(raw.child->poll());
  raw.channel.reset();
  ExitStatus status = raw.child->wait(std::chrono::seconds(20));
  EXPECT_TRUE(status.ok()) << describe(status);
}

TEST(ProbeProcess, holds_no_rights_while_it_watches) {
  NEED_EBPF();
  probe::Request request;
  request.process = static_cast<uint32_t>(getpid());
  Fd driver = trace::open_library(KGATE_FAKE_DRIVER).value_or_throw(Exit::internal);
  Raw raw;
  ASSERT_EQ(raw.answer(std::as_bytes(std::span(&request, 1)), {driver.get()}), "ok");
  std::string status = *read_file("/proc/" + std::to_string(raw.child->pid()) + "/status");
  EXPECT_NE(status.find("CapPrm:\t0000000000000000"), std::string::npos) << status;
}

TEST(ProbeProcess, does_nothing_when_it_is_started_by_hand) {
  Command command;
  command.argv = {KGATE_PROBE_PROGRAM};
  auto captured = run_captured(command, std::chrono::seconds(10));
  ASSERT_TRUE(captured);
  EXPECT_EQ(captured->status.code, 64);
  EXPECT_NE(captured->output.find("started by kgate"), std::string::npos);
}

}  // namespace
}  // namespace kgate
