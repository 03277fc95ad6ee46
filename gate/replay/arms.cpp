// Both arms replace the judged launches by code that went through the same assembler: what differs is the kernel,
// nothing else.

#include "replay/arms.h"

#include <fmt/format.h>

#include <algorithm>

#include "replay/substitute.h"
#include "support/hash.h"
#include "support/text.h"

namespace kgate {

namespace {

std::vector<std::string> judged_globs(const Contract& contract) {
  std::vector<std::string> globs;
  for (const auto& replacement : contract.binding.replacements) globs.push_back(replacement.kernel_glob);
  if (globs.empty()) {
    globs.push_back(contract.kernel);
    if (!contract.baseline_entry.empty()) globs.push_back(contract.baseline_entry);
  }
  return globs;
}

Arm make_arm(const KernelImage& image) {
  Arm arm;
  arm.label = image.label;
  arm.modules.push_back({image.name, image.image, sha256(image.image)});
  WorkloadKernel kernel;
  kernel.entry = image.entry.name;
  for (const auto& param : image.entry.params) kernel.params.emplace_back(param.offset, param.size);
  kernel.param_bytes = image.entry.param_bytes;
  arm.kernels.push_back(kernel);
  arm.kernel_ids.push_back(image.kernel_id);
  return arm;
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

}  // namespace

Result<std::vector<uint32_t>> judged_launches(const Workload& workload, const Contract& contract) {
  auto globs = judged_globs(contract);
  std::vector<uint32_t> judged;
  for (uint32_t i = 0; i < workload.launches.size(); ++i) {
    const std::string& entry = workload.kernels[workload.launches[i].kernel].entry;
    if (std::any_of(globs.begin(), globs.end(), [&](const auto& glob) { return glob_match(glob, entry); }))
      judged.push_back(i);
  }
  if (!judged.empty()) {
    uint32_t kernel = workload.launches[judged.front()].kernel;
    for (uint32_t launch : judged)
      if (workload.launches[launch].kernel != kernel)
        return Failure{
            fmt::format("the contract judges several kernels of the workload ('{}' and '{}'); this version judges one",
                        workload.kernels[kernel].entry, workload.kernels[workload.launches[launch].kernel].entry),
            contract.path.string(), "name one kernel exactly in `replace:` or `kernel:`"};
    return judged;
  }
  std::vector<std::string> names;
  for (const auto& kernel : workload.kernels) names.push_back(kernel.entry);
  auto near = did_you_mean(globs.front(), names);
  return Failure{fmt::format("the workload '{}' never launches '{}'", workload.name, globs.front()),
                 contract.path.string(),
                 near ? "did you mean '" + *near + "'?" : "kgate inspect lists the workload's kernels"};
}

Result<Comparison> compare_arms(const Workload& workload, const Contract& contract, const KernelImage& baseline,
                                const KernelImage& candidate) {
  auto judged = judged_launches(workload, contract);
  if (!judged) return judged.failure();
  Comparison comparison;
  comparison.judged = *judged;
  Arm base = make_arm(baseline), other = make_arm(candidate);
  for (uint32_t index : comparison.judged) {
    const LaunchSpec& recorded = workload.launches[index];
    const WorkloadKernel& kernel = workload.kernels[recorded.kernel];
    if (auto same = check_same_abi(kernel, baseline.entry, "baseline"); !same) return same.failure();
    LaunchSpec as_baseline = recorded;
    as_baseline.kernel = 0;
    base.replace[index] = {as_baseline};
    auto launches = substitute(contract.binding, kernel.entry, recorded, kernel, candidate.entry);
    if (!launches) return launches.failure();
    auto& items = other.replace[index];
    for (auto& launch : *launches) items.emplace_back(std::move(launch));
  }
  comparison.arms.push_back(std::move(base));
  comparison.arms.push_back(std::move(other));
  comparison.names = names_of(workload, comparison.arms, comparison.judged);
  return comparison;
}

}  // namespace kgate
