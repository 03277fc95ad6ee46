// What a host call did while it lasted: waited off the CPU, was preempted, stood in a run queue, or ran. A launch that
// is slow because its thread lost the CPU is not a slow launch.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/probes.h"

namespace kgate::trace {

// The rest of the call is time on the CPU. ns.
struct Split {
  uint64_t blocked = 0;    // asleep, until something woke the thread
  uint64_t preempted = 0;  // another thread got the CPU
  uint64_t run_queue = 0;  // awake after having slept, and not yet running: the end of a span
};

// By host event; zeros for what is not a call. Spans of unknown state (tier T2) are accounts of whole rounds and split
// no call.
std::vector<Split> split_calls(const std::vector<HostEvent>& events);

}  // namespace kgate::trace
