// Rows into SQLite by the ten thousand. A prepared INSERT costs about a microsecond a row, most of it for starting and
// ending the statement; here rows are staged as plain numbers and one `INSERT … SELECT` over a virtual table takes a
// whole batch, which more than halves that. Full batches are written by a second thread while the next ones are made.
//
// Between the first add() and flush() the connection belongs to the writer.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "trace/database.h"

namespace kgate::trace {

using Cell = int64_t;
constexpr Cell kNull = INT64_MIN;

// Texts that stay where they are, each once: what a cell of a text column points to.
class Texts {
 public:
  Cell cell(std::string_view text);

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::unordered_map<std::string, std::unique_ptr<std::string>, Hash, std::equal_to<>> texts_;
};

struct Batch {
  std::string_view kinds;  // one letter a column: 'i' a number, 't' a text of Texts; both may be kNull
  std::vector<Cell> cells;
  size_t rows() const { return kinds.empty() ? 0 : cells.size() / kinds.size(); }
};

class BulkWriter {
 public:
  using Table = size_t;

  explicit BulkWriter(const Database& database);
  ~BulkWriter();  // what was not flushed is lost

  // `target`: the table, or "table(column, …)". `kinds` as in Batch and must stay valid.
  Table table(const std::string& target, std::string_view kinds);

  // Numbers, optionals of numbers, and cells, one a column.
  template <typename... Values>
  void add(Table table, const Values&... values) {
    std::vector<Cell>& cells = tables_[table].batch.cells;
    (cells.push_back(to_cell(values)), ...);
    if (cells.size() >= kBatchCells) hand_over(table);
  }

  void flush();  // everything added is in the database. Throws what the writing threw.

 private:
  static constexpr size_t kBatchCells = 1 << 17, kMaxQueued = 8;
  struct Target {
    Statement insert;
    Batch batch;
  };
  struct Job {
    Table table;
    Batch batch;
  };

  template <typename T>
  static Cell to_cell(const T& value) {
    static_assert(std::is_integral_v<T>);
    if constexpr (std::is_same_v<T, Cell>)
      return value;
    else
      return static_cast<Cell>(value) == kNull ? kNull + 1 : static_cast<Cell>(value);
  }
  template <typename T>
  static Cell to_cell(const std::optional<T>& value) {
    return value ? to_cell(*value) : kNull;
  }

  void hand_over(Table table);
  void write(Table table, const Batch& batch);
  void run();   // the thread
  void stop();  // waits until the queue is empty

  const Database& database_;
  std::deque<Target> tables_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> queue_;
  std::vector<std::vector<Cell>> spare_;  // emptied batches keep their memory
  bool ending_ = false;
  std::exception_ptr failure_;
};

}  // namespace kgate::trace
