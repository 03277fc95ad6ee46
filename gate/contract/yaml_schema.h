// The table-driven YAML validator that every kgate file goes through (contract, workload, manifest): one walk that
// reports all errors with file:line:column, refuses unknown and duplicate keys, missing units, non-finite numbers and
// YAML 1.1 surprises (010, yes/no, ~, .nan), and suggests the nearest key.
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

struct Position {
  int line = 0, column = 0;
};  // 1-based

// A parsed YAML value. Scalars keep their text and whether they were quoted; typing is the reader's business.
struct Node {
  enum class Kind { null, scalar, sequence, map };
  Kind kind = Kind::null;
  Position position;
  std::string path;                            // "params[1].tensor": how messages name it; empty for the root
  std::string text;                            // of a scalar; of a null: "null", "~" or empty, as it was written
  bool quoted = false;                         // in quotes or a block scalar
  std::vector<Node> items;                     // of a sequence
  std::vector<std::pair<Node, Node>> entries;  // of a map, in file order; never the same key twice

  const Node* find(std::string_view key) const;  // of a map; nullptr when absent
};

// Where character `offset` (0-based) of a scalar's text stands, for messages that point into expressions.
// Quoted text with escapes and text over several lines give the scalar's own position.
Position inside(const Node& node, size_t offset);

// Collects every problem of a file; `finish` throws Error{bad_input} listing all of them, by position, if there is one.
// The same problem said twice counts once: the table's walk and the reader behind it may both meet it.
class Problems {
 public:
  explicit Problems(std::filesystem::path file) : file_(std::move(file)) {}
  void add(const Position& at, std::string text);
  void add(const Node& node, std::string_view text, std::string_view hint = {});  // "path: text; hint"
  void add(const Node& node, const Failure& failure) { add(node, failure.what, failure.hint); }
  void add(const Position& at, const Node& node, std::string_view text, std::string_view hint = {});
  bool empty() const { return lines_.empty(); }
  void finish(const std::string& hint = {}) const;
  std::string where(const Position& at) const;  // "file:line:column"
  const std::filesystem::path& file() const { return file_; }

 private:
  std::filesystem::path file_;
  std::vector<std::pair<Position, std::string>> lines_;  // the first hundred
  size_t unshown_ = 0;
};

// Limits of every kgate YAML file; past them the file is refused.
constexpr size_t kMaxFileBytes = size_t{4} << 20;
constexpr int kMaxDepth = 32;
constexpr size_t kMaxNodes = 200'000;

// Syntax errors, duplicate keys, aliases, anchors, tags, directives, tabs, control characters, an empty file and
// several documents are problems (then a null node is returned, except for duplicate keys, of which the first stays).
Node parse(const std::string& text, Problems& problems);

// A map's fields. Every key must be fetched or allowed; `close()` reports unknown keys (with did-you-mean).
// A getter that finds the wrong type adds a problem and returns nullopt.
class Fields {
 public:
  Fields(const Node& node, Problems& problems, std::string what);  // `what`: "contract", "limit", ... for messages
  const Node* find(std::string_view key);                          // nullptr when absent
  const Node* require(std::string_view key);                       // absent: a problem
  std::optional<std::string> string(std::string_view key, bool required = false);
  std::optional<int64_t> integer(std::string_view key, bool required = false);
  std::optional<double> number(std::string_view key, bool required = false);  // finite
  std::optional<bool> boolean(std::string_view key);                          // true/false only
  std::optional<double> percent(std::string_view key);          // "5%" → 0.05; bare numbers are refused with the hint
  std::optional<double> duration_ns(std::string_view key);      // "2us" → 2000
  std::optional<double> rate_per_second(std::string_view key);  // "2000/s"
  std::optional<double> bytes(std::string_view key);            // "64KiB", "512B"
  void close();

 private:
  const Node& node_;
  Problems& problems_;
  std::string what_;
  std::vector<std::string> known_;
};

// Typed readings of one scalar. The wrong type, or what another YAML reader would read otherwise (010, 0x10, 1_000,
// yes, ~), is a problem. Numbers are written plain, without quotes; quantities carry their unit: "5%", "2us", "64KiB",
// "2000/s". A bare 0 is a duration or a size too.
std::optional<int64_t> as_integer(const Node& node, Problems& problems, std::string_view what);
std::optional<double> as_number(const Node& node, Problems& problems, std::string_view what);
std::optional<std::string> as_string(const Node& node, Problems& problems, std::string_view what);
std::optional<bool> as_boolean(const Node& node, Problems& problems, std::string_view what);
std::optional<double> as_percent(const Node& node, Problems& problems, std::string_view what);
std::optional<double> as_duration_ns(const Node& node, Problems& problems, std::string_view what);
std::optional<double> as_rate_per_second(const Node& node, Problems& problems, std::string_view what);
std::optional<double> as_bytes(const Node& node, Problems& problems, std::string_view what);

}  // namespace kgate::yaml
