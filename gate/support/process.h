// Child processes: limited, watched, killed with their whole process group.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/error.h"
#include "support/fd.h"

namespace kgate {

struct Limits {
  std::optional<uint64_t> address_space_bytes;  // RLIMIT_AS; do not set it for CUDA processes (they reserve huge ranges)
  std::optional<uint64_t> cpu_seconds;
  std::optional<uint64_t> file_bytes;
  std::optional<uint64_t> open_files;
  bool drop_capabilities = true;  // bounding set and all sets emptied; uid is kept so that files stay readable
  bool fixed_addresses = false;   // ADDR_NO_RANDOMIZE: the same addresses in every run
  bool no_new_privs = true;       // false: the child may gain rights by the capabilities of its file (kgate-probe)
};

struct Command {
  std::vector<std::string> argv;                      // argv[0] is a path, or a name looked up in PATH
  std::map<std::string, std::string> environment;     // added to (and overriding) the parent's
  std::vector<std::pair<int, int>> descriptors;       // {parent fd, child fd}: everything else is closed
  Limits limits;
};

struct ExitStatus {
  int code = 0;       // when signal == 0
  int signal = 0;     // terminating signal, else 0
  bool timed_out = false;  // killed by us
  bool ok() const { return code == 0 && signal == 0 && !timed_out; }
};
std::string describe(const ExitStatus& status);  // "exit 3", "SIGSEGV", "timed out"

// A running child: leader of its own process group, no_new_privs set (see Limits), dies with kgate (PR_SET_PDEATHSIG).
// The destructor kills the group and reaps.
class Child {
 public:
  static Result<Child> spawn(const Command& command);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  pid_t pid() const { return pid_; }
  std::optional<ExitStatus> poll();                               // non-blocking
  ExitStatus wait(std::chrono::milliseconds timeout);             // kills the group when the time is over
  void kill_group();

 private:
  explicit Child(pid_t pid) : pid_(pid) {}
  pid_t pid_ = -1;
  std::optional<ExitStatus> status_;
};

struct Captured {
  ExitStatus status;
  std::string output;  // stdout and stderr as written; cut at `max_output`
};

// Runs to the end; stdin is /dev/null.
Result<Captured> run_captured(Command command, std::chrono::milliseconds timeout, size_t max_output = 1 << 20);

std::optional<std::string> find_program(const std::string& name);  // in PATH

std::string self_directory();  // folder of the running executable: siblings (kgate-worker, ../lib) are found from it

// SIGINT/SIGTERM: sets a flag that long loops poll. Installed once by main.
void install_interrupt_handler();
bool interrupted();
void throw_if_interrupted();  // Error{Exit::interrupted}

}  // namespace kgate
