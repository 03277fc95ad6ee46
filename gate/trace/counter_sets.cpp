// Which metrics go together in one pass was asked of CUPTI's profiler host library for GH100, GA100, AD102, TU102,
// GB100 and GB202.
#include "trace/counter_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

namespace kgate::trace {

namespace {

constexpr CounterSet kSets[kCounterSets] = {
    {{"l1tex__t_sector_hit_rate.pct", "sm__warps_active.avg.pct_of_peak_sustained_active", "dram__bytes_read.sum",
      "dram__bytes_write.sum"}},
    {{"lts__t_sectors_lookup_hit.sum"}},
    {{"lts__t_sectors.sum"}},
    {{"smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ld.sum", "smsp__sass_inst_executed_op_global_ld.sum",
      "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_st.sum", "smsp__sass_inst_executed_op_global_st.sum"}},
};

// A metric of one sample: nothing where it was not collected or nothing was counted.
struct Rule {
  std::string_view metric;
  std::function<std::optional<double>(const CounterSample&)> of;
  double largest;  // what can be
};

std::optional<double> counted(const CounterSample& sample, uint32_t set, size_t index) {
  return index < sample[set].size() ? std::optional(sample[set][index]) : std::nullopt;
}

std::optional<double> quotient(std::optional<double> part, std::optional<double> whole) {
  if (!part || !whole || *whole == 0) return {};
  return *part / *whole;
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = {
      {"l1_hit", [](const auto& s) { return quotient(counted(s, kSetSm, 0), 100.0); }, 1},
      {"l2_hit", [](const auto& s) { return quotient(counted(s, kSetL2Hits, 0), counted(s, kSetL2Sectors, 0)); }, 1},
      {"achieved_occupancy", [](const auto& s) { return quotient(counted(s, kSetSm, 1), 100.0); }, 1},
      {"dram_bytes",
       [](const auto& s) -> std::optional<double> {
         auto read = counted(s, kSetSm, 2), write = counted(s, kSetSm, 3);
         if (!read || !write) return {};
         return *read + *write;
       },
       INFINITY},
      {"sectors_per_load",
       [](const auto& s) { return quotient(counted(s, kSetRequests, 0), counted(s, kSetRequests, 1)); }, INFINITY},
      {"sectors_per_store",
       [](const auto& s) { return quotient(counted(s, kSetRequests, 2), counted(s, kSetRequests, 3)); }, INFINITY},
  };
  return all;
}

std::string shown(double value, bool fraction) {
  return fraction ? fmt::format("{:.1f} %", value * 100) : fmt::format("{:g}", value);
}

}  // namespace

size_t CounterSet::size() const {
  return static_cast<size_t>(std::find(metrics.begin(), metrics.end(), nullptr) - metrics.begin());
}

const CounterSet& counter_set(uint32_t index) { return kSets[index]; }

std::vector<CounterValue> counter_values(std::span<const CounterSample> samples) {
  std::vector<CounterValue> values;
  for (const Rule& rule : rules()) {
    std::vector<double> seen;
    CounterValue value{rule.metric, 0, true, {}};
    for (const CounterSample& sample : samples) {
      std::optional<double> one = rule.of(sample);
      if (!one) continue;
      if (!(*one >= 0 && *one <= rule.largest) || std::isinf(*one)) {
        value.valid = false;
        value.note = shown(*one, rule.largest == 1) + " cannot be";
        if (rule.metric == "l2_hit") value.note += ": hits and sectors are counted in two executions";
      }
      seen.push_back(*one);
    }
    if (seen.empty()) continue;
    auto middle = seen.begin() + static_cast<ptrdiff_t>((seen.size() - 1) / 2);
    std::nth_element(seen.begin(), middle, seen.end());
    value.value = *middle;
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace kgate::trace
