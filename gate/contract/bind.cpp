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
  if (let == replacement.let.end()) return {BoundArg::Kind::workspace, 0, 8, 0, name};
  bool pointer = let->second.kind == RecordedValue::Kind::pointer;
  return {pointer ? BoundArg::Kind::pointer_from_offset : BoundArg::Kind::scalar_bytes,
          let->second.offset,
          recorded_size(let->second),
          0,
          {}};
}

Result<BoundArg> bind_arg(const BindingArg& arg, const Replacement& replacement, const Environment& values,
                          size_t index) {
  if (arg.kind == BindingArg::Kind::null) return BoundArg{};
  if (arg.kind == BindingArg::Kind::let) return named_arg(replacement, arg.name);
  Result<int64_t> value = evaluate(*arg.expr, values, std::numeric_limits<int64_t>::min(),
                                   std::numeric_limits<int64_t>::max(), fmt::format("argument {}", index + 1));
  if (!value) return value.failure();
  return BoundArg{BoundArg::Kind::literal, 0, 0, *value, {}};
}

std::string shown(const BindingArg& arg) {
  if (arg.kind == BindingArg::Kind::null) return "null";
  return fmt::format("'{}'", sanitize(arg.kind == BindingArg::Kind::let ? arg.name : arg.expr->text(), 60));
}

Result<BoundLaunch> bind_with(const ReplacementLaunch& launch, const Replacement& replacement,
                              const Environment& values) {
  Result<Dim3> grid = extents(launch.grid, values, kMaxGrid, "grid");
  if (!grid) return grid.failure();
  Result<Dim3> block = extents(launch.block, values, kMaxBlock, "block");
  if (!block) return block.failure();
  if (block->count() > uint64_t{kMaxThreads})
    return Failure{fmt::format("a block of {} threads; at most {}", block->count(), kMaxThreads), {}, {}};
  Result<int64_t> shared = evaluate(launch.shared, values, 0, kMaxSharedBytes, "shared");
  if (!shared) return shared.failure();
  BoundLaunch bound{launch.entry, *grid, *block, static_cast<uint32_t>(*shared), {}};
  for (size_t i = 0; i < launch.args.size(); ++i) {
    Result<BoundArg> arg = bind_arg(launch.args[i], replacement, values, i);
    if (!arg) return arg.failure();
    bound.args.push_back(std::move(*arg));
  }
  return bound;
}

Result<BoundItem> bind_item(const ReplacementItem& item, const Replacement& replacement, const Environment& values) {
  constexpr int64_t kMaxBytes = int64_t{1} << 48;
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
                                 static_cast<uint64_t>(*bytes)}};
  }
  if (const auto* workspace = std::get_if<ReplacementWorkspace>(&item)) {
    Result<int64_t> bytes =
        evaluate(workspace->bytes, values, 0, kMaxBytes, fmt::format("the bytes of '{}'", workspace->name));
    if (!bytes) return bytes.failure();
    return BoundItem{BoundWorkspace{workspace->name, static_cast<uint64_t>(*bytes), workspace->zeroed}};
  }
  return BoundItem{BoundSync{}};
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

const Replacement* replacement_for(const Binding& binding, const std::string& kernel) {
  for (const Replacement& replacement : binding.replacements)
    if (glob_match(replacement.kernel_glob, kernel)) return &replacement;
  return nullptr;
}

Result<Environment> let_values(const Replacement& replacement, const RecordedLaunch& recorded) {
  Environment values;
  for (const auto& [name, value] : replacement.let) {
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
                                const RecordedLaunch& recorded) {
  Result<Environment> values = let_values(replacement, recorded);
  if (!values) return values.failure();
  return at_replacement(bind_with(launch, replacement, *values), replacement);
}

Result<std::vector<BoundItem>> bind_items(const Replacement& replacement, const RecordedLaunch& recorded) {
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

namespace {

Result<std::monostate> check_same_abi(const EntryAbi& entry, std::span<const ParamSlot> recorded) {
  const char* hint = "say how to call the candidate: `with:` in the contract's `replace:`";
  if (entry.params.size() != recorded.size())
    return Failure{fmt::format("'{}' has {} parameters, the recorded kernel has {}", entry.name, entry.params.size(),
                               recorded.size()),
                   {},
                   hint};
  for (size_t i = 0; i < recorded.size(); ++i) {
    const ParamSlot &ours = entry.params[i], &theirs = recorded[i];
    if (ours.size != theirs.size || ours.offset != theirs.offset)
      return Failure{
          fmt::format("parameter {} of '{}' has {} bytes at offset {}, the recorded kernel's has {} at offset {}",
                      i + 1, entry.name, ours.size, ours.offset, theirs.size, theirs.offset),
          {},
          hint};
  }
  return std::monostate{};
}

// Whatever `let` reads lies inside one recorded parameter: bytes over two of them, or in the padding, are a slip.
Result<std::monostate> check_sources(const Replacement& replacement, std::span<const ParamSlot> recorded) {
  for (const auto& [name, value] : replacement.let) {
    if (!in_block(value)) continue;
    const uint32_t size = recorded_size(value);
    bool inside = std::any_of(recorded.begin(), recorded.end(), [&](const ParamSlot& slot) {
      return value.offset >= slot.offset && uint64_t{value.offset} + size <= uint64_t{slot.offset} + slot.size;
    });
    if (!inside)
      return Failure{fmt::format("'{}' is {} bytes at offset {}, which no parameter of the recorded kernel holds", name,
                                 size, value.offset),
                     replacement.where, "see the offsets with `kgate inspect` of the workload"};
  }
  return std::monostate{};
}

}  // namespace

Result<std::monostate> check_abi(const Replacement* replacement, const ReplacementLaunch* launch, const EntryAbi& entry,
                                 std::span<const ParamSlot> recorded) {
  if (!launch) return check_same_abi(entry, recorded);
  if (!replacement) throw Error(Exit::internal, "a replacement launch without its replacement");
  if (auto sources = check_sources(*replacement, recorded); !sources) return sources;
  if (launch->args.size() != entry.params.size())
    return Failure{fmt::format("{} arguments for '{}', which has {} parameters", launch->args.size(), entry.name,
                               entry.params.size()),
                   replacement->where, "give one argument a parameter; null for a hidden scratch pointer"};
  for (size_t i = 0; i < entry.params.size(); ++i) {
    const BindingArg& arg = launch->args[i];
    const ParamSlot& slot = entry.params[i];
    const std::string parameter =
        fmt::format("parameter {} of '{}' at offset {} has {}", i + 1, entry.name, slot.offset, slot.size);
    if (arg.kind == BindingArg::Kind::let) {
      uint32_t size = named_arg(*replacement, arg.name).size;
      if (size != slot.size)
        return Failure{
            fmt::format("argument {} {} is {} bytes, {}", i + 1, shown(arg), size, parameter), replacement->where, {}};
    } else if (arg.kind == BindingArg::Kind::expression && slot.size != 1 && slot.size != 2 && slot.size != 4 &&
               slot.size != 8) {
      return Failure{
          fmt::format("argument {} {} is an integer of 1, 2, 4 or 8 bytes, {}", i + 1, shown(arg), parameter),
          replacement->where,
          {}};
    }
  }
  return std::monostate{};
}

Result<std::vector<std::byte>> pack_params(const BoundLaunch& launch, const EntryAbi& entry,
                                           const RecordedLaunch& recorded) {
  if (launch.args.size() != entry.params.size())
    return Failure{fmt::format("{} arguments for '{}', which has {} parameters", launch.args.size(), entry.name,
                               entry.params.size()),
                   {},
                   {}};
  uint64_t end = 0;
  for (const ParamSlot& slot : entry.params) end = std::max(end, uint64_t{slot.offset} + slot.size);
  if (end > kMaxParamBytes)
    return Failure{fmt::format("'{}' has {} bytes of parameters; at most {}", entry.name, end, kMaxParamBytes), {}, {}};
  std::vector<std::byte> bytes(end);
  for (size_t i = 0; i < launch.args.size(); ++i) {
    const BoundArg& arg = launch.args[i];
    const ParamSlot& slot = entry.params[i];
    if (arg.kind == BoundArg::Kind::literal) {
      const int shift = slot.size >= 8 ? 63 : static_cast<int>(slot.size) * 8;
      const int64_t high = slot.size >= 8 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << shift) - 1;
      const int64_t low = slot.size >= 8 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (shift - 1));
      if (slot.size == 0 || slot.size > 8 || arg.value < low || arg.value > high)
        return Failure{fmt::format("argument {} is {}, which does not fit the {} bytes of parameter {} of '{}'", i + 1,
                                   arg.value, slot.size, i + 1, entry.name),
                       {},
                       {}};
      std::memcpy(bytes.data() + slot.offset, &arg.value, slot.size);
    } else if (arg.kind == BoundArg::Kind::pointer_from_offset || arg.kind == BoundArg::Kind::scalar_bytes) {
      if (arg.size != slot.size || uint64_t{arg.source_offset} + arg.size > recorded.params.size())
        return Failure{fmt::format("argument {} does not fit parameter {} of '{}'", i + 1, i + 1, entry.name), {}, {}};
      std::memcpy(bytes.data() + slot.offset, recorded.params.data() + arg.source_offset, arg.size);
    }
  }
  return bytes;
}

}  // namespace kgate
