#include "trace/counter_sets.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kgate::trace {
namespace {

CounterSample sample(double l1, double hits, double sectors, double loads = 10) {
  CounterSample s;
  s[kSetSm] = {l1, 50, 4096, 1024};
  s[kSetL2Hits] = {hits};
  s[kSetL2Sectors] = {sectors};
  s[kSetRequests] = {80, loads, 40, 10};
  return s;
}

const CounterValue* find(const std::vector<CounterValue>& values, std::string_view metric) {
  for (const auto& value : values)
    if (value.metric == metric) return &value;
  return nullptr;
}

TEST(CounterSets, rates_are_fractions_and_traffic_is_read_plus_written) {
  auto values = counter_values(std::vector{sample(96.9, 60, 100)});
  EXPECT_NEAR(find(values, "l1_hit")->value, 0.969, 1e-9);
  EXPECT_NEAR(find(values, "l2_hit")->value, 0.6, 1e-9);
  EXPECT_NEAR(find(values, "achieved_occupancy")->value, 0.5, 1e-9);
  EXPECT_EQ(find(values, "dram_bytes")->value, 5120);
  EXPECT_EQ(find(values, "sectors_per_load")->value, 8);
  EXPECT_EQ(find(values, "sectors_per_store")->value, 4);
  for (const auto& value : values) EXPECT_TRUE(value.valid) << value.metric;
}

TEST(CounterSets, the_median_of_the_repeats_counts) {
  auto values = counter_values(std::vector{sample(10, 10, 100), sample(90, 90, 100), sample(20, 20, 100)});
  EXPECT_NEAR(find(values, "l1_hit")->value, 0.2, 1e-9);
  EXPECT_NEAR(find(values, "l2_hit")->value, 0.2, 1e-9);
}

TEST(CounterSets, a_hit_rate_above_one_is_invalid_and_not_clamped) {
  auto values = counter_values(std::vector{sample(50, 102, 100)});
  const CounterValue* l2 = find(values, "l2_hit");
  EXPECT_FALSE(l2->valid);
  EXPECT_NEAR(l2->value, 1.02, 1e-9);
  EXPECT_NE(l2->note.find("102.0 % cannot be"), std::string::npos) << l2->note;
  EXPECT_TRUE(find(values, "l1_hit")->valid);
}

TEST(CounterSets, one_impossible_repeat_spoils_the_metric) {
  auto values = counter_values(std::vector{sample(50, 50, 100), sample(50, 50, 100), sample(-18.5, 50, 100)});
  EXPECT_FALSE(find(values, "l1_hit")->valid);
}

TEST(CounterSets, not_a_number_is_invalid) {
  EXPECT_FALSE(find(counter_values(std::vector{sample(NAN, 1, 2)}), "l1_hit")->valid);
}

TEST(CounterSets, nothing_counted_is_no_value_and_no_division) {
  auto values = counter_values(std::vector{sample(50, 0, 0, 0)});
  EXPECT_EQ(find(values, "l2_hit"), nullptr);
  EXPECT_EQ(find(values, "sectors_per_load"), nullptr);
  EXPECT_NE(find(values, "sectors_per_store"), nullptr);
}

TEST(CounterSets, a_set_that_was_refused_leaves_its_metrics_out) {
  CounterSample s = sample(50, 1, 2);
  s[kSetL2Sectors].clear();
  s[kSetRequests].clear();
  auto values = counter_values(std::vector{s});
  EXPECT_EQ(find(values, "l2_hit"), nullptr);
  EXPECT_EQ(find(values, "sectors_per_load"), nullptr);
  EXPECT_TRUE(find(values, "dram_bytes")->valid);
}

}  // namespace
}  // namespace kgate::trace
