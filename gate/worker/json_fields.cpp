#include "worker/json_fields.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "support/text.h"

namespace kgate::worker {

using nlohmann::json;

JsonFields::JsonFields(const json& value, std::string where) : value_(value), where_(std::move(where)) {
  if (!value.is_object()) throw BadField(where_ + " is not an object");
}

void JsonFields::bad(const char* name, const std::string& what) const {
  throw BadField(where_ + ": field '" + name + "' " + what);
}

const json& JsonFields::field(const char* name) {
  auto found = value_.find(name);
  if (found == value_.end()) bad(name, "is missing");
  asked_.insert(name);
  return *found;
}

uint64_t JsonFields::count(const char* name, uint64_t max) {
  const json& value = field(name);
  if (!value.is_number_unsigned()) bad(name, "is not a count");
  auto number = value.get<uint64_t>();
  if (number > max) bad(name, "is " + std::to_string(number) + ", more than " + std::to_string(max));
  return number;
}

int64_t JsonFields::integer(const char* name, int64_t low, int64_t high) {
  const json& value = field(name);
  if (!value.is_number_integer()) bad(name, "is not an integer");
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) bad(name, "is out of range");
  auto number = value.get<int64_t>();
  if (number < low || number > high) bad(name, "is out of range");
  return number;
}

double JsonFields::number(const char* name) {
  const json& value = field(name);
  if (!value.is_number()) bad(name, "is not a number");
  double number = value.get<double>();
  if (!std::isfinite(number)) bad(name, "is not finite");
  return number;
}

bool JsonFields::flag(const char* name) {
  const json& value = field(name);
  if (!value.is_boolean()) bad(name, "is neither true nor false");
  return value.get<bool>();
}

std::string JsonFields::text(const char* name, size_t max_bytes) {
  const json& value = field(name);
  if (!value.is_string()) bad(name, "is not a text");
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() > max_bytes) bad(name, "is longer than " + std::to_string(max_bytes) + " bytes");
  return text;
}

const json& JsonFields::array(const char* name, size_t max_items) {
  const json& value = field(name);
  if (!value.is_array()) bad(name, "is not an array");
  if (value.size() > max_items) bad(name, "has more than " + std::to_string(max_items) + " items");
  return value;
}

const json& JsonFields::object(const char* name) {
  const json& value = field(name);
  if (!value.is_object()) bad(name, "is not an object");
  return value;
}

void JsonFields::finish() const {
  for (const auto& [name, value] : value_.items())
    if (!asked_.contains(name)) throw BadField(where_ + ": unknown field '" + sanitize(name, 60) + "'");
}

uint64_t count_of(const json& value, uint64_t max, const std::string& where) {
  if (!value.is_number_unsigned()) throw BadField(where + " holds something that is not a count");
  auto number = value.get<uint64_t>();
  if (number > max) throw BadField(where + " holds " + std::to_string(number) + ", more than " + std::to_string(max));
  return number;
}

}  // namespace kgate::worker
