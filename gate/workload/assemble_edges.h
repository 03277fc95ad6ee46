// `after` edges between threads.
#pragma once

#include <cstdint>
#include <vector>

#include "workload/workload.h"

namespace kgate::assembly {

struct CallTime {
  uint64_t begin = 0, end = 0;
};

// `times` of the calls as they were recorded. `constant`: buffers that nothing in the slice changes.
void add_after_edges(Workload& workload, const std::vector<CallTime>& times, const std::vector<bool>& constant);

}  // namespace kgate::assembly
