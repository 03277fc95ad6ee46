// The tables that describe kgate's YAML files: one row a key, with its type, whether it is required, and what it is
// for. The same table drives the validator (`check`) and the JSON Schema for editors (`json_schema`), so they cannot
// disagree.
//
// A reader calls `check` on the root once, which notes every problem of form, and then takes the values through `View`
// and the as_* functions. It stays silent about what was noted already, because Problems counts the same text once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "contract/expr.h"
#include "contract/yaml_schema.h"

namespace kgate::yaml {

enum class Kind {
  // scalars
  text,
  identifier,
  symbol,
  path,
  version,
  count,
  number,
  boolean,
  yes,
  percent,
  duration,
  size,
  expression,
  scalar_value,
  tensor,
  parameter_tensor,  // or its dtype alone
  recorded,
  argument,
  choice,
  // collections
  list,
  map,
  keyed,
  either,
};

struct Map;

struct Type {
  Kind kind = Kind::text;
  const Type* item = nullptr;                 // list, keyed: of each value; either: of a scalar
  const Type* other = nullptr;                // either: of what is no scalar
  std::span<const Map* const> maps = {};      // map: the alternatives, told apart by the key of their first row
  std::span<const char* const> choices = {};  // choice
  size_t min_items = 0, max_items = 100'000;  // list, keyed
};

struct Field {
  const char* key;
  Type type;
  bool required = false;
  const char* doc = "";
};

struct Map {
  const char* name;  // "limit", for messages
  std::span<const Field> fields;
};

// How a scalar kind is written: for messages ("a percentage such as 5%") and for the schema.
struct Form {
  const char* what;
  const char* json_type;          // "string", "integer", or several joined by ','
  const char* pattern = nullptr;  // of the string
};
const Form& form_of(Kind kind);

// Notes every problem of form below `node`.
void check(const Node& node, const Type& type, Problems& problems);

// The alternative that a map follows; nullptr if none of the deciding keys is there.
const Map* alternative(const Node& node, const Type& type);

// draft-07, additionalProperties false.
std::string json_schema(const Type& root, const char* title);

// The values of a map by key. Asking for a key that the table lacks is a defect of kgate (exit 70).
class View {
 public:
  View(const Node& node, const Map& map) : node_(&node), map_(&map) {}
  const Node* find(std::string_view key) const;
  const Node& node() const { return *node_; }

 private:
  const Node* node_;
  const Map* map_;
};

// An integer or an expression; the problem points at the character inside the text.
std::optional<Expr> as_expression(const Node& node, Problems& problems);
std::optional<Expr> expression_at(const Node& node, size_t offset, std::string_view text, Problems& problems);
bool is_null_word(const Node& node);  // the word null, in plain

}  // namespace kgate::yaml
