// Problems, typed scalars, and the fields of a map.
#include <fmt/format.h>

#include <algorithm>

#include "contract/quantity.h"
#include "contract/yaml_schema.h"
#include "support/text.h"

namespace kgate::yaml {

namespace {

constexpr size_t kMaxShown = 100;

// What YAML 1.1 or 1.2 readers take for a boolean or null when it is not in quotes.
bool is_yaml_word(std::string_view text) {
  std::string lower;
  for (char c : text) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  for (const char* word : {"true", "false", "yes", "no", "on", "off", "null", "~"})
    if (lower == word) return true;
  return false;
}

// The text of a scalar that has one, else a problem.
const std::string* scalar_text(const Node& node, Problems& problems, std::string_view what) {
  if (node.kind == Node::Kind::scalar) return &node.text;
  const char* found = node.kind == Node::Kind::map ? "a map" : node.kind == Node::Kind::sequence ? "a list" : "null";
  if (node.kind == Node::Kind::null && node.text.empty())
    problems.add(node, "has no value", fmt::format("give {}", what));
  else
    problems.add(node, fmt::format("expected {}, found {}", what, found));
  return nullptr;
}

// Numbers and booleans are written plain: the same word in quotes is text to every other reader.
const std::string* plain_text(const Node& node, Problems& problems, std::string_view what) {
  const std::string* text = scalar_text(node, problems, what);
  if (!text || !node.quoted) return text;
  problems.add(node, fmt::format("expected {}, found text in quotes", what), "remove the quotes");
  return nullptr;
}

template <typename T>
std::optional<T> noted(Result<T> result, const Node& node, Problems& problems) {
  if (result) return *result;
  problems.add(node, result.failure());
  return std::nullopt;
}

using QuantityParser = Result<double> (*)(std::string_view);
std::optional<double> quantity(const Node& node, Problems& problems, std::string_view what, QuantityParser parser) {
  const std::string* text = scalar_text(node, problems, what);
  if (!text) return std::nullopt;
  return noted(parser(*text), node, problems);
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  for (const auto& [name, value] : entries)
    if (name.text == key) return &value;
  return nullptr;
}

Position inside(const Node& node, size_t offset) {
  Position at = node.position;
  bool as_written = std::none_of(node.text.begin(), node.text.end(),
                                 [](char c) { return c == '\n' || c == '\\' || c == '"' || c == '\''; });
  if (as_written) at.column += static_cast<int>(offset) + (node.quoted ? 1 : 0);
  return at;
}

void Problems::add(const Position& at, std::string text) {
  for (const auto& [known_at, known] : lines_)
    if (known_at.line == at.line && known_at.column == at.column && known == text) return;
  if (lines_.size() < kMaxShown)
    lines_.emplace_back(at, std::move(text));
  else
    ++unshown_;
}

void Problems::add(const Position& at, const Node& node, std::string_view text, std::string_view hint) {
  std::string line = node.path.empty() ? std::string(text) : fmt::format("{}: {}", node.path, text);
  if (!hint.empty()) line += fmt::format("; {}", hint);
  add(at, std::move(line));
}

void Problems::add(const Node& node, std::string_view text, std::string_view hint) {
  add(node.position, node, text, hint);
}

std::string Problems::where(const Position& at) const {
  return fmt::format("{}:{}:{}", file_.string(), at.line, at.column);
}

void Problems::finish(const std::string& hint) const {
  if (lines_.empty()) return;
  auto sorted = lines_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.line, a.first.column) < std::pair(b.first.line, b.first.column);
  });
  std::string all;
  for (const auto& [at, text] : sorted) all += fmt::format("{}{}: {}", all.empty() ? "" : "\n", where(at), text);
  if (unshown_ > 0) all += fmt::format("\n... and {} more", unshown_);
  throw Error(Exit::bad_input, all, {}, hint);
}

std::optional<int64_t> as_integer(const Node& node, Problems& problems, std::string_view what) {
  const std::string* text = plain_text(node, problems, what);
  if (!text) return std::nullopt;
  return noted(parse_integer(*text), node, problems);
}

std::optional<double> as_number(const Node& node, Problems& problems, std::string_view what) {
  const std::string* text = plain_text(node, problems, what);
  if (!text) return std::nullopt;
  return noted(parse_number(*text), node, problems);
}

std::optional<std::string> as_string(const Node& node, Problems& problems, std::string_view what) {
  const std::string* text = scalar_text(node, problems, what);
  if (!text) return std::nullopt;
  if (text->empty()) {
    problems.add(node, "is empty", fmt::format("give {}", what));
    return std::nullopt;
  }
  if (!node.quoted && (is_yaml_word(*text) || parse_number(*text))) {
    problems.add(node, fmt::format("expected {}; {} is not text to every YAML reader", what, sanitize(*text, 60)),
                 fmt::format("write \"{}\"", sanitize(*text, 60)));
    return std::nullopt;
  }
  return *text;
}

std::optional<bool> as_boolean(const Node& node, Problems& problems, std::string_view what) {
  const std::string* text = plain_text(node, problems, what);
  if (!text) return std::nullopt;
  if (*text == "true" || *text == "false") return *text == "true";
  problems.add(node, fmt::format("\"{}\" is not a boolean", sanitize(*text, 60)), "write true or false");
  return std::nullopt;
}

std::optional<double> as_percent(const Node& node, Problems& problems, std::string_view what) {
  return quantity(node, problems, what, parse_percent);
}
std::optional<double> as_duration_ns(const Node& node, Problems& problems, std::string_view what) {
  return quantity(node, problems, what, parse_duration_ns);
}
std::optional<double> as_rate_per_second(const Node& node, Problems& problems, std::string_view what) {
  return quantity(node, problems, what, parse_rate);
}
std::optional<double> as_bytes(const Node& node, Problems& problems, std::string_view what) {
  return quantity(node, problems, what, parse_bytes);
}

Fields::Fields(const Node& node, Problems& problems, std::string what)
    : node_(node), problems_(problems), what_(std::move(what)) {
  if (node.kind == Node::Kind::map) return;
  problems_.add(node, fmt::format("expected a map: the fields of a {}", what_));
}

const Node* Fields::find(std::string_view key) {
  known_.emplace_back(key);
  return node_.find(key);
}

const Node* Fields::require(std::string_view key) {
  const Node* value = find(key);
  if (!value && node_.kind == Node::Kind::map)
    problems_.add(node_, fmt::format("the {} has no '{}'", what_, key), "add it");
  return value;
}

std::optional<std::string> Fields::string(std::string_view key, bool required) {
  const Node* value = required ? require(key) : find(key);
  return value ? as_string(*value, problems_, "text") : std::nullopt;
}
std::optional<int64_t> Fields::integer(std::string_view key, bool required) {
  const Node* value = required ? require(key) : find(key);
  return value ? as_integer(*value, problems_, "an integer") : std::nullopt;
}
std::optional<double> Fields::number(std::string_view key, bool required) {
  const Node* value = required ? require(key) : find(key);
  return value ? as_number(*value, problems_, "a number") : std::nullopt;
}
std::optional<bool> Fields::boolean(std::string_view key) {
  const Node* value = find(key);
  return value ? as_boolean(*value, problems_, "true or false") : std::nullopt;
}
std::optional<double> Fields::percent(std::string_view key) {
  const Node* value = find(key);
  return value ? as_percent(*value, problems_, "a percentage") : std::nullopt;
}
std::optional<double> Fields::duration_ns(std::string_view key) {
  const Node* value = find(key);
  return value ? as_duration_ns(*value, problems_, "a duration") : std::nullopt;
}
std::optional<double> Fields::rate_per_second(std::string_view key) {
  const Node* value = find(key);
  return value ? as_rate_per_second(*value, problems_, "a rate") : std::nullopt;
}
std::optional<double> Fields::bytes(std::string_view key) {
  const Node* value = find(key);
  return value ? as_bytes(*value, problems_, "a size") : std::nullopt;
}

void Fields::close() {
  for (const auto& [key, value] : node_.entries) {
    if (std::find(known_.begin(), known_.end(), key.text) != known_.end()) continue;
    auto near = did_you_mean(key.text, known_);
    std::string list;
    for (const auto& known : known_) list += (list.empty() ? "" : ", ") + known;
    problems_.add(key, fmt::format("unknown key in the {}", what_),
                  near ? fmt::format("did you mean '{}'?", *near) : fmt::format("known: {}", list));
  }
}

}  // namespace kgate::yaml
