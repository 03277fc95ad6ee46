// What the formats share beyond phrases: a table with columns as wide as their content, and Markdown's escapes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kgate {

// Text in UTF-8 is ASCII apart from nothing that is put into a table.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.size() == 1; }
  std::string render(const std::string& indent) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Untrusted text as Markdown that says just that: one line, at most 600 bytes.
std::string markdown_escape(std::string_view text);

}  // namespace kgate
