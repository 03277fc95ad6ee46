// The table's lookups and the small pure functions that metrics are made of.

#include "judge/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "contract/metric_names.h"
#include "support/text.h"

namespace kgate {

namespace {
// The contract validates ids against its own list (it may not include this folder): both must name the same metrics.
constexpr bool tables_agree() {
  for (const auto& metric : kMetrics) {
    bool found = false;
    for (const auto& name : kMetricNames)
      found = found || (std::string_view(name.id) == metric.id && name.unit == metric.unit);
    if (!found) return false;
  }
  return std::size(kMetricNames) == kMetrics.size();
}
static_assert(tables_agree(), "contract/metric_names.h and judge/metrics.h list different metrics");
}  // namespace

const MetricInfo* find_metric(std::string_view id) {
  for (const auto& metric : kMetrics)
    if (metric.id == id) return &metric;
  return nullptr;
}

std::string format_metric(const MetricInfo& metric, double value) {
  const char* suffix = metric.per_request ? "/request" : "";
  switch (metric.unit) {
    case MetricUnit::ns:
      return format_ns(value) + suffix;
    case MetricUnit::count:
      return (metric.per_request ? fmt::format("{:.4g}", value) : format_count(value)) + suffix;
    case MetricUnit::bytes:
      return format_bytes(value);
    case MetricUnit::fraction:
      return fmt::format("{:.1f} %", value * 100);
  }
  return {};
}

double quantile(std::vector<double>& values, double q) {
  if (values.empty()) return std::nan("");
  std::sort(values.begin(), values.end());
  double rank = std::ceil(q * static_cast<double>(values.size()) - 1e-9);
  size_t index = static_cast<size_t>(std::clamp(rank, 1.0, static_cast<double>(values.size()))) - 1;
  return values[index];
}

uint64_t union_length(std::vector<std::pair<uint64_t, uint64_t>> intervals) {
  std::sort(intervals.begin(), intervals.end());
  uint64_t total = 0, reached = 0;
  for (auto [begin, end] : intervals) {
    begin = std::max(begin, reached);
    if (end <= begin) continue;
    total += end - begin;
    reached = end;
  }
  return total;
}

}  // namespace kgate
