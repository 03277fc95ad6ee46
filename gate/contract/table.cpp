#include "contract/table.h"

#include <fmt/format.h>

#include <charconv>

#include "contract/grammar.h"
#include "support/text.h"

namespace kgate::yaml {

namespace {

constexpr Form kForms[] = {
    /* text */ {"text", "string"},
    /* identifier */ {"a name (letters, digits and '_')", "string", "^[A-Za-z_][A-Za-z0-9_]*$"},
    /* symbol */ {"the name of a kernel entry", "string", "^[A-Za-z_.$%][A-Za-z0-9_.$]*$"},
    /* path */ {"a path", "string"},
    /* version */ {"the version of the file's format, 1", "integer"},
    /* count */ {"an integer, 0 or more", "integer"},
    /* number */ {"a number", "number"},
    /* boolean */ {"true or false", "boolean"},
    /* yes */ {"true", "boolean"},
    /* percent */ {"a percentage such as 5%", "string", "^(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)? ?%$"},
    /* duration */
    {"a duration such as 2us", "string,integer", "^((0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)? ?(ns|us|ms|s)|0)$"},
    /* size */
    {"a size such as 64KiB", "string,integer", "^((0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)? ?(B|KiB|MiB|GiB)|0)$"},
    /* expression */ {"an integer or an expression", "integer,string"},
    /* scalar_value */ {"a number or an expression", "number,string"},
    /* tensor */ {"a tensor such as \"f16[rows, cols]\"", "string", "^[a-z0-9]+ *\\[.*\\]$"},
    /* parameter_tensor */
    {"a tensor such as \"f16[rows, cols]\", or a dtype", "string", "^[a-z0-9]+( *\\[.*\\])?$"},
    /* recorded */
    {"a recorded value such as ptr@8, i32@16, grid.x, block.x or shared", "string",
     "^(next([2-9]|1[0-5])?[.])?([a-z0-9]+@(0|[1-9][0-9]*)|(grid|block)[.][xyz]|shared)$"},
    /* argument */ {"a name, an integer, an expression or null", "string,integer,null"},
    /* choice */ {"one of the known names", "string"},
};
static_assert(std::size(kForms) == static_cast<size_t>(Kind::list), "one form a scalar kind, in order");

void check_integer(const Node& node, const Form& form, int64_t low, Problems& problems) {
  auto value = as_integer(node, problems, form.what);
  if (value && *value < low) problems.add(node, fmt::format("{} is below {}", *value, low));
}

void check_choice(const Node& node, const Type& type, const Form& form, Problems& problems) {
  auto text = as_string(node, problems, form.what);
  if (!text) return;
  std::vector<std::string> names(type.choices.begin(), type.choices.end());
  for (const auto& name : names)
    if (name == *text) return;
  auto near = did_you_mean(*text, names);
  problems.add(node, fmt::format("unknown value '{}'", sanitize(*text, 60)),
               near ? fmt::format("did you mean '{}'?", *near) : fmt::format("known: {}", fmt::join(names, ", ")));
}

bool is_symbol(std::string_view text) {
  auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '$';
  };
  for (size_t i = 0; i < text.size(); ++i)
    if (!(letter(text[i]) || (i == 0 && text[i] == '%') || (i > 0 && text[i] >= '0' && text[i] <= '9'))) return false;
  return !text.empty() && text.size() <= 4096;
}

void check_scalar(const Node& node, const Type& type, Problems& problems) {
  const Form& form = form_of(type.kind);
  switch (type.kind) {
    case Kind::text:
    case Kind::path:
      as_string(node, problems, form.what);
      break;
    case Kind::identifier:
    case Kind::symbol:
      if (auto text = as_string(node, problems, form.what))
        if (type.kind == Kind::symbol ? !is_symbol(*text) : !is_variable_name(*text))
          problems.add(node, fmt::format("\"{}\" is not {}", sanitize(*text, 60), form.what));
      break;
    case Kind::version:
      if (auto value = as_integer(node, problems, form.what); value && *value != 1)
        problems.add(node, fmt::format("version {} of the format; this kgate reads version 1", *value));
      break;
    case Kind::count:
      check_integer(node, form, 0, problems);
      break;
    case Kind::number:
      as_number(node, problems, form.what);
      break;
    case Kind::boolean:
      as_boolean(node, problems, form.what);
      break;
    case Kind::yes:
      if (auto value = as_boolean(node, problems, form.what); value && !*value)
        problems.add(node, "only true makes sense here", "remove the key");
      break;
    case Kind::percent:
      as_percent(node, problems, form.what);
      break;
    case Kind::duration:
      as_duration_ns(node, problems, form.what);
      break;
    case Kind::size:
      as_bytes(node, problems, form.what);
      break;
    case Kind::expression:
      as_expression(node, problems);
      break;
    case Kind::scalar_value:  // a number or an expression, as the dtype beside it says: the reader looks inside
      if (node.kind != Node::Kind::scalar) as_string(node, problems, form.what);
      break;
    case Kind::tensor:
      as_tensor(node, problems);
      break;
    case Kind::parameter_tensor:
      as_parameter_tensor(node, problems);
      break;
    case Kind::recorded:
      as_recorded_value(node, problems);
      break;
    case Kind::argument:
      if (!is_null_word(node)) as_expression(node, problems);
      break;
    case Kind::choice:
      check_choice(node, type, form, problems);
      break;
    default:
      throw Error(Exit::internal, "a scalar type without a check");
  }
}

void check_items(const Node& node, const Type& type, Problems& problems) {
  if (node.kind != Node::Kind::sequence) {
    problems.add(node, node.kind == Node::Kind::null ? "has no value" : "expected a list",
                 "write [item, item] or one '- item' a line");
    return;
  }
  size_t size = node.items.size();
  if (size < type.min_items || size > type.max_items)
    problems.add(
        node, type.min_items == type.max_items
                  ? fmt::format("a list of {} where {} are needed", size, type.min_items)
                  : fmt::format("a list of {}; between {} and {} are allowed", size, type.min_items, type.max_items));
  for (const Node& item : node.items) check(item, *type.item, problems);
}

void check_fields(const Node& node, const Map& map, Problems& problems) {
  std::vector<std::string> known;
  for (const Field& field : map.fields) {
    known.emplace_back(field.key);
    if (field.required && !node.find(field.key))
      problems.add(node, fmt::format("the {} has no '{}'", map.name, field.key), fmt::format("add it: {}", field.doc));
  }
  for (const auto& [key, value] : node.entries) {
    const Field* found = nullptr;
    for (const Field& field : map.fields)
      if (key.text == field.key) found = &field;
    if (found) {
      check(value, found->type, problems);
    } else {
      auto near = did_you_mean(key.text, known);
      problems.add(key, fmt::format("unknown key in the {}", map.name),
                   near ? fmt::format("did you mean '{}'?", *near) : fmt::format("known: {}", fmt::join(known, ", ")));
    }
  }
}

void check_map(const Node& node, const Type& type, Problems& problems) {
  const char* name = type.maps.front()->name;
  if (node.kind != Node::Kind::map) {
    problems.add(node, node.kind == Node::Kind::null && node.text.empty()
                           ? "has no value"
                           : fmt::format("expected a map: the fields of a {}", name));
    return;
  }
  if (const Map* map = alternative(node, type)) return check_fields(node, *map, problems);
  std::vector<std::string> deciding;
  for (const Map* map : type.maps) deciding.emplace_back(map->fields.front().key);
  std::string hint = fmt::format("give one of: {}", fmt::join(deciding, ", "));
  for (const auto& [key, value] : node.entries)
    if (auto near = did_you_mean(key.text, deciding)) {
      problems.add(key, "unknown key", fmt::format("did you mean '{}'?", *near));
      return;
    }
  problems.add(node, fmt::format("the {} lacks the key that says what it is", name), hint);
}

void check_keyed(const Node& node, const Type& type, Problems& problems) {
  if (node.kind != Node::Kind::map) {
    problems.add(node, "expected a map of names", "write {name: value}");
    return;
  }
  if (node.entries.size() < type.min_items) problems.add(node, "is empty");
  for (const auto& [key, value] : node.entries) {
    if (!is_variable_name(key.text))
      problems.add(key, fmt::format("\"{}\" is not {}", sanitize(key.text, 60), form_of(Kind::identifier).what));
    check(value, *type.item, problems);
  }
}

}  // namespace

const Form& form_of(Kind kind) {
  size_t index = static_cast<size_t>(kind);
  if (index >= std::size(kForms)) throw Error(Exit::internal, "a collection has no scalar form");
  return kForms[index];
}

void check(const Node& node, const Type& type, Problems& problems) {
  switch (type.kind) {
    case Kind::list:
      return check_items(node, type, problems);
    case Kind::map:
      return check_map(node, type, problems);
    case Kind::keyed:
      return check_keyed(node, type, problems);
    case Kind::either:
      return check(node, node.kind == Node::Kind::map || node.kind == Node::Kind::sequence ? *type.other : *type.item,
                   problems);
    default:
      return check_scalar(node, type, problems);
  }
}

const Map* alternative(const Node& node, const Type& type) {
  if (type.maps.size() == 1) return type.maps.front();
  for (const Map* map : type.maps)
    if (node.find(map->fields.front().key)) return map;
  return nullptr;
}

const Node* View::find(std::string_view key) const {
  for (const Field& field : map_->fields)
    if (key == field.key) return node_->find(key);
  throw Error(Exit::internal, fmt::format("the table of the {} has no key '{}'", map_->name, key));
}

bool is_null_word(const Node& node) { return node.kind == Node::Kind::null && node.text == "null"; }

std::optional<Expr> as_expression(const Node& node, Problems& problems) {
  const char* what = form_of(Kind::expression).what;
  if (node.kind != Node::Kind::scalar) {
    as_string(node, problems, what);
    return std::nullopt;
  }
  return expression_at(node, 0, node.text, problems);
}

std::optional<Expr> expression_at(const Node& node, size_t offset, std::string_view text, Problems& problems) {
  Result<Expr> expr = Expr::parse(text);
  if (expr) return *expr;
  const std::string& where = expr.failure().where;  // "column N"
  size_t column = 1, digits = where.find_last_of(' ') + 1;
  std::from_chars(where.data() + digits, where.data() + where.size(), column);
  problems.add(inside(node, offset + column - 1), node, expr.failure().what, expr.failure().hint);
  return std::nullopt;
}

}  // namespace kgate::yaml
