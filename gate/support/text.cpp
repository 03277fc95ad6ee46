#include "support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kgate {

namespace {
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substitute = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row.back();
}

std::string scaled(double value, double step, const char* const* units, int count, const char* sep) {
  if (!std::isfinite(value)) return "not a number";
  int unit = 0;
  while (unit + 1 < count && std::fabs(value) >= step) {
    value /= step;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.6g}{}{}", std::round(value * 10) / 10, units[unit][0] ? sep : "", units[unit]);
  return fmt::format("{:.2f}{}{}", value, sep, units[unit]);
}
}  // namespace

std::optional<std::string> did_you_mean(std::string_view name, const std::vector<std::string>& names) {
  const std::string* best = nullptr;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  for (const auto& candidate : names) {
    size_t d = edit_distance(name, candidate);
    if (d < best_distance) {
      best = &candidate;
      best_distance = d;
    }
  }
  if (!best) return std::nullopt;
  return *best;
}

bool glob_match(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string format_ns(double ns) {
  static constexpr const char* units[] = {"ns", "us", "ms", "s"};
  return scaled(ns, 1000, units, 4, " ");
}

std::string format_bytes(double bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  return scaled(bytes, 1024, units, 5, " ");
}

std::string format_count(double count) {
  static constexpr const char* units[] = {"", "k", "M", "G", "T"};
  return scaled(count, 1000, units, 5, " ");
}

std::string format_percent(double fraction) {
  if (!std::isfinite(fraction)) return "not a number";
  return fmt::format("{:+.2f} %", fraction * 100);
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.push_back(line);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string_view trim(std::string_view text) {
  static constexpr std::string_view blanks = " \t\r\n\f\v";
  size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::string sanitize(std::string_view text, size_t max) {
  std::string clean;
  for (unsigned char c : text) {
    if (clean.size() >= max) {
      clean += "...";
      break;
    }
    clean += (c < 0x20 || c == 0x7f) ? ' ' : static_cast<char>(c);
  }
  return clean;
}

}  // namespace kgate
