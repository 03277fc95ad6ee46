// Columns of a CSV file with a header line, for arrivals and sizes of production requests (docs/formats.md). Fields may
// be quoted; a quoted field does not span lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/error.h"

namespace kgate {

class CsvTable {
 public:
  static Result<CsvTable> parse(std::string_view text);  // failures: "line N"

  size_t rows() const { return rows_.size(); }
  Result<size_t> column(std::string_view name) const;  // with a did-you-mean
  const std::string& at(size_t row, size_t column) const { return rows_[row][column]; }
  static size_t line_of(size_t row) { return row + 2; }  // blank lines are refused, so rows and lines keep step

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<std::string>> rows_;
};

enum class TimeUnit { automatic, s, ms, us, ns };

// "12.5" in `unit`, or with TimeUnit::automatic a date and time: "2023-11-16 18:15:46.6805900", 'T' for the blank and a
// final 'Z' or
// "+00:00" allowed. Nanoseconds since that number's zero or since 1970.
Result<int64_t> parse_timestamp(std::string_view text, TimeUnit unit);

}  // namespace kgate
