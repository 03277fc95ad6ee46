// Reads one JSON object strictly: every field that is asked for must be there with the right type and range, and every
// field that is there must have been asked for. Shared by the channel's messages and the plan files; nothing else in
// kgate reads JSON from a process it does not trust.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <stdexcept>
#include <string>

namespace kgate::worker {

// what() names the field and what is wrong with it.
struct BadField : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class JsonFields {
 public:
  JsonFields(const nlohmann::json& value, std::string where);  // throws BadField when `value` is no object

  uint64_t count(const char* name, uint64_t max = UINT64_MAX);  // an integer in [0, max]
  uint32_t index(const char* name) { return static_cast<uint32_t>(count(name, UINT32_MAX)); }
  int64_t integer(const char* name, int64_t low, int64_t high);
  double number(const char* name);  // finite
  bool flag(const char* name);
  std::string text(const char* name, size_t max_bytes);
  const nlohmann::json& array(const char* name, size_t max_items);
  const nlohmann::json& object(const char* name);
  void finish() const;  // a field that nobody asked for is an error

 private:
  const nlohmann::json& field(const char* name);
  [[noreturn]] void bad(const char* name, const std::string& what) const;

  const nlohmann::json& value_;
  std::string where_;
  std::set<std::string> asked_;
};

// An element of an array as an integer in [0, max]; `where` names the array in the error.
uint64_t count_of(const nlohmann::json& value, uint64_t max, const std::string& where);

}  // namespace kgate::worker
