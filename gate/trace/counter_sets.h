// Which hardware counters the counters pass reads, and what is made of them.
//
// A set is what one pass can hold: values of one execution that belong together. Sets that a chip cannot collect in one
// pass are refused, because CUPTI would replay the kernel and mix the executions. What NVIDIA's own L2 hit rate does on
// an H200: it needs two passes, and 100.5 % and 102 % were seen for a kernel that lives in L2. Here the two counters
// are read in passes of their own, with the buffers restored in between, and a quotient that cannot be is called
// invalid.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kgate::trace {

constexpr size_t kMaxCountersPerSet = 4;

struct CounterSet {
  std::array<const char*, kMaxCountersPerSet> metrics;  // names of CUPTI's metrics; null behind the last
  size_t size() const;
};
enum CounterSetIndex : uint32_t { kSetSm, kSetL2Hits, kSetL2Sectors, kSetRequests, kCounterSets };
const CounterSet& counter_set(uint32_t index);

// The values of one launch, by set; a set that was not collected is empty.
using CounterSample = std::array<std::vector<double>, kCounterSets>;

// What a launch did, by the metric ids of docs/metrics.md.
struct CounterValue {
  std::string_view metric;  // "l1_hit", "l2_hit", "dram_bytes", "achieved_occupancy", "sectors_per_load", ...
  double value = 0;         // fractions for rates
  bool valid = false;
  std::string note;  // why it is not valid
};

// The median over `samples` (repeats of one launch) of each metric. A metric is invalid when any of its samples is
// outside of what can be; it is left out when nothing was counted (no global loads: no sectors a load).
std::vector<CounterValue> counter_values(std::span<const CounterSample> samples);

}  // namespace kgate::trace
