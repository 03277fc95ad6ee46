#include "workload/kgw_database.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "support/error.h"

namespace kgate::kgw {

void cannot_write(const std::filesystem::path& path, const std::string& why) {
  throw Error(Exit::environment, "cannot write the workload: " + why, path.string(),
              "write to a folder with free space where you may create files");
}

Scratch::Scratch(const std::filesystem::path& target) : target_(target), name_(target.string() + ".XXXXXX") {
  fd_ = Fd(::mkostemp(name_.data(), O_CLOEXEC));
  if (!fd_) cannot_write(target_, std::strerror(errno));
}

Scratch::~Scratch() {
  if (!name_.empty()) ::unlink(name_.c_str());
}

void Scratch::rename_into_place() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(fd_.get(), 0666 & ~mask) != 0 || ::fsync(fd_.get()) != 0 ||
      ::rename(name_.c_str(), target_.c_str()) != 0)
    cannot_write(target_, std::strerror(errno));
  name_.clear();
}

Database::Database(const std::string& file, const std::filesystem::path& shown) : shown_(shown) {
  if (sqlite3_open_v2(file.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, nullptr) != SQLITE_OK) fail();
  execute("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE");
  sqlite3_db_config(db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);  // would refuse the first of these
  sqlite3_db_config(db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
}

Database::~Database() { sqlite3_close_v2(db_); }

void Database::fail() const { cannot_write(shown_, db_ ? sqlite3_errmsg(db_) : "out of memory"); }

void Database::execute(const std::string& sql) {
  if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail();
}

Rows::Rows(Database& db, const char* table, int columns) : db_(db), columns_(columns) {
  std::string sql = std::string("INSERT INTO ") + table + " VALUES(?";
  for (int i = 1; i < columns; ++i) sql += ",?";
  if (sqlite3_prepare_v2(db.get(), (sql + ")").c_str(), -1, &statement_, nullptr) != SQLITE_OK) db.fail();
}

Rows::~Rows() { sqlite3_finalize(statement_); }

Rows& Rows::check(int code) {
  if (code != SQLITE_OK) db_.fail();
  return *this;
}

Rows& Rows::number(uint64_t value) {
  return check(sqlite3_bind_int64(statement_, ++bound_, std::bit_cast<int64_t>(value)));
}

Rows& Rows::reference(uint32_t index) { return index == 0xffffffff ? null() : number(index); }

Rows& Rows::real(double value) { return check(sqlite3_bind_double(statement_, ++bound_, value)); }

Rows& Rows::null() { return check(sqlite3_bind_null(statement_, ++bound_)); }

Rows& Rows::text(std::string_view value) {
  const char* data = value.data() ? value.data() : "";
  return check(sqlite3_bind_text64(statement_, ++bound_, data, value.size(), SQLITE_STATIC, SQLITE_UTF8));
}

Rows& Rows::blob(const void* data, size_t bytes) {
  return check(bytes == 0 ? sqlite3_bind_zeroblob(statement_, ++bound_, 0)
                          : sqlite3_bind_blob64(statement_, ++bound_, data, bytes, SQLITE_STATIC));
}

void Rows::end_row() {
  if (bound_ != columns_) throw Error(Exit::internal, "a row of a workload file has the wrong number of columns");
  if (sqlite3_step(statement_) != SQLITE_DONE) db_.fail();
  sqlite3_reset(statement_);
  bound_ = 0;
}

}  // namespace kgate::kgw
