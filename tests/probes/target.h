// What the tests of the probes share: a child to be watched.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

#include "trace/probe_process.h"
#include "trace/probe_symbols.h"

namespace kgate {

// A child that has the library loaded, makes its calls when told to, and stays until it is let go.
class Target {
 public:
  template <typename Work>
  Target(const char* library, Work work) {
    int go[2], done[2];
    signal(SIGPIPE, SIG_IGN);  // it may end before it is let go
    if (pipe(go) != 0 || pipe(done) != 0) throw std::runtime_error("pipe");
    pid_ = fork();
    if (pid_ == 0) {
      void* handle = dlopen(library, RTLD_NOW);
      char byte = handle ? 'y' : 'n';
      (void)!write(done[1], &byte, 1);
      (void)!read(go[0], &byte, 1);
      work(handle);
      (void)!write(done[1], &byte, 1);
      (void)!read(go[0], &byte, 1);
      _exit(0);
    }
    close(go[0]), close(done[1]);
    go_ = go[1], done_ = done[0];
    char byte = 0;
    if (read(done_, &byte, 1) != 1 || byte != 'y') throw std::runtime_error("the library did not load");
  }
  void run() {
    char byte = 'g';
    (void)!write(go_, &byte, 1);
    (void)!read(done_, &byte, 1);
  }
  ~Target() {
    (void)!write(go_, "qq", 2);  // it may not have run yet
    int status;
    waitpid(pid_, &status, 0);
    close(go_), close(done_);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
  int go_, done_;
};

inline void call(void* handle, const char* name, int times) {
  auto function = reinterpret_cast<int (*)()>(dlsym(handle, name));
  for (int i = 0; i < times; ++i) function();
}

inline Result<std::unique_ptr<trace::ProbeProcess>> watch(const Target& target, const std::vector<ProbeSymbol>& symbols,
                                                          ProbeMode mode) {
  return trace::ProbeProcess::start(target.pid(), *trace::open_library(KGATE_FAKE_DRIVER), symbols, mode, true);
}

#define NEED_EBPF()                                                          \
  do {                                                                       \
    ProbeSupport support = probe_support();                                  \
    if (!support.ok) GTEST_SKIP() << support.detail << ". " << support.hint; \
  } while (0)

}  // namespace kgate
