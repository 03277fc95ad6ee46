#include "support/process.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>

extern char** environ;

namespace kgate {

namespace {

std::atomic<bool> g_interrupted{false};

void set_limit(int resource, const std::optional<uint64_t>& value) {
  if (!value) return;
  rlimit limit{*value, *value};
  if (resource == RLIMIT_CPU) limit.rlim_max = *value + 1;  // SIGXCPU first, SIGKILL a second later
  ::setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

void drop_all_capabilities() {
  for (int cap = 0; ::prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; ++cap) ::prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  ::syscall(SYS_capset, &header, none);
}

// Runs in the child between fork and exec: async-signal-safe calls only, everything was prepared before.
[[noreturn]] void exec_child(const char* path, char* const* argv, char* const* envp, const Command& command,
                             const std::vector<std::pair<int, int>>& moved, int error_fd, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int sig : {SIGINT, SIGTERM, SIGPIPE}) ::signal(sig, SIG_DFL);
  rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  set_limit(RLIMIT_AS, command.limits.address_space_bytes);
  set_limit(RLIMIT_CPU, command.limits.cpu_seconds);
  set_limit(RLIMIT_FSIZE, command.limits.file_bytes);
  set_limit(RLIMIT_NOFILE, command.limits.open_files);
  if (command.limits.drop_capabilities) drop_all_capabilities();
  if (command.limits.no_new_privs) ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (command.limits.fixed_addresses)
    if (int now = ::personality(0xffffffff); now != -1)
      ::personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE);
  // The sources were duplicated above every target, so no dup2 overwrites a source that is still needed.
  int highest = 2;
  for (auto [from, to] : moved) {
    ::dup2(from, to);
    highest = std::max(highest, to);
  }
  bool has_stdin = false;
  for (auto [from, to] : moved) has_stdin |= to == 0;
  if (!has_stdin) {
    int null = ::open("/dev/null", O_RDONLY);
    ::dup2(null, 0);
  }
  int error_at = highest + 1;
  ::dup3(error_fd, error_at, O_CLOEXEC);
  ::close_range(static_cast<unsigned>(error_at + 1), ~0u, 0);
  for (int fd = 3; fd < error_at; ++fd) {
    bool wanted = false;
    for (auto [from, to] : moved) wanted |= to == fd;
    if (!wanted) ::close(fd);
  }
  ::execve(path, argv, envp);
  int code = errno;
  [[maybe_unused]] ssize_t n = ::write(error_at, &code, sizeof code);
  ::_exit(127);
}

}  // namespace

std::string describe(const ExitStatus& status) {
  if (status.timed_out) return "timed out";
  if (status.signal) {
    const char* name = ::sigabbrev_np(status.signal);
    return name ? std::string("SIG") + name : "signal " + std::to_string(status.signal);
  }
  return "exit " + std::to_string(status.code);
}

std::optional<std::string> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (::access(name.c_str(), X_OK) == 0) return name;
    return std::nullopt;
  }
  const char* path = std::getenv("PATH");
  std::string_view rest = path ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    size_t colon = rest.find(':');
    std::string full = std::string(rest.substr(0, colon)) + "/" + name;
    if (::access(full.c_str(), X_OK) == 0 && !std::filesystem::is_directory(full)) return full;
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  return std::nullopt;
}

std::string self_directory() {
  std::error_code error;
  auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) throw Error(Exit::internal, "cannot read /proc/self/exe: " + error.message());
  return path.parent_path().string();
}

Result<Child> Child::spawn(const Command& command) {
  if (command.argv.empty()) return Failure{"no program to run", {}, {}};
  auto path = find_program(command.argv[0]);
  if (!path) return Failure{"cannot find program '" + command.argv[0] + "'", {}, {}};

  std::vector<char*> argv;
  for (const auto& arg : command.argv) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  std::vector<std::string> environment;
  for (char** entry = environ; *entry; ++entry) {
    std::string_view text = *entry;
    if (!command.environment.contains(std::string(text.substr(0, text.find('='))))) environment.emplace_back(text);
  }
  for (const auto& [key, value] : command.environment) environment.push_back(key + "=" + value);
  std::vector<char*> envp;
  for (auto& entry : environment) envp.push_back(entry.data());
  envp.push_back(nullptr);

  int base = 64;
  for (auto [from, to] : command.descriptors) base = std::max({base, from + 1, to + 1});
  std::vector<Fd> raised;
  std::vector<std::pair<int, int>> moved;
  for (auto [from, to] : command.descriptors) {
    raised.emplace_back(::fcntl(from, F_DUPFD_CLOEXEC, base));
    if (!raised.back()) return Failure{std::string("cannot duplicate a descriptor: ") + std::strerror(errno), {}, {}};
    moved.emplace_back(raised.back().get(), to);
  }
  int pipe_fds[2];
  if (::pipe2(pipe_fds, O_CLOEXEC) != 0) return Failure{std::string("pipe: ") + std::strerror(errno), {}, {}};
  Fd read_end(pipe_fds[0]), write_end(pipe_fds[1]);
  Fd high_error(::fcntl(write_end.get(), F_DUPFD_CLOEXEC, base));
  write_end.reset();

  pid_t parent = ::getpid();
  pid_t pid = ::fork();
  if (pid < 0) return Failure{std::string("fork: ") + std::strerror(errno), {}, {}};
  if (pid == 0) exec_child(path->c_str(), argv.data(), envp.data(), command, moved, high_error.get(), parent);
  ::setpgid(pid, pid);
  high_error.reset();
  int code = 0;
  ssize_t n;
  while ((n = ::read(read_end.get(), &code, sizeof code)) < 0 && errno == EINTR) {
  }
  if (n == sizeof code) {
    ::waitpid(pid, nullptr, 0);
    return Failure{std::string("cannot execute: ") + std::strerror(code), *path, {}};
  }
  return Child(pid);
}

Child::Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), status_(other.status_) {}

Child::~Child() {
  if (pid_ <= 0) return;
  kill_group();
  if (!status_) ::waitpid(pid_, nullptr, 0);
}

void Child::kill_group() {
  if (pid_ > 0) ::kill(-pid_, SIGKILL);
}

std::optional<ExitStatus> Child::poll() {
  if (status_) return status_;
  int raw = 0;
  pid_t got = ::waitpid(pid_, &raw, WNOHANG);
  if (got != pid_) return std::nullopt;
  ExitStatus status;
  if (WIFSIGNALED(raw))
    status.signal = WTERMSIG(raw);
  else
    status.code = WEXITSTATUS(raw);
  status_ = status;
  return status_;
}

ExitStatus Child::wait(std::chrono::milliseconds timeout) {
  auto deadline = std::chrono::steady_clock::now() + timeout;
  for (int step_us = 100;; step_us = std::min(step_us * 2, 5000)) {
    if (auto status = poll()) return *status;
    if (std::chrono::steady_clock::now() >= deadline || interrupted()) {
      kill_group();
      int raw = 0;
      ::waitpid(pid_, &raw, 0);
      status_ = ExitStatus{0, SIGKILL, true};
      return *status_;
    }
    ::usleep(step_us);
  }
}

Result<Captured> run_captured(Command command, std::chrono::milliseconds timeout, size_t max_output) {
  int pipe_fds[2];
  if (::pipe2(pipe_fds, O_CLOEXEC) != 0) return Failure{std::string("pipe: ") + std::strerror(errno), {}, {}};
  Fd read_end(pipe_fds[0]), write_end(pipe_fds[1]);
  command.descriptors.emplace_back(write_end.get(), 1);
  command.descriptors.emplace_back(write_end.get(), 2);
  auto child = Child::spawn(command);
  if (!child) return child.failure();
  write_end.reset();

  Captured captured;
  auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0 || interrupted()) break;
    pollfd p{read_end.get(), POLLIN, 0};
    int ready = ::poll(&p, 1, static_cast<int>(std::min<int64_t>(left.count(), 100)));
    if (ready < 0 && errno != EINTR) break;
    if (ready <= 0) continue;
    char buffer[4096];
    ssize_t n = ::read(read_end.get(), buffer, sizeof buffer);
    if (n <= 0) break;
    if (captured.output.size() < max_output)
      captured.output.append(buffer, std::min<size_t>(static_cast<size_t>(n), max_output - captured.output.size()));
  }
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  captured.status = child->wait(std::max(left, std::chrono::milliseconds(0)));
  child->kill_group();  // whatever the child left behind
  return captured;
}

void install_interrupt_handler() {
  struct sigaction action {};
  action.sa_handler = [](int) { g_interrupted.store(true); };
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

bool interrupted() { return g_interrupted.load(); }

void throw_if_interrupted() {
  if (interrupted()) throw Error(Exit::interrupted, "interrupted");
}

}  // namespace kgate
