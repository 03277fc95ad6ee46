// Reads tables of an untrusted SQLite file: a connection with defensive settings, and a cursor whose getters check type
// and range of every value. A failure is sticky: after the first one the getters return zeros and next() is false, so
// that reading code stays straight and asks once, at the end of a table.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "support/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace kgate {

class SqliteReader {
 public:
  // Read-only and immutable: journals and write-ahead logs lying beside the file are ignored, no lock and no file is
  // made.
  static Result<SqliteReader> open(const std::filesystem::path& path);
  SqliteReader(SqliteReader&& other) noexcept
      : db_(std::exchange(other.db_, nullptr)), ticks_left_(std::move(other.ticks_left_)) {}
  SqliteReader& operator=(SqliteReader&&) = delete;
  ~SqliteReader();

  sqlite3* get() const { return db_; }
  std::string message() const;

 private:
  SqliteReader() = default;
  sqlite3* db_ = nullptr;
  std::unique_ptr<uint64_t> ticks_left_;  // work that the file's size justifies; a statement past it is interrupted
};

class SqliteCursor {
 public:
  // `table` and the running row number name the place of a failure: "calls row 17".
  SqliteCursor(const SqliteReader& reader, std::string table, const std::string& sql);
  SqliteCursor(const SqliteCursor&) = delete;
  ~SqliteCursor();

  // The same statement again, from its first row, with a blob or a number for its only parameter; forgets a failure.
  void restart(std::string_view blob);
  void restart(uint32_t number);

  bool next();  // false at the end and after a failure
  int64_t integer(int column, int64_t low, int64_t high);
  uint32_t u32(int column) { return static_cast<uint32_t>(integer(column, 0, 0xffffffff)); }
  uint64_t u63(int column) { return static_cast<uint64_t>(integer(column, 0, INT64_MAX)); }
  bool flag(int column) { return integer(column, 0, 1) != 0; }
  uint32_t reference(int column);  // NULL: 0xffffffff
  double real(int column);         // finite
  std::string text(int column, size_t max_bytes);
  std::string_view blob(int column, size_t max_bytes);  // valid until next()
  bool is_null(int column) const;
  void null(int column);  // must be NULL

  size_t row() const { return row_; }  // of the current row, from 0
  void fail(const std::string& what);
  const std::optional<Failure>& failure() const { return failure_; }

 private:
  bool is(int column, int type, const char* what);
  bool rewind();

  const SqliteReader& reader_;
  std::string table_;
  sqlite3_stmt* statement_ = nullptr;
  size_t row_ = 0;
  bool started_ = false;
  std::optional<Failure> failure_;
};

}  // namespace kgate
