#include "contract/grammar.h"

#include <fmt/format.h>

#include <charconv>
#include <tuple>

#include "contract/launch_limits.h"
#include "contract/quantity.h"
#include "contract/table.h"
#include "support/text.h"

namespace kgate::yaml {

namespace {

constexpr size_t kMaxRank = 16;

size_t skip_blanks(std::string_view text, size_t at) {
  while (at < text.size() && text[at] == ' ') ++at;
  return at;
}

// [begin, end) of each part between top-level commas of text[begin, end).
std::vector<std::pair<size_t, size_t>> split_at_commas(std::string_view text, size_t begin, size_t end) {
  std::vector<std::pair<size_t, size_t>> parts;
  int depth = 0;
  size_t start = begin;
  for (size_t i = begin; i < end; ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (text[i] != ',' || depth > 0) continue;
    parts.emplace_back(start, i);
    start = i + 1;
  }
  parts.emplace_back(start, end);
  return parts;
}

std::optional<Dtype> known_dtype(const Node& node, std::string_view name, Problems& problems) {
  if (auto dtype = dtype_from_name(name)) return dtype;
  std::vector<std::string> names;
  for (const char* known : dtype_names()) names.emplace_back(known);
  auto near = did_you_mean(name, names);
  problems.add(node, fmt::format("unknown dtype '{}'", sanitize(name, 40)),
               near ? fmt::format("did you mean '{}'?", *near) : fmt::format("known: {}", fmt::join(names, " ")));
  return std::nullopt;
}

}  // namespace

std::optional<TensorText> as_parameter_tensor(const Node& node, Problems& problems) {
  auto text = as_string(node, problems, form_of(Kind::parameter_tensor).what);
  if (!text) return std::nullopt;
  if (text->find_first_of("[]() ,") != std::string::npos) return as_tensor(node, problems);
  auto dtype = known_dtype(node, *text, problems);
  if (!dtype) return std::nullopt;
  TensorText tensor;
  tensor.dtype = *dtype;
  tensor.sized = false;
  return tensor;
}

std::optional<TensorText> as_tensor(const Node& node, Problems& problems) {
  const char* what = form_of(Kind::tensor).what;
  auto text = as_string(node, problems, what);
  if (!text) return std::nullopt;
  size_t open = text->find('[');
  if (open == std::string::npos || text->back() != ']') {
    problems.add(node, fmt::format("\"{}\" is not a tensor", sanitize(*text, 60)),
                 "write dtype[dim, dim], for example \"f16[rows, cols]\"");
    return std::nullopt;
  }
  auto dtype = known_dtype(node, trim(std::string_view(*text).substr(0, open)), problems);
  TensorText tensor;
  tensor.dtype = dtype.value_or(Dtype::f32);
  bool fine = dtype.has_value();
  if (skip_blanks(*text, open + 1) + 1 < text->size()) {
    for (auto [begin, end] : split_at_commas(*text, open + 1, text->size() - 1)) {
      size_t start = skip_blanks(*text, begin);
      std::string_view dim = std::string_view(*text).substr(std::min(start, end), end - std::min(start, end));
      auto expr = expression_at(node, start, trim(dim), problems);
      fine = fine && expr;
      if (expr) tensor.dims.push_back({*expr, start});
    }
  }
  if (tensor.dims.size() > kMaxRank) {
    problems.add(node, fmt::format("a tensor of more than {} dimensions", kMaxRank));
    return std::nullopt;
  }
  if (!fine) return std::nullopt;
  return tensor;
}

namespace {

// "next." or "nextN." before a value: which launch of `then` it is of, and how long the prefix is. Without it: 0, 0.
std::pair<uint32_t, size_t> following(std::string_view text) {
  if (!text.starts_with("next")) return {0, 0};
  size_t dot = text.find('.');
  if (dot == std::string_view::npos) return {0, 0};
  std::string_view digits = text.substr(4, dot - 4);
  if (digits.empty()) return {1, dot + 1};
  Result<int64_t> number = parse_integer(digits);
  if (!number || *number < 2 || *number > static_cast<int64_t>(kMaxThen)) return {0, 0};
  return {static_cast<uint32_t>(*number), dot + 1};
}

}  // namespace

std::optional<RecordedValue> as_recorded_value(const Node& node, Problems& problems) {
  const char* what = form_of(Kind::recorded).what;
  auto whole = as_string(node, problems, what);
  if (!whole) return std::nullopt;
  RecordedValue value;
  size_t prefix = 0;
  std::tie(value.launch, prefix) = following(*whole);
  const std::string text = whole->substr(prefix);
  if (text == "shared") {
    value.kind = RecordedValue::Kind::shared;
    return value;
  }
  for (int axis = 0; axis < 3; ++axis) {
    for (auto [name, kind] : {std::pair{"grid", RecordedValue::Kind::grid}, {"block", RecordedValue::Kind::block}}) {
      if (text != fmt::format("{}.{}", name, "xyz"[axis])) continue;
      value.kind = kind;
      value.axis = axis;
      return value;
    }
  }
  size_t at = text.find('@');
  if (at == std::string::npos) {
    problems.add(node, fmt::format("\"{}\" is not a recorded value", sanitize(*whole, 60)),
                 "write ptr@OFFSET, DTYPE@OFFSET, grid.x, block.x or shared; next. before it for the launch after");
    return std::nullopt;
  }
  std::string_view type = std::string_view(text).substr(0, at);
  Result<int64_t> offset = parse_integer(std::string_view(text).substr(at + 1));
  uint32_t size = 8;
  if (type != "ptr") {
    auto dtype = known_dtype(node, type, problems);
    if (!dtype) return std::nullopt;
    value.kind = RecordedValue::Kind::scalar;
    value.dtype = *dtype;
    size = dtype_bytes(*dtype);
  }
  if (!offset || *offset < 0 || *offset > kMaxParamBytes - size) {
    problems.add(inside(node, prefix + at + 1), node,
                 fmt::format("the offset of \"{}\" is not within a parameter block", sanitize(*whole, 60)),
                 fmt::format("offsets are bytes, at most {}", kMaxParamBytes));
    return std::nullopt;
  }
  value.offset = static_cast<uint32_t>(*offset);
  return value;
}

}  // namespace kgate::yaml
