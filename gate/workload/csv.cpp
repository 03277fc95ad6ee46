#include "workload/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>

#include "support/text.h"

namespace kgate {

namespace {

constexpr size_t kMaxRows = 1 << 21, kMaxColumns = 256;

Result<std::vector<std::string>> split_line(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[++i];
    } else if (c == '"' && (quoted || fields.back().empty())) {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      if (fields.size() == kMaxColumns) return Failure{fmt::format("more than {} columns", kMaxColumns), {}, {}};
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (quoted) return Failure{"a quoted field does not end", {}, {}};
  return fields;
}

std::string at_line(size_t line) { return fmt::format("line {}", line); }

}  // namespace

Result<CsvTable> CsvTable::parse(std::string_view text) {
  CsvTable table;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) return Failure{"a blank line", at_line(number), {}};
    auto fields = split_line(line);
    if (!fields) return Failure{fields.failure().what, at_line(number), {}};
    if (number == 1) {
      table.names_ = std::move(*fields);
      continue;
    }
    if (fields->size() != table.names_.size())
      return Failure{
          fmt::format("{} fields; the header has {}", fields->size(), table.names_.size()), at_line(number), {}};
    if (table.rows_.size() == kMaxRows) return Failure{fmt::format("more than {} rows", kMaxRows), at_line(number), {}};
    table.rows_.push_back(std::move(*fields));
  }
  if (number == 0) return Failure{"the file is empty", {}, {}};
  return table;
}

Result<size_t> CsvTable::column(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<size_t>(found - names_.begin());
  const auto near = did_you_mean(name, names_);
  return Failure{fmt::format("no column '{}'", sanitize(name, 60)), at_line(1),
                 near ? fmt::format("did you mean '{}'?", *near)
                      : fmt::format("columns: {}", sanitize(fmt::format("{}", fmt::join(names_, ", "))))};
}

namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Digits [0, width) of `text` as a number below `limit`; they are taken from the text.
bool take_digits(std::string_view& text, size_t width, int limit, int& out) {
  if (text.size() < width || !std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(width),
                                          [](char c) { return c >= '0' && c <= '9'; }))
    return false;
  std::from_chars(text.data(), text.data() + width, out);
  text.remove_prefix(width);
  return out < limit;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// ".6805900" → 680590000; digits past the ninth are dropped.
bool take_fraction(std::string_view& text, int64_t& nanoseconds) {
  nanoseconds = 0;
  if (!take(text, ".")) return true;
  size_t digits = 0;
  for (; !text.empty() && text[0] >= '0' && text[0] <= '9'; text.remove_prefix(1), ++digits)
    if (digits < 9) nanoseconds = nanoseconds * 10 + (text[0] - '0');
  for (size_t i = digits; i < 9; ++i) nanoseconds *= 10;
  return digits > 0;
}

Result<int64_t> parse_date_time(std::string_view text) {
  const Failure bad{fmt::format("\"{}\" is not a date and time", sanitize(text, 60)),
                    {},
                    "write 2023-11-16 18:15:46.68, or say 'time_unit: s' (ms, us, ns) for numbers"};
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  int64_t fraction = 0;
  if (!take_digits(text, 4, 2200, year) || !take(text, "-") || !take_digits(text, 2, 13, month) || !take(text, "-") ||
      !take_digits(text, 2, 32, day) || !take(text, " T") || !take_digits(text, 2, 24, hour) || !take(text, ":") ||
      !take_digits(text, 2, 60, minute) || !take(text, ":") || !take_digits(text, 2, 61, second) ||
      !take_fraction(text, fraction) || year < 1970)
    return bad;
  if (text != "" && text != "Z" && text != "+00:00") return bad;
  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  if (!date.ok()) return bad;
  const int64_t days = std::chrono::sys_days{date}.time_since_epoch().count();
  return (((days * 24 + hour) * 60 + minute) * 60 + second) * kSecond + fraction;
}

}  // namespace

Result<int64_t> parse_timestamp(std::string_view text, TimeUnit unit) {
  if (unit == TimeUnit::automatic) return parse_date_time(trim(text));
  const double scale = unit == TimeUnit::s ? 1e9 : unit == TimeUnit::ms ? 1e6 : unit == TimeUnit::us ? 1e3 : 1;
  const std::string_view number = trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc{} || end != number.data() + number.size() || !std::isfinite(value) ||
      std::abs(value) * scale > 4e18)
    return Failure{fmt::format("\"{}\" is not a number", sanitize(text, 60)), {}, {}};
  return static_cast<int64_t>(std::llround(value * scale));
}

}  // namespace kgate
