// The metrics: one constexpr table that drives the judge, the reports and docs/metrics.md, and their values out of a
// trace.
//
// Enters: rows of a TraceStore. Leaves: for every metric one value a round and arm, side by side by pair. It must not
// know about limits or verdicts.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/metric_names.h"
#include "trace/store.h"

namespace kgate {

enum class MetricClass {
  paired,       // noisy: judged by paired statistics over rounds
  exact,        // deterministic: any increase past the limit decides at once
  shown,        // reported, never judged by default
  attribution,  // explains, never convicts
};
enum class MetricSource { timing, virtual_counts, compiler, counters_pass, cold_start };  // what a device must offer

struct MetricInfo {
  std::string_view id;
  MetricUnit unit;  // of contract/metric_names.h
  bool per_request;
  MetricClass cls;
  MetricSource source;
  double quantile;  // 0: not a quantile
  std::string_view what;
};

inline constexpr std::array<MetricInfo, 33> kMetrics{{
    {"service.p50", MetricUnit::ns, false, MetricClass::paired, MetricSource::timing, 0.50,
     "request end − issue of its first call, median"},
    {"service.p99", MetricUnit::ns, false, MetricClass::paired, MetricSource::timing, 0.99,
     "request end − issue of its first call, 99th percentile"},
    {"response.p50", MetricUnit::ns, false, MetricClass::paired, MetricSource::timing, 0.50,
     "request end − arrival (external arrivals only), median"},
    {"response.p99", MetricUnit::ns, false, MetricClass::paired, MetricSource::timing, 0.99,
     "request end − arrival (external arrivals only), 99th percentile"},
    {"kernel_time.p50", MetricUnit::ns, false, MetricClass::paired, MetricSource::timing, 0.50,
     "GPU time of the judged kernel, replacements summed, median over production's launches"},
    {"kernel_time.p99", MetricUnit::ns, false, MetricClass::paired, MetricSource::timing, 0.99,
     "GPU time of the judged kernel, replacements summed, 99th percentile"},
    {"kernel_time.class_p50", MetricUnit::ns, false, MetricClass::shown, MetricSource::timing, 0.50,
     "GPU time of the judged kernel in its worst launch class, median"},
    {"sync_stall", MetricUnit::ns, true, MetricClass::paired, MetricSource::timing, 0,
     "union of the synchronisation intervals of each thread"},
    {"others.delay", MetricUnit::ns, true, MetricClass::paired, MetricSource::timing, 0,
     "over the other kernels: end − max(launch end, previous end on the stream)"},
    {"launch_api.p99", MetricUnit::ns, false, MetricClass::shown, MetricSource::timing, 0.99,
     "duration of a launch call, 99th percentile"},
    {"queue_wait.p99", MetricUnit::ns, false, MetricClass::shown, MetricSource::timing, 0.99,
     "kernel start − max(launch end, previous end on the stream), 99th percentile"},
    {"cold_start", MetricUnit::ns, false, MetricClass::shown, MetricSource::cold_start, 0,
     "module load to first completion"},
    {"sync_count", MetricUnit::count, true, MetricClass::exact, MetricSource::timing, 0, "synchronising driver calls"},
    {"launch_count", MetricUnit::count, true, MetricClass::exact, MetricSource::timing, 0, "launching driver calls"},
    {"alloc_count", MetricUnit::count, true, MetricClass::exact, MetricSource::timing, 0,
     "allocating and freeing driver calls"},
    {"spill_bytes", MetricUnit::bytes, false, MetricClass::exact, MetricSource::compiler, 0,
     "register spill stores + loads, from the assembler"},
    {"registers", MetricUnit::count, false, MetricClass::exact, MetricSource::compiler, 0, "registers a thread"},
    {"shared_bytes", MetricUnit::bytes, false, MetricClass::exact, MetricSource::compiler, 0,
     "static shared memory a block"},
    {"local_bytes", MetricUnit::bytes, false, MetricClass::exact, MetricSource::compiler, 0, "stack frame a thread"},
    {"occupancy", MetricUnit::fraction, false, MetricClass::exact, MetricSource::compiler, 0,
     "theoretical occupancy of the judged launch"},
    {"l1_hit", MetricUnit::fraction, false, MetricClass::shown, MetricSource::counters_pass, 0, "L1 sectors that hit"},
    {"l2_hit", MetricUnit::fraction, false, MetricClass::shown, MetricSource::counters_pass, 0, "L2 sectors that hit"},
    {"dram_bytes", MetricUnit::bytes, false, MetricClass::shown, MetricSource::counters_pass, 0,
     "device memory read and written by a judged launch"},
    {"achieved_occupancy", MetricUnit::fraction, false, MetricClass::shown, MetricSource::counters_pass, 0,
     "active warps of the SMs that are active, of their maximum"},
    {"sectors_per_load", MetricUnit::count, false, MetricClass::shown, MetricSource::counters_pass, 0,
     "32-byte sectors that a global load instruction of a warp touches; 4 is ideal for 4-byte elements"},
    {"sectors_per_store", MetricUnit::count, false, MetricClass::shown, MetricSource::counters_pass, 0,
     "32-byte sectors that a global store instruction of a warp touches"},
    {"preempted", MetricUnit::ns, true, MetricClass::attribution, MetricSource::timing, 0,
     "time the replaying threads were preempted"},
    {"runqueue", MetricUnit::ns, true, MetricClass::attribution, MetricSource::timing, 0,
     "time the replaying threads were runnable but not running"},
    {"blocked", MetricUnit::ns, true, MetricClass::attribution, MetricSource::timing, 0,
     "time the replaying threads slept until something woke them"},
    {"virtual.instructions", MetricUnit::count, false, MetricClass::exact, MetricSource::virtual_counts, 0,
     "thread instructions of the judged launches"},
    {"virtual.sectors", MetricUnit::count, false, MetricClass::exact, MetricSource::virtual_counts, 0,
     "32-byte global memory sectors of the judged launches"},
    {"virtual.bank_conflicts", MetricUnit::count, false, MetricClass::exact, MetricSource::virtual_counts, 0,
     "extra shared-memory wavefronts of the judged launches"},
    {"virtual.divergence", MetricUnit::count, false, MetricClass::exact, MetricSource::virtual_counts, 0,
     "divergent branches of the judged launches"},
}};

const MetricInfo* find_metric(std::string_view id);                 // nullptr: unknown
std::string format_metric(const MetricInfo& metric, double value);  // with its unit

// One metric, by pair. A value is absent (nullopt) where the arm's round had no sample.
struct MetricSeries {
  struct Pair {
    uint32_t pair = 0;
    std::optional<double> baseline, candidate;
  };
  std::vector<Pair> pairs;
  uint64_t samples_per_round = 0;  // smallest number of samples behind one value; quantiles need a minimum
  uint64_t distinct_requests = 0;  // of the workload, behind the quantile
};

using MetricTable = std::map<std::string, MetricSeries, std::less<>>;

// Every timing, count and virtual metric that the trace has samples for. Quarantined requests are left out of both arms
// of their pair. `external`: the workload's arrivals are external, so `response` exists.
MetricTable measure(const TraceStore& trace, bool external);

// How late the replay issued its calls: p99 of (issue − due) as a share of the p99 that is judged. Past 10 % the
// replay, not the kernel, made the tail.
HealthRow lag_health(const TraceStore& trace, bool external);

// The launch classes of the judged kernel: medians side by side, for the report.
struct ClassTime {
  uint32_t launch = 0;                         // workload launch index
  std::string label;                           // "grid 64x1x1 block 128x1x1"
  double share = 0;                            // of the judged launches
  double baseline_p50 = 0, candidate_p50 = 0;  // ns
};
std::vector<ClassTime> class_times(const TraceStore& trace);

// Nearest rank: the smallest value with at least q of the samples at or below it. `values` is sorted in place.
double quantile(std::vector<double>& values, double q);

// Total length of the union of [begin, end) intervals, ns. Zero-length and inverted intervals count nothing.
uint64_t union_length(std::vector<std::pair<uint64_t, uint64_t>> intervals);

// Fewest samples for a statement about a quantile: with fewer there is no distribution-free 95 % upper bound.
constexpr uint64_t minimum_samples(double q) { return q >= 0.999 ? 2995 : q >= 0.99 ? 299 : q >= 0.95 ? 59 : 1; }

}  // namespace kgate
