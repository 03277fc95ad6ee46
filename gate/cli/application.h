// A command that runs as it would without kgate, with CUDA told to load libkgate_inject.so into it: what kgate trace
// and kgate record have in common. The command keeps its streams, its terminal and its place in kgate's process group,
// since it may read from the terminal. An interrupt that is typed there reaches both; one that is sent to kgate alone
// is passed on.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "support/error.h"
#include "support/fd.h"
#include "support/process.h"

namespace kgate::cli {

// libkgate_inject.so of this installation. Throws Error{environment} when it is not there.
std::filesystem::path injection_library();

// Throws Error{usage} when CUDA_INJECTION64_PATH (or `variable`) is set to another tool's library.
void refuse_other_tools(const std::filesystem::path& injector, const char* variable = "CUDA_INJECTION64_PATH");

// Throws Error{environment} when no file could be written at `path`, which is left as it is. `what`: "the trace".
void check_writable(const std::filesystem::path& path, const std::string& what);

struct ApplicationCommand {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> variables;  // added to kgate's own, or in their place
  std::string cuda_library;      // takes the place of libcuda.so.1; empty: the application's own choice
  std::filesystem::path folder;  // for the link that places it
  bool fixed_addresses = false;  // no address space randomisation
};

class Application {
 public:
  // Starts it. Throws Error{usage} when the command or the library cannot be run, Error{environment} when the system
  // refuses.
  explicit Application(const ApplicationCommand& command);
  ~Application();  // kills it if nobody waited for its end
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  pid_t process() const { return process_; }
  int ended() const { return ended_.get(); }        // readable once it has ended
  int signalled() const { return signals_.get(); }  // readable when SIGINT, SIGTERM or SIGHUP came
  void pass_signals_on();
  bool interrupted() const { return interrupted_; }
  ExitStatus wait();  // for its end

 private:
  void start(const ApplicationCommand& command);

  sigset_t before_{};
  Fd signals_, ended_;
  pid_t process_ = -1;
  bool interrupted_ = false;
};

}  // namespace kgate::cli
