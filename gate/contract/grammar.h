// The two small notations inside a contract's strings: "f16[rows, cols]" for tensors, "ptr@8", "grid.x" or "next.ptr@0"
// for recorded values.
#pragma once

#include <optional>
#include <vector>

#include "contract/contract.h"
#include "contract/yaml_schema.h"

namespace kgate::yaml {

// A dimension with the place of its text inside the scalar (0-based), for messages.
struct TensorDim {
  Expr expr;
  size_t offset = 0;
};
struct TensorText {
  Dtype dtype = Dtype::f32;
  bool sized = true;
  std::vector<TensorDim> dims;
};

// Problems point at the offending character.
std::optional<TensorText> as_tensor(const Node& node, Problems& problems);
std::optional<TensorText> as_parameter_tensor(const Node& node, Problems& problems);  // a dtype alone is not sized

// A fusion takes at most so many launches after the first.
constexpr size_t kMaxThen = 15;
std::optional<RecordedValue> as_recorded_value(const Node& node, Problems& problems);

}  // namespace kgate::yaml
