// Fidelity mode: does a replay leave the memory that the recording left? The requests are replayed once a round, on
// threads and at their times, and the hashes of the buffers are compared with the recorded ones.
#pragma once

#include "worker/engine.h"

namespace kgate::worker {

void run_fidelity(Shared& shared, const std::vector<PreparedArm>& arms, const EngineOutput& output);

}  // namespace kgate::worker
