#include "contract/bind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "contract/launch_limits.h"
#include "support/text.h"

namespace kgate {

namespace {

uint32_t recorded_size(const RecordedValue& value) {
  return value.kind == RecordedValue::Kind::pointer ? 8 : dtype_bytes(value.dtype);
}

bool in_block(const RecordedValue& value) {
  return value.kind == RecordedValue::Kind::pointer || value.kind == RecordedValue::Kind::scalar;
}

Result<int64_t> read_integer(const RecordedValue& value, std::span<const std::byte> bytes) {
  uint64_t raw = 0;
  const uint32_t size = recorded_size(value);
  std::memcpy(&raw, bytes.data() + value.offset, size);
  switch (value.dtype) {
    case Dtype::i8:
      return int64_t{static_cast<int8_t>(raw)};
    case Dtype::i16:
      return int64_t{static_cast<int16_t>(raw)};
    case Dtype::i32:
      return int64_t{static_cast<int32_t>(raw)};
    case Dtype::i64:
      return static_cast<int64_t>(raw);
    case Dtype::boolean:
      return int64_t{raw != 0};
    default:
      break;
  }
  if (raw > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return Failure{fmt::format("the recorded value {} is past int64", raw), {}, {}};
  return static_cast<int64_t>(raw);
}

uint32_t axis_of(const Dim3& extent, int axis) { return axis == 0 ? extent.x : axis == 1 ? extent.y : extent.z; }

Result<int64_t> evaluate(const Expr& expr, const Environment& values, int64_t low, int64_t high,
                         const std::string& label) {
  Result<int64_t> value = expr.evaluate(values);
  if (!value)
    return Failure{fmt::format("{} \"{}\": {}", label, expr.text(), value.failure().what), {}, value.failure().hint};
  if (*value < low || *value > high)
    return Failure{fmt::format("{} \"{}\" is {}, not within {} to {}", label, expr.text(), *value, low, high), {}, {}};
  return *value;
}

Result<Dim3> extents(const Expr exprs[3], const Environment& values, const int64_t limits[3], const char* label) {
  uint32_t out[3];
  for (size_t i = 0; i < 3; ++i) {
    Result<int64_t> value = evaluate(exprs[i], values, 1, limits[i], fmt::format("{}.{}", label, "xyz"[i]));
    if (!value) return value.failure();
    out[i] = static_cast<uint32_t>(*value);
  }
  return Dim3{out[0], out[1], out[2]};
}

// The bytes that a name stands for: of `let`, else a workspace.
BoundArg named_arg(const Replacement& replacement, const std::string& name) {
  auto let = replacement.let.find(name);
  BoundArg arg;
  if (let == replacement.let.end()) {
    arg.kind = BoundArg::Kind::workspace;
    arg.size = 8;
    arg.workspace = name;
    return arg;
  }
  bool pointer = let->second.kind == RecordedValue::Kind::pointer;
  arg.kind = pointer ? BoundArg::Kind::pointer_from_offset : BoundArg::Kind::scalar_bytes;
  arg.source_launch = let->second.launch;
  arg.source_offset = let->second.offset;
  arg.size = recorded_size(let->second);
  return arg;
}

Result<BoundArg> bind_arg(const BindingArg& arg, const Replacement& replacement, const Environment& values,
                          size_t index) {
  if (arg.kind == BindingArg::Kind::null) return BoundArg{};
  if (arg.kind == BindingArg::Kind::let) return named_arg(replacement, arg.name);
  Result<int64_t> value = evaluate(*arg.expr, values, std::numeric_limits<int64_t>::min(),
                                   std::numeric_limits<int64_t>::max(), fmt::format("argument {}", index + 1));
  if (!value) return value.failure();
  BoundArg literal;
  literal.kind = BoundArg::Kind::literal;
  literal.value = *value;
  return literal;
}

// None given: 0x0x0.
Result<Dim3> bind_cluster(const ReplacementLaunch& launch, const Dim3& grid, const Environment& values) {
  if (!launch.cluster) return Dim3{0, 0, 0};
  constexpr int64_t kMost[3] = {kMaxClusterBlocks, kMaxClusterBlocks, kMaxClusterBlocks};
  Result<Dim3> cluster = extents(launch.cluster->data(), values, kMost, "cluster");
  if (!cluster) return cluster.failure();
  if (cluster->count() > uint64_t{kMaxClusterBlocks})
    return Failure{fmt::format("a cluster of {} blocks; at most {}", cluster->count(), kMaxClusterBlocks), {}, {}};
  if (grid.x % cluster->x != 0 || grid.y % cluster->y != 0 || grid.z % cluster->z != 0)
    return Failure{fmt::format("a grid of {}x{}x{} is no multiple of the cluster {}x{}x{}", grid.x, grid.y, grid.z,
                               cluster->x, cluster->y, cluster->z),
                   {},
                   {}};
  return *cluster;
}

Result<BoundLaunch> bind_with(const ReplacementLaunch& launch, const Replacement& replacement,
                              const Environment& values) {
  Result<Dim3> grid = extents(launch.grid, values, kMaxGrid, "grid");
  if (!grid) return grid.failure();
  Result<Dim3> block = extents(launch.block, values, kMaxBlock, "block");
  if (!block) return block.failure();
  if (block->count() > uint64_t{kMaxThreads})
    return Failure{fmt::format("a block of {} threads; at most {}", block->count(), kMaxThreads), {}, {}};
  Result<Dim3> cluster = bind_cluster(launch, *grid, values);
  if (!cluster) return cluster.failure();
  Result<int64_t> shared = evaluate(launch.shared, values, 0, kMaxSharedBytes, "shared");
  if (!shared) return shared.failure();
  BoundLaunch bound;
  bound.entry = launch.entry;
  bound.grid = *grid;
  bound.block = *block;
  bound.cluster = *cluster;
  bound.shared = static_cast<uint32_t>(*shared);
  bound.cooperative = launch.cooperative;
  bound.programmatic = launch.programmatic;
  bound.legacy = launch.legacy;
  for (size_t i = 0; i < launch.args.size(); ++i) {
    Result<BoundArg> arg = bind_arg(launch.args[i], replacement, values, i);
    if (!arg) return arg.failure();
    bound.args.push_back(std::move(*arg));
  }
  return bound;
}

Result<BoundItem> bind_item(const ReplacementItem& item, const Replacement& replacement, const Environment& values) {
  constexpr int64_t kMaxBytes = int64_t{1} << 40;  // of a plan's workspace
  if (const auto* launch = std::get_if<ReplacementLaunch>(&item)) {
    Result<BoundLaunch> bound = bind_with(*launch, replacement, values);
    if (!bound) return bound.failure();
    return BoundItem{std::move(*bound)};
  }
  if (const auto* memset = std::get_if<ReplacementMemset>(&item)) {
    Result<int64_t> value = evaluate(memset->value, values, 0, 255, "the value of the memset");
    Result<int64_t> bytes = evaluate(memset->bytes, values, 0, kMaxBytes, "the bytes of the memset");
    if (!value || !bytes) return value ? bytes.failure() : value.failure();
    return BoundItem{BoundMemset{named_arg(replacement, memset->target), static_cast<uint8_t>(*value),
                                 static_cast<uint64_t>(*bytes), memset->legacy}};
  }
  if (const auto* workspace = std::get_if<ReplacementWorkspace>(&item)) {
    Result<int64_t> bytes =
        evaluate(workspace->bytes, values, 0, kMaxBytes, fmt::format("the bytes of '{}'", workspace->name));
    if (!bytes) return bytes.failure();
    return BoundItem{
        BoundWorkspace{workspace->name, static_cast<uint64_t>(*bytes), workspace->zeroed, workspace->each_launch}};
  }
  return BoundItem{BoundSync{std::get<ReplacementSync>(item).legacy}};
}

// A failure of the binding says which replacement it is about.
template <typename T>
Result<T> at_replacement(Result<T> result, const Replacement& replacement) {
  if (result) return result;
  Failure failure = result.failure();
  failure.where = replacement.where;
  return failure;
}

}  // namespace

Result<Environment> let_values(const Replacement& replacement, RecordedLaunches launches) {
  if (launches.size() != replacement.then.size() + 1)
    throw Error(Exit::internal,
                fmt::format("{} launches for a rule of {}", launches.size(), replacement.then.size() + 1),
                replacement.where);
  Environment values;
  for (const auto& [name, value] : replacement.let) {
    const RecordedLaunch& recorded = launches[value.launch];
    if (in_block(value) && uint64_t{value.offset} + recorded_size(value) > recorded.params.size())
      return Failure{
          fmt::format("'{}' is {} bytes at offset {}; the recorded parameters of '{}' are {} bytes", name,
                      recorded_size(value), value.offset, sanitize(recorded.kernel, 100), recorded.params.size()),
          replacement.where,
          {}};
    switch (value.kind) {
      case RecordedValue::Kind::pointer:
        break;
      case RecordedValue::Kind::grid:
        values[name] = axis_of(recorded.grid, value.axis);
        break;
      case RecordedValue::Kind::block:
        values[name] = axis_of(recorded.block, value.axis);
        break;
      case RecordedValue::Kind::shared:
        values[name] = recorded.shared;
        break;
      case RecordedValue::Kind::scalar: {
        if (is_floating(value.dtype)) break;
        Result<int64_t> number = read_integer(value, recorded.params);
        if (!number) return Failure{fmt::format("'{}': {}", name, number.failure().what), replacement.where, {}};
        values[name] = *number;
      }
    }
  }
  return values;
}

Result<BoundLaunch> bind_launch(const ReplacementLaunch& launch, const Replacement& replacement,
                                RecordedLaunches recorded) {
  Result<Environment> values = let_values(replacement, recorded);
  if (!values) return values.failure();
  return at_replacement(bind_with(launch, replacement, *values), replacement);
}

Result<std::vector<BoundItem>> bind_items(const Replacement& replacement, RecordedLaunches recorded) {
  if (!replacement.with) throw Error(Exit::internal, "a replacement without `with` has no items to bind");
  Result<Environment> values = let_values(replacement, recorded);
  if (!values) return values.failure();
  std::vector<BoundItem> items;
  for (const ReplacementItem& item : *replacement.with) {
    Result<BoundItem> bound = at_replacement(bind_item(item, replacement, *values), replacement);
    if (!bound) return bound.failure();
    items.push_back(std::move(*bound));
  }
  return items;
}

}  // namespace kgate
