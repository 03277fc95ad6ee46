// What the worker is asked to do: a workload, one or two arms, and a schedule. Everything is resolved here, before
// anything runs: the worker evaluates no expression and makes no choice.
//
// Enters: Workload, Contract's binding, compiled candidate and baseline. Leaves: ReplayPlan, also as files for the
// worker.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "workload/workload.h"

namespace kgate {

// timing: on threads, at their times. numeric: one call after the other, buffers read back. counters: like numeric,
// with hardware counters around the sampled launches.
enum class ReplayMode { numeric, timing, counters };

// One side of the comparison: the workload with some launches replaced.
struct Arm {
  std::string label;                    // "baseline", "candidate"
  std::vector<WorkloadModule> modules;  // beyond the workload's own
  std::vector<WorkloadKernel> kernels;  // their kernels (module indexes this arm's modules)
  std::vector<std::string> kernel_ids;  // of `kernels`, same order
  // Workload launch index → what this arm launches instead (kernel indexes this arm's kernels). Absent: as recorded.
  std::map<uint32_t, std::vector<LaunchSpec>> replace;
};

struct Round {
  uint32_t arm = 0;
  uint32_t pair = 0;   // rounds of one pair share its number
  uint32_t round = 0;  // running number in the run
};

struct ReplayPlan {
  ReplayMode mode = ReplayMode::timing;
  std::filesystem::path workload;  // .kgw
  std::vector<Arm> arms;
  std::vector<Round> rounds;  // timing: in this order; numeric: one round an arm
  uint32_t warmup_requests = 200;
  uint32_t measured_requests = 1000;  // looped when the workload has fewer
  uint32_t guard_bytes = 0;           // numeric on a real GPU: guard band before and after each buffer
  uint8_t guard_value = 0xc5;
  std::vector<uint32_t> readback;  // numeric: buffers downloaded after the round, in this order
  bool trace = true;               // false: the bare pass
  bool honour_arrivals = true;     // false: requests follow at once (the virtual GPU)
  std::vector<uint32_t> judged;    // workload launch indices that are judged
  // counters: of which launches (the first of each in a round); pair / counter_repeats is the counter set of a round
  std::vector<uint32_t> counter_launches;
  uint32_t counter_repeats = 0;
};

// Directory layout: plan.json and one file a module image. Throws Error{internal} on a full disk.
void write_plan(const ReplayPlan& plan, const std::filesystem::path& directory);
// Strict: unknown or missing fields, indices that point nowhere and images that do not match their hash are Failures.
Result<ReplayPlan> read_plan(const std::filesystem::path& directory);

// Does the plan fit this workload (its launches, buffers, parameter blocks)? Checked by kgate before it spawns a worker
// and by the worker before it loads anything.
Result<std::monostate> validate_plan(const ReplayPlan& plan, const Workload& workload);

// ABBA: pair p runs A B if p is even, B A if odd; the seed decides which arm is called first.
std::vector<Round> abba_rounds(uint32_t first_pair, uint32_t pairs, uint32_t first_round, uint64_t seed);

// Bytes that one readback region needs: guard + buffer + guard, each buffer at 4096-aligned offsets. The regions of one
// round follow in the order of plan.readback; with several rounds (arms) those of the next round come after them.
struct ReadbackRegion {
  uint32_t buffer;
  uint64_t offset, guard, bytes;
};
std::vector<ReadbackRegion> readback_layout(const ReplayPlan& plan, const Workload& workload);

}  // namespace kgate
