// Do the arguments of a replacement launch fit the candidate's entry, and the bytes that they become.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "contract/bind.h"
#include "contract/launch_limits.h"
#include "support/text.h"

namespace kgate {

namespace {

uint32_t recorded_size(const RecordedValue& value) {
  return value.kind == RecordedValue::Kind::pointer ? 8 : dtype_bytes(value.dtype);
}

std::string shown(const BindingArg& arg) {
  if (arg.kind == BindingArg::Kind::null) return "null";
  return fmt::format("'{}'", sanitize(arg.kind == BindingArg::Kind::let ? arg.name : arg.expr->text(), 60));
}

// A name that `let` lacks is a workspace: an address.
uint32_t named_size(const Replacement& replacement, const std::string& name) {
  auto let = replacement.let.find(name);
  return let == replacement.let.end() ? 8 : recorded_size(let->second);
}

}  // namespace

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

Result<std::monostate> check_sources(const Replacement& replacement, RecordedLayouts recorded) {
  for (const auto& [name, value] : replacement.let) {
    if (value.kind != RecordedValue::Kind::pointer && value.kind != RecordedValue::Kind::scalar) continue;
    const uint32_t size = recorded_size(value);
    const std::vector<ParamSlot>& slots = recorded[value.launch];
    bool inside = std::any_of(slots.begin(), slots.end(), [&](const ParamSlot& slot) {
      return value.offset >= slot.offset && uint64_t{value.offset} + size <= uint64_t{slot.offset} + slot.size;
    });
    if (!inside)
      return Failure{fmt::format("'{}' is {} bytes at offset {}, which no parameter of the recorded kernel holds", name,
                                 size, value.offset),
                     replacement.where, "see the offsets with `kgate inspect` of the workload"};
  }
  return std::monostate{};
}

Result<std::monostate> check_abi(const Replacement& replacement, const ReplacementLaunch& launch, const EntryAbi& entry,
                                 RecordedLayouts recorded) {
  if (auto sources = check_sources(replacement, recorded); !sources) return sources;
  if (launch.args.size() != entry.params.size())
    return Failure{fmt::format("{} arguments for '{}', which has {} parameters", launch.args.size(), entry.name,
                               entry.params.size()),
                   replacement.where, "give one argument a parameter; null for a hidden scratch pointer"};
  for (size_t i = 0; i < entry.params.size(); ++i) {
    const BindingArg& arg = launch.args[i];
    const ParamSlot& slot = entry.params[i];
    const std::string parameter =
        fmt::format("parameter {} of '{}' at offset {} has {}", i + 1, entry.name, slot.offset, slot.size);
    if (arg.kind == BindingArg::Kind::let) {
      uint32_t size = named_size(replacement, arg.name);
      if (size != slot.size)
        return Failure{
            fmt::format("argument {} {} is {} bytes, {}", i + 1, shown(arg), size, parameter), replacement.where, {}};
    } else if (arg.kind == BindingArg::Kind::expression && slot.size != 1 && slot.size != 2 && slot.size != 4 &&
               slot.size != 8) {
      return Failure{
          fmt::format("argument {} {} is an integer of 1, 2, 4 or 8 bytes, {}", i + 1, shown(arg), parameter),
          replacement.where,
          {}};
    }
  }
  return std::monostate{};
}

Result<std::vector<std::byte>> pack_params(const BoundLaunch& launch, const EntryAbi& entry,
                                           RecordedLaunches recorded) {
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
      const std::vector<std::byte>& source = recorded[arg.source_launch].params;
      if (arg.size != slot.size || uint64_t{arg.source_offset} + arg.size > source.size())
        return Failure{fmt::format("argument {} does not fit parameter {} of '{}'", i + 1, i + 1, entry.name), {}, {}};
      std::memcpy(bytes.data() + slot.offset, source.data() + arg.source_offset, arg.size);
    }
  }
  return bytes;
}

}  // namespace kgate
