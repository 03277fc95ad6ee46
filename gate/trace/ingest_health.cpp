// What a block says about its own fitness. Limits are what docs/tracing.md lists; a value past its limit makes the
// verdict inconclusive, so every row is written even when it is 0: "nothing was lost" is a statement too.
#include <algorithm>
#include <cmath>

#include "trace/ingest.h"

namespace kgate::trace {

using namespace wire;

namespace {

constexpr double kMaxHalfWidth = 5'000, kMaxDrift = 10'000;  // ns
constexpr double kSkew = 10'000;  // ns: device and host clocks differ by up to 9 us on an H200 (docs/tracing.md)
constexpr double kMaxEarly = 0.001, kMaxQuarantined = 0.05;  // fractions

double fraction(uint64_t part, uint64_t whole) {
  return whole ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}
std::string of(uint64_t part, uint64_t whole) { return std::to_string(part) + " of " + std::to_string(whole); }

}  // namespace

void Ingest::judge_clock(Block* block) {
  if (block->collector == nullptr) return;
  const CollectorHealth& c = *block->collector;
  double begin = static_cast<double>(c.clock_offset_begin), end = static_cast<double>(c.clock_offset_end);
  double drift = std::fabs(end - begin), half_width = static_cast<double>(c.clock_half_width);
  block->clock_uncertainty = half_width + drift + kSkew;
  health_.raise({"clock_half_width_ns", half_width, kMaxHalfWidth, {}});
  health_.raise({"clock_offset_drift_ns", drift, kMaxDrift, {}});
}

void Ingest::judge_records(const Block& block) {
  const Records& records = block.records;
  health_.add({"record_stream_bad", static_cast<double>(records.bad), 0, records.first_bad});
  health_.add({"lost_records", static_cast<double>(records.lost), 0, {}});
  uint64_t invalid = records.invalid_times;
  if (const CollectorHealth* c = block.collector) {
    invalid = std::max(invalid, c->invalid_times);
    health_.add({"cupti_dropped", static_cast<double>(c->dropped), 0, {}});
    health_.add({"cupti_forced", static_cast<double>(c->forced), 0, {}});
    health_.add({"cupti_buffers_exhausted", static_cast<double>(c->buffers_exhausted), 0, {}});
    for (const char* name : {"unmatched_launches", "unmatched_kernels", "kernel_name_mismatch"})
      health_.add({name, 0, 0, {}});
  }
  health_.add({"invalid_times", static_cast<double>(invalid), 0, {}});
}

void Ingest::judge_kernel_times(const Block& block) {
  health_.set({"quarantined_requests", fraction(totals_.quarantined, totals_.requests), kMaxQuarantined,
               of(totals_.quarantined, totals_.requests) + " measured requests overlap the collector's own work"});
  if (block.collector == nullptr) return;
  for (size_t i = 0; i < block.records.launches.size(); ++i) {
    const LaunchMatch& match = block.join.launches[i];
    if (match.kernel == kNoIndex || match.api == kNoIndex ||
        !block_rounds_.contains(block.records.launches[i].head.round))
      continue;
    const KernelRecord& kernel = block.records.kernels[match.kernel];
    if (kernel.end == 0) continue;
    ++totals_.timed_kernels;
    double lead = static_cast<double>(block.records.apis[match.api].start) - static_cast<double>(kernel.start);
    totals_.early += lead > block.clock_uncertainty;
  }
  health_.set({"negative_launch_to_start", fraction(totals_.early, totals_.timed_kernels), kMaxEarly,
               of(totals_.early, totals_.timed_kernels) + " kernels start before their launch call"});
}

// The probes are the only witness that the worker cannot forge: they bound what it claims.
void Ingest::judge_probes(const Block& block) {
  if (block.probes == nullptr) return;
  health_.add({"ring_lost_api", static_cast<double>(block.probes->lost_api), 0, {}});
  health_.add({"ring_lost_sched", static_cast<double>(block.probes->lost_sched), 0, {}});
  health_.add({"unmatched_returns", static_cast<double>(block.probes->unmatched_returns), 0, {}});

  std::map<uint32_t, int64_t> surplus;     // round → launches that the host saw − launches that the worker claims
  std::map<uint32_t, uint64_t> last_sync;  // round → end of its last synchronisation
  for (const HostEvent& event : block.host_events) {
    if (event.kind != HostEventKind::api || event.symbol >= block.symbols.size()) continue;
    uint32_t at = block.timeline.round_at(event.begin);
    if (at == kNoIndex) continue;
    uint32_t round = block.records.rounds[at].head.round;
    ProbeSymbol::Use use = block.symbols[event.symbol].use;
    if (use == ProbeSymbol::Use::launch || use == ProbeSymbol::Use::graph_launch)
      ++surplus[round];
    else if (use == ProbeSymbol::Use::sync)
      last_sync[round] = std::max(last_sync[round], event.end);
  }
  for (size_t i = 0; i < block.records.launches.size(); ++i) {
    const LaunchRecord& launch = block.records.launches[i];
    if (!block_rounds_.contains(launch.head.round)) continue;
    --surplus[launch.head.round];
    const LaunchMatch& match = block.join.launches[i];
    if (match.host == kNoIndex || match.kernel == kNoIndex || block.records.kernels[match.kernel].end == 0) continue;
    const KernelRecord& kernel = block.records.kernels[match.kernel];
    auto sync = last_sync.find(launch.head.round);
    double lead = static_cast<double>(block.host_events[match.host].begin) - static_cast<double>(kernel.start);
    double overrun =
        sync == last_sync.end() ? INFINITY : static_cast<double>(kernel.end) - static_cast<double>(sync->second);
    ++totals_.windows;
    totals_.outside += lead > block.clock_uncertainty || overrun > block.clock_uncertainty;
  }
  double difference = 0;
  for (const auto& [round, count] : surplus) difference += std::fabs(static_cast<double>(count));
  health_.add({"host_launches_vs_launches", difference, 0, {}});
  health_.set(
      {"kernels_outside_host_window", fraction(totals_.outside, totals_.windows), kMaxEarly,
       of(totals_.outside, totals_.windows) + " kernels lie outside the launch-to-sync window that the probes saw"});
}

}  // namespace kgate::trace
