// See the header.
//
// Probes are attached when a process says hello from inside cuInit, which is before anything can be launched: then the
// driver is loaded, so that nobody has to guess which one the dynamic loader will take, and every process of the
// application gets its own probes, not only the first.
//
// The application stays in kgate's process group, since it may read from the terminal. An interrupt that is typed there
// reaches both; one that is sent to kgate alone is passed on.
#include "cli/trace_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "support/fd.h"
#include "support/log.h"
#include "support/text.h"
#include "trace/inject_wire.h"

extern char** environ;

namespace kgate::cli {

namespace {

constexpr const char* kInjection = "CUDA_INJECTION64_PATH";

uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

[[noreturn]] void cannot(const std::string& what, int error = errno) {
  throw Error(Exit::environment, "cannot " + what + ": " + std::strerror(error), "kgate trace");
}

std::string command_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/cmdline", std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  while (!text.empty() && text.back() == '\0') text.pop_back();
  for (char& c : text)
    if (c == '\0') c = ' ';
  return text;
}

// 0: not known.
uint32_t parent_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("PPid:")) return static_cast<uint32_t>(std::strtoul(line.c_str() + 5, nullptr, 10));
  return 0;
}

// The files that a process has mapped and that a CUDA driver could be: the one it names, and others called libcuda.so.
struct Drivers {
  bool named = false;
  std::string other;
};
Drivers mapped_drivers(pid_t process, const std::string& named) {
  Drivers found;
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    size_t begin = line.find('/');
    if (begin == line.npos) continue;
    std::string path = line.substr(begin);
    if (path == named)
      found.named = true;
    else if (path.substr(path.rfind('/') + 1).starts_with("libcuda.so"))
      found.other = path;
  }
  return found;
}

// Why the probes would not see what the process does; empty: they will.
std::string driver_problem(pid_t process, const std::string& named) {
  Drivers drivers = mapped_drivers(process, named);
  if (!drivers.named) return "the driver that the process names is not what it has loaded: " + named;
  if (!drivers.other.empty()) return "the process has loaded a second driver: " + drivers.other;
  return {};
}

Fd listen_in(const std::filesystem::path& folder) {
  Fd directory(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string path = "/proc/self/fd/" + std::to_string(directory.get()) + "/" + inject::kSocket;  // any name fits
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket || ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), 64) != 0)
    cannot("listen in " + folder.string());
  return socket;
}

// What the application finds in its environment; whatever was there before stays, but for what kgate must own.
std::vector<std::string> environment(const ApplicationRequest& request) {
  std::vector<std::pair<std::string, std::string>> ours = {{kInjection, request.injector.string()},
                                                           {inject::kTraceDir, request.folder.string()}};
  if (!request.cuda_library.empty()) {
    const char* before = std::getenv("LD_LIBRARY_PATH");
    std::string path = (request.folder / "driver").string();
    ours.emplace_back("LD_LIBRARY_PATH", before != nullptr && *before != '\0' ? path + ":" + before : path);
  }
  std::vector<std::string> all;
  for (char** at = environ; *at != nullptr; ++at) {
    std::string entry = *at;
    bool replaced = false;
    for (const auto& [name, value] : ours) replaced |= entry.starts_with(name + "=");
    if (!replaced) all.push_back(std::move(entry));
  }
  for (const auto& [name, value] : ours) all.push_back(name + "=" + value);
  return all;
}

void place_driver(const ApplicationRequest& request) {
  std::error_code error;
  std::filesystem::path real = std::filesystem::canonical(request.cuda_library, error);
  if (error) throw Error(Exit::usage, "no such library: " + error.message(), request.cuda_library);
  std::filesystem::create_directory(request.folder / "driver", error);
  if (!error) std::filesystem::create_symlink(real, request.folder / "driver" / "libcuda.so.1", error);
  if (error) throw Error(Exit::environment, "cannot place a driver library: " + error.message(), request.folder);
}

// SIGINT, SIGTERM and SIGHUP as data, from the construction to the end.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set_, signal);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
    fd_ = Fd(::signalfd(-1, &set_, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd_) cannot("read signals");
  }
  ~Signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  int fd() const { return fd_.get(); }
  const sigset_t& before() const { return before_; }

  // True: one came. Those that a process sent are passed on; those of a terminal have reached the application already.
  bool pass_on(pid_t application) {
    signalfd_siginfo info{};
    bool came = false;
    while (::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      came = true;
      if (info.ssi_code <= 0) ::kill(application, static_cast<int>(info.ssi_signo));
    }
    return came;
  }

 private:
  sigset_t set_, before_;
  Fd fd_;
};

// Between fork and exec only what is safe in a process that may have had threads.
[[noreturn]] void become(char* const* argv, char* const* variables, const sigset_t& mask, int report) {
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::execvpe(argv[0], argv, variables);
  int error = errno;
  (void)!::write(report, &error, sizeof error);
  _exit(127);
}

pid_t start(const ApplicationRequest& request, const Signals& signals) {
  std::vector<std::string> argv = request.argv, variables = environment(request);
  std::vector<char*> arguments, settings;
  for (std::string& text : argv) arguments.push_back(text.data());
  for (std::string& text : variables) settings.push_back(text.data());
  arguments.push_back(nullptr);
  settings.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) cannot("make a pipe");
  Fd reading(ends[0]), writing(ends[1]);
  pid_t child = ::fork();
  if (child < 0) cannot("fork");
  if (child == 0) become(arguments.data(), settings.data(), signals.before(), writing.get());
  writing.reset();
  int error = 0;
  if (::read(reading.get(), &error, sizeof error) == static_cast<ssize_t>(sizeof error)) {
    ::waitpid(child, nullptr, 0);
    throw Error(Exit::usage, std::string("cannot run it: ") + std::strerror(error), sanitize(request.argv[0], 200),
                "give the program and its arguments after '--'");
  }
  return child;
}

// A process that is being watched.
struct Watched {
  ApplicationProcess seen;
  uint32_t tracer = 0;  // its thread, whose doings are not the application's
  std::unique_ptr<HostProbes> probes;

  void collect() {
    if (!probes) return;
    for (const HostEvent& event : probes->take())
      if (event.thread != tracer) seen.host_events.push_back(event);
  }
  ApplicationProcess finish() {
    collect();
    if (probes) {
      seen.symbols = probes->symbols();
      seen.probes = probes->health();
      probes.reset();
    }
    return std::move(seen);
  }
};

// One connection: who it is, then probes, then the answer, which is the end of the connection.
void welcome(const Fd& listener, std::vector<Watched>& all) {
  Fd peer(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!peer) return;
  timeval limit{2, 0};
  ::setsockopt(peer.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ucred who{};
  socklen_t size = sizeof who;
  inject::Hello hello;
  if (::getsockopt(peer.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 ||
      ::recv(peer.get(), &hello, sizeof hello, 0) != static_cast<ssize_t>(sizeof hello) ||
      hello.magic != inject::kHelloMagic)
    return;
  hello.driver[sizeof hello.driver - 1] = '\0';
  Watched watched;
  watched.seen.process = hello.process;
  watched.seen.parent = parent_of(who.pid);
  watched.seen.command = command_of(who.pid);
  watched.seen.uses_cuda = true;
  watched.seen.driver = hello.driver;
  watched.tracer = hello.thread;
  if (static_cast<uint32_t>(who.pid) != hello.process) {
    watched.seen.without_probes = "the process lives in another pid namespace";
  } else if (std::string problem = driver_problem(who.pid, hello.driver); !problem.empty()) {
    watched.seen.without_probes = problem;
  } else {
    auto probes = HostProbes::attach(who.pid, hello.driver);
    if (probes)
      watched.probes = std::move(*probes);
    else
      watched.seen.without_probes = probes.failure().what;
  }
  log::detail("process " + std::to_string(hello.process) + " uses CUDA: " + sanitize(watched.seen.command, 200) +
              (watched.probes ? "" : " (no probes: " + watched.seen.without_probes + ")"));
  all.push_back(std::move(watched));
}

}  // namespace

ApplicationRun run_application(const ApplicationRequest& request) {
  const char* injected = std::getenv(kInjection);
  if (injected != nullptr && *injected != '\0' && request.injector != injected)
    throw Error(Exit::usage, std::string("is set already: ") + sanitize(injected, 200), kInjection,
                "another tool traces here: unset it, or trace without that tool");
  if (!request.cuda_library.empty()) place_driver(request);
  Fd listener = listen_in(request.folder);
  Signals signals;
  ApplicationRun run;
  run.begin = monotonic_ns();
  pid_t application = start(request, signals);
  run.process = static_cast<uint32_t>(application);
  Fd ended(static_cast<int>(::syscall(SYS_pidfd_open, application, 0)));
  if (!ended) {
    int error = errno;
    ::kill(application, SIGKILL);
    ::waitpid(application, nullptr, 0);
    cannot("watch the application", error);
  }
  std::vector<Watched> watched;
  for (bool over = false; !over;) {
    pollfd sources[] = {{ended.get(), POLLIN, 0}, {listener.get(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
    if (::poll(sources, 3, 200) < 0 && errno != EINTR) cannot("wait for the application");
    if (sources[1].revents != 0) welcome(listener, watched);
    if (sources[2].revents != 0) run.interrupted |= signals.pass_on(application);
    for (Watched& one : watched) one.collect();
    over = sources[0].revents != 0;
  }
  run.end = monotonic_ns();
  int status = 0;
  ::waitpid(application, &status, 0);
  run.status.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  run.status.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  for (Watched& one : watched) run.processes.push_back(one.finish());
  return run;
}

}  // namespace kgate::cli
