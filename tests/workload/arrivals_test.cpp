#include "workload/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace kgate::build {
namespace {

double mean_gap(const std::vector<uint64_t>& times) {
  return static_cast<double>(times.back() - times.front()) / static_cast<double>(times.size() - 1);
}

double squared_variation(const std::vector<uint64_t>& times) {
  const double mean = mean_gap(times);
  double sum = 0;
  for (size_t i = 1; i < times.size(); ++i) sum += std::pow(static_cast<double>(times[i] - times[i - 1]) - mean, 2);
  return sum / static_cast<double>(times.size() - 1) / (mean * mean);
}

TEST(Arrivals, the_own_logarithm_is_the_logarithm) {
  EXPECT_EQ(exponential_of(0), 0);
  for (double u : {1e-12, 1e-3, 0.1, 0.29, 0.2929, 0.5, 0.6321, 0.9, 0.999999, 1 - 0x1p-53})
    EXPECT_NEAR(exponential_of(u), -std::log1p(-u), 4e-16 * std::max(1.0, -std::log1p(-u))) << u;
}

TEST(Arrivals, constant_is_even_and_does_not_drift) {
  const auto times = constant_arrivals(3001, 3000);
  EXPECT_EQ(times[0], 0u);
  EXPECT_EQ(times[1], 333333u);
  EXPECT_EQ(times[3000], 1'000'000'000u);
}

TEST(Arrivals, poisson_has_its_rate_and_exponential_gaps) {
  const auto times = poisson_arrivals(100'000, 2000, 3);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  EXPECT_NEAR(mean_gap(times), 500'000, 5'000);
  EXPECT_NEAR(squared_variation(times), 1, 0.05);
  size_t longer = 0;
  for (size_t i = 1; i < times.size(); ++i) longer += times[i] - times[i - 1] > 500'000;
  EXPECT_NEAR(static_cast<double>(longer) / 1e5, std::exp(-1), 0.01);
}

TEST(Arrivals, bursts_keep_the_mean_rate_and_vary_more) {
  const auto times = bursty_arrivals(60'000, 2500, 6, 20'000, 3);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  EXPECT_NEAR(mean_gap(times), 400'000, 8'000);
  EXPECT_GT(squared_variation(times), 3);
  for (size_t i = 0; i + 6 <= 600; i += 6) EXPECT_EQ(times[i + 5] - times[i], 250'000u) << i;
}

TEST(Arrivals, the_seed_decides) {
  EXPECT_EQ(poisson_arrivals(100, 1000, 1), poisson_arrivals(100, 1000, 1));
  EXPECT_NE(poisson_arrivals(100, 1000, 1), poisson_arrivals(100, 1000, 2));
  EXPECT_TRUE(poisson_arrivals(0, 1000, 1).empty());
}

}  // namespace
}  // namespace kgate::build
