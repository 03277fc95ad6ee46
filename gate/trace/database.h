// SQLite as the trace store needs it: an owned connection, prepared statements that bind by type, failures as
// kgate::Error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "support/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace kgate::trace {

class Database {
 public:
  enum class Mode { create, read_only };
  static Result<Database> open(const std::filesystem::path& path, Mode mode);

  sqlite3* get() const { return handle_.get(); }
  // Runs statements that return nothing. Throws Error{environment} while creating, Error{bad_input} while reading.
  void exec(const std::string& sql);
  int64_t number(const std::string& sql) const;  // first column of the first row; 0 when there is none
  [[noreturn]] void fail() const;                // an Error with SQLite's message

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  std::unique_ptr<sqlite3, Close> handle_;
  std::string path_;
  Mode mode_ = Mode::read_only;
};

class Statement {
 public:
  Statement(const Database& database, std::string_view sql);

  // Binds all parameters in order, runs the statement to its end and makes it ready again.
  template <typename... Values>
  void run(const Values&... values) {
    int index = 0;
    (bind(++index, values), ...);
    while (step()) {
    }
  }

  // Makes the statement ready for its first step() with these values.
  template <typename... Values>
  void start(const Values&... values) {
    reset();
    int index = 0;
    (bind(++index, values), ...);
  }

  // As run, with one pointer that SQL sees as NULL unless a virtual table asks for it by its type.
  void run_with(const void* pointer, const char* type);

  bool step();  // true: a row; false: the end, and the statement is reset
  int64_t integer(int column) const;
  uint64_t unsigned_integer(int column) const { return static_cast<uint64_t>(integer(column)); }
  uint32_t small(int column) const { return static_cast<uint32_t>(integer(column)); }
  double real(int column) const;
  std::string text(int column) const;
  std::string_view view(int column) const;  // until the next step
  bool null(int column) const;

 private:
  template <typename T>
  void bind(int index, const T& value) {
    if constexpr (std::is_same_v<T, std::nullopt_t>)
      bind_null(index);
    else if constexpr (std::is_floating_point_v<T>)
      bind_real(index, value);
    else if constexpr (std::is_integral_v<T>)
      bind_integer(index, static_cast<int64_t>(value));
    else
      bind_text(index, value);
  }
  template <typename T>
  void bind(int index, const std::optional<T>& value) {
    if (value)
      bind(index, *value);
    else
      bind_null(index);
  }
  void reset();
  void bind_null(int index);
  void bind_integer(int index, int64_t value);
  void bind_real(int index, double value);
  void bind_text(int index, std::string_view value);  // must live until the statement has run

  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  const Database* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

}  // namespace kgate::trace
