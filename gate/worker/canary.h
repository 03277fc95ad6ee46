// One launch and one synchronisation of which both sides know the number: when the tracers saw anything else, they are
// not to be believed.
#pragma once

#include <cstdint>

#include "gpu/driver.h"

namespace kgate::worker {

// CLOCK_MONOTONIC ns around exactly one cuLaunchKernel and one cuStreamSynchronize.
struct Canary {
  uint64_t begin = 0, end = 0;
};
Canary run_canary(gpu::Driver& driver);

}  // namespace kgate::worker
