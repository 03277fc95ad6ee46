#include "worker/arms.h"

#include <algorithm>
#include <cstring>

#include "support/text.h"
#include "worker/clock.h"
#include "workload/elsewhere.h"

namespace kgate::worker {

namespace {

std::vector<bool> used_workload_kernels(const Workload& workload, const ReplayPlan& plan) {
  if (plan.mode == ReplayMode::live) return std::vector<bool>(workload.kernels.size(), true);
  std::vector<bool> used(workload.kernels.size());
  for (const Arm& arm : plan.arms)
    for (uint32_t l = 0; l < workload.launches.size(); ++l)
      if (!arm.replace.contains(l)) used[workload.launches[l].kernel] = true;
  return used;
}

void check_parameters(gpu::Driver& driver, gpu::CUfunction function, const WorkloadKernel& kernel) {
  auto seen = driver.parameters(function);
  if (!seen) return;
  bool same = kernel.params.empty() || kernel.params.size() == seen->size();
  for (size_t i = 0; same && i < kernel.params.size(); ++i)
    same = kernel.params[i].first == (*seen)[i].first && kernel.params[i].second == (*seen)[i].second;
  size_t bytes = seen->empty() ? 0 : seen->back().first + seen->back().second;
  constexpr size_t kMostPadding = 15;  // after the last parameter
  if (same && bytes <= kernel.param_bytes && kernel.param_bytes - bytes <= kMostPadding) return;
  throw WorkerError("other parameters", "kernel '" + sanitize(kernel.entry, 200) + "' was loaded with " +
                                            std::to_string(seen->size()) + " parameters of " + std::to_string(bytes) +
                                            " bytes, the plan has " + std::to_string(kernel.params.size()) + " of " +
                                            std::to_string(kernel.param_bytes));
}

// Loads the modules of `kernels` that are wanted and looks up the wanted functions. Adds the time that loading took.
std::vector<gpu::CUfunction> load(gpu::Driver& driver, const std::vector<WorkloadModule>& modules,
                                  const std::vector<WorkloadKernel>& kernels, const std::vector<bool>& wanted,
                                  bool elsewhere, double& ns) {
  std::vector<gpu::CUmodule> loaded(modules.size());
  std::vector<gpu::CUfunction> functions(kernels.size());
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (!wanted[k]) continue;
    uint32_t m = kernels[k].module;
    if (!loaded[m]) {
      uint64_t begin = now_ns();
      loaded[m] = driver.load_module(std::as_bytes(std::span(image_of(modules[m], elsewhere))));
      ns += static_cast<double>(now_ns() - begin);
    }
    functions[k] = driver.function(loaded[m], kernels[k].entry);
    check_parameters(driver, functions[k], kernels[k]);
  }
  return functions;
}

// Largest dynamic shared memory of each function over all its launches: more than 48 KiB has to be asked for. `most` is
// kept from arm to arm, since arms share the workload's functions.
void allow_shared(gpu::Driver& driver, const PreparedArm& arm, std::map<gpu::CUfunction, uint32_t>& most) {
  for (const auto& call : arm.launches) {
    for (const auto& item : call.items) {
      if (item.kind != ArmItem::Kind::launch) continue;
      uint32_t& bytes = most[item.launch.function];
      if (item.launch.shared <= bytes) continue;
      bytes = item.launch.shared;
      driver.allow_dynamic_shared(item.launch.function, bytes);
    }
  }
}

PreparedStep prepare(const LaunchSpec& spec, const std::vector<gpu::CUfunction>& functions, uint32_t arm,
                     const DeviceBuffers& buffers) {
  PreparedStep ready;
  ready.kernel = spec.kernel;
  ready.launch.function = functions[spec.kernel];
  ready.launch.grid = spec.grid;
  ready.launch.block = spec.block;
  ready.launch.cluster = spec.cluster;
  ready.launch.shared = spec.shared;
  ready.launch.cooperative = spec.cooperative;
  ready.launch.programmatic = spec.programmatic;
  ready.params = spec.params;
  for (const Relocation& r : spec.relocations) {
    uint64_t address = buffers.address(r.buffer, arm) + static_cast<uint64_t>(r.delta);
    std::memcpy(ready.params.data() + r.param_offset, &address, sizeof address);
  }
  return ready;
}

PreparedStep prepare(const ArmItem& item, const std::vector<gpu::CUfunction>& functions, uint32_t arm,
                     const DeviceBuffers& buffers) {
  PreparedStep ready;
  if (item.kind == ArmItem::Kind::launch) ready = prepare(item.launch, functions, arm, buffers);
  ready.kind = item.kind;
  ready.legacy = item.legacy;
  if (item.kind == ArmItem::Kind::memset) ready.address = buffers.address(item.buffer, arm) + item.offset;
  ready.bytes = item.bytes;
  ready.value = item.value;
  return ready;
}

}  // namespace

LoadedKernels load_kernels(gpu::Driver& driver, const Workload& workload, const ReplayPlan& plan, Position& position) {
  position = {.stage = "load"};
  LoadedKernels kernels;
  double own_ns = 0;
  kernels.workload = load(driver, workload.modules, workload.kernels, used_workload_kernels(workload, plan),
                          is_elsewhere(workload, driver.is_virtual() ? 0 : driver.properties().arch()), own_ns);
  for (uint32_t a = 0; a < plan.arms.size(); ++a) {
    const Arm& arm = plan.arms[a];
    position.arm = a;
    double ns = 0;
    kernels.arms.push_back(
        load(driver, arm.modules, arm.kernels, std::vector<bool>(arm.kernels.size(), true), false, ns));
    kernels.load_ns[arm.label] = arm.modules.empty() ? own_ns : ns;
  }
  return kernels;
}

std::vector<PreparedArm> prepare_arms(gpu::Driver& driver, const Workload& workload, const ReplayPlan& plan,
                                      const LoadedKernels& kernels, const DeviceBuffers& buffers, Position& position) {
  position = {.stage = "bind"};
  std::vector<PreparedArm> arms;
  std::map<gpu::CUfunction, uint32_t> most_shared;
  for (uint32_t a = 0; a < plan.arms.size(); ++a) {
    position.arm = a;
    PreparedArm& arm = arms.emplace_back();
    arm.launches.resize(workload.launches.size());
    for (uint32_t l = 0; l < workload.launches.size(); ++l) {
      auto replaced = plan.arms[a].replace.find(l);
      arm.launches[l].replaced = replaced != plan.arms[a].replace.end();
      if (arm.launches[l].replaced) {
        for (const ArmItem& item : replaced->second)
          arm.launches[l].items.push_back(prepare(item, kernels.arms[a], a, buffers));
      } else {
        arm.launches[l].items.push_back(prepare(workload.launches[l], kernels.workload, a, buffers));
      }
    }
    allow_shared(driver, arm, most_shared);
  }
  return arms;
}

PreparedArm prepare_recorded(gpu::Driver& driver, const Workload& workload, const LoadedKernels& kernels,
                             const DeviceBuffers& buffers) {
  PreparedArm arm;
  for (const LaunchSpec& launch : workload.launches) {
    auto& call = arm.launches.emplace_back();
    call.items.push_back(prepare(launch, kernels.workload, 0, buffers));
  }
  std::map<gpu::CUfunction, uint32_t> most_shared;
  allow_shared(driver, arm, most_shared);
  return arm;
}

}  // namespace kgate::worker
