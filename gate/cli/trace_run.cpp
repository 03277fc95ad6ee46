// See the header.
//
// Probes are attached when a process says hello from inside cuInit, which is before anything can be launched: then the
// driver is loaded, so that nobody has to guess which one the dynamic loader will take, and every process of the
// application gets its own probes, not only the first.
#include "cli/trace_run.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "cli/application.h"
#include "support/fd.h"
#include "support/log.h"
#include "support/text.h"
#include "trace/inject_wire.h"

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
  refuse_other_tools(request.injector);
  Fd listener = listen_in(request.folder);
  ApplicationRun run;
  run.begin = monotonic_ns();
  Application application({request.argv,
                           {{kInjection, request.injector.string()}, {inject::kTraceDir, request.folder.string()}},
                           request.cuda_library,
                           request.folder});
  run.process = static_cast<uint32_t>(application.process());
  std::vector<Watched> watched;
  for (bool over = false; !over;) {
    pollfd sources[] = {
        {application.ended(), POLLIN, 0}, {listener.get(), POLLIN, 0}, {application.signalled(), POLLIN, 0}};
    if (::poll(sources, 3, 200) < 0 && errno != EINTR) cannot("wait for the application");
    if (sources[1].revents != 0) welcome(listener, watched);
    if (sources[2].revents != 0) application.pass_signals_on();
    for (Watched& one : watched) one.collect();
    over = sources[0].revents != 0;
  }
  run.end = monotonic_ns();
  run.status = application.wait();
  run.interrupted = application.interrupted();
  for (Watched& one : watched) run.processes.push_back(one.finish());
  return run;
}

}  // namespace kgate::cli
