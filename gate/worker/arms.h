// Modules loaded, functions found and launches made ready: all that a round must not have to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gpu/driver.h"
#include "replay/plan.h"
#include "worker/buffers.h"
#include "worker/faults.h"
#include "workload/workload.h"

namespace kgate::worker {

struct PreparedStep {
  ArmItem::Kind kind = ArmItem::Kind::launch;
  bool legacy = false;
  gpu::Launch launch;             // stream: set for each call
  std::vector<std::byte> params;  // pointers resolved
  uint32_t kernel = 0;            // index into the arm's (replaced) or the workload's kernels
  gpu::CUdeviceptr address = 0;   // memset
  uint64_t bytes = 0;             // memset, allocate
  uint8_t value = 0;              // memset
};

// What an arm launches for one workload launch.
struct PreparedCall {
  std::vector<PreparedStep> items;
  bool replaced = false;
};

struct PreparedArm {
  std::vector<PreparedCall> launches;  // by workload launch index
};

// Functions of all kernels that some arm launches; null for the rest, whose modules are not loaded.
struct LoadedKernels {
  std::vector<gpu::CUfunction> workload;
  std::vector<std::vector<gpu::CUfunction>> arms;
  std::map<std::string, double> load_ns;  // by arm label: its own modules, or the workload's for an arm without any
};

// Throws GpuError, or WorkerError "other parameters" when the driver sees another parameter block than the plan.
LoadedKernels load_kernels(gpu::Driver& driver, const Workload& workload, const ReplayPlan& plan, Position& position);

std::vector<PreparedArm> prepare_arms(gpu::Driver& driver, const Workload& workload, const ReplayPlan& plan,
                                      const LoadedKernels& kernels, const DeviceBuffers& buffers, Position& position);

// Every launch as the workload has it, for live mode.
PreparedArm prepare_recorded(gpu::Driver& driver, const Workload& workload, const LoadedKernels& kernels,
                             const DeviceBuffers& buffers);

}  // namespace kgate::worker
