// `vary:`: names whose value changes from request to request, drawn from weighted values or taken from a column of the
// CSV that the arrivals come from.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "support/text.h"
#include "workload/arrivals.h"
#include "workload/random.h"

namespace kgate::build {

using yaml::Fields;
using yaml::Node;

namespace {

constexpr int64_t kMaxSize = int64_t{1} << 40;

std::vector<int64_t> drawn(Scene& scene, const Node& node, const Node& values, const Node* weights,
                           const std::string& name, size_t count) {
  if (values.kind != Node::Kind::sequence || values.items.empty()) {
    scene.problems.add(values, "expected a list of values");
    return {};
  }
  std::vector<int64_t> choices;
  for (const Node& item : values.items)
    choices.push_back(evaluate(scene, item, scene.let, -kMaxSize, kMaxSize).value_or(1));
  std::vector<double> cumulative;
  double total = 0;
  if (weights && (weights->kind != Node::Kind::sequence || weights->items.size() != choices.size())) {
    scene.problems.add(*weights, fmt::format("expected a list of {} weights", choices.size()));
    return {};
  }
  for (size_t i = 0; i < choices.size(); ++i) {
    const double weight = weights ? yaml::as_number(weights->items[i], scene.problems, "a weight").value_or(1) : 1;
    if (weight < 0) scene.problems.add(weights->items[i], "a weight is not negative");
    cumulative.push_back(total += weight);
  }
  if (!(total > 0) || !std::isfinite(total)) {
    scene.problems.add(weights ? *weights : node, "the weights do not add up to a positive number");
    return {};
  }
  const uint64_t seed = derived_seed(scene.seed, "vary " + name);
  std::vector<int64_t> result;
  for (size_t i = 0; i < count; ++i) {
    const auto at = std::upper_bound(cumulative.begin(), cumulative.end(), random_unit(seed, i) * total);
    result.push_back(choices[std::min(static_cast<size_t>(at - cumulative.begin()), choices.size() - 1)]);
  }
  return result;
}

std::vector<int64_t> from_column(Scene& scene, const Node& column, Fields& fields, const ArrivalPlan& plan) {
  const auto bound = [&](const char* key, int64_t otherwise) {
    const Node* value = fields.find(key);
    return value ? evaluate(scene, *value, scene.let, 1, kMaxSize).value_or(otherwise) : otherwise;
  };
  const int64_t divide = bound("divide", 1), multiple = bound("multiple_of", 1), low = bound("min", 1),
                high = bound("max", kMaxSize);
  if (low > high) scene.problems.add(column, "min is above max");
  if (!plan.csv) {
    scene.problems.add(column, "there is no CSV to take a column from", "use 'arrivals: {process: csv, ...}'");
    return {};
  }
  const auto index = plan.csv->column(column.text);
  if (!index) {
    scene.problems.add(column, index.failure());
    return {};
  }
  std::vector<int64_t> result;
  for (size_t row : plan.rows) {
    const std::string_view text = trim(plan.csv->at(row, *index));
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 0 || value > kMaxSize) {
      scene.problems.add(column,
                         fmt::format("line {}: \"{}\" is not a size", CsvTable::line_of(row), sanitize(text, 60)));
      return {};
    }
    const int64_t divided = (value + divide - 1) / divide, rounded = (divided + multiple - 1) / multiple * multiple;
    result.push_back(std::max(low, std::min(high, rounded)));
  }
  return result;
}

}  // namespace

std::vector<Variation> read_variations(Scene& scene, const Node* vary, const ArrivalPlan& plan) {
  std::vector<Variation> variations;
  if (!vary) return variations;
  if (vary->kind != Node::Kind::map) {
    scene.problems.add(*vary, "expected a map of names to variations");
    return variations;
  }
  for (const auto& [key, value] : vary->entries) {
    if (!is_variable_name(key.text)) scene.problems.add(key, "is not a name", "use letters, digits and '_'");
    if (scene.taken(key.text))
      scene.problems.add(key, fmt::format("'{}' is a constant or a buffer too", key.text), "rename one");
    Fields fields(value, scene.problems, "variation");
    const Node *values = fields.find("values"), *weights = fields.find("weights"), *column = fields.find("column");
    Variation variation{key.text, {}};
    if (values && !column) {
      variation.values = drawn(scene, value, *values, weights, key.text, plan.times.size());
    } else if (column && !values && !weights) {
      variation.values = from_column(scene, *column, fields, plan);
    } else {
      scene.problems.add(value, "a variation has either 'values' (and 'weights') or 'column'");
    }
    fields.close();
    if (variation.values.size() != plan.times.size()) variation.values.assign(plan.times.size(), 1);
    variations.push_back(std::move(variation));
  }
  return variations;
}

}  // namespace kgate::build
