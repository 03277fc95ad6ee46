// What a candidate must satisfy: the contract file, read strictly. Shapes, roles, dtypes, tolerances, limits, and the
// binding that says how one launch of the baseline becomes launches of the candidate.
//
// Enters: a YAML file. Leaves: Contract. It must not know about devices or how anything is run.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "contract/expr.h"
#include "support/dim3.h"
#include "support/error.h"

namespace kgate {

enum class Dtype { f64, f32, tf32, f16, bf16, e4m3, e5m2, i8, i16, i32, i64, u8, u16, u32, u64, boolean };
const char* dtype_name(Dtype dtype);  // "f16", ..., "bool"
std::optional<Dtype> dtype_from_name(std::string_view name);
std::vector<const char*> dtype_names();
uint32_t dtype_bytes(Dtype dtype);
bool is_floating(Dtype dtype);

enum class Role { in, out, inout, workspace };
const char* role_name(Role role);

struct TensorParam {
  Dtype dtype = Dtype::f32;
  bool sized = true;  // false: `tensor: f16`, whose extent the recorded buffer has; then no dims and no strides
  std::vector<Expr> dims;
  std::vector<Expr> strides;  // in elements; empty: contiguous, row-major
  Role role = Role::in;
  bool zeroed = false;              // workspace with `init: zeros`
  std::optional<double> low, high;  // `range: [-1, 1]` of random inputs
};

struct ScalarParam {
  Dtype dtype = Dtype::i32;
  std::optional<Expr> value;   // integer; absent: the shape variable of the parameter's own name
  std::optional<double> real;  // for floating scalars: `value: 1e-5`
};

struct Param {
  std::string name;
  std::variant<TensorParam, ScalarParam> kind;
};

struct LaunchShape {
  Expr grid[3], block[3];
  Expr shared;
};

struct Tolerance {
  double rtol = 0, atol = 0;
};

// A limit on one metric (ids in judge/metrics.h). Exactly what the file said; nullopt = not given.
struct Limit {
  std::string metric;
  std::optional<double> max_regression;   // fraction of the baseline: 0.05
  std::optional<double> max_increase;     // absolute, in the metric's unit (ns, count, bytes)
  std::optional<double> max;              // absolute ceiling of the candidate's value
  std::optional<double> min_improvement;  // fraction: a proven gain is asked for
  std::string where;                      // file:line:column
};

// ---- binding -------------------------------------------------------------------------------------------------------

// A value read from a recorded launch: `ptr@8`, `i32@16`, `grid.x`, `block.y`, `shared`; `next.ptr@0` and
// `next2.grid.x` of the launches that `then` names.
struct RecordedValue {
  enum class Kind { pointer, scalar, grid, block, shared };
  Kind kind = Kind::pointer;
  uint32_t launch = 0;       // 0: the launch of the rule; 1: the first of `then`, ...
  Dtype dtype = Dtype::i32;  // of a scalar
  uint32_t offset = 0;       // into the recorded parameter block
  int axis = 0;              // of grid and block
};

// One argument of a replacement launch: a name from `let`, an integer expression over scalar names, `null`, or a typed
// literal.
struct BindingArg {
  enum class Kind { let, expression, null };
  Kind kind = Kind::null;
  std::string name;          // Kind::let (a pointer or a scalar passed through byte for byte)
  std::optional<Expr> expr;  // Kind::expression; stored in as many bytes as the parameter has
};

// `legacy`: on the legacy default stream instead of the recorded launch's.
struct ReplacementLaunch {
  std::string entry;
  Expr grid[3], block[3];
  std::optional<std::array<Expr, 3>> cluster;
  Expr shared;
  bool cooperative = false, programmatic = false, legacy = false;
  std::vector<BindingArg> args;
};
struct ReplacementMemset {
  std::string target;
  Expr value, bytes;
  bool legacy = false;
};
struct ReplacementWorkspace {
  std::string name;
  Expr bytes;
  bool zeroed = false;
  bool each_launch = false;  // the candidate's host side allocates and frees it anew at each launch
};
struct ReplacementSync {
  bool legacy = false;
};
using ReplacementItem = std::variant<ReplacementLaunch, ReplacementMemset, ReplacementWorkspace, ReplacementSync>;

struct Replacement {
  std::string kernel_glob;        // which recorded launches
  std::vector<std::string> then;  // a fusion: globs of the launches that directly follow on the stream and go with it
  std::map<std::string, RecordedValue> let;
  std::optional<std::vector<ReplacementItem>> with;  // nullopt: same ABI and grid; empty: the launch goes away
  std::string where;
};

struct Binding {
  std::vector<Replacement> replacements;  // empty: every launch of the contract's kernel, same ABI
};

struct ReferenceKernel {
  std::filesystem::path path;  // .cu, .ptx
  std::string entry;
};

// With `launch` the contract says how its kernel is launched, in `shapes` (without those everything is written in
// numbers and there is one shape without names): has_shapes. Without it a workload must bring the launches, and
// `params` may still give dtypes and roles.
//
// Constraints and shapes: a shape written out that lies outside a constraint is a problem in the file. Of a product,
// the combinations outside are left out, since that is why one writes a product and a constraint; a product of which
// nothing is left is a problem. Equal shapes count once. Every expression is evaluated in every shape when the file is
// read: a grid of 0, a block of 2048 threads, a scalar that does not fit its dtype or an overflow is a problem there,
// not at the launch.
struct Contract {
  std::filesystem::path path;
  std::string kernel;  // entry to judge in the candidate, unless the binding names another
  std::vector<Param> params;
  bool has_shapes = false;  // launch and shapes hold something
  LaunchShape launch;
  std::vector<Environment> shapes;  // products expanded, in file order
  std::vector<Expr> constraints;
  std::optional<ReferenceKernel> reference;  // fp64
  bool reference_is_baseline = false;
  std::map<Dtype, Tolerance> tolerance;  // only what the file gives
  std::optional<std::filesystem::path> workload;
  std::optional<std::filesystem::path> baseline;
  std::string baseline_entry;  // default: `kernel`
  Binding binding;
  std::vector<Limit> limits;  // only what the file gives
  bool has_limits = false;    // a `limits:` key, even an empty one
  bool limits_only = false;   // a policy: holds only limits

  std::string sha256;  // of the file
};

// Reads and validates. Throws Error{bad_input} whose `what` lists *all* problems, one a line, each "file:line:column:
// text". Paths inside are resolved against the file's folder. `allow_policy`: a file with only `kgate:` and `limits:`
// is fine.
Contract read_contract(const std::filesystem::path& path, bool allow_policy = false);
Contract parse_contract(const std::string& yaml, const std::filesystem::path& path, bool allow_policy = false);

// The contract of `--kernel NAME` without a file: the launches of a workload whose kernel matches (`*` and `?`
// allowed), outputs compared bit for bit, default limits. Throws Error{usage} for an empty name.
Contract contract_for_kernel(const std::string& kernel);

// The packed parameter block of the contract's own kernel has one slot a parameter: 8 bytes a tensor, the dtype's size
// a scalar, each at its natural alignment.
struct ParamSlot {
  uint32_t offset = 0, size = 0;
};
std::vector<ParamSlot> param_layout(const Contract& contract);
uint32_t param_block_bytes(const Contract& contract);

// Elements that a tensor spans (last addressed + 1) in a shape; a Failure for negative or overflowing sizes. Their
// bytes fit int64.
Result<uint64_t> tensor_elements(const TensorParam& tensor, const Environment& shape);

// Default tolerances by dtype, used where the contract gives none. Source in contract/tolerance.cpp.
Tolerance default_tolerance(Dtype dtype);

// JSON Schema (draft-07) of the file, generated from the validator's own table.
std::string contract_json_schema();

}  // namespace kgate
