// Owners of file descriptors and mappings, and whole-file reads and writes. Everything is O_CLOEXEC.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/error.h"

namespace kgate {

// Owns one descriptor; -1 is empty.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

// A shared or private mapping of a descriptor, unmapped on destruction.
class Mapping {
 public:
  Mapping() = default;
  static Result<Mapping> of(const Fd& fd, size_t bytes, bool writable);  // MAP_SHARED
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<std::byte> bytes() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

Result<Fd> make_memfd(const std::string& name, size_t bytes);

// The whole file; the failure names the path and errno, and says so for directories. `max_bytes` refuses larger files.
Result<std::string> read_file(const std::filesystem::path& path, size_t max_bytes = size_t{1} << 30);

// Writes beside `path`, syncs, renames: a kill at any point leaves the old file whole.
Result<std::monostate> write_file_atomic(const std::filesystem::path& path, std::string_view content);

// A directory removed with its content on destruction (mkdtemp under $TMPDIR or /tmp).
class TempDir {
 public:
  explicit TempDir(std::string_view stem = "kgate");
  TempDir(TempDir&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TempDir& operator=(TempDir&&) = delete;
  ~TempDir();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace kgate
