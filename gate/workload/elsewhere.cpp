#include "workload/elsewhere.h"

#include <set>

#include "support/text.h"

namespace kgate {

namespace {

constexpr const char* kVirtualDevice = "kgate virtual GPU";  // as libkgate_vgpu.so calls itself

bool is_ptx(const std::string& image) {
  return !image.starts_with(
             "\x7f"
             "ELF") &&
         !image.starts_with("\x50\xed\x55\xba") && image.find(".version") != std::string::npos;
}

std::vector<bool> used_modules(const Workload& workload) {
  std::vector<bool> used(workload.modules.size());
  for (const LaunchSpec& launch : workload.launches) used[workload.kernels[launch.kernel].module] = true;
  return used;
}

}  // namespace

bool is_elsewhere(const Workload& workload, int arch) {
  if (!workload.origin.recorded()) return false;
  return workload.origin.device == kVirtualDevice ? arch != 0 : workload.origin.arch != arch;
}

const std::string& image_of(const WorkloadModule& module, bool elsewhere) {
  static const std::string none;
  if (!elsewhere) return module.image;
  if (!module.portable.empty()) return module.portable;
  return is_ptx(module.image) ? module.image : none;
}

Result<std::monostate> check_elsewhere(const Workload& workload, int arch) {
  if (!is_elsewhere(workload, arch)) return std::monostate{};
  std::vector<bool> used = used_modules(workload);
  std::set<std::string> stuck;
  for (const WorkloadKernel& kernel : workload.kernels)
    if (used[kernel.module] && image_of(workload.modules[kernel.module], true).empty()) stuck.insert(kernel.entry);
  if (stuck.empty()) return std::monostate{};
  std::string names;
  size_t shown = 0;
  for (const std::string& name : stuck) {
    if (++shown > 3) break;
    names += (names.empty() ? "" : ", ") + sanitize(name, 80);
  }
  if (stuck.size() > 3) names += ", and " + std::to_string(stuck.size() - 3) + " more";
  return Failure{"recorded on " + workload.origin.device + " (sm_" + std::to_string(workload.origin.arch) +
                     "), and there is no PTX of " + names,
                 workload.name, "replay it on such a GPU, or record a program that loads its kernels as PTX"};
}

std::vector<std::string> grids_of_the_machine(const Workload& workload) {
  std::set<std::string> names;
  if (workload.origin.sm_count > 1)
    for (const LaunchSpec& launch : workload.launches)
      if (launch.grid.count() % static_cast<uint64_t>(workload.origin.sm_count) == 0)
        names.insert(workload.kernels[launch.kernel].entry);
  return {names.begin(), names.end()};
}

}  // namespace kgate
