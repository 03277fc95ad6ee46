// kgate-probe: the only program of kgate that needs rights (CAP_BPF and CAP_PERFMON, or root), and therefore small.
// kgate starts it with a socket as descriptor 3 and asks it to watch one process. It answers with the descriptors that
// the events are read from, gives its rights up, holds the probes and ends with kgate.
//
// What it will not do for a caller who is not root: watch another user's process, or one that has more rights than its
// user (its /proc entry belongs to root); probe a file that the caller cannot read (the caller sends it opened); watch
// what the process does after it has become a set-user-id program (host.bpf.c).
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "probes/kgate_probe_program.h"

namespace {

using kgate::Failure;
using kgate::Fd;
using namespace kgate::probe;

Failure refused(const std::string& what, const std::string& hint = {}) { return {what, "kgate-probe", hint}; }

std::optional<Failure> check_request(const Request& request) {
  if (request.magic != kMagic) return refused("the request makes no sense");
  if (request.version != kVersion)
    return refused("speaks version " + std::to_string(kVersion) + ", kgate speaks " + std::to_string(request.version),
                   "Install kgate and kgate-probe together.");
  bool sound = request.process >= 1 && request.process <= INT32_MAX && request.mode <= Mode::perf &&
               request.scheduler <= 1 && request.targets <= KGATE_MAX_SYMBOLS;
  for (uint32_t i = 0; sound && i < request.targets; ++i)
    sound = request.target[i].cookie < KGATE_MAX_SYMBOLS && request.target[i].offset <= INT64_MAX;
  if (!sound) return refused("the request makes no sense");
  return {};
}

// Who could not read the file, or only holds its name (O_PATH), may not probe it.
std::optional<Failure> check_library(const Fd& library) {
  struct stat st {};
  int flags = ::fcntl(library.get(), F_GETFL);
  if (flags < 0 || ::fstat(library.get(), &st) != 0 || !S_ISREG(st.st_mode))
    return refused("the library is not a file");
  if ((flags & O_PATH) != 0 || (flags & O_ACCMODE) == O_WRONLY) return refused("the library is not open for reading");
  return {};
}

std::optional<Failure> check_owner(uint32_t process, uid_t caller) {
  if (caller == 0) return {};
  std::string folder = "/proc/" + std::to_string(process);
  auto denied = [&] {
    return refused("process " + std::to_string(process) + " is not the caller's",
                   "Trace programs of your own user, without set-user-id or file capabilities, or run kgate as root.");
  };
  struct stat st {};
  if (::stat(folder.c_str(), &st) != 0 || st.st_uid != caller) return denied();
  std::ifstream status(folder + "/status");
  for (std::string line; std::getline(status, line);) {
    unsigned real = 0, effective = 0, saved = 0, files = 0;
    if (std::sscanf(line.c_str(), "Uid: %u %u %u %u", &real, &effective, &saved, &files) != 4) continue;
    return real == caller && effective == caller && saved == caller && files == caller ? std::nullopt
                                                                                       : std::optional(denied());
  }
  return denied();
}

bool ended(const Fd& process) {
  pollfd p{process.get(), POLLIN, 0};
  return ::poll(&p, 1, 0) != 0;
}

// `process_handle` stands for the process from before it was checked until after it was attached to: a number that was
// given to another process meanwhile is noticed.
kgate::Result<std::unique_ptr<Program>> watch(const Request& request, const Fd& library, Fd* process_handle) {
  if (auto problem = check_request(request)) return *problem;
  if (auto problem = check_library(library)) return *problem;
  *process_handle = Fd(static_cast<int>(::syscall(SYS_pidfd_open, request.process, 0)));
  if (!*process_handle) return refused("no process " + std::to_string(request.process) + ": " + std::strerror(errno));
  uid_t caller = ::getuid();
  if (auto problem = check_owner(request.process, caller)) return *problem;
  Watch watch{request.process,
              caller != 0,
              "/proc/self/fd/" + std::to_string(library.get()),
              {request.target, request.target + request.targets},
              request.scheduler == 1};
  auto program = Program::attach(watch, request.mode);
  if (program && ended(*process_handle)) return refused("process " + std::to_string(request.process) + " has ended");
  return program;
}

void give_rights_up() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  ::syscall(SYS_capset, &header, none);
}

// Until kgate closes its end. A process that has ended is watched no longer: its number may become another's.
void hold(const Fd& channel, const Fd& process, Program& program) {
  pollfd both[] = {{channel.get(), POLLIN, 0}, {process.get(), POLLIN, 0}};
  for (nfds_t count = 2;;) {
    if (::poll(both, count, -1) < 0 && errno != EINTR) return;
    if (both[0].revents != 0) return;
    if (count == 2 && both[1].revents != 0) {
      program.detach();
      count = 1;
    }
  }
}

}  // namespace

int main() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGPIPE, SIG_IGN);
  int type = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(kChannel, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET) {
    std::fprintf(stderr, "kgate-probe is started by kgate and does nothing by itself.\n");
    return 64;
  }
  Fd channel(kChannel), process;
  Request request;
  std::vector<Fd> library;
  std::string problem = receive_packet(channel.get(), std::as_writable_bytes(std::span(&request, 1)), &library);
  if (problem == "closed") return 0;
  if (problem.empty() && library.size() != 1) problem = "without a library";
  auto program = problem.empty() ? watch(request, library[0], &process)
                                 : kgate::Result<std::unique_ptr<Program>>(refused("the request is " + problem));
  give_rights_up();
  Reply reply;
  int descriptors[kReplyDescriptors] = {};
  if (program) {
    reply.ok = 1;
    reply.mode = (*program)->mode();
    reply.ns_per_hit = (*program)->ns_per_hit();
    descriptors[kRing] = (*program)->map("events");
    descriptors[kCounters] = (*program)->map("counters");
    descriptors[kHits] = (*program)->map("hits");
  } else {
    put_text(reply.what, program.failure().what);
    put_text(reply.where, program.failure().where);
    put_text(reply.hint, program.failure().hint);
  }
  auto sent = std::span<const int>(descriptors).first(program ? kReplyDescriptors : 0);
  if (!send_packet(channel.get(), std::as_bytes(std::span(&reply, 1)), sent) || !program) return program ? 0 : 1;
  hold(channel, process, **program);
  return 0;
}
