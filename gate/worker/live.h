// Live mode: what does each arm's kernel write on the memory of a real run? All launches are made as recorded, one
// after the other; at a sampled one the arm's items run first, what they changed is kept, the memory is put back, and
// the recorded launch goes on as if nothing had been.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "replay/live_samples.h"
#include "worker/engine.h"

namespace kgate::worker {

class LiveSampler {
 public:
  // `out`: the readback memory.
  LiveSampler(gpu::Driver& driver, const DeviceBuffers& buffers, const Workload& workload, const ReplayPlan& plan,
              std::span<std::byte> out);

  // The sample that this launch is, if any. Asked in the order of calls and nodes.
  std::optional<uint32_t> sample_at(uint32_t call, uint32_t node);
  // `arm` and `recorded` issue their launches; with `same` the arm is the recording itself and is run twice.
  void take(uint32_t sample, bool same, const std::function<void()>& arm, const std::function<void()>& recorded);

 private:
  struct Memory {
    uint32_t buffer;
    std::vector<std::byte> before, after;
  };
  std::vector<Memory> read_before(uint32_t sample);
  void keep_changes(uint32_t sample, uint32_t pass, std::vector<Memory>& memory);
  void put_back(std::vector<Memory>& memory);

  gpu::Driver& driver_;
  const DeviceBuffers& buffers_;
  const Workload& workload_;
  const ReplayPlan& plan_;
  std::span<std::byte> out_;
  uint32_t next_ = 0;
};

void run_live(Shared& shared, const std::vector<PreparedArm>& arms, const EngineOutput& output);

}  // namespace kgate::worker
