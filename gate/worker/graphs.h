// The workload's CUDA graphs, rebuilt from their nodes for each arm, with the arm's items in place of the kernels that
// it replaces.
#pragma once

#include <vector>

#include "gpu/driver.h"
#include "trace/collector.h"
#include "worker/arms.h"
#include "worker/buffers.h"

namespace kgate::worker {

// By arm and workload graph. Writes what each kernel node is (wire::GraphPlanRecord) where there is a collector to name
// the nodes. Throws GpuError, or WorkerError for an item that no graph can hold.
std::vector<std::vector<gpu::CUgraphExec>> build_graphs(
    gpu::Driver& driver, const Workload& workload, const std::vector<PreparedArm>& arms, const DeviceBuffers& buffers,
    const std::vector<gpu::CUevent>& events, const CuptiCollector* collector, RecordWriter& writer, Position& position);

}  // namespace kgate::worker
