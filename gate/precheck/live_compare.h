// One sampled launch: the memory that the recorded kernel changed against what the candidate changed.
#pragma once

#include <string>

#include "contract/contract.h"
#include "precheck/precheck.h"
#include "replay/live_samples.h"

namespace kgate {

// Appends what is wrong, at most one finding a sample. Memory behind a parameter whose dtype the contract gives is
// compared by its tolerance, the rest bit for bit.
void compare_sample(const Contract& contract, const Workload& workload, const LiveSample& sample, uint32_t index,
                    const LiveResult& expected, const LiveResult& got, const std::string& place,
                    PrecheckResult& result);

}  // namespace kgate
