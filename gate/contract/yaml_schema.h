// The table-driven YAML validator that every kgate file goes through (contract, workload, manifest): one walk that
// reports all errors with file:line:column, refuses unknown and duplicate keys, missing units, non-finite numbers and YAML 1.1
// surprises (010, yes/no, ~, .nan), and suggests the nearest key.
//
// yaml-cpp stays inside the .cpp files: a Document is a tree of our own nodes with positions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/error.h"

namespace kgate::yaml {

struct Position { int line = 0, column = 0; };  // 1-based

// A parsed YAML value. Scalars keep their text and whether they were quoted; typing is the reader's business.
struct Node {
  enum class Kind { null, scalar, sequence, map };
  Kind kind = Kind::null;
  Position position;
  std::string text;      // of a scalar
  bool quoted = false;
  std::vector<Node> items;                                 // of a sequence
  std::vector<std::pair<Node, Node>> entries;              // of a map, in file order
};

// Collects every problem of a file; `finish` throws Error{bad_input} listing all of them if there is one.
class Problems {
 public:
  explicit Problems(std::filesystem::path file) : file_(std::move(file)) {}
  void add(const Position& at, std::string text);
  bool empty() const { return lines_.empty(); }
  void finish(const std::string& hint = {}) const;
  std::string where(const Position& at) const;   // "file:line:column"
  const std::filesystem::path& file() const { return file_; }

 private:
  std::filesystem::path file_;
  std::vector<std::pair<Position, std::string>> lines_;
};

// Syntax errors, aliases/anchors/tags and several documents are problems (then a null node is returned).
Node parse(const std::string& text, Problems& problems);

// A map's fields. Every key must be fetched or allowed; `close()` reports unknown keys (with did-you-mean) and duplicates.
// A getter that finds the wrong type adds a problem and returns nullopt.
class Fields {
 public:
  Fields(const Node& node, Problems& problems, std::string what);  // `what`: "contract", "limit", ... for messages
  const Node* find(std::string_view key);                // nullptr when absent
  const Node* require(std::string_view key);             // absent: a problem
  std::optional<std::string> string(std::string_view key, bool required = false);
  std::optional<int64_t> integer(std::string_view key, bool required = false);
  std::optional<double> number(std::string_view key, bool required = false);       // finite
  std::optional<bool> boolean(std::string_view key);                               // true/false only
  std::optional<double> percent(std::string_view key);        // "5%" → 0.05; bare numbers are refused with the hint
  std::optional<double> duration_ns(std::string_view key);    // "2us" → 2000
  std::optional<double> rate_per_second(std::string_view key);  // "2000/s"
  std::optional<double> bytes(std::string_view key);          // "64KiB", "512B"
  void close();

 private:
  const Node& node_;
  Problems& problems_;
  std::string what_;
  std::vector<std::string> known_;
};

std::optional<int64_t> as_integer(const Node& node, Problems& problems, std::string_view what);
std::optional<double> as_number(const Node& node, Problems& problems, std::string_view what);
std::optional<std::string> as_string(const Node& node, Problems& problems, std::string_view what);

}  // namespace kgate::yaml
