// Both arms replace the judged launches by code that went through the same assembler: what differs is the kernel,
// nothing else.

#include "replay/arms.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "replay/rules.h"
#include "support/hash.h"

namespace kgate {

namespace {

std::vector<uint32_t> launches_of(const std::vector<Taken>& taken) {
  std::set<uint32_t> launches;
  for (const Taken& one : taken) launches.insert(one.launches.begin(), one.launches.end());
  return {launches.begin(), launches.end()};
}

ArmKernels names_of(const Workload& workload, const std::vector<Arm>& arms, const std::vector<uint32_t>& judged) {
  ArmKernels names;
  for (const auto& kernel : workload.kernels)
    names.workload_kernels.push_back({kernel.entry, sha256(workload.modules[kernel.module].sha256 + kernel.entry)});
  for (const auto& arm : arms) {
    auto& kernels = names.arm_kernels.emplace_back();
    for (size_t i = 0; i < arm.kernels.size(); ++i) kernels.push_back({arm.kernels[i].entry, arm.kernel_ids[i]});
  }
  names.judged_launch.resize(workload.launches.size());
  for (uint32_t launch : judged) names.judged_launch[launch] = true;
  for (const auto& launch : workload.launches) names.launch_kernel.push_back(launch.kernel);
  return names;
}

// Launch by launch the arms have partners only if one kernel is judged and each of its launches launches something.
bool needs_sums(const Arm& candidate, const std::vector<uint32_t>& judged, bool several) {
  auto launches = [&](uint32_t index) {
    const auto& items = candidate.replace.at(index);
    return std::any_of(items.begin(), items.end(),
                       [](const ArmItem& item) { return item.kind == ArmItem::Kind::launch; });
  };
  return several || !std::all_of(judged.begin(), judged.end(), launches);
}

// A failure says for which launch: the rule that it names may take many.
Failure of_launch(Failure failure, const Workload& workload, uint32_t launch) {
  const LaunchSpec& spec = workload.launches[launch];
  failure.what +=
      fmt::format(" (a launch of '{}' with grid {}x{}x{} and block {}x{}x{})", workload.kernels[spec.kernel].entry,
                  spec.grid.x, spec.grid.y, spec.grid.z, spec.block.x, spec.block.y, spec.block.z);
  return failure;
}

Result<Arm> baseline_arm(const Workload& workload, const KernelImage* image, const std::vector<uint32_t>& judged,
                         bool several) {
  Arm arm;
  arm.label = "baseline";
  if (!image) return arm;
  const Binding none;
  Substitution substitution(none, *image, workload, several);
  std::map<uint32_t, std::vector<ArmItem>> replace;
  for (uint32_t launch : judged) {
    auto items = substitution.items(nullptr, {&launch, 1});
    if (!items) return of_launch(items.failure(), workload, launch);
    replace[launch] = std::move(*items);
  }
  arm = substitution.arm();
  arm.replace = std::move(replace);
  return arm;
}

Result<Arm> candidate_arm(const Workload& workload, const Contract& contract, const KernelImage& image,
                          const std::vector<Taken>& taken, bool several) {
  Substitution substitution(contract.binding, image, workload, several);
  std::map<uint32_t, std::vector<ArmItem>> replace;
  for (const Taken& one : taken) {
    auto items = substitution.items(one.rule, one.launches);
    if (!items) return of_launch(items.failure(), workload, one.launches.front());
    replace[one.launches.front()] = std::move(*items);
    for (size_t i = 1; i < one.launches.size(); ++i) replace[one.launches[i]] = {};
  }
  Arm arm = substitution.arm();
  arm.replace = std::move(replace);
  return arm;
}

}  // namespace

Result<std::vector<uint32_t>> judged_launches(const Workload& workload, const Contract& contract) {
  auto taken = taken_launches(workload, contract);
  if (!taken) return taken.failure();
  return launches_of(*taken);
}

std::vector<uint32_t> judged_kernels(const Workload& workload, const std::vector<uint32_t>& judged) {
  std::vector<uint32_t> kernels;
  for (uint32_t launch : judged) {
    uint32_t kernel = workload.launches[launch].kernel;
    if (std::find(kernels.begin(), kernels.end(), kernel) == kernels.end()) kernels.push_back(kernel);
  }
  return kernels;
}

Result<Comparison> compare_arms(const Workload& workload, const Contract& contract, const KernelImage* baseline,
                                const KernelImage& candidate) {
  auto taken = taken_launches(workload, contract);
  if (!taken) return taken.failure();
  Comparison comparison;
  comparison.judged = launches_of(*taken);
  const bool several = judged_kernels(workload, comparison.judged).size() > 1;
  auto base = baseline_arm(workload, baseline, comparison.judged, several);
  if (!base) return base.failure();
  auto other = candidate_arm(workload, contract, candidate, *taken, several);
  if (!other) return other.failure();
  comparison.arms.push_back(std::move(*base));
  comparison.arms.push_back(std::move(*other));
  comparison.names = names_of(workload, comparison.arms, comparison.judged);
  comparison.names.sum_requests = needs_sums(comparison.arms[1], comparison.judged, several);
  return comparison;
}

}  // namespace kgate
