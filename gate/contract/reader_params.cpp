// Parameters, launch and the check of every expression in every shape.
#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <limits>
#include <set>

#include "contract/contract_table.h"
#include "contract/grammar.h"
#include "contract/launch_limits.h"
#include "contract/quantity.h"
#include "contract/reader.h"
#include "support/text.h"

namespace kgate::reader {

namespace table = contract_table;
using yaml::Node;
using yaml::Problems;
using yaml::View;

namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

std::pair<int64_t, int64_t> integer_range(Dtype dtype) {
  switch (dtype) {
    case Dtype::i8:
      return {INT8_MIN, INT8_MAX};
    case Dtype::i16:
      return {INT16_MIN, INT16_MAX};
    case Dtype::i32:
      return {INT32_MIN, INT32_MAX};
    case Dtype::u8:
      return {0, UINT8_MAX};
    case Dtype::u16:
      return {0, UINT16_MAX};
    case Dtype::u32:
      return {0, UINT32_MAX};
    case Dtype::u64:
      return {0, INT64_MAX};
    case Dtype::boolean:
      return {0, 1};
    default:
      return {INT64_MIN, INT64_MAX};
  }
}

double largest(Dtype dtype) {
  return dtype == Dtype::f64    ? DBL_MAX
         : dtype == Dtype::f16  ? 65504.0
         : dtype == Dtype::bf16 ? 3.3895313892515355e38
                                : FLT_MAX;
}

void read_range(const Node& node, TensorParam& tensor, Problems& problems) {
  if (tensor.role != Role::in && tensor.role != Role::inout)
    problems.add(node, fmt::format("a range is for inputs; this one is {}", role_name(tensor.role)));
  if (node.items.size() != 2) return;
  tensor.low = yaml::as_number(node.items[0], problems, "a number");
  tensor.high = yaml::as_number(node.items[1], problems, "a number");
  if (tensor.low && tensor.high && *tensor.low > *tensor.high) problems.add(node, "the low end is above the high end");
}

// What only a launch of the contract's own can use.
void refuse_without_launch(const View& fields, std::initializer_list<const char*> keys, Problems& problems) {
  for (const char* key : keys)
    if (const Node* node = fields.find(key))
      problems.add(*node, fmt::format("without a 'launch' the workload brings what '{}' would say", key),
                   "remove it, or give 'launch' and 'shapes'");
}

TensorParam read_tensor(const View& fields, bool launched, std::vector<Use>& uses, Problems& problems) {
  TensorParam tensor;
  const Node& text = *fields.find("tensor");
  auto parsed = yaml::as_parameter_tensor(text, problems);
  if (parsed && launched && !parsed->sized)
    problems.add(text, "the tensor has no dimensions, and the contract has a 'launch'",
                 "write dtype[dim, dim], for example \"f16[rows, cols]\"");
  if (parsed && !launched && parsed->sized)
    problems.add(text, "without a 'launch' the workload brings the tensor's size",
                 fmt::format("write {}, or give 'launch' and 'shapes'", dtype_name(parsed->dtype)));
  if (!launched) refuse_without_launch(fields, {"strides", "range", "init"}, problems);
  if (parsed) {
    tensor.dtype = parsed->dtype;
    tensor.sized = parsed->sized;
    for (auto& dim : parsed->dims) {
      uses.push_back({dim.expr, &text, dim.offset, "the dimension", 0, kNoLimit});
      tensor.dims.push_back(dim.expr);
    }
  }
  auto role = text_of(fields.find("role"));
  for (Role known : {Role::in, Role::out, Role::inout, Role::workspace})
    if (role == role_name(known)) tensor.role = known;
  if (const Node* strides = fields.find("strides")) {
    for (const Node& item : strides->items)
      if (auto expr = yaml::as_expression(item, problems)) {
        uses.push_back({*expr, &item, 0, "the stride", 0, kNoLimit});
        tensor.strides.push_back(*expr);
      }
    if (parsed && launched && strides->items.size() != tensor.dims.size())
      problems.add(*strides, fmt::format("{} strides for {} dimensions", strides->items.size(), tensor.dims.size()));
  }
  if (const Node* init = fields.find("init")) {
    tensor.zeroed = text_of(init) == "zeros";
    if (role && tensor.role != Role::workspace) problems.add(*init, "init is for role workspace", "remove it");
  }
  if (const Node* range = fields.find("range")) read_range(*range, tensor, problems);
  return tensor;
}

ScalarParam read_scalar(const View& fields, bool launched, std::vector<Use>& uses, Problems& problems) {
  ScalarParam scalar;
  auto dtype = dtype_from_name(text_of(fields.find("scalar")).value_or(""));
  if (!dtype || *dtype == Dtype::tf32 || *dtype == Dtype::e4m3 || *dtype == Dtype::e5m2)
    return scalar;  // noted by the walk
  scalar.dtype = *dtype;
  const Node* value = fields.find("value");
  if (!launched) {
    refuse_without_launch(fields, {"value"}, problems);
    return scalar;
  }
  if (is_floating(*dtype)) {
    if (!value)
      problems.add(fields.node(), "a floating scalar has no 'value'", "add value: NUMBER");
    else
      scalar.real = yaml::as_number(*value, problems, "a number");
    if (scalar.real && std::abs(*scalar.real) > largest(*dtype))
      problems.add(*value, fmt::format("{} does not fit {}", value->text, dtype_name(*dtype)));
    return scalar;
  }
  auto [low, high] = integer_range(*dtype);
  if (value) {
    scalar.value = yaml::as_expression(*value, problems);
    if (scalar.value) uses.push_back({*scalar.value, value, 0, "the value", low, high});
  } else if (const Node* name = fields.find("name"); text_of(name) && is_variable_name(name->text)) {
    uses.push_back({*Expr::parse(name->text), name, 0, "the value", low, high});
  }
  return scalar;
}

std::string shape_text(const Environment& shape) {
  std::string text;
  for (const auto& [name, value] : shape) text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", name, value);
  return "{" + text + "}";
}

void check_use(const Use& use, const Shapes& shapes, Problems& problems) {
  for (const Environment& shape : shapes.all) {
    Result<int64_t> value = use.expr.evaluate(shape);
    std::string problem;
    if (!value)
      problem = fmt::format("{} has no value: {}", use.label, value.failure().what);
    else if (*value < use.low)
      problem = fmt::format("{} is {}, below {},", use.label, *value, use.low);
    else if (*value > use.high)
      problem = fmt::format("{} is {}, above {},", use.label, *value, use.high);
    if (problem.empty()) continue;
    problems.add(yaml::inside(*use.node, use.offset), *use.node,
                 fmt::format("{} in shape {}", problem, shape_text(shape)));
    return;
  }
}

}  // namespace

std::optional<std::string> text_of(const Node* node) {
  if (!node || node->kind != Node::Kind::scalar) return std::nullopt;
  return node->text;
}

std::filesystem::path resolve(const std::filesystem::path& file, const std::string& path) {
  return (file.parent_path() / path).lexically_normal();
}

Expr read_expression(const Node* node, Problems& problems) {
  if (!node) return Expr::constant(0);
  return yaml::as_expression(*node, problems).value_or(Expr::constant(0));
}

void read_three(const Node* node, const char* label, Expr out[3], std::vector<Use>* uses, Problems& problems) {
  const int64_t* limits = std::string_view(label) == "grid" ? kMaxGrid : kMaxBlock;
  for (size_t i = 0; i < 3; ++i) {
    out[i] = Expr::constant(1);
    if (!node || i >= node->items.size()) continue;
    auto expr = yaml::as_expression(node->items[i], problems);
    if (!expr) continue;
    out[i] = *expr;
    if (uses) uses->push_back({*expr, &node->items[i], 0, fmt::format("{}.{}", label, "xyz"[i]), 1, limits[i]});
  }
}

std::vector<Param> read_params(const Node& node, bool launched, std::vector<Use>& uses, Problems& problems) {
  std::vector<Param> params;
  std::map<std::string, int> lines;
  bool output = false, fine = node.kind == Node::Kind::sequence;
  for (const Node& item : node.items) {
    const yaml::Map* map = item.kind == Node::Kind::map ? yaml::alternative(item, table::kParams.item[0]) : nullptr;
    if (!map) {
      fine = false;
      continue;
    }
    View fields(item, *map);
    Param param;
    if (const Node* name = fields.find("name"); text_of(name)) {
      param.name = name->text;
      auto [first, fresh] = lines.emplace(name->text, name->position.line);
      if (!fresh)
        problems.add(*name, "a second parameter of this name",
                     fmt::format("the first stands on line {}", first->second));
    }
    if (map == &table::kTensorParam) {
      TensorParam tensor = read_tensor(fields, launched, uses, problems);
      output = output || tensor.role == Role::out || tensor.role == Role::inout;
      fine = fine && text_of(fields.find("role")) == role_name(tensor.role);
      param.kind = std::move(tensor);
    } else {
      param.kind = read_scalar(fields, launched, uses, problems);
    }
    params.push_back(std::move(param));
  }
  if (fine && !output)
    problems.add(node, "no parameter is an output: there is nothing to compare", "give one role: out or inout");
  return params;
}

void check_names(const std::vector<Use>& uses, const Shapes& shapes, Problems& problems) {
  std::set<std::string> names;
  for (const Environment& shape : shapes.all)
    for (const auto& [name, value] : shape) names.insert(name);
  const std::vector<std::string> known(names.begin(), names.end());
  for (const Use& use : uses)
    for (const std::string& name : use.expr.names()) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      size_t column = static_cast<size_t>(std::max(use.expr.column_of(name), 1));
      auto near = did_you_mean(name, known);
      std::string all =
          known.empty() ? "give it in 'shapes'" : fmt::format("the shapes name: {}", fmt::join(known, ", "));
      problems.add(yaml::inside(*use.node, use.offset + column - 1), *use.node, fmt::format("unknown name '{}'", name),
                   near ? fmt::format("did you mean '{}'?", *near) : all);
    }
}

void check_values(const Contract& contract, const std::vector<Use>& uses, const Shapes& shapes, Problems& problems) {
  for (const Use& use : uses) check_use(use, shapes, problems);
  if (!problems.empty()) return;
  for (size_t i = 0; i < shapes.all.size(); ++i) {
    const Environment& shape = shapes.all[i];
    int64_t threads = 1;
    for (const Expr& extent : contract.launch.block)
      if (Result<int64_t> value = extent.evaluate(shape)) threads *= *value;
    if (threads > kMaxThreads)
      problems.add(*shapes.from[i], fmt::format("a block of {} threads, above {}, in shape {}", threads, kMaxThreads,
                                                shape_text(shape)));
    for (const Param& param : contract.params) {
      const auto* tensor = std::get_if<TensorParam>(&param.kind);
      if (!tensor) continue;
      Result<uint64_t> elements = tensor_elements(*tensor, shape);
      if (!elements)
        problems.add(*shapes.from[i],
                     fmt::format("'{}': {} in shape {}", param.name, elements.failure().what, shape_text(shape)));
    }
    if (!problems.empty()) return;
  }
}

}  // namespace kgate::reader
