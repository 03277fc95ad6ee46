// Building a .kgw: a database in a temporary file beside the target, without a journal (nobody else sees it, and a
// failed write is thrown away), synced, and renamed: readers see the old file or the whole new one. Everything here
// throws Error{environment} when the disk does not take it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "support/dim3.h"
#include "support/fd.h"

struct sqlite3;
struct sqlite3_stmt;

namespace kgate::kgw {

[[noreturn]] void cannot_write(const std::filesystem::path& path, const std::string& why);

// A private file beside the target, removed unless it was renamed into place.
class Scratch {
 public:
  explicit Scratch(const std::filesystem::path& target);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  const std::string& name() const { return name_; }
  void rename_into_place();

 private:
  std::filesystem::path target_;
  std::string name_;
  Fd fd_;
};

class Database {
 public:
  Database(const std::string& file, const std::filesystem::path& shown);
  Database(const Database&) = delete;
  ~Database();
  sqlite3* get() const { return db_; }
  [[noreturn]] void fail() const;
  void execute(const std::string& sql);

 private:
  std::filesystem::path shown_;
  sqlite3* db_ = nullptr;
};

// INSERTs of one table: values in column order, then end_row(). Texts and blobs must live until end_row().
class Rows {
 public:
  Rows(Database& db, const char* table, int columns);
  Rows(const Rows&) = delete;
  ~Rows();

  Rows& number(uint64_t value);
  Rows& reference(uint32_t index);  // 0xffffffff: NULL
  Rows& real(double value);
  Rows& null();
  Rows& text(std::string_view value);
  Rows& blob(const void* data, size_t bytes);
  Rows& dim(const Dim3& dim) { return number(dim.x).number(dim.y).number(dim.z); }
  void end_row();

 private:
  Rows& check(int code);
  Database& db_;
  sqlite3_stmt* statement_ = nullptr;
  int columns_, bound_ = 0;
};

}  // namespace kgate::kgw
