// Traces may come from elsewhere: a connection is opened in defensive mode, does not trust the schema it finds, and
// limits what a statement may build.
#include "trace/database.h"

#include <sqlite3.h>

namespace kgate::trace {

void Database::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Result<Database> Database::open(const std::filesystem::path& path, Mode mode) {
  int flags =
      SQLITE_OPEN_NOMUTEX | (mode == Mode::create ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY);
  sqlite3* raw = nullptr;
  int code = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  Database database;
  database.handle_.reset(raw);
  database.path_ = path.string();
  database.mode_ = mode;
  if (code != SQLITE_OK) return Failure{raw ? sqlite3_errmsg(raw) : "out of memory", path.string(), {}};
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, 64 << 20);
  sqlite3_limit(raw, SQLITE_LIMIT_ATTACHED, 0);
  return database;
}

void Database::fail() const {
  std::string text = sqlite3_errmsg(get());
  if (mode_ == Mode::create)
    throw Error(Exit::environment, "cannot write the trace: " + text, path_,
                "Check the free space and the rights of its folder.");
  throw Error(Exit::bad_input, "damaged trace: " + text, path_);
}

void Database::exec(const std::string& sql) {
  if (sqlite3_exec(get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail();
}

int64_t Database::number(const std::string& sql) const {
  Statement statement(*this, sql);
  return statement.step() ? statement.integer(0) : 0;
}

Statement::Statement(const Database& database, std::string_view sql) : database_(&database) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v3(database.get(), sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT, &raw,
                         nullptr) != SQLITE_OK)
    database.fail();
  handle_.reset(raw);
}

bool Statement::step() {
  int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  sqlite3_reset(handle_.get());
  if (code != SQLITE_DONE) database_->fail();
  return false;
}

void Statement::run_with(const void* pointer, const char* type) {
  sqlite3_bind_pointer(handle_.get(), 1, const_cast<void*>(pointer), type, nullptr);
  while (step()) {
  }
}

void Statement::reset() { sqlite3_reset(handle_.get()); }
void Statement::bind_null(int index) { sqlite3_bind_null(handle_.get(), index); }
void Statement::bind_integer(int index, int64_t value) { sqlite3_bind_int64(handle_.get(), index, value); }
void Statement::bind_real(int index, double value) { sqlite3_bind_double(handle_.get(), index, value); }
void Statement::bind_text(int index, std::string_view value) {
  sqlite3_bind_text64(handle_.get(), index, value.data() ? value.data() : "", value.size(), SQLITE_STATIC, SQLITE_UTF8);
}

int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_.get(), column); }
double Statement::real(int column) const { return sqlite3_column_double(handle_.get(), column); }
bool Statement::null(int column) const { return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL; }
std::string Statement::text(int column) const { return std::string(view(column)); }
std::string_view Statement::view(int column) const {
  const void* data = sqlite3_column_text(handle_.get(), column);
  auto size = static_cast<size_t>(sqlite3_column_bytes(handle_.get(), column));
  return data ? std::string_view(static_cast<const char*>(data), size) : std::string_view();
}

}  // namespace kgate::trace
