// Which limits are in force, and which of them this device and scope cannot measure.
//
// The defaults judge what the device can see: times on a real GPU, exact counts on the virtual one. A contract with a
// `limits:` key means exactly what it says: nothing is added, and what cannot be measured is an error rather than a
// pass.

#include <fmt/format.h>

#include <algorithm>

#include "judge/verdict.h"

namespace kgate {

namespace {

struct Default {
  const char* metric;
  double max_regression;  // fraction
  double max_increase;    // in the metric's unit; with max_regression the larger of the two counts
  bool virtual_device;
};

// Margins: kernel time resolves 1 % in seconds; response p99 varied by 16-25 % a pair on an H200, so its margin is wider
// (docs/results/h200.md has the measurements).
constexpr Default kDefaults[] = {
    {"kernel_time.p50", 0.05, 0, false}, {"kernel_time.p99", 0.05, 0, false},
    {"service.p99", 0.10, 0, false},   // closed arrivals
    {"response.p99", 0.20, 0, false},  // external arrivals
    {"sync_stall", 0.10, 2000, false},   {"sync_count", 0, 0, false},
    {"alloc_count", 0, 0, false},        {"virtual.instructions", 0.10, 0, true},
    {"virtual.sectors", 0.10, 0, true},  {"virtual.bank_conflicts", 0.10, 32, true},
};

Limit relative(const char* metric, double regression, double increase) {
  Limit limit;
  limit.metric = metric;
  limit.max_regression = regression;
  if (increase > 0) limit.max_increase = increase;
  return limit;
}

bool is_relative(const Limit& limit) { return limit.max_regression || limit.max_increase || limit.min_improvement; }

}  // namespace

std::vector<EffectiveLimit> effective_limits(const Contract& contract, bool virtual_device, bool external_arrivals,
                                             bool has_baseline) {
  std::vector<EffectiveLimit> limits;
  if (contract.has_limits) {
    for (const auto& limit : contract.limits) limits.push_back({limit, false});
    return limits;
  }
  Limit spills;
  spills.metric = "spill_bytes";
  if (has_baseline)
    spills.max_increase = 0;
  else
    spills.max = 0;
  limits.push_back({spills, true});
  if (!has_baseline) return limits;
  for (const auto& entry : kDefaults) {
    if (entry.virtual_device != virtual_device) continue;
    std::string_view id = entry.metric;
    if (id == "service.p99" && external_arrivals) continue;
    if (id == "response.p99" && !external_arrivals) continue;
    limits.push_back({relative(entry.metric, entry.max_regression, entry.max_increase), true});
  }
  return limits;
}

std::vector<Finding> unmeasurable(const std::vector<EffectiveLimit>& limits, bool virtual_device, Scope scope,
                                  bool has_baseline, bool external_arrivals) {
  std::vector<Finding> findings;
  auto refuse = [&](const Limit& limit, Exit exit, std::string text) {
    findings.push_back({"unmeasurable", "judge", std::move(text), limit.where, exit});
  };
  for (const auto& [limit, by_default] : limits) {
    if (by_default) continue;
    const MetricInfo* metric = find_metric(limit.metric);
    if (!metric) continue;  // the validator has refused it
    bool is_static = metric->source == MetricSource::compiler;
    if (!is_static && scope != Scope::full) continue;  // the user narrowed the question
    if (is_relative(limit) && !has_baseline)
      refuse(limit, Exit::no_baseline,
             fmt::format("the limit on {} is relative to a baseline, and there is none", limit.metric));
    else if (!is_static && !has_baseline)
      refuse(limit, Exit::no_baseline,
             fmt::format("{} is measured in a replay beside a baseline, and there is none", limit.metric));
    else if (metric->source == MetricSource::timing && virtual_device)
      refuse(limit, Exit::environment, fmt::format("the virtual GPU cannot measure {}: it has no time", limit.metric));
    else if (metric->source == MetricSource::virtual_counts && !virtual_device)
      refuse(limit, Exit::environment,
             fmt::format("{} is counted on the virtual GPU only (--device virtual)", limit.metric));
    else if (metric->source == MetricSource::counters_pass)
      refuse(limit, Exit::environment,
             fmt::format("{} is shown by the counters pass (--counters) and not judged", limit.metric));
    else if (limit.metric == "cold_start" || limit.metric == "kernel_time.class_p50")
      refuse(limit, Exit::environment, fmt::format("this version shows {} and does not judge it", limit.metric));
    else if (limit.metric.starts_with("response.") && !external_arrivals)
      refuse(limit, Exit::environment,
             fmt::format("{} needs a workload with external arrivals; this one is closed", limit.metric));
  }
  return findings;
}

Exit exit_of(const std::vector<Finding>& findings) {
  for (Exit grave : {Exit::internal, Exit::interrupted, Exit::bad_input, Exit::broken, Exit::environment,
                     Exit::no_baseline, Exit::regression, Exit::inconclusive})
    if (std::any_of(findings.begin(), findings.end(), [&](const Finding& f) { return f.exit == grave; })) return grave;
  return Exit::pass;
}

}  // namespace kgate
