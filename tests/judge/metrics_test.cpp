// The pure functions that metrics are made of.

#include "judge/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

namespace kgate {
namespace {

TEST(Quantile, is_the_nearest_rank) {
  std::vector<double> values(100);
  std::iota(values.rbegin(), values.rend(), 1);
  EXPECT_EQ(quantile(values, 0.99), 99);
  EXPECT_EQ(quantile(values, 0.5), 50);
  EXPECT_EQ(quantile(values, 1), 100);
  std::vector<double> one{7};
  EXPECT_EQ(quantile(one, 0.99), 7);
  std::vector<double> none;
  EXPECT_TRUE(std::isnan(quantile(none, 0.5)));
}

TEST(UnionLength, counts_nested_overlapping_touching_and_empty_intervals_once) {
  EXPECT_EQ(union_length({}), 0u);
  EXPECT_EQ(union_length({{10, 20}}), 10u);
  EXPECT_EQ(union_length({{10, 20}, {12, 15}}), 10u);
  EXPECT_EQ(union_length({{10, 20}, {15, 30}}), 20u);
  EXPECT_EQ(union_length({{30, 40}, {10, 20}}), 20u);
  EXPECT_EQ(union_length({{10, 20}, {20, 30}}), 20u);
  EXPECT_EQ(union_length({{10, 10}, {9, 5}}), 0u);
}

TEST(MetricTable, ids_are_unique_and_quantile_ids_carry_their_quantile) {
  std::set<std::string_view> ids;
  for (const auto& metric : kMetrics) {
    EXPECT_TRUE(ids.insert(metric.id).second) << metric.id;
    if (metric.id.ends_with("p99")) {
      EXPECT_EQ(metric.quantile, 0.99) << metric.id;
    }
    if (metric.id.ends_with("p50")) {
      EXPECT_EQ(metric.quantile, 0.50) << metric.id;
    }
  }
  EXPECT_EQ(find_metric("no.such"), nullptr);
}

TEST(MinimumSamples, are_the_counts_with_a_distribution_free_upper_bound) {
  // n >= ln(0.05) / ln(q)
  EXPECT_EQ(minimum_samples(0.99), std::ceil(std::log(0.05) / std::log(0.99)));
  EXPECT_EQ(minimum_samples(0.95), std::ceil(std::log(0.05) / std::log(0.95)));
  EXPECT_EQ(minimum_samples(0.999), std::ceil(std::log(0.05) / std::log(0.999)));
}

TEST(FormatMetric, shows_the_unit) {
  EXPECT_EQ(format_metric(*find_metric("service.p99"), 1500), "1.50 us");
  EXPECT_EQ(format_metric(*find_metric("sync_stall"), 900), "900 ns/request");
  EXPECT_EQ(format_metric(*find_metric("launch_count"), 12), "12/request");
  EXPECT_EQ(format_metric(*find_metric("occupancy"), 0.5), "50.0 %");
}

}  // namespace
}  // namespace kgate
