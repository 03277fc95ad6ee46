// The virtual table is an eponymous one, `kgate_rows(batch)`: its hidden column takes the batch as a pointer that SQL
// cannot make up.
#include "trace/bulk.h"

#include <sqlite3.h>

#include <utility>

namespace kgate::trace {

namespace {

constexpr int kMaxColumns = 32;
constexpr const char* kPointerType = "kgate_rows";

struct Cursor {
  sqlite3_vtab_cursor base;
  const Batch* batch;
  size_t row, rows;
};

Cursor& cursor_of(sqlite3_vtab_cursor* base) { return *reinterpret_cast<Cursor*>(base); }

int connect(sqlite3* handle, void*, int, const char* const*, sqlite3_vtab** table, char**) {
  std::string columns = "CREATE TABLE rows(";
  for (int i = 0; i < kMaxColumns; ++i) columns += "c" + std::to_string(i) + ", ";
  int code = sqlite3_declare_vtab(handle, (columns + "batch HIDDEN)").c_str());
  if (code != SQLITE_OK) return code;
  *table = static_cast<sqlite3_vtab*>(sqlite3_malloc(sizeof(sqlite3_vtab)));
  if (*table == nullptr) return SQLITE_NOMEM;
  **table = {};
  return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table) {
  sqlite3_free(table);
  return SQLITE_OK;
}

int best_index(sqlite3_vtab*, sqlite3_index_info* info) {
  info->estimatedCost = 1e6;
  for (int i = 0; i < info->nConstraint; ++i)
    if (info->aConstraint[i].usable && info->aConstraint[i].iColumn == kMaxColumns &&
        info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ) {
      info->aConstraintUsage[i].argvIndex = 1;
      info->aConstraintUsage[i].omit = 1;
      info->idxNum = 1;
    }
  return SQLITE_OK;
}

int open(sqlite3_vtab*, sqlite3_vtab_cursor** base) {
  auto* cursor = static_cast<Cursor*>(sqlite3_malloc(sizeof(Cursor)));
  if (cursor == nullptr) return SQLITE_NOMEM;
  *cursor = {};
  *base = &cursor->base;
  return SQLITE_OK;
}

int close(sqlite3_vtab_cursor* base) {
  sqlite3_free(base);
  return SQLITE_OK;
}

int filter(sqlite3_vtab_cursor* base, int index, const char*, int count, sqlite3_value** arguments) {
  Cursor& cursor = cursor_of(base);
  cursor.batch =
      index == 1 && count == 1 ? static_cast<const Batch*>(sqlite3_value_pointer(arguments[0], kPointerType)) : nullptr;
  cursor.row = 0;
  cursor.rows = cursor.batch ? cursor.batch->rows() : 0;
  return SQLITE_OK;
}

int next(sqlite3_vtab_cursor* base) {
  ++cursor_of(base).row;
  return SQLITE_OK;
}

int at_end(sqlite3_vtab_cursor* base) { return cursor_of(base).row >= cursor_of(base).rows; }

int column(sqlite3_vtab_cursor* base, sqlite3_context* context, int index) {
  const Cursor& cursor = cursor_of(base);
  auto at = static_cast<size_t>(index);
  if (at >= cursor.batch->kinds.size()) return SQLITE_OK;  // NULL
  Cell cell = cursor.batch->cells[cursor.row * cursor.batch->kinds.size() + at];
  if (cell == kNull) return SQLITE_OK;
  if (cursor.batch->kinds[at] == 'i') {
    sqlite3_result_int64(context, cell);
  } else {
    const auto* text = reinterpret_cast<const std::string*>(cell);
    sqlite3_result_text(context, text->data(), static_cast<int>(text->size()), SQLITE_STATIC);
  }
  return SQLITE_OK;
}

int row_id(sqlite3_vtab_cursor* base, sqlite3_int64* id) {
  *id = static_cast<sqlite3_int64>(cursor_of(base).row);
  return SQLITE_OK;
}

const sqlite3_module& module() {
  static const sqlite3_module one = [] {
    sqlite3_module m{};
    m.xConnect = connect, m.xDisconnect = disconnect, m.xBestIndex = best_index;
    m.xOpen = open, m.xClose = close, m.xFilter = filter, m.xNext = next, m.xEof = at_end;
    m.xColumn = column, m.xRowid = row_id;
    return m;
  }();
  return one;
}

std::string insert_text(const std::string& target, size_t columns) {
  std::string text = "INSERT INTO " + target + " SELECT ";
  for (size_t i = 0; i < columns; ++i) text += (i ? ", c" : "c") + std::to_string(i);
  return text + " FROM kgate_rows(?1)";
}

}  // namespace

Cell Texts::cell(std::string_view text) {
  auto at = texts_.find(text);
  if (at == texts_.end()) at = texts_.emplace(std::string(text), std::make_unique<std::string>(text)).first;
  return reinterpret_cast<Cell>(at->second.get());
}

BulkWriter::BulkWriter(const Database& database) : database_(database) {
  if (sqlite3_create_module(database.get(), "kgate_rows", &module(), nullptr) != SQLITE_OK) database.fail();
}

BulkWriter::~BulkWriter() { stop(); }

BulkWriter::Table BulkWriter::table(const std::string& target, std::string_view kinds) {
  if (kinds.size() > kMaxColumns) throw Error(Exit::internal, "too many columns", target);
  tables_.push_back({Statement(database_, insert_text(target, kinds.size())), {kinds, {}}});
  return tables_.size() - 1;
}

void BulkWriter::write(Table table, const Batch& batch) { tables_[table].insert.run_with(&batch, kPointerType); }

void BulkWriter::hand_over(Table table) {
  Batch& batch = tables_[table].batch;
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.size() < kMaxQueued; });
  queue_.push_back({table, std::move(batch)});
  batch.cells.clear();
  if (!spare_.empty()) {
    batch.cells = std::move(spare_.back());
    spare_.pop_back();
  }
  batch.kinds = queue_.back().batch.kinds;
  batch.cells.reserve(kBatchCells + kMaxColumns);
  changed_.notify_all();
}

void BulkWriter::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !queue_.empty() || ending_; });
    if (queue_.empty()) return;
    Job job = std::move(queue_.front());
    queue_.pop_front();
    bool broken = failure_ != nullptr;
    lock.unlock();
    std::exception_ptr failure;
    try {
      if (!broken) write(job.table, job.batch);
    } catch (...) {
      failure = std::current_exception();
    }
    job.batch.cells.clear();
    lock.lock();
    if (failure) failure_ = failure;
    spare_.push_back(std::move(job.batch.cells));
    changed_.notify_all();
  }
}

void BulkWriter::stop() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
  ending_ = false;
}

void BulkWriter::flush() {
  stop();
  spare_.clear();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  for (Table table = 0; table < tables_.size(); ++table) {
    Batch& batch = tables_[table].batch;
    if (batch.cells.empty()) continue;
    write(table, batch);
    batch.cells.clear();
  }
}

}  // namespace kgate::trace
