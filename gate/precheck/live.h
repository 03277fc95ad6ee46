// Numbers on production data: does the candidate write what the recorded kernel wrote, from the memory of a real run?
// Launches of each class are sampled at random places and always at the last one. The recorded kernel is the anchor,
// whatever the baseline is, so that an error that creeps in from one accepted kernel to the next shows.
#pragma once

#include <filesystem>

#include "contract/contract.h"
#include "precheck/precheck.h"
#include "replay/arms.h"
#include "workload/workload.h"

namespace kgate {

struct LiveOptions {
  uint64_t seed = 0;
  std::filesystem::path workload;  // .kgw
  SessionOptions session;
  std::function<void(double fraction, const std::string& what)> on_progress;
};

// At most this many launches, of each class the last one and four at random.
constexpr size_t kMaxLiveSamples = 24;

// What to sample: launches that the candidate replaces by itself. A launch that a rule deletes or fuses with its
// successors has no memory of its own to compare.
std::vector<LiveSample> choose_samples(const Workload& workload, const Arm& candidate, uint64_t seed);

// Adds to `result.equivalence` and its findings: wrong_numbers, nan_mismatch, stale_output, input_written
// (Exit::broken), not_repeatable (the recorded kernel itself does not compute the same bits twice and
// the contract gives no dtype), not_compared.
void check_live(const Contract& contract, const Workload& workload, const Comparison& comparison,
                const LiveOptions& options, PrecheckResult& result);

}  // namespace kgate
