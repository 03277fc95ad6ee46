// Where the buffers of a recording go. A recording may hold addresses inside its buffers, which nobody can find: it
// only replays if everything lies where it lay. Seen on an H200 (docs/decisions.md): without address randomisation two
// processes that allocate in the same order get the same addresses, and a process that had allocated nothing was
// granted reservations of 32 MiB and more at multiples of 32 MiB. A worker was granted none there so far.
#pragma once

#include <vector>

#include "gpu/driver.h"
#include "replay/plan.h"
#include "workload/workload.h"

namespace kgate::worker {

struct PlacedBuffers {
  std::vector<gpu::CUdeviceptr> address;  // by buffer
  uint32_t wanted = 0, exact = 0;         // buffers with a recorded address; those that lie there
};

// Memory for all buffers, at their recorded addresses where the driver grants them, else elsewhere; with `shifted`
// nowhere near. Nothing is freed: it lives as long as the process. Throws GpuError.
PlacedBuffers place_recorded(gpu::Driver& driver, const Workload& workload, bool shifted);

}  // namespace kgate::worker
