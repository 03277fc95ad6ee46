// JSON Schema, draft-07 because that is what editors' YAML servers read, from the same tables that validate.
#include <nlohmann/json.hpp>

#include "contract/table.h"
#include "support/text.h"

namespace kgate::yaml {

namespace {

using Json = nlohmann::ordered_json;

Json of_type(const Type& type);

Json of_map(const Map& map) {
  Json properties = Json::object(), required = Json::array();
  for (const Field& field : map.fields) {
    Json property = of_type(field.type);
    if (*field.doc) property["description"] = field.doc;
    properties[field.key] = std::move(property);
    if (field.required) required.push_back(field.key);
  }
  Json out = {{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) out["required"] = std::move(required);
  out["additionalProperties"] = false;
  return out;
}

Json of_scalar(const Type& type) {
  const Form& form = form_of(type.kind);
  Json types = Json::array();
  std::string_view rest = form.json_type;
  while (!rest.empty()) {
    size_t comma = std::min(rest.find(','), rest.size());
    types.push_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  Json out = {{"type", types.size() == 1 ? types[0] : types}};
  if (form.pattern) out["pattern"] = form.pattern;
  if (type.kind == Kind::version) out["const"] = 1;
  if (type.kind == Kind::yes) out["const"] = true;
  if (type.kind == Kind::count) out["minimum"] = 0;
  if (type.kind == Kind::duration || type.kind == Kind::size)
    out["minimum"] = 0, out["maximum"] = 0;  // the bare number
  if (type.kind == Kind::text || type.kind == Kind::path) out["minLength"] = 1;
  if (type.kind == Kind::choice) out["enum"] = std::vector<std::string>(type.choices.begin(), type.choices.end());
  return out;
}

Json of_type(const Type& type) {
  switch (type.kind) {
    case Kind::list: {
      Json out = {{"type", "array"}, {"items", of_type(*type.item)}};
      if (type.min_items > 0) out["minItems"] = type.min_items;
      out["maxItems"] = type.max_items;
      return out;
    }
    case Kind::keyed: {
      Json out = {{"type", "object"}};
      if (type.min_items > 0) out["minProperties"] = type.min_items;
      out["propertyNames"] = {{"pattern", form_of(Kind::identifier).pattern}};
      out["additionalProperties"] = of_type(*type.item);
      return out;
    }
    case Kind::map: {
      Json alternatives = Json::array();
      for (const Map* map : type.maps) alternatives.push_back(of_map(*map));
      return alternatives.size() == 1 ? alternatives[0] : Json{{"oneOf", std::move(alternatives)}};
    }
    case Kind::either:
      return Json{{"oneOf", Json::array({of_type(*type.item), of_type(*type.other)})}};
    default:
      return of_scalar(type);
  }
}

}  // namespace

std::string json_schema(const Type& root, const char* title) {
  Json out = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", title}};
  Json body = of_type(root);
  for (auto& [key, value] : body.items()) out[key] = std::move(value);
  return out.dump(2) + "\n";
}

}  // namespace kgate::yaml
