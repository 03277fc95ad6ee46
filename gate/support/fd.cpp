#include "support/fd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace kgate {

namespace {
Failure errno_failure(std::string what, const std::filesystem::path& where) {
  return {std::move(what) + ": " + std::strerror(errno), where.string(), {}};
}
}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int Fd::release() { return std::exchange(fd_, -1); }

void Fd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<Mapping> Mapping::of(const Fd& fd, size_t bytes, bool writable) {
  void* p = ::mmap(nullptr, bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd.get(), 0);
  if (p == MAP_FAILED) return errno_failure("cannot map " + std::to_string(bytes) + " bytes", {});
  Mapping m;
  m.data_ = static_cast<std::byte*>(p);
  m.size_ = bytes;
  return m;
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (data_) ::munmap(data_, size_);
}

Result<Fd> make_memfd(const std::string& name, size_t bytes) {
  Fd fd(::memfd_create(name.c_str(), MFD_CLOEXEC));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return errno_failure("cannot create a memfd", name);
  return fd;
}

Result<std::string> read_file(const std::filesystem::path& path, size_t max_bytes) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a FIFO without a writer must not block
  if (!fd) return errno_failure("cannot open", path);
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0) return errno_failure("cannot stat", path);
  if (S_ISDIR(st.st_mode)) return Failure{"is a directory, not a file", path.string(), {}};
  if (!S_ISREG(st.st_mode)) return Failure{"is not a regular file", path.string(), {}};
  std::string content;
  char buffer[1 << 16];
  for (;;) {
    ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_failure("cannot read", path);
    if (n == 0) return content;
    content.append(buffer, static_cast<size_t>(n));
    if (content.size() > max_bytes)
      return Failure{"is larger than the limit of " + std::to_string(max_bytes) + " bytes", path.string(), {}};
  }
}

Result<std::monostate> write_file_atomic(const std::filesystem::path& path, std::string_view content) {
  std::string pattern = path.string() + ".XXXXXX";
  Fd fd(::mkostemp(pattern.data(), O_CLOEXEC));
  if (!fd) return errno_failure("cannot write", path);
  auto fail = [&](const char* what) {
    Failure failure = errno_failure(what, path);
    ::unlink(pattern.c_str());
    return failure;
  };
  for (size_t done = 0; done < content.size();) {
    ssize_t n = ::write(fd.get(), content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail("cannot write");
    done += static_cast<size_t>(n);
  }
  mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(fd.get(), 0666 & ~mask) != 0 || ::fsync(fd.get()) != 0) return fail("cannot write");
  if (::rename(pattern.c_str(), path.c_str()) != 0) return fail("cannot rename into place");
  return std::monostate{};
}

TempDir::TempDir(std::string_view stem) {
  const char* base = std::getenv("TMPDIR");
  std::string pattern = std::string(base && *base ? base : "/tmp") + "/" + std::string(stem) + ".XXXXXX";
  if (!::mkdtemp(pattern.data()))
    throw Error(Exit::environment, std::string("cannot create a temporary directory: ") + std::strerror(errno), pattern,
                "set TMPDIR to a folder that you can write");
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace kgate
