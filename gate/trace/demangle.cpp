// A mangled name of 240 bytes can stand for 300 MB of text, because each substitution may contain the ones before it
// twice; names come from untrusted processes. Names with few substitutions are demangled here, the others in a child
// that has a second of CPU time: what it did not get to stays mangled.
#include "trace/demangle.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "support/fd.h"
#include "support/text.h"

namespace kgate::trace {

namespace {

constexpr size_t kLongest = 4096;
constexpr int kFew = 10;  // substitutions: at most 2^10 times the name

struct Free {
  void operator()(char* text) const { std::free(text); }
};

std::string demangle_here(const std::string& name) {
  int status = 0;
  std::unique_ptr<char, Free> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status));
  if (status != 0 || !text || std::strlen(text.get()) > kLongest) return name;
  return sanitize(text.get(), kLongest);
}

// Counts what looks like `S_`, `S0_`, `T_`, `T0_`: too many at worst.
int substitutions(const std::string& name) {
  int count = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] != 'S' && name[i] != 'T') continue;
    size_t end = i + 1;
    while (end < name.size() && ((name[end] >= '0' && name[end] <= '9') || (name[end] >= 'A' && name[end] <= 'Z')))
      ++end;
    count += end < name.size() && name[end] == '_';
  }
  return count;
}

bool write_all(int fd, const void* data, size_t size) {
  for (const char* at = static_cast<const char*>(data); size > 0;) {
    ssize_t done = ::write(fd, at, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    at += done, size -= static_cast<size_t>(done);
  }
  return true;
}

bool read_all(int fd, void* data, size_t size) {
  for (char* at = static_cast<char*>(data); size > 0;) {
    ssize_t done = ::read(fd, at, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    at += done, size -= static_cast<size_t>(done);
  }
  return true;
}

[[noreturn]] void demangle_and_exit(int fd, const std::vector<const std::string*>& names) {
  rlimit second{1, 1};
  ::setrlimit(RLIMIT_CPU, &second);
  for (const std::string* name : names) {
    std::string text = demangle_here(*name);
    auto length = static_cast<uint32_t>(text.size());
    if (!write_all(fd, &length, sizeof length) || !write_all(fd, text.data(), length)) break;
  }
  ::_exit(0);
}

void demangle_in_child(const std::vector<const std::string*>& names, const std::vector<std::string*>& results) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  Fd from(ends[0]), to(ends[1]);
  pid_t child = ::fork();
  if (child == 0) demangle_and_exit(to.get(), names);
  to.reset();
  if (child < 0) return;
  for (std::string* result : results) {
    uint32_t length = 0;
    if (!read_all(from.get(), &length, sizeof length) || length > kLongest) break;
    std::string text(length, '\0');
    if (!read_all(from.get(), text.data(), length)) break;
    *result = std::move(text);
  }
  from.reset();
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

std::vector<std::string> demangle(const std::vector<std::string>& names) {
  std::vector<std::string> plain = names;
  std::vector<const std::string*> costly;
  std::vector<std::string*> results;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!names[i].starts_with("_Z")) continue;
    if (substitutions(names[i]) <= kFew) {
      plain[i] = demangle_here(names[i]);
    } else {
      costly.push_back(&names[i]);
      results.push_back(&plain[i]);
    }
  }
  if (!costly.empty()) demangle_in_child(costly, results);
  return plain;
}

namespace {

bool ends_in_operator(std::string_view text) { return text.ends_with("operator"); }

// Where the parameter list begins that `name` ends with; npos: it has none.
size_t parameters_of(std::string_view name) {
  size_t depth = 0;
  for (size_t at = name.size(); name.ends_with(')') && at-- > 0;) {
    depth += name[at] == ')';
    if (name[at] == '(' && --depth == 0) return at == 0 || ends_in_operator(name.substr(0, at)) ? name.npos : at;
  }
  return name.npos;
}

// What follows the last blank outside of all brackets; everything, if the brackets do not match (operator<).
std::string_view without_return_type(std::string_view name) {
  size_t begin = 0;
  int depth = 0;
  for (size_t at = 0; at < name.size(); ++at) {
    if (name[at] == '<' || name[at] == '(') ++depth;
    if (name[at] == '>' || name[at] == ')') --depth;
    if (depth < 0) return name;
    if (name[at] == ' ' && depth == 0 && !ends_in_operator(name.substr(0, at))) begin = at + 1;
  }
  return depth == 0 ? name.substr(begin) : name;
}

}  // namespace

std::string short_kernel_name(std::string_view demangled, size_t width) {
  // Only what was demangled has parameters; any other name may hold what it likes.
  std::string_view name = demangled;
  if (size_t parameters = parameters_of(name); parameters != name.npos)
    name = without_return_type(name.substr(0, parameters));
  if (name.empty()) name = demangled;
  if (name.size() <= width) return std::string(name);
  size_t tail = width / 3, head = width - tail - 3;
  return std::string(name.substr(0, head)) + "..." + std::string(name.substr(name.size() - tail));
}

}  // namespace kgate::trace
