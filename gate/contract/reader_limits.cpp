// Limits and tolerances.
#include <fmt/format.h>

#include "contract/contract_table.h"
#include "contract/quantity.h"
#include "contract/reader.h"

namespace kgate::reader {

namespace table = contract_table;
using yaml::Kind;
using yaml::Node;
using yaml::Problems;

namespace {

// A bound in the unit of the table's row: percentages as fractions, durations in ns, sizes in bytes, counts as they
// are.
std::optional<double> bound(const Node& limit, const yaml::Map& map, std::string_view key) {
  for (const yaml::Field& field : map.fields) {
    if (key != field.key) continue;
    auto text = text_of(limit.find(key));
    if (!text) return std::nullopt;
    Result<double> value = field.type.kind == Kind::percent    ? parse_percent(*text)
                           : field.type.kind == Kind::duration ? parse_duration_ns(*text)
                           : field.type.kind == Kind::size     ? parse_bytes(*text)
                                                               : parse_number(*text);
    return value ? std::optional(*value) : std::nullopt;  // the walk has noted what is wrong
  }
  throw Error(Exit::internal, "a bound that the table lacks");
}

}  // namespace

std::vector<Limit> read_limits(const Node& node, Problems& problems) {
  std::vector<Limit> limits;
  for (const auto& [key, value] : node.entries) {
    bool known = false;
    for (const yaml::Field& field : table::kLimits.fields) known = known || key.text == field.key;
    if (!known || value.kind != Node::Kind::map) continue;
    const yaml::Map& map = table::limit_map(key.text.c_str());
    Limit limit;
    limit.metric = key.text;
    limit.where = problems.where(key.position);
    limit.max_regression = bound(value, map, "max_regression");
    limit.max_increase = bound(value, map, "max_increase");
    limit.max = bound(value, map, "max");
    limit.min_improvement = bound(value, map, "min_improvement");
    if (value.entries.empty())
      problems.add(value, "the limit says nothing", "give max_regression, max_increase, max or min_improvement");
    if (limit.min_improvement && (*limit.min_improvement <= 0 || *limit.min_improvement >= 1))
      problems.add(*value.find("min_improvement"), "an improvement is above 0% and below 100%");
    if (limit.max_regression && *limit.max_regression > 10)
      problems.add(*value.find("max_regression"), "more than 1000% is no limit");
    limits.push_back(std::move(limit));
  }
  return limits;
}

std::map<Dtype, Tolerance> read_tolerances(const Node& node, Problems& problems) {
  std::map<Dtype, Tolerance> tolerances;
  for (const auto& [key, value] : node.entries) {
    auto dtype = dtype_from_name(key.text);
    if (!dtype || value.kind != Node::Kind::map) continue;
    Tolerance tolerance;
    for (auto [name, target] : {std::pair{"rtol", &tolerance.rtol}, {"atol", &tolerance.atol}}) {
      const Node* number = value.find(name);
      if (!number) continue;
      *target = yaml::as_number(*number, problems, "a number").value_or(0);
      if (*target < 0) problems.add(*number, "a tolerance is 0 or more");
    }
    if (value.entries.empty()) problems.add(value, "the tolerance says nothing", "give rtol, atol or both");
    tolerances[*dtype] = tolerance;
  }
  return tolerances;
}

}  // namespace kgate::reader
