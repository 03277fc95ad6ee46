// The workload's buffers on the device. Both arms use the same ones at the same addresses: between processes, and
// between allocations, kernel times differ by percents through physical placement alone.
//
// Addresses are the driver's choice, or the recorded ones (worker/placement.h); every pointer that a launch holds is a
// relocation.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "gpu/driver.h"
#include "replay/plan.h"
#include "workload/workload.h"

namespace kgate::worker {

class DeviceBuffers {
 public:
  // Allocates and fills all buffers. When rounds are restored (all but the only one of a numeric plan), also keeps what
  // restore() needs: copies on the device, or in host memory where the device is too small. Throws WorkerError "out of
  // memory" with both sizes.
  DeviceBuffers(gpu::Driver& driver, const Workload& workload, const ReplayPlan& plan);

  // Of a buffer, or of workspace buffer − workload.buffers.size() of an arm.
  gpu::CUdeviceptr address(uint32_t buffer, uint32_t arm) const {
    return buffer < placed_.size() ? placed_[buffer].address : workspaces_[arm][buffer - placed_.size()].address;
  }

  // Of a recording: buffers with a recorded address, and those that lie there.
  uint32_t wanted() const { return wanted_; }
  uint32_t exact() const { return exact_; }
  bool is_exact(uint32_t buffer) const { return placed_[buffer].address == workload_.buffers[buffer].address; }

  // First content into every written buffer, and into the guards. Nothing is in flight before; the caller synchronises
  // after.
  void restore(gpu::CUstream stream);

  // What an upload call without a payload sends: the buffer's own first content. Null for buffers that none uploads to.
  const std::byte* upload_source(uint32_t buffer) const { return placed_[buffer].host.data(); }

  // The region's guard, buffer and guard, into `out` (as long as that).
  void read_back(const ReadbackRegion& region, std::span<std::byte> out);

 private:
  struct Placed {
    gpu::CUdeviceptr address = 0;
    gpu::CUdeviceptr pristine = 0;  // device copy of the first content; 0: none
    std::vector<std::byte> host;    // the first content, where it is needed at run time
  };
  void place(uint32_t buffer);
  void place_as_recorded(const ReplayPlan& plan);
  void fill(uint32_t buffer, bool keep_on_device, bool keep_on_host);
  void fill_guards(uint32_t buffer, gpu::CUstream stream);

  gpu::Driver& driver_;
  const Workload& workload_;
  uint64_t guard_;
  uint32_t wanted_ = 0, exact_ = 0;
  uint8_t guard_value_;
  std::vector<Placed> placed_;
  struct Workspace {
    gpu::CUdeviceptr address = 0;
    uint64_t bytes = 0;
    uint8_t value = 0;
  };
  std::vector<std::vector<Workspace>> workspaces_;  // by arm
};

}  // namespace kgate::worker
