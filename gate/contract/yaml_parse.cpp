// Text to nodes. yaml-cpp is used for its scanner only, through its events: its own node tree loses the order of
// duplicate keys, resolves aliases (a kilobyte can name a billion nodes) and hides tags. What YAML can do and kgate's
// files do not need is refused here, so that every other YAML reader sees the same file.
#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <sstream>

#include "contract/yaml_schema.h"
#include "support/text.h"

namespace kgate::yaml {

namespace {

struct Stop {};  // thrown through yaml-cpp once reading on is pointless; the problem is already noted

Position position_of(const YAML::Mark& mark) {
  if (mark.is_null()) return {1, 1};
  return {mark.line + 1, mark.column + 1};
}

// Paths of more than kMaxPath characters stop growing: every value has one, and the file is not trusted.
constexpr size_t kMaxPath = 160;
std::string key_path(const std::string& parent, const std::string& key) {
  if (parent.size() > kMaxPath) return parent;
  std::string shown = sanitize(key, 60);
  if (key.find('.') != std::string::npos) shown = "\"" + shown + "\"";
  return parent.empty() ? shown : parent + "." + shown;
}

class Builder : public YAML::EventHandler {
 public:
  Builder(const std::string& text, Problems& problems) : text_(text), problems_(problems) {}

  Node take() { return std::move(root_); }
  int documents() const { return documents_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ < 2) return;
    problems_.add(position_of(mark), "a second document in the file; keep one document a file");
    throw Stop{};
  }
  void OnDocumentEnd() override {}

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    problems_.add(position_of(mark), "an alias (*name); aliases are not supported, write the value out");
    throw Stop{};
  }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_properties(mark, anchor, "?");
    Node node = make(Node::Kind::null, mark);
    for (std::string_view written : {"null", "Null", "NULL", "~"})
      if (rest(mark).starts_with(written)) node.text = written;
    place(std::move(node));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_properties(mark, anchor, tag);
    if ((rest(mark).starts_with('"') || rest(mark).starts_with('\'')) && !closed(rest(mark))) {
      problems_.add(position_of(mark), "text in quotes that does not end");  // yaml-cpp ends it with the file
      throw Stop{};
    }
    Node node = make(Node::Kind::scalar, mark);
    node.text = value;
    node.quoted = tag == "!";
    place(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::Kind::sequence, mark, tag, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::Kind::map, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  // A collection that is being read. Of a map, `key` waits for its value.
  struct Open {
    Node node;
    std::optional<Node> key;
    std::map<std::string, int, std::less<>> lines;  // of the keys so far
  };

  std::string_view rest(const YAML::Mark& mark) const {
    size_t at = mark.is_null() ? text_.size() : static_cast<size_t>(mark.pos);
    return std::string_view(text_).substr(std::min(at, text_.size()));
  }

  // Whether the quoted scalar that `text` starts with has its end.
  static bool closed(std::string_view text) {
    const char quote = text[0];
    for (size_t i = 1; i < text.size(); ++i) {
      bool escape = quote == '"' ? text[i] == '\\' : text.substr(i).starts_with("''");
      if (escape)
        ++i;
      else if (text[i] == quote)
        return true;
    }
    return false;
  }

  void refuse_properties(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& tag) {
    bool tagged = (!tag.empty() && tag != "?" && tag != "!") || rest(mark).starts_with('!');
    if (anchor == 0 && !tagged) return;
    problems_.add(position_of(mark), anchor ? "an anchor (&name); anchors are not supported, write the value out"
                                            : "a tag (!name); tags are not supported, remove it");
    throw Stop{};
  }

  Node make(Node::Kind kind, const YAML::Mark& mark) {
    if (++nodes_ > kMaxNodes) {
      problems_.add(position_of(mark), fmt::format("more than {} values in one file", kMaxNodes));
      throw Stop{};
    }
    Node node;
    node.kind = kind;
    node.position = position_of(mark);
    if (!open_.empty()) {
      const Open& parent = open_.back();
      if (parent.node.kind == Node::Kind::sequence && parent.node.path.size() <= kMaxPath)
        node.path = fmt::format("{}[{}]", parent.node.path, parent.node.items.size());
      else
        node.path = parent.key ? parent.key->path : parent.node.path;
    }
    return node;
  }

  void open(Node::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    refuse_properties(mark, anchor, tag);
    if (open_.size() >= static_cast<size_t>(kMaxDepth)) {
      problems_.add(position_of(mark), fmt::format("nested deeper than {} levels", kMaxDepth));
      throw Stop{};
    }
    if (!open_.empty() && open_.back().node.kind == Node::Kind::map && !open_.back().key) {
      problems_.add(position_of(mark), "a list or map as a key; keys are names");
      throw Stop{};
    }
    open_.push_back({make(kind, mark), std::nullopt, {}});
  }

  void close() {
    Node node = std::move(open_.back().node);
    open_.pop_back();
    place(std::move(node));
  }

  void place(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == Node::Kind::sequence) {
      if (node.kind == Node::Kind::null && node.text.empty()) problems_.add(node, "an empty item of a list");
      parent.node.items.push_back(std::move(node));
    } else if (!parent.key) {
      if (node.kind == Node::Kind::null) problems_.add(node, "a key without a name");
      node.path = key_path(parent.node.path, node.text);
      parent.key = std::move(node);
    } else {
      Node key = std::move(*parent.key);
      parent.key.reset();
      if (node.kind == Node::Kind::null && node.text.empty())
        node.position = key.position;  // yaml-cpp's is the next token's
      auto [first, fresh] = parent.lines.emplace(key.text, key.position.line);
      if (!fresh)
        problems_.add(key, "duplicate key", fmt::format("it stands on line {} already", first->second));
      else
        parent.node.entries.emplace_back(std::move(key), std::move(node));
    }
  }

  const std::string& text_;
  Problems& problems_;
  std::vector<Open> open_;
  Node root_;
  size_t nodes_ = 0;
  int documents_ = 0;
};

// Length of the UTF-8 sequence at `at`; 0 if there is none.
size_t utf8_length(std::string_view text, size_t at) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  unsigned lead = byte(at);
  if (lead < 0x80) return 1;
  size_t length = lead >= 0xf0 && lead < 0xf5   ? 4
                  : lead >= 0xe0 && lead < 0xf0 ? 3
                  : lead >= 0xc2 && lead < 0xe0 ? 2
                                                : 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  bool overlong_or_surrogate = (lead == 0xe0 && byte(at + 1) < 0xa0) || (lead == 0xed && byte(at + 1) >= 0xa0) ||
                               (lead == 0xf0 && byte(at + 1) < 0x90) || (lead == 0xf4 && byte(at + 1) >= 0x90);
  return overlong_or_surrogate ? 0 : length;
}

// What is not a text file of the plain kind: noted at the first offence of each line; true if the text may be parsed.
bool plain_text(std::string_view text, Problems& problems) {
  Position at{1, 1};
  bool fine = true, said = false, content = false;
  auto refuse = [&](const char* what) {
    if (!said) problems.add(at, what);
    said = true;
    fine = false;
  };
  for (size_t i = 0; i < text.size();) {
    unsigned char c = static_cast<unsigned char>(text[i]);
    size_t length = utf8_length(text, i);
    if (length == 0 || (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f) {
      problems.add(at, fmt::format("not a text file: byte 0x{:02x} at offset {}", c, i));
      return false;
    }
    if (c == '\t') refuse("a tab; use spaces");
    if (c == '\r' && !text.substr(i).starts_with("\r\n")) refuse("a carriage return inside a line");
    if (c == '%' && at.column == 1) refuse("a YAML directive; remove the line");
    content = content || c > ' ';
    at = c == '\n' ? Position{at.line + 1, 1} : Position{at.line, at.column + static_cast<int>(length)};
    if (c == '\n') said = false;
    i += length;
  }
  if (!content) problems.add(Position{1, 1}, "the file is empty");
  return fine && content;
}

}  // namespace

Node parse(const std::string& file, Problems& problems) {
  const std::string text =
      file.starts_with("\xef\xbb\xbf") ? file.substr(3) : file;  // a mark that says nothing in UTF-8
  if (text.size() > kMaxFileBytes) {
    problems.add(Position{1, 1}, fmt::format("the file has {} bytes; at most {} are read", text.size(), kMaxFileBytes));
    return {};
  }
  if (!plain_text(text, problems)) return {};
  Builder builder(text, problems);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Stop&) {
    return {};
  } catch (const YAML::Exception& error) {
    problems.add(position_of(error.mark), "not YAML: " + sanitize(error.msg, 200));
    return {};
  }
  Node root = builder.take();
  if (builder.documents() == 0 || root.kind == Node::Kind::null) problems.add(Position{1, 1}, "the file is empty");
  return root;
}

}  // namespace kgate::yaml
