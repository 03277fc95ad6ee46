// Writes a .kgw. The database is built in a temporary file beside the target without a journal (nobody else sees it,
// and a failed write is thrown away), synced, and renamed: readers see the old file or the whole new one.
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <set>

#include "support/fd.h"
#include "support/hash.h"
#include "workload/kgw.h"
#include "workload/kgw_schema.h"

namespace kgate {

namespace {

[[noreturn]] void cannot_write(const std::filesystem::path& path, const std::string& why) {
  throw Error(Exit::environment, "cannot write the workload: " + why, path.string(),
              "write to a folder with free space where you may create files");
}

// A private file beside the target, removed unless it was renamed into place.
class Scratch {
 public:
  explicit Scratch(const std::filesystem::path& target) : target_(target), name_(target.string() + ".XXXXXX") {
    fd_ = Fd(::mkostemp(name_.data(), O_CLOEXEC));
    if (!fd_) cannot_write(target_, std::strerror(errno));
  }
  ~Scratch() {
    if (!name_.empty()) ::unlink(name_.c_str());
  }
  const std::string& name() const { return name_; }

  void rename_into_place() {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(fd_.get(), 0666 & ~mask) != 0 || ::fsync(fd_.get()) != 0 ||
        ::rename(name_.c_str(), target_.c_str()) != 0)
      cannot_write(target_, std::strerror(errno));
    name_.clear();
  }

 private:
  std::filesystem::path target_;
  std::string name_;
  Fd fd_;
};

class Database {
 public:
  Database(const std::string& file, const std::filesystem::path& shown) : shown_(shown) {
    if (sqlite3_open_v2(file.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, nullptr) != SQLITE_OK)
      fail();
  }
  Database(const Database&) = delete;
  ~Database() { sqlite3_close_v2(db_); }
  sqlite3* get() const { return db_; }
  [[noreturn]] void fail() const { cannot_write(shown_, db_ ? sqlite3_errmsg(db_) : "out of memory"); }
  void execute(const std::string& sql) {
    if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail();
  }

 private:
  std::filesystem::path shown_;
  sqlite3* db_ = nullptr;
};

// INSERTs of one table: values in column order, then end_row(). Texts and blobs must live until end_row().
class Rows {
 public:
  Rows(Database& db, const char* table, int columns) : db_(db), columns_(columns) {
    std::string sql = std::string("INSERT INTO ") + table + " VALUES(?";
    for (int i = 1; i < columns; ++i) sql += ",?";
    if (sqlite3_prepare_v2(db.get(), (sql + ")").c_str(), -1, &statement_, nullptr) != SQLITE_OK) db.fail();
  }
  Rows(const Rows&) = delete;
  ~Rows() { sqlite3_finalize(statement_); }

  Rows& number(uint64_t value) {
    return check(sqlite3_bind_int64(statement_, ++bound_, std::bit_cast<int64_t>(value)));
  }
  Rows& reference(uint32_t index) { return index == kNone ? null() : number(index); }
  Rows& real(double value) { return check(sqlite3_bind_double(statement_, ++bound_, value)); }
  Rows& null() { return check(sqlite3_bind_null(statement_, ++bound_)); }
  Rows& text(std::string_view value) {
    return check(sqlite3_bind_text64(statement_, ++bound_, value.data(), value.size(), SQLITE_STATIC, SQLITE_UTF8));
  }
  Rows& blob(const void* data, size_t bytes) {
    return check(bytes == 0 ? sqlite3_bind_zeroblob(statement_, ++bound_, 0)
                            : sqlite3_bind_blob64(statement_, ++bound_, data, bytes, SQLITE_STATIC));
  }
  Rows& dim(const Dim3& dim) { return number(dim.x).number(dim.y).number(dim.z); }
  void end_row() {
    if (bound_ != columns_) throw Error(Exit::internal, "a row of a workload file has the wrong number of columns");
    if (sqlite3_step(statement_) != SQLITE_DONE) db_.fail();
    sqlite3_reset(statement_);
    bound_ = 0;
  }

 private:
  Rows& check(int code) {
    if (code != SQLITE_OK) db_.fail();
    return *this;
  }
  Database& db_;
  sqlite3_stmt* statement_ = nullptr;
  int columns_, bound_ = 0;
};

// Contents by hash, each once.
class Blobs {
 public:
  explicit Blobs(Database& db) : rows_(db, "blobs", 3) {}

  std::string put(const std::string& raw) {
    std::string hash = sha256(raw);
    if (!written_.insert(hash).second) return hash;
    std::string packed(ZSTD_compressBound(raw.size()), '\0');
    const size_t size = ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), 3);
    if (ZSTD_isError(size)) throw Error(Exit::internal, std::string("zstd: ") + ZSTD_getErrorName(size));
    rows_.text(hash).number(raw.size()).blob(packed.data(), size).end_row();
    return hash;
  }

 private:
  Rows rows_;
  std::set<std::string> written_;
};

void write_kernels(Database& db, const Workload& w) {
  Rows kernels(db, "kernels", 4), params(db, "kernel_params", 4);
  for (size_t i = 0; i < w.kernels.size(); ++i) {
    const WorkloadKernel& kernel = w.kernels[i];
    kernels.number(i).number(kernel.module).text(kernel.entry).number(kernel.param_bytes).end_row();
    for (size_t p = 0; p < kernel.params.size(); ++p)
      params.number(i).number(p).number(kernel.params[p].first).number(kernel.params[p].second).end_row();
  }
}

void write_buffers(Database& db, const Workload& w, Blobs& blobs) {
  Rows rows(db, "buffers", 13);
  for (size_t i = 0; i < w.buffers.size(); ++i) {
    const Buffer& buffer = w.buffers[i];
    rows.number(i)
        .text(buffer.name)
        .number(buffer.bytes)
        .number(buffer.align)
        .number(buffer.address)
        .number(buffer.written);
    std::string hash;
    if (const auto* bytes = std::get_if<ContentBytes>(&buffer.content)) {
      hash = blobs.put(bytes->bytes);
      rows.text("bytes").text(hash).null().null().null().null().null();
    } else if (const auto* random = std::get_if<ContentRandom>(&buffer.content)) {
      rows.text("random").null().text(random->dtype).real(random->low).real(random->high).number(random->seed).null();
    } else if (const auto* poison = std::get_if<ContentPoison>(&buffer.content)) {
      rows.text("poison").null().null().null().null().null().number(poison->value);
    } else {
      rows.text("zeros").null().null().null().null().null().null();
    }
    rows.end_row();
  }
}

void write_launches(Database& db, const Workload& w) {
  Rows launches(db, "launches", 13), relocations(db, "relocations", 5);
  for (size_t i = 0; i < w.launches.size(); ++i) {
    const LaunchSpec& launch = w.launches[i];
    launches.number(i)
        .number(launch.kernel)
        .dim(launch.grid)
        .dim(launch.block)
        .dim(launch.cluster)
        .number(launch.shared);
    launches.blob(launch.params.data(), launch.params.size()).end_row();
    for (size_t r = 0; r < launch.relocations.size(); ++r) {
      const Relocation& relocation = launch.relocations[r];
      relocations.number(i).number(r).number(relocation.param_offset).number(relocation.buffer);
      relocations.number(std::bit_cast<uint64_t>(relocation.delta)).end_row();
    }
  }
}

void write_calls(Database& db, const Workload& w) {
  Rows calls(db, "calls", 13), edges(db, "after_edges", 3);
  for (size_t i = 0; i < w.calls.size(); ++i) {
    const Call& call = w.calls[i];
    calls.number(i).text(call_kind_name(call.kind)).number(call.thread).number(call.stream).reference(call.launch);
    calls.reference(call.dst).reference(call.src).number(call.dst_offset).number(call.src_offset).number(call.bytes);
    calls.number(call.value).reference(call.event).number(call.host_gap_ns).end_row();
    for (size_t k = 0; k < call.after.size(); ++k) edges.number(i).number(k).number(call.after[k]).end_row();
  }
  Rows requests(db, "requests", 5);
  for (size_t i = 0; i < w.requests.size(); ++i) {
    const Request& request = w.requests[i];
    requests.number(i).number(request.arrival_ns).number(request.thread).number(request.calls.front());
    requests.number(request.calls.size()).end_row();
  }
}

void write_tables(Database& db, const Workload& w) {
  for (const KgwTable& table : kKgwTables) db.execute(table.sql);
  const std::string identity = workload_hash(w);
  const char* arrivals = w.arrivals == Arrivals::external ? "external" : "closed";
  Rows meta(db, "meta", 9);
  meta.number(0)
      .text(w.name)
      .text(arrivals)
      .number(w.period_ns)
      .number(w.threads)
      .number(w.streams.size())
      .number(w.events);
  meta.number(w.blocking_sync).text(identity).end_row();
  Blobs blobs(db);
  Rows modules(db, "modules", 3);
  for (size_t i = 0; i < w.modules.size(); ++i) {
    const std::string hash = blobs.put(w.modules[i].image);
    modules.number(i).text(w.modules[i].name).text(hash).end_row();
  }
  write_kernels(db, w);
  write_buffers(db, w, blobs);
  write_launches(db, w);
  write_calls(db, w);
}

}  // namespace

void write_kgw(const Workload& workload, const std::filesystem::path& path) {
  if (auto valid = validate(workload); !valid) {
    const Failure& failure = valid.failure();
    throw Error(Exit::internal,
                "refusing to write a workload that no reader would accept: " + failure.where + ": " + failure.what,
                path.string());
  }
  Scratch scratch(path);
  {
    Database db(scratch.name(), path);
    db.execute("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE; PRAGMA page_size=4096");
    db.execute("PRAGMA application_id=" + std::to_string(kKgwApplicationId) +
               "; PRAGMA user_version=" + std::to_string(kKgwVersion));
    db.execute("BEGIN");
    write_tables(db, workload);
    db.execute("COMMIT");
  }
  scratch.rename_into_place();
}

}  // namespace kgate
