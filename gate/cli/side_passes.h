// The passes beside the timed one: without any tracer, for what tracing costs; with hardware counters, for what the
// judged launches did. Neither is judged for time.
#pragma once

#include <optional>

#include "judge/verdict.h"
#include "replay/counter_pass.h"
#include "trace/store.h"

namespace kgate {

// Median over rounds of the baseline's service.p50 (ns) without any tracer. Nothing: the worker did not come to its
// end.
std::optional<double> bare_service(ReplayPlan plan, const Workload& workload, const gpu::DeviceChoice& device);

// Tracing makes requests this much longer: traced / bare. Past the limit it is not production that is judged.
HealthRow perturbation_health(double bare, double traced);

// Rows in the trace, metrics in the verdict (shown; values of one metric are averaged over the sampled launches, by how
// often the workload makes them), and a finding for whatever could not be counted.
void add_counters(const CounterPass& pass, const Workload& workload, TraceStore& store, Verdict& verdict);

}  // namespace kgate
