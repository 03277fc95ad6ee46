// Two guards, because either alone has holes: the authorizer refuses by kind of action while the statement is compiled,
// and sqlite3_stmt_readonly looks at the result.
#include "trace/query.h"

#include <sqlite3.h>

#include <cctype>
#include <cstring>

#include "support/text.h"

namespace kgate::trace {

namespace {

bool harmless_pragma(const char* name) {
  for (const char* one :
       {"table_info", "table_xinfo", "table_list", "index_list", "function_list", "quick_check", "compile_options"})
    if (name && sqlite3_stricmp(name, one) == 0) return true;
  return false;
}

int authorize(void*, int action, const char* first, const char* second, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return second && sqlite3_stricmp(second, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA:
      return harmless_pragma(first) ? SQLITE_OK : SQLITE_DENY;
    default:
      return SQLITE_DENY;
  }
}

class Authorizer {
 public:
  explicit Authorizer(sqlite3* handle) : handle_(handle) { sqlite3_set_authorizer(handle_, authorize, nullptr); }
  ~Authorizer() { sqlite3_set_authorizer(handle_, nullptr, nullptr); }
  Authorizer(const Authorizer&) = delete;

 private:
  sqlite3* handle_;
};

// "SQL:LINE:COLUMN" of a byte offset, 1-based; "SQL" when SQLite gives none.
std::string place_of(const std::string& sql, int offset) {
  if (offset < 0) return "SQL";
  size_t line = 1, column = 1;
  for (size_t i = 0; i < static_cast<size_t>(offset) && i < sql.size(); ++i) {
    ++column;
    if (sql[i] == '\n') ++line, column = 1;
  }
  return "SQL:" + std::to_string(line) + ":" + std::to_string(column);
}

std::vector<std::string> names_from(const Database& database, const char* sql) {
  std::vector<std::string> names;
  Statement statement(database, sql);
  while (statement.step()) names.push_back(statement.text(0));
  return names;
}

std::string hint_for(const Database& database, const std::string& message) {
  static constexpr const char* kTables = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')";
  static constexpr const char* kColumns =
      "SELECT DISTINCT c.name FROM sqlite_schema s, pragma_table_xinfo(s.name) c WHERE s.type IN ('table', 'view')";
  auto suggest = [&](std::string_view prefix, const char* sql) -> std::string {
    if (!message.starts_with(prefix)) return {};
    std::vector<std::string> names = names_from(database, sql);
    std::string name = message.substr(prefix.size());
    if (auto dot = name.rfind('.'); dot != std::string::npos) name.erase(0, dot + 1);
    if (auto meant = did_you_mean(name, names)) return "Did you mean " + *meant + "?";
    std::string list;
    for (const std::string& one : names) list += (list.empty() ? "" : ", ") + one;
    return "There are: " + list + ".";
  };
  try {
    std::string hint = suggest("no such table: ", kTables);
    return hint.empty() ? suggest("no such column: ", kColumns) : hint;
  } catch (const Error&) {
    return {};  // a damaged schema: the message itself is what counts
  }
}

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Handle = std::unique_ptr<sqlite3_stmt, Finalize>;

Result<Handle> compile(const Database& database, const std::string& sql) {
  sqlite3_stmt* raw = nullptr;
  const char* tail = nullptr;
  int code, offset;
  std::string message;
  {
    Authorizer guard(database.get());
    code = sqlite3_prepare_v2(database.get(), sql.data(), static_cast<int>(sql.size()), &raw, &tail);
    message = sqlite3_errmsg(database.get());
    offset = sqlite3_error_offset(database.get());
    Handle more;
    sqlite3_stmt* rest = nullptr;
    if (code == SQLITE_OK && raw != nullptr) {
      int left = static_cast<int>(sql.size() - static_cast<size_t>(tail - sql.data()));
      int second = sqlite3_prepare_v2(database.get(), tail, left, &rest, nullptr);
      more.reset(rest);
      if (second != SQLITE_OK || rest != nullptr) {
        sqlite3_finalize(raw);
        return Failure{"more than one statement", place_of(sql, static_cast<int>(tail - sql.data())),
                       "Give one statement at a time."};
      }
    }
  }
  Handle statement(raw);
  if ((code & 0xff) == SQLITE_AUTH)
    return Failure{"traces are read-only: " + message, "SQL", "Use SELECT; a trace is evidence and is never changed."};
  if (code != SQLITE_OK) return Failure{message, place_of(sql, offset), hint_for(database, message)};
  if (statement == nullptr)
    return Failure{"no statement", "SQL", "For example: SELECT * FROM kernel_launches LIMIT 10"};
  if (!sqlite3_stmt_readonly(statement.get())) return Failure{"traces are read-only", "SQL", "Use SELECT."};
  return statement;
}

}  // namespace

Result<std::monostate> run_query(const Database& database, const std::string& sql, const TraceStore::RowCallback& row) {
  if (sql.size() > (1 << 20)) return Failure{"the statement is longer than 1 MiB", "SQL", {}};
  if (sql.find('\0') != std::string::npos) return Failure{"the statement contains a NUL byte", "SQL", {}};
  auto statement = compile(database, sql);
  if (!statement) return statement.failure();
  sqlite3_stmt* handle = statement->get();
  int columns = sqlite3_column_count(handle);
  std::vector<std::string> names;
  for (int i = 0; i < columns; ++i) names.emplace_back(sqlite3_column_name(handle, i));
  std::vector<std::optional<std::string>> values(static_cast<size_t>(columns));
  int code;
  while ((code = sqlite3_step(handle)) == SQLITE_ROW) {
    for (int i = 0; i < columns; ++i) {
      auto& value = values[static_cast<size_t>(i)];
      value.reset();
      if (sqlite3_column_type(handle, i) == SQLITE_NULL) continue;
      const void* data = sqlite3_column_text(handle, i);
      value.emplace(data ? static_cast<const char*>(data) : "", static_cast<size_t>(sqlite3_column_bytes(handle, i)));
    }
    row(names, values);
  }
  if (code != SQLITE_DONE) return Failure{sqlite3_errmsg(database.get()), "SQL", {}};
  return std::monostate{};
}

}  // namespace kgate::trace
