// What a block says about its own fitness. Limits are what docs/tracing.md lists; a value past its limit makes the
// verdict inconclusive, so every row is written even when it is 0: "nothing was lost" is a statement too.
#include <algorithm>
#include <cmath>
#include <limits>

#include "support/text.h"
#include "trace/driver_calls.h"
#include "trace/ingest.h"
#include "trace/requests.h"

namespace kgate::trace {

using namespace wire;

namespace {

constexpr double kMaxHalfWidth = 5'000, kMaxDrift = 10'000;  // ns
constexpr double kSkew = 10'000;  // ns: device and host clocks differ by up to 9 us on an H200 (docs/tracing.md)
constexpr double kShown = std::numeric_limits<double>::infinity();  // limit of what is said and not judged
constexpr double kMaxEarly = 0.001, kMaxQuarantined = 0.05;         // fractions

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
  totals_.uncertainty = std::max(totals_.uncertainty, block->clock_uncertainty);
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
      if (block.process == kNull || name != std::string_view("kernel_name_mismatch")) health_.add({name, 0, 0, {}});
  }
  health_.add({"invalid_times", static_cast<double>(invalid), 0, {}});
}

void Ingest::judge_kernel_times(const Block& block) {
  // An application's requests last as long as it lets them: each long one meets CUPTI's own work sometime.
  double limit = processes_.empty() ? kMaxQuarantined : std::numeric_limits<double>::infinity();
  health_.set({"quarantined_requests", fraction(totals_.quarantined, totals_.requests), limit,
               of(totals_.quarantined, totals_.requests) + " measured requests overlap the collector's own work"});
  if (block.collector == nullptr) return;
  auto note = [&](uint32_t api, uint32_t index) {
    if (index == kNoIndex || api == kNoIndex) return;
    const KernelRecord& kernel = block.records.kernels[index];
    if (kernel.end == 0) return;
    ++totals_.timed_kernels;
    double lead = static_cast<double>(block.records.apis[api].start) - static_cast<double>(kernel.start);
    totals_.early += lead > block.clock_uncertainty;
  };
  if (block.process != kNull)
    for (uint32_t i = 0; i < block.records.kernels.size(); ++i) note(block.join.kernel_api[i], i);
  for (size_t i = 0; i < block.records.launches.size(); ++i)
    if (block_rounds_.contains(block.records.launches[i].head.round))
      note(block.join.launches[i].api, block.join.launches[i].kernel);
  health_.set({"negative_launch_to_start", fraction(totals_.early, totals_.timed_kernels), kMaxEarly,
               of(totals_.early, totals_.timed_kernels) + " kernels start before their launch call"});
  health_.set({"launch_to_start_unknown", static_cast<double>(totals_.unknown_waits), kShown,
               of(totals_.unknown_waits, totals_.launches) +
                   " kernels waited for their launch only, and less than the clocks can tell: no queue_ns"});
}

void Ingest::judge_graphs(const Block& block) {
  GraphCheck check = check_graphs(block.records, block.join);
  totals_.graph_launches += check.launches;
  if (check.launches + check.without != 0 || block.process != kNull) {
    health_.add({"graph_nodes_missing", static_cast<double>(check.missing), 0, {}});
    health_.add({"graphs_uncountable", static_cast<double>(check.uncountable), kShown,
                 check.uncountable ? "graphs with conditional or device-launched nodes, or without an id: whether all "
                                     "of their kernels are there cannot be said (not supported)"
                                   : ""});
  }
  if (check.surplus != 0)
    health_.add({"unmatched_kernels", static_cast<double>(check.surplus), 0, "more kernels than their graph has"});
  if (check.without != 0)
    health_.add({"unmatched_launches", static_cast<double>(check.without), 0, "graph launches that ran nothing"});
}

// The launches of an application, against what they brought.
void Ingest::judge_calls(const Block& block) {
  EmptyLaunches empty = empty_launches(block.records, block.join);
  totals_.captured += empty.captured;
  if (block.collector != nullptr || empty.lost != 0)
    health_.add({"unmatched_launches", static_cast<double>(empty.lost), 0, {}});
  health_.add({"launches_without_kernel", static_cast<double>(empty.unexplained), kShown,
               empty.unexplained ? "made while a stream was captured; most likely captured, but no node was seen to be "
                                   "made by them"
                                 : ""});
}

// The probes are the only witness that the traced process cannot forge: they bound what it claims.
void Ingest::judge_probes(const Block& block) {
  if (block.probes == nullptr) return;
  health_.add({"ring_lost_api", static_cast<double>(block.probes->lost_api), 0, {}});
  health_.add({"ring_lost_sched", static_cast<double>(block.probes->lost_sched), 0, {}});
  health_.add({"ring_lost_fork", static_cast<double>(block.probes->lost_fork), 0, {}});
  health_.add({"unmatched_returns", static_cast<double>(block.probes->unmatched_returns), 0, {}});

  std::map<uint32_t, int64_t> surplus;  // round → launches that the host saw − launches that the process claims
  for (uint32_t index : host_launches(block.host_events, block.symbols))
    if (uint32_t at = block.timeline.round_at(block.host_events[index].begin); at != kNoIndex)
      ++surplus[block.records.rounds[at].head.round];
  for (const LaunchRecord& launch : block.records.launches)
    if (launch.graph_node == 0 && block_rounds_.contains(launch.head.round)) --surplus[launch.head.round];
  for (const Records::GraphCall& call : block.records.graph_calls)
    if (block_rounds_.contains(call.record.head.round)) --surplus[call.record.head.round];
  if (block.process != kNull)
    for (uint32_t i = 0; i < block.records.apis.size(); ++i) {
      const ApiRecord& api = block.records.apis[i];
      // The runtime refuses some launches without asking the driver.
      bool refused = (api.cbid & kRuntimeCall) != 0 && api.result != 0 && block.join.api_host[i] == kNoIndex;
      if (is_launch_cbid(api.cbid) && !refused) --surplus[block.records.rounds.front().head.round];
    }
  double difference = 0;
  for (const auto& [round, count] : surplus) difference += std::fabs(static_cast<double>(count));
  health_.add({"host_launches_vs_launches", difference, 0, {}});

  if (block.process == kNull) {
    uint64_t forks = 0;  // a worker is probed alone: what its children launch is seen by nobody
    for (const HostEvent& event : block.host_events)
      forks += event.kind == HostEventKind::fork && block.timeline.round_at(event.begin) != kNoIndex;
    health_.add({"unprobed_children", static_cast<double>(forks), 0, forks ? "the worker forked in a round" : ""});
    judge_windows(block);
  } else {
    judge_process_windows(block);
  }
  health_.set(
      {"kernels_outside_host_window", fraction(totals_.outside, totals_.windows), kMaxEarly,
       of(totals_.outside, totals_.windows) + " kernels lie outside the launch-to-sync window that the probes saw"});
}

// `until`: the end of the last call that can have waited for the kernel; 0: there was none.
void Ingest::note_window(const Block& block, uint64_t launched, uint32_t index, uint64_t until) {
  const KernelRecord& kernel = block.records.kernels[index];
  if (kernel.end == 0) return;
  double lead = static_cast<double>(launched) - static_cast<double>(kernel.start);
  double overrun = until == 0 ? INFINITY : static_cast<double>(kernel.end) - static_cast<double>(until);
  ++totals_.windows;
  totals_.outside += lead > block.clock_uncertainty || overrun > block.clock_uncertainty;
}

// A worker synchronises before it ends a round.
void Ingest::judge_windows(const Block& block) {
  std::map<uint32_t, uint64_t> last_sync;  // round → end of its last synchronisation
  for (const HostEvent& event : block.host_events) {
    if (event.kind != HostEventKind::api || event.symbol >= block.symbols.size() ||
        block.symbols[event.symbol].use != ProbeSymbol::Use::sync)
      continue;
    if (uint32_t at = block.timeline.round_at(event.begin); at != kNoIndex) {
      uint64_t& last = last_sync[block.records.rounds[at].head.round];
      last = std::max(last, event.end);
    }
  }
  for (size_t i = 0; i < block.records.launches.size(); ++i) {
    const LaunchRecord& launch = block.records.launches[i];
    const LaunchMatch& match = block.join.launches[i];
    if (!block_rounds_.contains(launch.head.round) || match.host == kNoIndex || match.kernel == kNoIndex) continue;
    auto sync = last_sync.find(launch.head.round);
    note_window(block, block.host_events[match.host].begin, match.kernel, sync != last_sync.end() ? sync->second : 0);
  }
}

// An application may end without a synchronisation: then its end bounds its kernels.
void Ingest::judge_process_windows(const Block& block) {
  if (block.records.rounds.empty()) return;
  uint64_t until = block.records.rounds.front().end;
  for (uint32_t i = 0; i < block.records.kernels.size(); ++i) {
    uint32_t api = block.join.kernel_api[i];
    uint32_t host = api != kNoIndex ? block.join.api_host[api] : kNoIndex;
    if (host != kNoIndex) note_window(block, block.host_events[host].begin, i, until);
  }
}

void Ingest::note_facts(const Block& block) {
  auto number = [](double value) { return std::to_string(static_cast<int64_t>(std::llround(value))); };
  if (const CollectorHealth* c = block.collector) {
    facts_["clock_uncertainty_ns"] = number(totals_.uncertainty);
    facts_["clock_offset_begin_ns"] = std::to_string(c->clock_offset_begin);
    facts_["clock_offset_end_ns"] = std::to_string(c->clock_offset_end);
    facts_["cupti_version"] = std::to_string(c->cupti_version);
    facts_["cupti_unknown_records"] = std::to_string(c->unknown_records);
  }
  if (totals_.graph_launches != 0) facts_["graph_launches"] = std::to_string(totals_.graph_launches);
  if (totals_.captured != 0) facts_["captured_launches"] = std::to_string(totals_.captured);
  if (const ProbeHealth* p = block.probes) {
    facts_["probe_attach"] = p->attach;
    facts_["kernel_release"] = p->kernel_release;
    if (p->ns_per_hit > 0) facts_["probe_ns_per_hit"] = number(p->ns_per_hit);
  }
}

}  // namespace kgate::trace
