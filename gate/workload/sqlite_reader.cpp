// Settings follow SQLite's "Defense Against The Dark Arts" page: read-only, defensive, no trusted schema, cell sizes
// checked, limits lowered to what the reader's own statements need.
#include "workload/sqlite_reader.h"

#include <sqlite3.h>

#include <cmath>

#include "support/text.h"

namespace kgate {

namespace {

// A file name as a URI path: everything but the unreserved characters and '/' is escaped.
std::string uri_of(const std::filesystem::path& path) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string uri = "file:";
  for (unsigned char c : std::filesystem::absolute(path).string()) {
    if (std::isalnum(c) || c == '/' || c == '-' || c == '_' || c == '.') {
      uri += static_cast<char>(c);
    } else {
      uri += '%';
      uri += digits[c >> 4];
      uri += digits[c & 15];
    }
  }
  return uri + "?mode=ro&immutable=1";
}

void lower_limits(sqlite3* db) {
  sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, 20'000);
  sqlite3_limit(db, SQLITE_LIMIT_COLUMN, 32);
  sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, 20);
  sqlite3_limit(db, SQLITE_LIMIT_COMPOUND_SELECT, 3);
  sqlite3_limit(db, SQLITE_LIMIT_VDBE_OP, 50'000);
  sqlite3_limit(db, SQLITE_LIMIT_FUNCTION_ARG, 8);
  sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50);
  sqlite3_limit(db, SQLITE_LIMIT_VARIABLE_NUMBER, 10);
  sqlite3_limit(db, SQLITE_LIMIT_TRIGGER_DEPTH, 1);
  sqlite3_limit(db, SQLITE_LIMIT_WORKER_THREADS, 0);
}

// Pages that are shared in a crafted file make tables of astronomical length. Honest ones take about two steps a byte.
constexpr int kStepsPerTick = 1 << 16;
constexpr uint64_t kStepsPerByte = 32, kBaseSteps = 64 << 20;

int tick(void* left) {
  auto& ticks = *static_cast<uint64_t*>(left);
  return ticks == 0 ? 1 : (--ticks, 0);
}

}  // namespace

Result<SqliteReader> SqliteReader::open(const std::filesystem::path& path) {
  SqliteReader reader;
  const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE;
  if (sqlite3_open_v2(uri_of(path).c_str(), &reader.db_, flags, nullptr) != SQLITE_OK)
    return Failure{reader.message(), path.string(), {}};
  sqlite3* db = reader.db_;
  if (sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr) != SQLITE_OK ||
      sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr) != SQLITE_OK ||
      sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr) != SQLITE_OK ||
      sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr) != SQLITE_OK ||
      sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr) != SQLITE_OK)
    return Failure{"this SQLite does not know the settings that make reading untrusted files safe", path.string(), {}};
  lower_limits(db);
  std::error_code ignored;
  const uint64_t bytes = std::filesystem::file_size(path, ignored);
  reader.ticks_left_ = std::make_unique<uint64_t>((kBaseSteps + (ignored ? 0 : bytes) * kStepsPerByte) / kStepsPerTick);
  sqlite3_progress_handler(db, kStepsPerTick, tick, reader.ticks_left_.get());
  const char* pragmas = "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY; PRAGMA query_only=ON";
  if (sqlite3_exec(db, pragmas, nullptr, nullptr, nullptr) != SQLITE_OK)
    return Failure{reader.message(), path.string(), {}};
  return reader;
}

SqliteReader::~SqliteReader() { sqlite3_close_v2(db_); }

std::string SqliteReader::message() const { return sanitize(db_ ? sqlite3_errmsg(db_) : "out of memory"); }

SqliteCursor::SqliteCursor(const SqliteReader& reader, std::string table, const std::string& sql)
    : reader_(reader), table_(std::move(table)) {
  if (sqlite3_prepare_v2(reader.get(), sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK)
    failure_ = Failure{reader.message(), table_, {}};
}

SqliteCursor::~SqliteCursor() { sqlite3_finalize(statement_); }

void SqliteCursor::fail(const std::string& what) {
  if (!failure_) failure_ = Failure{what, table_ + " row " + std::to_string(row_), {}};
}

bool SqliteCursor::rewind() {
  if (!statement_) return false;
  sqlite3_reset(statement_);
  failure_.reset();
  row_ = 0;
  started_ = false;
  return true;
}

void SqliteCursor::restart(std::string_view blob) {
  if (rewind() && sqlite3_bind_blob64(statement_, 1, blob.data(), blob.size(), SQLITE_TRANSIENT) != SQLITE_OK)
    fail(reader_.message());
}

void SqliteCursor::restart(uint32_t number) {
  if (rewind() && sqlite3_bind_int64(statement_, 1, number) != SQLITE_OK) fail(reader_.message());
}

bool SqliteCursor::next() {
  if (failure_) return false;
  if (started_) ++row_;
  started_ = true;
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) fail(reader_.message());
  return false;
}

bool SqliteCursor::is(int column, int type, const char* what) {
  if (failure_) return false;
  if (sqlite3_column_type(statement_, column) == type) return true;
  fail(std::string("column ") + sqlite3_column_name(statement_, column) + " is not " + what);
  return false;
}

int64_t SqliteCursor::integer(int column, int64_t low, int64_t high) {
  if (!is(column, SQLITE_INTEGER, "an integer")) return 0;
  const int64_t value = sqlite3_column_int64(statement_, column);
  if (value >= low && value <= high) return value;
  fail(std::string("column ") + sqlite3_column_name(statement_, column) + ": " + std::to_string(value) +
       " is out of range");
  return 0;
}

uint32_t SqliteCursor::reference(int column) {
  if (failure_ || sqlite3_column_type(statement_, column) == SQLITE_NULL) return 0xffffffff;
  return static_cast<uint32_t>(integer(column, 0, 0xfffffffe));
}

double SqliteCursor::real(int column) {
  if (!is(column, SQLITE_FLOAT, "a real number")) return 0;
  const double value = sqlite3_column_double(statement_, column);
  if (!std::isfinite(value)) fail(std::string("column ") + sqlite3_column_name(statement_, column) + " is not finite");
  return value;
}

std::string SqliteCursor::text(int column, size_t max_bytes) {
  if (!is(column, SQLITE_TEXT, "a text")) return {};
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  const auto bytes = static_cast<size_t>(sqlite3_column_bytes(statement_, column));
  if (data && bytes <= max_bytes) return std::string(data, bytes);
  fail(std::string("column ") + sqlite3_column_name(statement_, column) + " is too long");
  return {};
}

std::string_view SqliteCursor::blob(int column, size_t max_bytes) {
  if (!is(column, SQLITE_BLOB, "a blob")) return {};
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  const auto bytes = static_cast<size_t>(sqlite3_column_bytes(statement_, column));
  if (bytes == 0) return {};
  if (data && bytes <= max_bytes) return {data, bytes};
  fail(std::string("column ") + sqlite3_column_name(statement_, column) + " is too long");
  return {};
}

bool SqliteCursor::is_null(int column) const {
  return failure_ || sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

void SqliteCursor::null(int column) { is(column, SQLITE_NULL, "NULL, as this kind of row needs"); }

}  // namespace kgate
