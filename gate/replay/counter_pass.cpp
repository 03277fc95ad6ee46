#include "replay/counter_pass.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "support/text.h"
#include "trace/records.h"

namespace kgate {

namespace {

ReplayPlan counters_plan(const Comparison& comparison, const Workload& workload,
                         const std::filesystem::path& workload_file) {
  ReplayPlan plan;
  plan.mode = ReplayMode::counters;
  plan.workload = workload_file;
  plan.arms = comparison.arms;
  plan.judged = comparison.judged;
  plan.trace = false;
  plan.honour_arrivals = false;
  plan.counter_launches = counter_launches(workload, comparison.judged);
  plan.counter_repeats = kCounterRepeats;
  place_as_recorded(plan, workload);
  uint32_t round = 0;
  for (uint32_t pair = 0; pair < trace::kCounterSets * kCounterRepeats; ++pair)
    for (uint32_t arm = 0; arm < plan.arms.size(); ++arm) plan.rounds.push_back({arm, pair, round++});
  return plan;
}

// The samples of each (arm, launch, item): the n-th execution of every set side by side.
CounterPass gather(const trace::Records& records, const ReplayPlan& plan) {
  using Key = std::tuple<uint32_t, uint32_t, uint16_t>;
  std::map<Key, std::vector<trace::CounterSample>> samples;
  for (const auto& record : records.hardware) {
    if (record.head.round >= plan.rounds.size()) continue;
    const Round& round = plan.rounds[record.head.round];
    auto& all = samples[{round.arm, record.launch, record.item}];
    all.resize(plan.counter_repeats);
    all[round.pair % plan.counter_repeats][record.set].assign(record.values, record.values + record.count);
  }
  CounterPass pass;
  for (const auto& [key, all] : samples) {
    auto [arm, launch, item] = key;
    pass.launches.push_back({arm, launch, item, static_cast<uint32_t>(all.size()), trace::counter_values(all)});
  }
  for (uint32_t set = 0; set < trace::kCounterSets; ++set)
    if (auto refusal = records.names.find(wire::kRefusedSet + set); refusal != records.names.end())
      pass.refused.push_back(refusal->second);
  if (pass.launches.empty())
    pass.failure = pass.refused.empty() ? "no judged launch was reached" : pass.refused.front();
  return pass;
}

}  // namespace

std::vector<uint32_t> counter_launches(const Workload& workload, const std::vector<uint32_t>& judged) {
  std::map<uint32_t, uint64_t> calls;
  for (const Call& call : workload.calls)
    if (call.kind == CallKind::launch) ++calls[call.launch];
  using Shape = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>;
  struct Class {
    uint32_t launch;
    uint64_t calls = 0;
  };
  std::map<Shape, Class> classes;
  for (uint32_t launch : judged) {
    const LaunchSpec& spec = workload.launches[launch];
    Shape shape{spec.kernel,  spec.grid.x,  spec.grid.y,  spec.grid.z,
                spec.block.x, spec.block.y, spec.block.z, spec.shared};
    auto [at, added] = classes.try_emplace(shape, Class{launch, 0});
    at->second.calls += calls[launch];
  }
  std::vector<Class> sorted;
  for (const auto& [shape, one] : classes)
    if (one.calls > 0) sorted.push_back(one);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Class& a, const Class& b) { return a.calls > b.calls; });
  sorted.resize(std::min(sorted.size(), kMaxCounterLaunches));
  std::vector<uint32_t> launches;
  for (const Class& one : sorted) launches.push_back(one.launch);
  return launches;
}

CounterPass run_counter_pass(const Comparison& comparison, const Workload& workload,
                             const std::filesystem::path& workload_file, const gpu::DeviceChoice& device) {
  CounterPass none;
  if (device.kind == gpu::DeviceKind::virtual_gpu)
    none.failure = "the virtual GPU has no hardware counters; its exact counts are the virtual.* metrics";
  else if (find_cupti().empty())
    none.failure = "no CUPTI was found; set KGATE_CUPTI";
  ReplayPlan plan = counters_plan(comparison, workload, workload_file);
  if (none.failure.empty() && plan.counter_launches.empty()) none.failure = "no judged launch is made by the workload";
  if (!none.failure.empty()) return none;
  SessionOptions options;
  options.device = device;
  options.attach_probes = false;
  WorkerOutcome outcome = run_worker(plan, workload, options);
  if (outcome.end == WorkerEnd::completed) return gather(trace::read_records(outcome.records.bytes()), plan);
  none.failure = outcome.fault ? outcome.fault->name + ": " + outcome.fault->detail
                               : std::string(worker_end_name(outcome.end)) + ": " + outcome.detail;
  return none;
}

}  // namespace kgate
