// Counters mode: what the hardware counted for single launches of each arm. One thread makes every call in order, and
// around the first occurrence of each sampled launch nothing else runs.
//
// The caches are as the calls before the launch left them, and buffers are restored before each pass, so that the sets,
// which are read in passes of their own, see the same work.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trace/range_profiler.h"
#include "worker/engine.h"

namespace kgate::worker {

// Puts a profiler range around the sampled launches of one pass.
class CounterSampler {
 public:
  CounterSampler(gpu::Driver& driver, RangeProfiler& profiler, const std::vector<uint32_t>& launches)
      : driver_(driver), profiler_(profiler), launches_(launches) {}

  void begin_pass();
  // Opens a range when this launch is one to sample; then after() must follow the launch. Throws WorkerError.
  bool before(uint32_t launch, uint16_t item);
  void after();
  // (launch, item) of each range of this pass, in order.
  const std::vector<std::pair<uint32_t, uint16_t>>& ranges() const { return ranges_; }
  bool complete() const { return seen_.size() == launches_.size(); }  // asked between requests

 private:
  gpu::Driver& driver_;
  RangeProfiler& profiler_;
  const std::vector<uint32_t>& launches_;
  std::vector<std::pair<uint32_t, uint16_t>> ranges_;
  std::vector<uint32_t> seen_;  // launches of this pass that have a range
  bool sampling_ = false;       // the launch whose items come now is the first of its kind
};

// Returns after the last round. Throws ThreadFault; "no counters" when the profiler cannot be used.
void run_counters(Shared& shared, const std::vector<PreparedArm>& arms, const EngineOutput& output,
                  const std::string& cupti);

}  // namespace kgate::worker
