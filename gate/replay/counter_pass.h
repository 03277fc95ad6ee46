// The counters pass: hardware counters of the judged launches of both arms, in a worker of its own. Shown, never judged
// for time.
//
// Enters: the comparison and its workload. Leaves: values by arm and launch, or the reason why there are none.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "replay/arms.h"
#include "replay/session.h"
#include "trace/counter_sets.h"

namespace kgate {

struct LaunchCounters {
  uint32_t arm = 0, launch = 0;  // workload launch index
  uint16_t item = 0;
  uint32_t samples = 0;  // executions behind each value
  std::vector<trace::CounterValue> values;
};

struct CounterPass {
  std::vector<LaunchCounters> launches;
  std::vector<std::string> refused;  // counter sets that this chip cannot collect in one pass, and why
  std::string failure;               // why there is nothing at all; empty otherwise
};

constexpr uint32_t kCounterRepeats = 3;
constexpr size_t kMaxCounterLaunches = 16;

// The judged launches to sample: one of each kernel, grid, block and shared size, those made most often first.
std::vector<uint32_t> counter_launches(const Workload& workload, const std::vector<uint32_t>& judged);

CounterPass run_counter_pass(const Comparison& comparison, const Workload& workload,
                             const std::filesystem::path& workload_file, const gpu::DeviceChoice& device);

}  // namespace kgate
