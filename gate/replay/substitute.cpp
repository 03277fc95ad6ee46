// The binding's arithmetic lives in contract/bind; here addresses become relocations, so that both arms share the
// workload's buffers.

#include "replay/substitute.h"

#include <fmt/format.h>

#include "contract/bind.h"

namespace kgate {

namespace {

std::vector<ParamSlot> slots(const std::vector<std::pair<uint32_t, uint32_t>>& params) {
  std::vector<ParamSlot> result;
  for (auto [offset, size] : params) result.push_back({offset, size});
  return result;
}

EntryAbi abi_of(const Entry& entry) {
  EntryAbi abi{entry.name, {}};
  for (const auto& param : entry.params) abi.params.push_back({param.offset, param.size});
  return abi;
}

const Relocation* relocation_at(const LaunchSpec& launch, uint32_t offset) {
  for (const auto& relocation : launch.relocations)
    if (relocation.param_offset == offset) return &relocation;
  return nullptr;
}

// What only a later version executes, by name.
std::optional<Failure> refuse(const Replacement& replacement) {
  std::string what;
  if (replacement.with->empty()) what = "deleting a launch (`with: []`)";
  if (replacement.with->size() > 1) what = "several `with` items";
  for (const auto& item : *replacement.with) {
    if (std::holds_alternative<ReplacementMemset>(item)) what = "a `memset` item";
    if (std::holds_alternative<ReplacementWorkspace>(item)) what = "a `workspace` item";
    if (std::holds_alternative<ReplacementSync>(item)) what = "a `sync` item";
  }
  if (what.empty()) return std::nullopt;
  return Failure{what + " is not executed by this version of kgate", replacement.where, "use one launch item"};
}

Result<LaunchSpec> bound(const BoundLaunch& launch, const EntryAbi& abi, const RecordedLaunch& source,
                         const LaunchSpec& recorded) {
  LaunchSpec spec;
  spec.grid = launch.grid;
  spec.block = launch.block;
  spec.shared = launch.shared;
  auto params = pack_params(launch, abi, source);
  if (!params) return params.failure();
  spec.params = std::move(*params);
  for (size_t i = 0; i < launch.args.size(); ++i)
    if (launch.args[i].kind == BoundArg::Kind::pointer_from_offset)
      if (const Relocation* relocation = relocation_at(recorded, launch.args[i].source_offset))
        spec.relocations.push_back({abi.params[i].offset, relocation->buffer, relocation->delta});
  return spec;
}

// What the entry declares must hold for this launch: .reqntid is the only block that the driver accepts.
std::optional<Failure> check_block(const Entry& entry, const LaunchSpec& launch) {
  if (entry.reqntid && !(*entry.reqntid == launch.block))
    return Failure{fmt::format("'{}' requires a block of {}x{}x{} (.reqntid); it would be launched with {}x{}x{}",
                               entry.name, entry.reqntid->x, entry.reqntid->y, entry.reqntid->z, launch.block.x,
                               launch.block.y, launch.block.z),
                   {},
                   "give its block in the contract's `replace:`"};
  if (entry.maxntid && launch.block.count() > entry.maxntid->count())
    return Failure{fmt::format("'{}' takes at most {} threads a block (.maxntid); it would be launched with {}",
                               entry.name, entry.maxntid->count(), launch.block.count()),
                   {},
                   "give a smaller block in the contract's `replace:`"};
  return std::nullopt;
}

}  // namespace

Result<std::monostate> check_same_abi(const WorkloadKernel& recorded, const Entry& entry, const std::string& label) {
  auto same = check_abi(nullptr, nullptr, abi_of(entry), slots(recorded.params));
  if (same) return same;
  Failure failure = same.failure();
  failure.what = fmt::format("the {} does not have the parameters that it is launched with: {}", label, failure.what);
  if (label != "candidate")
    failure.hint = fmt::format("name a {} that takes the parameters that the contract lists", label);
  return failure;
}

Result<std::vector<LaunchSpec>> substitute(const Binding& binding, const std::string& kernel,
                                           const LaunchSpec& recorded, const WorkloadKernel& recorded_kernel,
                                           const Entry& candidate) {
  if (binding.replacements.size() > 1)
    return Failure{"several `replace:` rules are not executed by this version of kgate", binding.replacements[1].where,
                   "use one"};
  const Replacement* replacement = replacement_for(binding, kernel);
  LaunchSpec spec = recorded;
  if (replacement && replacement->with) {
    if (auto refused = refuse(*replacement)) return *refused;
    const auto& item = std::get<ReplacementLaunch>(replacement->with->front());
    EntryAbi abi = abi_of(candidate);
    auto layout = slots(recorded_kernel.params);
    if (auto fits = check_abi(replacement, &item, abi, layout); !fits) return fits.failure();
    RecordedLaunch source{kernel, recorded.grid, recorded.block, recorded.shared, recorded.params};
    auto launch = bind_launch(item, *replacement, source);
    if (!launch) return launch.failure();
    auto made = bound(*launch, abi, source, recorded);
    if (!made) return made.failure();
    spec = std::move(*made);
  } else {
    if (auto same = check_same_abi(recorded_kernel, candidate, "candidate"); !same) return same.failure();
  }
  spec.kernel = 0;
  if (auto wrong = check_block(candidate, spec)) return *wrong;
  return std::vector<LaunchSpec>{spec};
}

std::string candidate_entry_name(const Contract& contract) {
  for (const auto& replacement : contract.binding.replacements)
    if (replacement.with)
      for (const auto& item : *replacement.with)
        if (const auto* launch = std::get_if<ReplacementLaunch>(&item)) return launch->entry;
  return contract.kernel;
}

}  // namespace kgate
