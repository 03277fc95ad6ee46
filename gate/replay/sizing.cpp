#include "replay/sizing.h"

#include <algorithm>

#include "trace/wire.h"

namespace kgate {

namespace {

constexpr uint64_t kPerLaunch = sizeof(wire::LaunchRecord);
constexpr uint64_t kPerVirtualLaunch = kPerLaunch + sizeof(wire::VirtualCountersRecord);
constexpr uint64_t kRoom = 8 << 20;  // set-up calls, names, overhead records
// What the device side may write for one driver call: the call itself, and one of kernel, copy or synchronisation.
constexpr uint64_t kPerDriverCall =
    sizeof(wire::ApiRecord) +
    std::max({sizeof(wire::KernelRecord), sizeof(wire::MemoryRecord), sizeof(wire::SyncRecord)});

// Driver calls of one pass over one request. A graph is counted as if it were taken apart: then it makes most records.
struct Counts {
  uint64_t launches = 0, calls = 0, graphs = 0;

  void add_launch(const Arm& arm, uint32_t launch) {
    uint64_t items = 1, of_them = 1;
    if (auto found = arm.replace.find(launch); found != arm.replace.end()) {
      items = of_them = 0;
      for (const ArmItem& item : found->second) {
        of_them += item.kind == ArmItem::Kind::launch;
        items += item.kind == ArmItem::Kind::allocate ? 2 : 1;
      }
    }
    launches += of_them;
    calls += items;
  }
};
Counts count(const Workload& workload, const Request& request, const Arm& arm) {
  Counts counts;
  for (uint32_t c : request.calls) {
    const Call& call = workload.calls[c];
    if (call.kind == CallKind::launch) {
      counts.add_launch(arm, call.launch);
    } else if (call.kind == CallKind::graph_launch) {
      ++counts.graphs;
      ++counts.calls;
      for (const GraphNode& node : workload.graphs[call.graph].nodes) {
        if (node.kind == GraphNode::Kind::kernel)
          counts.add_launch(arm, node.launch);
        else
          ++counts.calls;
      }
    } else {
      // The stream is synchronised before a synchronous copy.
      counts.calls += call.kind == CallKind::upload || call.kind == CallKind::download ? 2 : 1;
    }
  }
  return counts;
}

uint64_t once_of(const Counts& counts, bool is_virtual) {
  return counts.launches * (is_virtual ? kPerVirtualLaunch : kPerLaunch) +
         counts.graphs * sizeof(wire::GraphCallRecord);
}

// Times that request `r` is replayed in a round.
uint64_t passes(const Span& span, size_t requests, size_t r) {
  return r < span.total ? (span.total - r - 1) / requests + 1 : 0;
}

}  // namespace

Span round_span(const ReplayPlan& plan, const Workload& workload) {
  if (plan.mode != ReplayMode::timing) return {0, workload.requests.size()};
  return {plan.warmup_requests, uint64_t{plan.warmup_requests} + plan.measured_requests};
}

uint64_t stage_bytes(const ReplayPlan& plan, const Workload& workload, uint32_t thread, bool is_virtual) {
  Span span = round_span(plan, workload);
  uint64_t most = 0;
  for (const Arm& arm : plan.arms) {
    uint64_t bytes = 0;
    for (size_t r = 0; r < workload.requests.size(); ++r) {
      const Request& request = workload.requests[r];
      if (request.thread != thread && on_threads(plan.mode)) continue;
      uint64_t once = sizeof(wire::RequestRecord) + once_of(count(workload, request, arm), is_virtual);
      bytes += passes(span, workload.requests.size(), r) * once;
    }
    if (plan.mode == ReplayMode::live) bytes += plan.samples.size() * 16 * kPerVirtualLaunch;  // run up to three times
    most = std::max(most, bytes);
  }
  return most;
}

uint64_t record_bytes(const ReplayPlan& plan, const Workload& workload, bool is_virtual) {
  Span span = round_span(plan, workload);
  uint64_t restores = 0;
  for (const Buffer& buffer : workload.buffers) restores += buffer.written + 2 * (plan.guard_bytes > 0);
  std::vector<uint64_t> by_arm;
  for (const Arm& arm : plan.arms) {
    uint64_t bytes = sizeof(wire::RoundRecord) + (plan.trace ? (restores + 8) * kPerDriverCall : 0);
    for (size_t r = 0; r < workload.requests.size(); ++r) {
      Counts counts = count(workload, workload.requests[r], arm);
      uint64_t once = sizeof(wire::RequestRecord) + once_of(counts, is_virtual) +
                      (plan.trace ? (counts.calls + (plan.mode != ReplayMode::timing)) * kPerDriverCall : 0);
      bytes += passes(span, workload.requests.size(), r) * once;
    }
    by_arm.push_back(bytes);
  }
  uint64_t nodes = 0;
  for (const WorkloadGraph& graph : workload.graphs) nodes += graph.nodes.size();
  uint64_t setup = plan.trace ? (workload.buffers.size() * 8 + workload.kernels.size() * 8) * kPerDriverCall : 0;
  setup += plan.arms.size() * nodes * 4 * (sizeof(wire::GraphPlanRecord) + (plan.trace ? kPerDriverCall : 0));
  if (plan.mode == ReplayMode::fidelity)
    setup += plan.rounds.size() * workload.buffers.size() * sizeof(wire::BufferHashRecord);
  // Live: samples run up to three times.
  if (plan.mode == ReplayMode::live)
    setup += plan.samples.size() * 16 * (kPerVirtualLaunch + (plan.trace ? kPerDriverCall : 0));
  uint64_t total = sizeof(wire::Header) + kRoom + setup;
  for (const Round& round : plan.rounds) total += by_arm[round.arm];
  return total;
}

uint64_t planned_round_ns(const ReplayPlan& plan, const Workload& workload) {
  if (!plan.honour_arrivals || !on_threads(plan.mode) || workload.requests.empty()) return 0;
  Span span = round_span(plan, workload);
  uint64_t gaps = 0, last_arrival = 0;
  for (size_t r = 0; r < workload.requests.size(); ++r) {
    const Request& request = workload.requests[r];
    uint64_t once = 0;
    for (uint32_t c : request.calls) once += workload.calls[c].host_gap_ns;
    gaps += once * passes(span, workload.requests.size(), r);
    last_arrival = std::max(last_arrival, request.arrival_ns);
  }
  uint64_t loops = (span.total - 1) / workload.requests.size();
  uint64_t planned = gaps + (workload.arrivals == Arrivals::external ? last_arrival + loops * workload.period_ns : 0);
  return static_cast<uint64_t>(static_cast<double>(planned) / plan.speed);
}

}  // namespace kgate
