// The metrics that a limit may name, with their units: what the contract's validator and its JSON Schema need to know.
// judge/metrics.h says how each is measured and judged, and asserts that it covers this list.
#pragma once

namespace kgate {

// How a limit on the metric is written: a duration ("2us"), a bare integer, a size ("64B"), or a percentage ("80%").
enum class MetricUnit { ns, count, bytes, fraction };

struct MetricName {
  const char* id;
  MetricUnit unit;
};

inline constexpr MetricName kMetricNames[] = {
    {"service.p50", MetricUnit::ns},
    {"service.p99", MetricUnit::ns},
    {"response.p50", MetricUnit::ns},
    {"response.p99", MetricUnit::ns},
    {"kernel_time.p50", MetricUnit::ns},
    {"kernel_time.p99", MetricUnit::ns},
    {"kernel_time.class_p50", MetricUnit::ns},
    {"sync_stall", MetricUnit::ns},
    {"others.delay", MetricUnit::ns},
    {"launch_api.p99", MetricUnit::ns},
    {"queue_wait.p99", MetricUnit::ns},
    {"cold_start", MetricUnit::ns},
    {"sync_count", MetricUnit::count},
    {"launch_count", MetricUnit::count},
    {"alloc_count", MetricUnit::count},
    {"spill_bytes", MetricUnit::bytes},
    {"registers", MetricUnit::count},
    {"shared_bytes", MetricUnit::bytes},
    {"local_bytes", MetricUnit::bytes},
    {"occupancy", MetricUnit::fraction},
    {"l1_hit", MetricUnit::fraction},
    {"l2_hit", MetricUnit::fraction},
    {"dram_bytes", MetricUnit::bytes},
    {"achieved_occupancy", MetricUnit::fraction},
    {"sectors_per_load", MetricUnit::count},
    {"sectors_per_store", MetricUnit::count},
    {"preempted", MetricUnit::ns},
    {"runqueue", MetricUnit::ns},
    {"blocked", MetricUnit::ns},
    {"virtual.instructions", MetricUnit::count},
    {"virtual.sectors", MetricUnit::count},
    {"virtual.bank_conflicts", MetricUnit::count},
    {"virtual.divergence", MetricUnit::count},
};

}  // namespace kgate
