// Shared by the candidate tests: fixtures, the CUDA tools where they are installed, and damage to ELF files.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "candidate/candidate.h"
#include "support/fd.h"
#include "support/process.h"

namespace kgate::test {

inline std::string fixture_path(const std::string& name) {
  return std::string(KGATE_SOURCE_DIR) + "/tests/candidate/fixtures/" + name;
}

inline std::string fixture(const std::string& name) {
  return read_file(fixture_path(name)).value_or_throw(Exit::internal);
}

inline Candidate candidate_of(std::string bytes) {
  return parse_candidate(std::move(bytes), "test").value_or_throw(Exit::internal);
}

inline std::optional<std::string> nvcc() {
  for (const char* path : {"nvcc", "/usr/local/cuda/bin/nvcc"})
    if (auto found = find_program(path)) return found;
  return std::nullopt;
}

// The cubin that nvcc makes of `source`; a test failure when it does not.
inline std::string compile_with_nvcc(const std::string& source, const std::string& file_name,
                                     std::vector<std::string> options) {
  TempDir folder("kgate-test");
  std::filesystem::path in = folder.path() / file_name, out = folder.path() / "out.cubin";
  write_file_atomic(in, source).value_or_throw(Exit::internal);
  Command command;
  command.argv = {*nvcc(), "-cubin", in.string(), "-o", out.string()};
  command.argv.insert(command.argv.end(), options.begin(), options.end());
  auto run = run_captured(command, std::chrono::minutes(2)).value_or_throw(Exit::internal);
  EXPECT_TRUE(run.status.ok()) << run.output;
  return read_file(out).value_or_throw(Exit::internal);
}

// Sets an environment variable for one scope.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() {
    if (old_)
      ::setenv(name_, old_->c_str(), 1);
    else
      ::unsetenv(name_);
  }
  ScopedVariable(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

template <typename T>
void poke(std::string& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

template <typename T>
T peek(const std::string& bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// File offset of the section header called `name`; the test fails when there is none.
inline size_t section_header(const std::string& elf, const std::string& name) {
  auto table = peek<uint64_t>(elf, 40);
  auto count = peek<uint16_t>(elf, 60), names = peek<uint16_t>(elf, 62);
  auto strings = peek<uint64_t>(elf, table + names * 64 + 24);
  for (size_t i = 0; i < count; ++i)
    if (elf.c_str() + strings + peek<uint32_t>(elf, table + i * 64) == name) return table + i * 64;
  ADD_FAILURE() << "no section " << name;
  return table;
}

}  // namespace kgate::test
