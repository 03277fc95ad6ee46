// Rendering of tables and escapes.

#include "report/text_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/text.h"

namespace kgate {

std::string TextTable::render(const std::string& indent) const {
  std::vector<size_t> widths(rows_[0].size());
  for (const auto& row : rows_)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : rows_) {
    std::string line = indent;
    for (size_t i = 0; i < row.size(); ++i)
      line += i + 1 == row.size() ? row[i] : fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string markdown_escape(std::string_view text) {
  std::string out;
  for (char c : sanitize(text, 600)) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      if (c == '|' || c == '`' || c == '*' || c == '_' || c == '[' || c == ']' || c == '\\' || c == '#' || c == '@')
        out += '\\';
      out += c;
    }
  }
  return out;
}

}  // namespace kgate
