#include "cli/side_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "trace/records.h"

namespace kgate {

namespace {

constexpr uint32_t kBareRounds = 3;
constexpr double kMaxPerturbation = 3;

// A metric of one arm over its sampled launches.
struct Average {
  double sum = 0, weight = 0;
  std::string invalid;  // why it is no value
};

// How often the workload makes the launches that a sampled one stands for: those of its own index.
std::map<uint32_t, double> calls_by_launch(const Workload& workload) {
  std::map<uint32_t, double> calls;
  for (const Call& call : workload.calls)
    if (call.kind == CallKind::launch) ++calls[call.launch];
  return calls;
}

MetricVerdict verdict_of(std::string_view metric, const Average* baseline, const Average* candidate) {
  MetricVerdict verdict;
  verdict.id = std::string(metric);
  auto value = [&](const Average* average, const char* arm) -> std::optional<double> {
    if (average == nullptr) return {};
    if (average->invalid.empty()) return average->sum / average->weight;
    verdict.note += fmt::format("{}{}: {}", verdict.note.empty() ? "invalid, " : "; ", arm, average->invalid);
    return {};
  };
  verdict.baseline = value(baseline, "baseline");
  verdict.candidate = value(candidate, "candidate");
  if (verdict.baseline && verdict.candidate && *verdict.baseline > 0)
    verdict.effect = *verdict.candidate / *verdict.baseline - 1;
  return verdict;
}

}  // namespace

std::optional<double> bare_service(ReplayPlan plan, const Workload& workload, const gpu::DeviceChoice& device) {
  plan.trace = false;
  plan.rounds.clear();
  for (uint32_t round = 0; round < kBareRounds; ++round) plan.rounds.push_back({0, round, round});
  SessionOptions options;
  options.device = device;
  options.attach_probes = options.collect_cupti = false;
  WorkerOutcome outcome = run_worker(plan, workload, options);
  if (outcome.end != WorkerEnd::completed) return {};
  std::map<uint32_t, std::vector<double>> service;  // by round
  for (const auto& request : trace::read_records(outcome.records.bytes()).requests)
    if (request.phase == wire::Phase::measured)
      service[request.head.round].push_back(static_cast<double>(request.end - request.issue));
  std::vector<double> medians;
  for (auto& [round, times] : service) medians.push_back(quantile(times, 0.5));
  if (medians.size() != kBareRounds) return {};
  return quantile(medians, 0.5);
}

HealthRow perturbation_health(double bare, double traced) {
  return {"perturbation", traced / bare, kMaxPerturbation,
          fmt::format("service.p50 of the baseline: {:.2f} us traced, {:.2f} us without any tracer", traced / 1e3,
                      bare / 1e3)};
}

void add_counters(const CounterPass& pass, const Workload& workload, TraceStore& store, Verdict& verdict) {
  auto note = [&](const std::string& text) {
    verdict.findings.push_back({"counters_unavailable", "counters", text, {}, Exit::pass});
  };
  if (!pass.failure.empty()) return note(pass.failure);
  for (const std::string& refused : pass.refused) note(refused);
  auto calls = calls_by_launch(workload);
  std::map<std::string_view, std::map<uint32_t, Average>> averages;  // by metric and arm
  std::vector<std::string_view> order;
  for (const LaunchCounters& launch : pass.launches)
    for (const trace::CounterValue& value : launch.values) {
      store.add_hardware({launch.arm, launch.launch, launch.item, std::string(value.metric), value.value, value.valid,
                          launch.samples, value.note});
      if (!averages.contains(value.metric)) order.push_back(value.metric);
      Average& average = averages[value.metric][launch.arm];
      double weight = std::max(1.0, calls[launch.launch]);
      average.sum += weight * value.value;
      average.weight += weight;
      if (!value.valid) average.invalid = value.note;
    }
  for (std::string_view metric : order) {
    auto arm = [&](uint32_t index) {
      auto at = averages[metric].find(index);
      return at != averages[metric].end() ? &at->second : nullptr;
    };
    verdict.metrics.push_back(verdict_of(metric, arm(0), arm(1)));
  }
}

}  // namespace kgate
