// Where the time of a request goes: every nanosecond of it is given to exactly one part, so that the parts of a change
// add up to the change.
//
// Enters: rows of a trace. Leaves: per round the mean time of each part, and per pair of rounds their difference. It
// must not know about limits or verdicts.
//
// At each instant the first part of the list below that is going on gets the time: what the GPU does for this request
// comes before what the host does meanwhile, because a request that waits for its kernels loses nothing by a slow
// launch call that they cover. A part that only fills gaps (a launch call, a preempted thread) counts where nothing
// covers it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "trace/store.h"

namespace kgate {

enum class Part : uint8_t {
  judged_kernel,
  other_kernels,
  copies,           // copies and memsets
  queueing,         // a kernel of the request is launched and has not begun
  foreign_kernels,  // inside a synchronisation: the GPU works for other requests
  preempted,
  run_queue,  // runnable, not running
  launch_calls,
  sync,          // a synchronising call that no work of the GPU covers
  other_calls,   // of the driver
  blocked,       // asleep outside driver calls
  before_issue,  // arrival to issue: the thread was busy with an earlier request
  host,          // none of the above: host code between driver calls
};
constexpr size_t kParts = 13;
const char* part_name(Part part);  // "judged kernel", "launch calls", ...
using Parts = std::array<double, kParts>;

struct TraceRows {
  std::vector<RoundRow> rounds;
  std::vector<RequestRow> requests;
  std::vector<KernelRow> kernels;
  std::vector<ApiRow> api_calls;
  std::vector<OffCpuRow> off_cpu;
  std::vector<CopyRow> copies;
  bool sum_requests = false;  // kernel_time is of a request
};
TraceRows read_rows(const TraceStore& trace);

// What is taken apart: a request from issue or from arrival to its end, the union of its synchronising calls, or a
// launch call.
enum class Span : uint8_t { service, response, sync_stall, launch_call };

// Means over the chosen requests (launch calls) of each round, then over the pairs of rounds; ns.
struct Breakdown {
  Parts baseline{}, candidate{};
  double baseline_total = 0, candidate_total = 0;
  uint64_t samples = 0;     // requests or calls a round, the smallest
  uint32_t pairs = 0;       // 0: no pair has both arms
  bool scheduling = false;  // the trace holds switches of the host's scheduler (tier T0)
};
// `tail`: only the slowest 1 % of each round, at least 10.
Breakdown break_down(const TraceRows& rows, Span span, bool tail);

// Splits the time of `windows` (disjoint) among `slices`, which may overlap; what no slice covers goes to `rest`. Adds
// to `parts`.
struct PartSlice {
  uint64_t begin, end;
  Part part;
};
using Windows = std::vector<std::pair<uint64_t, uint64_t>>;
void split(const Windows& windows, const std::vector<PartSlice>& slices, Part rest, Parts& parts);

// Which measured rows count: requests that were disturbed in one arm are left out of both arms of their pair.
class Counted {
 public:
  explicit Counted(const TraceRows& rows);
  const RoundRow* round_of(uint32_t round, uint32_t sequence, wire::Phase phase) const;  // nullptr: does not count
  double requests(uint32_t round) const;                                                 // how many count in it

 private:
  std::map<uint32_t, RoundRow> rounds_;
  std::map<uint32_t, std::vector<uint32_t>> left_out_;  // by pair, sorted sequences
  std::map<uint32_t, double> requests_;
};

// Per key the mean over pairs of a sum a request: what each kernel, or each call, adds to a metric.
struct PerRequest {
  double baseline = 0, candidate = 0;
  double change() const { return candidate - baseline; }
};
struct KernelDelay {
  PerRequest waiting, running;  // ready to start → start → end; ns a request
  double change() const { return waiting.change() + running.change(); }
};
std::map<std::string, KernelDelay> delays_of_others(const TraceRows& rows);  // by kernel name
PerRequest judged_time(const TraceRows& rows);                               // GPU ns a request
enum class CallUse : uint8_t { launch, sync, alloc };
std::map<std::string, PerRequest> calls_by_name(const TraceRows& rows, CallUse kind);

// Durations of the judged launches by launch class, replacements summed.
struct ClassSamples {
  std::string label;  // "grid 64x1x1 block 128x1x1" of the lowest arm
  std::vector<double> baseline, candidate;
};
std::map<uint32_t, ClassSamples> judged_classes(const TraceRows& rows);

}  // namespace kgate
