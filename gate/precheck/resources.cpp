// Static figures of candidate and baseline, and whether they are the same machine code.

#include <fmt/format.h>

#include "precheck/precheck.h"

namespace kgate {

namespace {

// sm_75 from "sm_75", "sm_90a", "sm_120f"; 0 if there is none.
int target_arch(const std::string& target) {
  int arch = 0;
  for (char c : target)
    if (c >= '0' && c <= '9') arch = arch * 10 + (c - '0');
  return arch;
}

std::map<std::string, double, std::less<>> figures_of(const Prepared& prepared, uint32_t block_threads,
                                                      uint32_t dynamic_shared, int arch) {
  std::map<std::string, double, std::less<>> figures;
  if (!prepared.usage) return figures;
  const ResourceUsage& usage = *prepared.usage;
  if (usage.registers) figures["registers"] = *usage.registers;
  if (usage.stack_bytes) figures["local_bytes"] = *usage.stack_bytes;
  if (usage.spill_store_bytes && usage.spill_load_bytes)
    figures["spill_bytes"] = double(*usage.spill_store_bytes) + double(*usage.spill_load_bytes);
  uint32_t shared = usage.static_shared.value_or(prepared.entry.static_shared);
  figures["shared_bytes"] = shared;
  if (usage.registers && block_threads)
    if (auto occupancy = theoretical_occupancy(arch ? arch : target_arch(prepared.source.target), *usage.registers,
                                               shared + dynamic_shared, block_threads))
      figures["occupancy"] = occupancy->fraction;
  return figures;
}

struct BlockShape {
  uint32_t threads = 0, shared = 0;
};

BlockShape evaluate_block(const Expr block[3], const Expr& shared, const Environment& environment) {
  BlockShape shape;
  uint64_t threads = 1;
  for (int axis = 0; axis < 3; ++axis) {
    auto extent = block[axis].evaluate(environment);
    if (!extent || *extent < 1 || *extent > 1024) return {};
    threads *= static_cast<uint64_t>(*extent);
  }
  shape.threads = threads <= 1024 ? static_cast<uint32_t>(threads) : 0;
  if (auto bytes = shared.evaluate(environment); bytes && *bytes >= 0) shape.shared = static_cast<uint32_t>(*bytes);
  return shape;
}

}  // namespace

void check_resources(const Contract& contract, const Prepared& candidate, const Prepared* baseline,
                     PrecheckResult& result) {
  Environment shape = contract.shapes.empty() ? Environment{} : contract.shapes.front();
  BlockShape own = evaluate_block(contract.launch.block, contract.launch.shared, shape);
  BlockShape bound = own;
  const ReplacementLaunch* launch = nullptr;
  for (const auto& replacement : contract.binding.replacements)
    if (replacement.with)
      for (const auto& item : *replacement.with)
        if (!launch) launch = std::get_if<ReplacementLaunch>(&item);
  // A block that depends on recorded values has no one figure: occupancy is then left out.
  if (launch) bound = evaluate_block(launch->block, launch->shared, {});

  int arch = 0;
  if (candidate.compiled && candidate.compiled->outcome == CompileOutcome::ok)
    if (auto cubin = parse_candidate(candidate.compiled->image, candidate.source.path))
      arch = target_arch(cubin->target);
  result.statics.candidate = figures_of(candidate, bound.threads, bound.shared, arch);
  if (candidate.source.kind == CodeKind::cubin)
    result.findings.push_back({"spills_unknown",
                               "resources",
                               "a cubin does not say how many bytes spill; local_bytes is its stack frame",
                               {},
                               Exit::pass});
  if (!baseline) return;
  result.statics.baseline = figures_of(*baseline, own.threads, own.shared, arch);
  result.identical_code = !launch && !candidate.kernel_id.empty() && candidate.kernel_id == baseline->kernel_id &&
                          candidate.machine_code == baseline->machine_code;
  if (result.identical_code)
    result.findings.push_back(
        {"identical_code",
         "resources",
         fmt::format("the candidate is the baseline's {} ({})", candidate.machine_code ? "machine code" : "PTX",
                     candidate.kernel_id.substr(0, 12)),
         {},
         Exit::pass});
}

}  // namespace kgate
