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
// with hardware counters around the sampled launches. live: like numeric, all launches as recorded, but the arm's items
// run in place of the sampled ones and what they wrote is read back (replay/live_samples.h). fidelity: like timing,
// each request once, and the buffers' hashes at the end are compared with the recorded ones.
enum class ReplayMode { numeric, timing, counters, live, fidelity };

// Requests on threads of their own and at their times; else one call after the other.
constexpr bool on_threads(ReplayMode mode) { return mode == ReplayMode::timing || mode == ReplayMode::fidelity; }

// One step of what an arm does in place of a recorded launch, on that launch's stream.
struct ArmItem {
  // allocate: cuMemAlloc and cuMemFree of `bytes`, as a host side does that makes its scratch memory anew at each call.
  enum class Kind : uint8_t { launch, memset, sync, allocate };
  Kind kind = Kind::launch;
  LaunchSpec launch{};             // kernel indexes the arm's kernels; relocations: see Arm.workspaces
  bool legacy = false;             // launch, memset, sync: on the legacy default stream instead
  uint32_t buffer = kNone;         // memset; may be a workspace
  uint64_t offset = 0, bytes = 0;  // memset; allocate: bytes
  uint8_t value = 0;               // memset

  ArmItem() = default;
  ArmItem(LaunchSpec spec) : launch(std::move(spec)) {}
};

// One side of the comparison: the workload with some launches replaced.
struct Arm {
  std::string label;                    // "baseline", "candidate"
  std::vector<WorkloadModule> modules;  // beyond the workload's own
  std::vector<WorkloadKernel> kernels;  // their kernels (module indexes this arm's modules)
  std::vector<std::string> kernel_ids;  // of `kernels`, same order
  // Scratch memory of the arm's own. Where an item names a buffer, the index workload.buffers.size() + i is workspace
  // i. Filled with its content before each round.
  std::vector<Buffer> workspaces{};
  // Workload launch index → what this arm does instead. Absent: as recorded; empty: nothing.
  std::map<uint32_t, std::vector<ArmItem>> replace{};
};

struct Round {
  uint32_t arm = 0;
  uint32_t pair = 0;   // rounds of one pair share its number
  uint32_t round = 0;  // running number in the run
};

// Where the workload's buffers go. recorded: where the driver grants it. shifted: recorded addresses are avoided.
enum class Placement : uint8_t { anywhere, recorded, shifted };

// A launch whose memory is compared: made by a call, or by a kernel node of a graph that a call launches.
struct LiveSample {
  uint32_t call = 0;
  uint32_t node = kNone;
  std::vector<uint32_t> buffers;  // compared: what the launch may write
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
  Placement placement = Placement::anywhere;
  bool require_exact = false;       // a buffer elsewhere than recorded is a fault: the workload is pinned
  std::vector<LiveSample> samples;  // live: ascending by call and node
  uint64_t live_blocks = 0;         // live: how many changed blocks of all samples together there is room for
  double speed = 1;                 // timing: arrivals and host gaps are divided by it
};

// A recording goes to its recorded addresses, and must where it is not known to run elsewhere.
void place_as_recorded(ReplayPlan& plan, const Workload& workload);

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
