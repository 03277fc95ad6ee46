// What a plan means apart from its files: the order of rounds, the layout of the readback, and the checks that let the
// worker index without looking.
#include "replay/plan.h"

#include <set>

namespace kgate {

namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMaxWorkspace = uint64_t{1} << 40;

Failure bad(const std::string& what) { return {what, "replay plan", {}}; }

// The finaliser of splitmix64: neighbouring seeds give unrelated bits.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

size_t buffers_of(const Arm& arm, const Workload& workload) { return workload.buffers.size() + arm.workspaces.size(); }

std::string check_launch(const LaunchSpec& launch, const Arm& arm, const Workload& workload) {
  if (launch.kernel >= arm.kernels.size()) return "names a kernel that the arm does not have";
  if (launch.params.size() != arm.kernels[launch.kernel].param_bytes)
    return "has " + std::to_string(launch.params.size()) + " parameter bytes, the kernel takes " +
           std::to_string(arm.kernels[launch.kernel].param_bytes);
  auto empty = [](Dim3 d) { return d.x == 0 || d.y == 0 || d.z == 0; };
  if (empty(launch.grid) || empty(launch.block)) return "has an empty grid or block";
  for (const auto& r : launch.relocations) {
    if (r.buffer >= buffers_of(arm, workload)) return "points at a buffer that the workload does not have";
    if (launch.params.size() < 8 || r.param_offset > launch.params.size() - 8)
      return "has a pointer outside its parameter block";
  }
  return {};
}

std::string check_item(const ArmItem& item, const Arm& arm, const Workload& workload) {
  switch (item.kind) {
    case ArmItem::Kind::launch:
      return check_launch(item.launch, arm, workload);
    case ArmItem::Kind::memset: {
      if (item.buffer >= buffers_of(arm, workload)) return "fills a buffer that the workload does not have";
      uint64_t own = workload.buffers.size();
      uint64_t size = item.buffer < own ? workload.buffers[item.buffer].bytes : arm.workspaces[item.buffer - own].bytes;
      return item.bytes == 0 || item.offset > size || item.bytes > size - item.offset ? "fills past a buffer's end"
                                                                                      : "";
    }
    case ArmItem::Kind::sync:
      return {};
    case ArmItem::Kind::allocate:
      return item.bytes == 0 || item.bytes > kMaxWorkspace ? "allocates an absurd size" : "";
  }
  return "is of an unknown kind";
}

std::string check_arm(const Arm& arm, const Workload& workload) {
  if (arm.label.empty()) return "has no label";
  if (arm.kernel_ids.size() != arm.kernels.size()) return "has not one kernel id for each kernel";
  for (const auto& workspace : arm.workspaces)
    if (workspace.bytes == 0 || workspace.bytes > kMaxWorkspace) return "has a workspace of an absurd size";
  for (const auto& kernel : arm.kernels)
    if (kernel.module >= arm.modules.size()) return "has a kernel without a module";
  for (const auto& [launch, items] : arm.replace) {
    if (launch >= workload.launches.size())
      return "replaces launch " + std::to_string(launch) + ", which the workload does not have";
    for (const auto& item : items)
      if (auto what = check_item(item, arm, workload); !what.empty())
        return "replacement of launch " + std::to_string(launch) + " " + what;
  }
  return {};
}

std::string check_sample(const ReplayPlan& plan, size_t index, const Workload& workload) {
  const LiveSample& sample = plan.samples[index];
  auto place = [](const LiveSample& s) { return std::pair(s.call, s.node == kNone ? 0 : s.node + 1); };
  if (index > 0 && place(plan.samples[index - 1]) >= place(sample)) return "is out of order";
  if (sample.call >= workload.calls.size()) return "names a call that the workload does not have";
  const Call& call = workload.calls[sample.call];
  if (sample.node == kNone) {
    if (call.kind != CallKind::launch) return "names a call that is no launch";
  } else if (call.kind != CallKind::graph_launch || sample.node >= workload.graphs[call.graph].nodes.size() ||
             workload.graphs[call.graph].nodes[sample.node].kind != GraphNode::Kind::kernel) {
    return "names a node that is no kernel of a graph launch";
  }
  for (uint32_t buffer : sample.buffers)
    if (buffer >= workload.buffers.size()) return "names a buffer that the workload does not have";
  return {};
}

std::string check_rounds(const ReplayPlan& plan) {
  std::set<uint32_t> numbers, arms;
  for (const auto& round : plan.rounds) {
    if (round.arm >= plan.arms.size()) return "a round names an arm that the plan does not have";
    if (!numbers.insert(round.round).second) return "two rounds have the number " + std::to_string(round.round);
    if (!arms.insert(round.arm).second && (plan.mode == ReplayMode::numeric || plan.mode == ReplayMode::live))
      return "a numeric plan has two rounds of one arm";
  }
  return {};
}

}  // namespace

Result<std::monostate> validate_plan(const ReplayPlan& plan, const Workload& workload) {
  if (plan.arms.empty()) return bad("no arm");
  if (plan.rounds.empty()) return bad("no round");
  if (workload.requests.empty()) return bad("the workload has no request");
  if (plan.mode == ReplayMode::timing && plan.measured_requests == 0) return bad("no measured request");
  std::set<std::string> labels;
  for (const auto& arm : plan.arms) {
    if (auto what = check_arm(arm, workload); !what.empty()) return bad("arm '" + arm.label + "' " + what);
    if (!labels.insert(arm.label).second) return bad("two arms are called '" + arm.label + "'");
  }
  if (auto what = check_rounds(plan); !what.empty()) return bad(what);
  if (plan.mode == ReplayMode::counters && (plan.counter_launches.empty() || plan.counter_repeats == 0))
    return bad("a counters plan samples no launch");
  for (uint32_t launch : plan.counter_launches)
    if (launch >= workload.launches.size())
      return bad("samples launch " + std::to_string(launch) + ", which the workload does not have");
  for (uint32_t buffer : plan.readback)
    if (buffer >= workload.buffers.size())
      return bad("readback of buffer " + std::to_string(buffer) + ", which the workload does not have");
  if (plan.mode == ReplayMode::live && plan.samples.empty()) return bad("a live plan samples no launch");
  for (size_t i = 0; i < plan.samples.size(); ++i)
    if (auto what = check_sample(plan, i, workload); !what.empty())
      return bad("sample " + std::to_string(i) + " " + what);
  if (!(plan.speed > 0 && plan.speed <= 1e6)) return bad("the speed is no positive number");
  for (uint32_t launch : plan.judged)
    if (launch >= workload.launches.size())
      return bad("judges launch " + std::to_string(launch) + ", which the workload does not have");
  return std::monostate{};
}

void place_as_recorded(ReplayPlan& plan, const Workload& workload) {
  if (workload.addresses == Addresses::free) return;
  plan.placement = Placement::recorded;
  plan.require_exact = workload.addresses != Addresses::relocatable;
}

std::vector<Round> abba_rounds(uint32_t first_pair, uint32_t pairs, uint32_t first_round, uint64_t seed) {
  uint32_t called_first = static_cast<uint32_t>(mix(seed) & 1);
  std::vector<Round> rounds;
  for (uint32_t pair = first_pair; pair < first_pair + pairs; ++pair) {
    uint32_t arm = called_first ^ (pair & 1);
    rounds.push_back({arm, pair, first_round++});
    rounds.push_back({arm ^ 1, pair, first_round++});
  }
  return rounds;
}

std::vector<ReadbackRegion> readback_layout(const ReplayPlan& plan, const Workload& workload) {
  std::vector<ReadbackRegion> regions;
  uint64_t offset = 0;
  for (size_t round = 0; round < plan.rounds.size(); ++round) {
    for (uint32_t buffer : plan.readback) {
      uint64_t bytes = workload.buffers[buffer].bytes;
      regions.push_back({buffer, offset, plan.guard_bytes, bytes});
      offset = (offset + 2 * uint64_t{plan.guard_bytes} + bytes + kPage - 1) / kPage * kPage;
    }
  }
  return regions;
}

}  // namespace kgate
