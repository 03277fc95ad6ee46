// What both modes of the injected library do to be a guest in somebody's process.
#pragma once

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <string>

#include "support/fd.h"

namespace kgate::inject {

// Leaves the reason in STEM.why, for kgate: what, where and hint, a line each.
inline void explain(const std::string& stem, const Failure& failure) {
  Fd file(::open((stem + ".why").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const std::string text = failure.what + "\n" + failure.where + "\n" + failure.hint + "\n";
  if (file) (void)!::write(file.get(), text.data(), text.size());
}

// Threads that are started meanwhile take no signal: every signal is the application's.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace kgate::inject
