#include "probes/kgate_probe_program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "probes/kgate_probe_measure.h"
#include "support/text.h"

// The object file, as the build compiled it from probes/host.bpf.c.
asm(".section .rodata\n.balign 16\n"
    ".globl kgate_bpf_object\nkgate_bpf_object:\n.incbin \"" KGATE_BPF_OBJECT
    "\"\n"
    ".globl kgate_bpf_object_end\nkgate_bpf_object_end:\n.byte 0\n.previous\n");
extern "C" const char kgate_bpf_object[], kgate_bpf_object_end[];

namespace kgate::probe {

namespace {

// From include/uapi/linux/bpf.h of kernel 6.13; older headers lack them.
constexpr uint32_t kTraceUprobeMulti = 48, kTraceUprobeSession = 57, kUprobeMultiReturn = 1;
struct MultiLinkAttributes {
  uint32_t program, target, attach_type, flags;
  uint64_t path, offsets, reference_counters, cookies;
  uint32_t count, multi_flags, pid, pad;
};

constexpr const char* kKernelHint =
    "Tier T0 needs Linux 5.18 or newer with BTF, or pass --require-tier T2 to do without eBPF.";
constexpr const char* kNoNewPrivileges =
    "A parent of kgate has set no_new_privs, so that file capabilities give nothing: run kgate outside that sandbox, "
    "or "
    "as root.";

std::string rights_hint() {
  if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return kNoNewPrivileges;
  std::error_code error;
  std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  return "Give kgate-probe the rights once: sudo setcap cap_bpf,cap_perfmon=ep " + (error ? "kgate-probe" : self);
}

// libbpf reports through a process-wide callback; the last complaint of a call that failed says most.
std::string complaint;
int keep_complaint(libbpf_print_level level, const char* format, va_list arguments) {
  if (level != LIBBPF_WARN) return 0;
  char text[1024];
  vsnprintf(text, sizeof text, format, arguments);
  complaint = text;
  return 0;
}

bool lacks_rights(int error) { return error == EPERM || error == EACCES; }

int link_create(int program, uint32_t attach_type, const std::string& path, const std::vector<uint64_t>& offsets,
                const std::vector<uint64_t>& cookies, uint32_t pid, bool on_return) {
  MultiLinkAttributes attributes{};
  attributes.program = static_cast<uint32_t>(program);
  attributes.attach_type = attach_type;
  attributes.path = reinterpret_cast<uint64_t>(path.c_str());
  attributes.offsets = reinterpret_cast<uint64_t>(offsets.data());
  attributes.cookies = reinterpret_cast<uint64_t>(cookies.data());
  attributes.count = static_cast<uint32_t>(offsets.size());
  attributes.multi_flags = on_return ? kUprobeMultiReturn : 0;
  attributes.pid = pid;
  return static_cast<int>(syscall(SYS_bpf, BPF_LINK_CREATE, &attributes, sizeof attributes));
}

}  // namespace

Failure bpf_failure(const std::string& what, int error) {
  std::string text = what + ": " + std::strerror(error);
  std::string detail = sanitize(trim(std::exchange(complaint, {})), 200);
  if (!lacks_rights(error) && !detail.empty()) text += " (" + detail + ")";
  return {text, "eBPF", lacks_rights(error) ? rights_hint() : kKernelHint};
}

Program::~Program() {
  detach();
  bpf_object__close(object_);
}

void Program::detach() {
  raw_links_.clear();
  for (bpf_link* link : links_) bpf_link__destroy(link);
  links_.clear();
}

bpf_program* Program::program(const char* name) const { return bpf_object__find_program_by_name(object_, name); }
int Program::map(const char* name) const { return bpf_object__find_map_fd_by_name(object_, name); }

std::optional<Failure> Program::load() {
  LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "kgate");
  object_ =
      bpf_object__open_mem(kgate_bpf_object, static_cast<size_t>(kgate_bpf_object_end - kgate_bpf_object), &options);
  if (object_ == nullptr) return bpf_failure("cannot read the embedded eBPF object", errno);
  bool session = mode_ == Mode::session;
  bpf_program__set_autoload(program("call_session"), session);
  bpf_program__set_autoload(program("call_entry"), !session);
  bpf_program__set_autoload(program("call_return"), !session);
  if (mode_ != Mode::perf)
    for (const char* name : {"call_session", "call_entry", "call_return"})
      bpf_program__set_expected_attach_type(
          program(name), static_cast<bpf_attach_type>(session ? kTraceUprobeSession : kTraceUprobeMulti));
  if (int error = bpf_object__load(object_); error != 0) return bpf_failure("cannot load the eBPF programs", -error);
  return {};
}

std::optional<Failure> Program::configure(uint32_t process, bool unprivileged) {
  struct stat space {};
  if (stat("/proc/self/ns/pid", &space) != 0) return bpf_failure("cannot find the pid namespace", errno);
  kgate_probe_config config{space.st_dev, space.st_ino, process, unprivileged};
  uint32_t zero = 0;
  if (bpf_map_update_elem(map("config"), &zero, &config, BPF_ANY) != 0)
    return bpf_failure("cannot configure the eBPF programs", errno);
  return {};
}

// Kernels before mid-2024 matched the pid of a uprobe_multi link against the thread, so that only the main thread's
// calls were seen. The fix also refuses negative pids (libbpf tells them apart in the same way).
std::optional<Failure> Program::check_pid_filter() {
  if (mode_ == Mode::perf) return {};
  bool session = mode_ == Mode::session;
  Fd link(link_create(bpf_program__fd(program(session ? "call_session" : "call_entry")),
                      session ? kTraceUprobeSession : kTraceUprobeMulti, "/", {0}, {0}, ~0u, false));
  if (!link && errno == EINVAL) return {};
  return Failure{"this kernel's uprobe_multi filters by thread, not by process", "eBPF", kKernelHint};
}

// A hit of this very process's own function, by the same programs and links that the watched process will have.
std::optional<Failure> Program::measure() {
  CallSite site;
  if (!find_call_site(&site)) return Failure{"cannot find kgate-probe's own code in /proc/self/maps", "eBPF", {}};
  auto own = static_cast<uint32_t>(::getpid());
  if (auto problem = configure(own, false)) return problem;
  double bare = ns_per_call();
  if (auto problem = attach_calls(own, site.file, {{site.offset, KGATE_OWN_SYMBOL}})) return problem;
  double probed = ns_per_call();
  detach();
  if (auto problem = check_own_hits(map("events"), map("hits"))) return problem;
  ns_per_hit_ = std::max(probed - bare, 0.0);
  return {};
}

std::optional<Failure> Program::attach_calls(uint32_t process, const std::string& library,
                                             const std::vector<Target>& targets) {
  if (targets.empty()) return {};
  if (mode_ == Mode::perf) return attach_perf(process, library, targets);
  std::vector<uint64_t> offsets, cookies;
  for (const Target& target : targets) {
    offsets.push_back(target.offset);
    cookies.push_back(target.cookie);
  }
  auto add = [&](const char* name, uint32_t type, bool on_return) {
    int fd = link_create(bpf_program__fd(program(name)), type, library, offsets, cookies, process, on_return);
    if (fd >= 0) raw_links_.emplace_back(fd);
    return fd >= 0;
  };
  // Return before entry: a call that is under way meanwhile is then missed whole, not halved.
  bool ok = mode_ == Mode::session
                ? add("call_session", kTraceUprobeSession, false)
                : add("call_return", kTraceUprobeMulti, true) && add("call_entry", kTraceUprobeMulti, false);
  if (!ok) return bpf_failure("cannot attach uprobes to process " + std::to_string(process), errno);
  return {};
}

std::optional<Failure> Program::attach_perf(uint32_t process, const std::string& library,
                                            const std::vector<Target>& targets) {
  for (bool on_return : {true, false}) {
    for (const Target& target : targets) {
      LIBBPF_OPTS(bpf_uprobe_opts, options, .bpf_cookie = target.cookie, .retprobe = on_return);
      bpf_link* link =
          bpf_program__attach_uprobe_opts(program(on_return ? "call_return" : "call_entry"), static_cast<int>(process),
                                          library.c_str(), target.offset, &options);
      if (link == nullptr) return bpf_failure("cannot attach a uprobe to process " + std::to_string(process), errno);
      links_.push_back(link);
    }
  }
  return {};
}

std::optional<Failure> Program::attach_tracepoints(bool scheduler) {
  for (const char* name : {"on_switch", "on_wakeup", "on_fork", "on_exec"}) {
    if (!scheduler && (name == std::string_view("on_switch") || name == std::string_view("on_wakeup"))) continue;
    bpf_link* link = bpf_program__attach(program(name));
    if (link == nullptr) return bpf_failure("cannot attach to the scheduler's tracepoints", errno);
    links_.push_back(link);
  }
  return {};
}

// What is missing for the best way is what is worth telling, unless rights are the problem everywhere.
Result<std::unique_ptr<Program>> Program::attach(const Watch& watch, Mode wanted) {
  libbpf_set_print(keep_complaint);
  std::optional<Failure> first;
  for (Mode mode : {Mode::session, Mode::multi, Mode::perf}) {
    if (wanted != Mode::automatic && wanted != mode) continue;
    std::unique_ptr<Program> program(new Program(mode));
    std::optional<Failure> problem = program->load();
    if (!problem) problem = program->check_pid_filter();
    if (!problem) problem = program->measure();
    if (!problem) problem = program->configure(watch.process, watch.unprivileged);
    if (!problem) problem = program->attach_tracepoints(watch.scheduler);
    if (!problem) problem = program->attach_calls(watch.process, watch.library, watch.targets);
    if (!problem) return program;
    bool rights = problem->hint != kKernelHint && !problem->hint.empty();
    if (!first || rights) first = std::move(problem);
  }
  return *first;
}

}  // namespace kgate::probe
