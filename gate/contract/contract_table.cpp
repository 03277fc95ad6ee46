#include "contract/contract_table.h"

#include <array>
#include <cstring>

#include "contract/grammar.h"
#include "contract/metric_names.h"

namespace kgate::contract_table {

using yaml::Field;
using yaml::Kind;
using yaml::Map;
using yaml::Type;

namespace {

constexpr Type of(Kind kind) { return {kind}; }
constexpr Type list_of(const Type& item, size_t low, size_t high) {
  return {Kind::list, &item, nullptr, {}, {}, low, high};
}
constexpr Type keyed(const Type& item) { return {Kind::keyed, &item, nullptr, {}, {}, 1, 64}; }
constexpr Type either(const Type& scalar, const Type& other) { return {Kind::either, &scalar, &other}; }
constexpr Type one_of(std::span<const char* const> choices) { return {Kind::choice, nullptr, nullptr, {}, choices}; }
constexpr Type map_of(std::span<const Map* const> maps) { return {Kind::map, nullptr, nullptr, maps}; }

constexpr const char* kRoles[] = {"in", "out", "inout", "workspace"};
constexpr const char* kInits[] = {"any", "zeros"};
constexpr const char* kStreams[] = {"legacy"};
constexpr const char* kAllocations[] = {"once", "each_launch"};
constexpr const char* kScalarDtypes[] = {"f64", "f32", "f16", "bf16", "i8",  "i16", "i32",
                                         "i64", "u8",  "u16", "u32",  "u64", "bool"};

constexpr Type kExpression = of(Kind::expression);
constexpr Type kThree = list_of(kExpression, 3, 3);
constexpr Type kNumberType = of(Kind::number);
constexpr Type kPathType = of(Kind::path);
constexpr Type kExtent = of(Kind::count);
constexpr Type kExtents = list_of(kExtent, 1, 4096);
constexpr Type kExtentOrList = either(kExtent, kExtents);
constexpr Type kShape = keyed(kExtentOrList);
constexpr Type kRecorded = of(Kind::recorded);
constexpr Type kArgument = of(Kind::argument);

}  // namespace

// ---- params --------------------------------------------------------------------------------------------------------

constexpr Field kTensorFields[] = {
    {"tensor", of(Kind::parameter_tensor), true,
     "dtype[dim, dim]; a dimension is a name, a number or an expression. The dtype alone where a workload brings "
     "sizes"},
    {"name", of(Kind::identifier), true, "how messages and the reference name it"},
    {"role", one_of(kRoles), true, "in, out, inout or workspace"},
    {"strides", list_of(kExpression, 0, 16), false, "in elements, one a dimension; default: contiguous"},
    {"init", one_of(kInits), false, "of a workspace: any (default) or zeros, zeroed once before the first launch"},
    {"range", list_of(kNumberType, 2, 2), false, "[low, high] of random inputs"},
};
constexpr Map kTensorParam{"tensor parameter", kTensorFields};

constexpr Field kScalarFields[] = {
    {"scalar", one_of(kScalarDtypes), true, "dtype"},
    {"name", of(Kind::identifier), true, "how messages name it"},
    {"value", of(Kind::scalar_value), false,
     "an integer expression, or a number for floating dtypes; default: the shape variable of the same name"},
};
constexpr Map kScalarParam{"scalar parameter", kScalarFields};
constexpr const Map* kParamMaps[] = {&kTensorParam, &kScalarParam};
constexpr Type kParam = map_of(kParamMaps);
constexpr Type kParams = list_of(kParam, 0, 256);

constexpr Field kLaunchFields[] = {
    {"grid", kThree, true, "[x, y, z] blocks"},
    {"block", kThree, true, "[x, y, z] threads"},
    {"shared", kExpression, false, "bytes of dynamic shared memory; default 0"},
};
constexpr Map kLaunch{"launch", kLaunchFields};
constexpr const Map* kLaunchMaps[] = {&kLaunch};

// ---- reference, baseline, tolerance --------------------------------------------------------------------------------

constexpr Field kReferenceCudaFields[] = {
    {"cuda", of(Kind::path), true, "a .cu or .ptx file; its floating outputs are double*"},
    {"entry", of(Kind::symbol), true, "the kernel in it"},
};
constexpr Map kReferenceCuda{"reference", kReferenceCudaFields};
constexpr Field kReferenceBaselineFields[] = {
    {"baseline", of(Kind::yes), true, "compare with the baseline's own outputs"}};
constexpr Map kReferenceBaseline{"reference", kReferenceBaselineFields};
constexpr const Map* kReferenceMaps[] = {&kReferenceCuda, &kReferenceBaseline};
constexpr Type kReference = map_of(kReferenceMaps);

constexpr Field kBaselineFields[] = {
    {"path", of(Kind::path), true, "the last accepted kernel: PTX, cubin or CUDA C++"},
    {"entry", of(Kind::symbol), false, "the kernel in it; default: the contract's kernel"},
};
constexpr Map kBaseline{"baseline", kBaselineFields};
constexpr const Map* kBaselineMaps[] = {&kBaseline};
constexpr Type kBaselineMap = map_of(kBaselineMaps);
constexpr Type kBaselineType = either(kPathType, kBaselineMap);

constexpr Field kToleranceFields[] = {
    {"rtol", of(Kind::number), false, "relative to the reference's value"},
    {"atol", of(Kind::number), false, "absolute"},
};
constexpr Map kTolerance{"tolerance", kToleranceFields};
constexpr const Map* kToleranceMaps[] = {&kTolerance};
constexpr Type kToleranceType = map_of(kToleranceMaps);
constexpr Field kToleranceRows[] = {
    {"f64", kToleranceType},  {"f32", kToleranceType},  {"tf32", kToleranceType}, {"f16", kToleranceType},
    {"bf16", kToleranceType}, {"e4m3", kToleranceType}, {"e5m2", kToleranceType}, {"i8", kToleranceType},
    {"i16", kToleranceType},  {"i32", kToleranceType},  {"i64", kToleranceType},  {"u8", kToleranceType},
    {"u16", kToleranceType},  {"u32", kToleranceType},  {"u64", kToleranceType},  {"bool", kToleranceType},
};
constexpr Map kTolerances{"tolerance", kToleranceRows};
constexpr const Map* kTolerancesMaps[] = {&kTolerances};

// ---- limits: one row a metric, whose unit says how its bounds are written -------------------------------------------

namespace {
constexpr std::array<Field, 4> limit_fields(Kind absolute) {
  return {Field{"max_regression", of(Kind::percent), false, "how much worse than the baseline it may get"},
          Field{"max_increase", of(absolute), false, "how far above the baseline it may get, in the metric's unit"},
          Field{"max", of(absolute), false, "the most that the candidate may have, whatever the baseline has"},
          Field{"min_improvement", of(Kind::percent), false, "how much better than the baseline it must be"}};
}
constexpr auto kNsFields = limit_fields(Kind::duration);
constexpr auto kCountFields = limit_fields(Kind::count);
constexpr auto kBytesFields = limit_fields(Kind::size);
constexpr auto kFractionFields = limit_fields(Kind::percent);
constexpr Map kUnitMaps[] = {
    {"limit", kNsFields}, {"limit", kCountFields}, {"limit", kBytesFields}, {"limit", kFractionFields}};
constexpr const Map* kUnitMapPointers[] = {&kUnitMaps[0], &kUnitMaps[1], &kUnitMaps[2], &kUnitMaps[3]};

constexpr auto kLimitRows = [] {
  std::array<Field, std::size(kMetricNames)> rows{};
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i] = {kMetricNames[i].id, map_of({&kUnitMapPointers[static_cast<size_t>(kMetricNames[i].unit)], 1}), false,
               ""};
  return rows;
}();
}  // namespace

constexpr Map kLimits{"list of limits", kLimitRows};
constexpr const Map* kLimitsMaps[] = {&kLimits};
constexpr Type kLimitsType = map_of(kLimitsMaps);

const Map& limit_map(const char* metric) {
  for (const MetricName& known : kMetricNames)
    if (std::strcmp(known.id, metric) == 0) return kUnitMaps[static_cast<size_t>(known.unit)];
  throw Error(Exit::internal, "a metric that the list lacks", metric);
}

// ---- replace -------------------------------------------------------------------------------------------------------

constexpr Field kStreamField = {"stream", one_of(kStreams), false,
                                "legacy: the legacy default stream; default: the recorded launch's stream"};
constexpr Field kWithLaunchFields[] = {
    {"entry", of(Kind::symbol), true, "the kernel in the candidate"},
    {"grid", kThree, true, "[x, y, z], expressions over the names of `let`"},
    {"block", kThree, true, "[x, y, z], expressions over the names of `let`"},
    {"shared", kExpression, false, "bytes of dynamic shared memory; default 0"},
    {"args", list_of(kArgument, 0, 1024), true,
     "one a parameter: a name of `let`, a workspace, an integer expression or null"},
    {"cluster", kThree, false, "[x, y, z] blocks of a thread block cluster; default: none"},
    {"cooperative", of(Kind::yes), false, "a cooperative launch: the kernel has grid-wide barriers"},
    {"programmatic", of(Kind::yes), false, "may begin before its predecessor on the stream has ended"},
    kStreamField,
};
constexpr Map kWithLaunch{"replacement launch", kWithLaunchFields};
constexpr Field kWithMemsetFields[] = {
    {"memset", of(Kind::identifier), true, "a pointer of `let`, or a workspace"},
    {"value", kExpression, false, "of each byte, 0 to 255; default 0"},
    {"bytes", kExpression, true, "how many"},
    kStreamField,
};
constexpr Map kWithMemset{"memset", kWithMemsetFields};
constexpr Field kWithWorkspaceFields[] = {
    {"workspace", of(Kind::identifier), true, "the name that args and memset use"},
    {"bytes", kExpression, true, "how many"},
    {"init", one_of(kInits), false, "any (default) or zeros, zeroed once before the first launch"},
    {"allocate", one_of(kAllocations), false,
     "once (default), or each_launch: the candidate's host side allocates and frees it at each launch"},
};
constexpr Map kWithWorkspace{"workspace", kWithWorkspaceFields};
constexpr Field kWithSyncFields[] = {{"sync", of(Kind::yes), true, "the host waits for the stream"}, kStreamField};
constexpr Map kWithSync{"sync", kWithSyncFields};
constexpr const Map* kWithMaps[] = {&kWithLaunch, &kWithMemset, &kWithWorkspace, &kWithSync};
constexpr Type kWithItem = map_of(kWithMaps);

constexpr Type kPattern = of(Kind::text);
constexpr Type kPatterns = list_of(kPattern, 1, yaml::kMaxThen);
constexpr Field kLaunchesFields[] = {
    {"kernel", kPattern, true, "a name or a pattern with * and ?"},
    {"then", either(kPattern, kPatterns), false,
     "a fusion: the kernels of the launches that directly follow on the stream and go away with it"}};
constexpr Map kLaunches{"choice of launches", kLaunchesFields};
constexpr const Map* kLaunchesMaps[] = {&kLaunches};
constexpr Field kReplacementFields[] = {
    {"launches", map_of(kLaunchesMaps), true, "which recorded launches are replaced"},
    {"let", keyed(kRecorded), false,
     "names for recorded values: ptr@8, i32@16, grid.x, block.x, shared; next.ptr@8, next2.grid.x of what follows"},
    {"with", list_of(kWithItem, 0, 64), false, "what replaces the launch; absent: same ABI and grid; []: nothing"},
};
constexpr Map kReplacement{"replacement", kReplacementFields};
constexpr const Map* kReplacementMaps[] = {&kReplacement};
constexpr Type kReplacementType = map_of(kReplacementMaps);
constexpr Type kReplacements = list_of(kReplacementType, 0, 256);

// ---- the file ------------------------------------------------------------------------------------------------------

constexpr Field kContractFields[] = {
    {"kgate", of(Kind::version), true, "the version of the format: 1"},
    {"kernel", of(Kind::symbol), true, "the entry to judge"},
    {"params", kParams, false, "the kernel's parameters, in order"},
    {"launch", map_of(kLaunchMaps), false, "grid, block and shared memory, expressions over the shape's names"},
    {"shapes", list_of(kShape, 1, 4096), false, "the shapes to check; a list in a shape makes a product"},
    {"constraints", list_of(kExpression, 0, 64), false, "where the job is defined; no shape lies outside"},
    {"reference", kReference, false, "what the outputs are compared with"},
    {"tolerance", map_of(kTolerancesMaps), false, "by dtype; default: by dtype, see the documentation"},
    {"workload", of(Kind::path), false, "the recorded workload to replay (.kgw)"},
    {"baseline", kBaselineType, false, "the last accepted kernel; default: the recorded one"},
    {"replace", kReplacements, false, "how a recorded launch becomes launches of the candidate; absent: same ABI"},
    {"limits", kLimitsType, false, "by metric; default: the gate's own"},
};
constexpr Map kContract{"contract", kContractFields};
constexpr const Map* kContractMaps[] = {&kContract};
constexpr Type kRoot = map_of(kContractMaps);

constexpr Field kPolicyFields[] = {
    {"kgate", of(Kind::version), true, "the version of the format: 1"},
    {"limits", kLimitsType, true, "by metric"},
};
constexpr Map kPolicy{"policy", kPolicyFields};
constexpr const Map* kPolicyMaps[] = {&kPolicy};
constexpr Type kPolicyRoot = map_of(kPolicyMaps);

}  // namespace kgate::contract_table
