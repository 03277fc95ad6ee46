// Shapes: each entry names every size once; lists multiply out, the last name fastest; constraints take away.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "contract/reader.h"

namespace kgate::reader {

using yaml::Node;
using yaml::Problems;

namespace {

constexpr size_t kMaxShapes = 4096;

// Values of one name of a shape, in file order.
std::vector<int64_t> values_of(const Node& node, Problems& problems) {
  std::vector<int64_t> values;
  auto take = [&](const Node& item) {
    if (item.kind != Node::Kind::scalar) return;
    if (auto value = yaml::as_integer(item, problems, "an integer, 0 or more")) values.push_back(*value);
  };
  if (node.kind == Node::Kind::scalar) take(node);
  for (const Node& item : node.items) take(item);
  return values;
}

void expand(const Node& entry, Shapes& shapes, Problems& problems) {
  std::vector<Environment> product{{}};
  for (const auto& [key, node] : entry.entries) {
    std::vector<int64_t> values = values_of(node, problems);
    if (values.empty()) return;  // noted by the walk
    if (product.size() * values.size() > kMaxShapes - shapes.all.size()) {
      problems.add(entry, fmt::format("more than {} shapes in all", kMaxShapes), "name fewer values");
      return;
    }
    std::vector<Environment> next;
    for (const Environment& shape : product)
      for (int64_t value : values) {
        next.push_back(shape);
        next.back()[key.text] = value;
      }
    product = std::move(next);
  }
  const bool several = product.size() > 1;
  for (Environment& shape : product) {
    if (std::find(shapes.all.begin(), shapes.all.end(), shape) != shapes.all.end()) continue;
    shapes.all.push_back(std::move(shape));
    shapes.from.push_back(&entry);
    shapes.product.push_back(several);
  }
}

// Every entry names the same sizes: an expression has a value in each shape or in none.
void check_same_names(const Node& list, Problems& problems) {
  const Node* first = nullptr;
  for (const Node& entry : list.items) {
    if (entry.kind != Node::Kind::map) continue;
    if (!first) first = &entry;
    for (const auto& [key, value] : first->entries)
      if (!entry.find(key.text))
        problems.add(entry, fmt::format("the shape has no '{}', which the first shape has", key.text));
    for (const auto& [key, value] : entry.entries)
      if (!first->find(key.text))
        problems.add(key, fmt::format("the first shape (line {}) has no such name", first->position.line));
  }
}

}  // namespace

Shapes read_shapes(const Node& node, Problems& problems) {
  Shapes shapes;
  check_same_names(node, problems);
  for (const Node& entry : node.items) {
    if (entry.kind != Node::Kind::map) continue;
    expand(entry, shapes, problems);
    if (shapes.all.size() >= kMaxShapes) break;
  }
  return shapes;
}

void apply_constraints(const std::vector<Use>& constraints, Shapes& shapes, Problems& problems) {
  Shapes kept;
  std::set<const Node*> reached;
  std::map<const Node*, std::string> emptied;  // entries that lost a shape, and to which constraint
  for (size_t i = 0; i < shapes.all.size(); ++i) {
    const Use* broken = nullptr;
    for (const Use& constraint : constraints) {
      Result<int64_t> holds = constraint.expr.evaluate(shapes.all[i]);
      if (!holds) {
        problems.add(*constraint.node, fmt::format("the constraint has no value: {}", holds.failure().what));
        return;
      }
      if (*holds == 0 && !broken) broken = &constraint;
    }
    const Node* entry = shapes.from[i];
    if (!broken) {
      reached.insert(entry);
      kept.all.push_back(shapes.all[i]);
      kept.from.push_back(entry);
      kept.product.push_back(shapes.product[i]);
    } else if (!shapes.product[i]) {
      problems.add(*entry, fmt::format("the shape is outside the constraint \"{}\"", broken->expr.text()));
    } else {
      emptied.emplace(entry, broken->expr.text());
    }
  }
  for (const auto& [entry, text] : emptied)
    if (!reached.contains(entry))
      problems.add(*entry, fmt::format("every combination is outside the constraints, the first outside \"{}\"", text));
  shapes = std::move(kept);
}

}  // namespace kgate::reader
