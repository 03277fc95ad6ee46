#include "cli/application.h"

#include <fcntl.h>
#include <sys/personality.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "support/text.h"

extern char** environ;

namespace kgate::cli {

namespace {

[[noreturn]] void cannot(const std::string& what, int error = errno) {
  throw Error(Exit::environment, "cannot " + what + ": " + std::strerror(error), "the application");
}

// What the application finds in its environment; whatever was there before stays, but for what kgate must own.
std::vector<std::string> environment(const ApplicationCommand& command) {
  auto ours = command.variables;
  if (!command.cuda_library.empty()) {
    const char* before = std::getenv("LD_LIBRARY_PATH");
    const std::string path = (command.folder / "driver").string();
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

void place_driver(const ApplicationCommand& command) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(command.cuda_library, error);
  if (error) throw Error(Exit::usage, "no such library: " + error.message(), command.cuda_library);
  std::filesystem::create_directory(command.folder / "driver", error);
  if (!error) std::filesystem::create_symlink(real, command.folder / "driver" / "libcuda.so.1", error);
  if (error) throw Error(Exit::environment, "cannot place a driver library: " + error.message(), command.folder);
}

// Between fork and exec only what is safe in a process that may have had threads.
[[noreturn]] void become(char* const* argv, char* const* variables, const sigset_t& mask, bool fixed_addresses,
                         int report) {
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  if (fixed_addresses) {
    const int now = ::personality(0xffffffff);
    if (now != -1) ::personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE);
  }
  ::execvpe(argv[0], argv, variables);
  const int error = errno;
  (void)!::write(report, &error, sizeof error);
  _exit(127);
}

}  // namespace

std::filesystem::path injection_library() {
  auto path = (std::filesystem::path(self_directory()) / "../lib/libkgate_inject.so").lexically_normal();
  if (::access(path.c_str(), R_OK) != 0)
    throw Error(Exit::environment, "the library that watches from inside is not there", path.string(),
                "reinstall kgate as a whole");
  return path;
}

void refuse_other_tools(const std::filesystem::path& injector, const char* variable) {
  const char* injected = std::getenv(variable);
  if (injected != nullptr && *injected != '\0' && injector != injected)
    throw Error(Exit::usage, std::string("is set already: ") + sanitize(injected, 200), variable,
                "another tool watches here: unset it, or run without that tool");
}

void check_writable(const std::filesystem::path& path, const std::string& what) {
  std::error_code ignored;
  const std::string partial = path.string() + ".partial";
  Fd file(::open(partial.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  const std::string why = std::filesystem::is_directory(path, ignored) ? "is a directory"
                          : !file                                      ? std::strerror(errno)
                                                                       : "";
  if (file) ::unlink(partial.c_str());
  if (!why.empty())
    throw Error(Exit::environment, "cannot write " + what + ": " + why, path.string(),
                "choose another place with --out");
}

Application::Application(const ApplicationCommand& command) {
  if (!command.cuda_library.empty()) place_driver(command);
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  try {
    signals_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) cannot("read signals");
    start(command);
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    throw;
  }
}

Application::~Application() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Application::start(const ApplicationCommand& command) {
  std::vector<std::string> argv = command.argv, variables = environment(command);
  std::vector<char*> arguments, settings;
  for (std::string& text : argv) arguments.push_back(text.data());
  for (std::string& text : variables) settings.push_back(text.data());
  arguments.push_back(nullptr);
  settings.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) cannot("make a pipe");
  Fd reading(ends[0]), writing(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) cannot("fork");
  if (child == 0) become(arguments.data(), settings.data(), before_, command.fixed_addresses, writing.get());
  writing.reset();
  int error = 0;
  if (::read(reading.get(), &error, sizeof error) == static_cast<ssize_t>(sizeof error)) {
    ::waitpid(child, nullptr, 0);
    throw Error(Exit::usage, std::string("cannot run it: ") + std::strerror(error), sanitize(command.argv[0], 200),
                "give the program and its arguments after '--'");
  }
  ended_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  if (!ended_) {
    error = errno;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    cannot("watch the application", error);
  }
  process_ = child;
}

void Application::pass_signals_on() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    interrupted_ = true;
    if (info.ssi_code <= 0) ::kill(process_, static_cast<int>(info.ssi_signo));  // sent by a process, not typed
  }
}

ExitStatus Application::wait() {
  int status = 0;
  ::waitpid(process_, &status, 0);
  process_ = -1;
  ExitStatus out;
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  out.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return out;
}

}  // namespace kgate::cli
