// Paired statistics: bounds, three outcomes, degenerate data, and error rates by simulation with fixed seeds.

#include "judge/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace kgate {
namespace {

TEST(PairedStatistics, bounds_are_students_t_of_the_mean) {
  // mean 2, sd 1, n 4: t(0.95, 3) = 2.353363 (any t table)
  PairedResult r = analyse({1, 2, 2, 3}, 10, 0.05);
  double error = std::sqrt(2.0 / 3.0) / 2;
  EXPECT_NEAR(r.mean, 2, 1e-12);
  EXPECT_NEAR(r.upper, 2 + 2.353363 * error, 1e-5);
  EXPECT_NEAR(r.lower, 2 - 2.353363 * error, 1e-5);
}

TEST(PairedStatistics, a_clear_regression_is_past_the_margin_and_a_clear_equal_is_below) {
  PairedResult slow = analyse({0.30, 0.31, 0.29, 0.30, 0.32, 0.28}, std::log1p(0.05), 0.05 / 3);
  EXPECT_GT(slow.lower, std::log1p(0.05));
  EXPECT_LT(slow.p_fail, 1e-5);
  PairedResult equal = analyse({0.001, -0.002, 0.000, 0.001, -0.001, 0.002}, std::log1p(0.05), 0.05 / 3);
  EXPECT_LT(equal.upper, std::log1p(0.05));
  EXPECT_LT(equal.p_pass, 1e-5);
}

TEST(PairedStatistics, no_pairs_and_one_pair_and_nan_decide_nothing) {
  for (const auto& effects :
       {std::vector<double>{}, std::vector<double>{0.5}, std::vector<double>{0.1, std::nan(""), 0.1},
        std::vector<double>{0.1, std::numeric_limits<double>::infinity()}}) {
    PairedResult r = analyse(effects, 0, 0.05);
    EXPECT_EQ(r.lower, -std::numeric_limits<double>::infinity());
    EXPECT_EQ(r.upper, std::numeric_limits<double>::infinity());
    EXPECT_EQ(r.p_fail, 1);
    EXPECT_EQ(r.p_pass, 1);
  }
}

TEST(PairedStatistics, constant_data_has_no_uncertainty) {
  PairedResult r = analyse({0.1, 0.1, 0.1}, 0.05, 0.05);
  EXPECT_EQ(r.lower, r.upper);
  EXPECT_EQ(r.p_fail, 0);
  EXPECT_EQ(analyse({0, 0, 0}, 0.05, 0.05).p_pass, 0);
  PairedResult at_the_margin = analyse({0, 0, 0}, 0, 0.05);
  EXPECT_EQ(at_the_margin.p_fail, 1);
  EXPECT_EQ(at_the_margin.p_pass, 1);
}

TEST(PairedStatistics, sign_flip_cannot_go_below_two_to_the_minus_pairs) {
  EXPECT_DOUBLE_EQ(sign_flip_p({1, 1.1, 0.9, 1, 1.2, 0.8}, 0), 1.0 / 64);
  EXPECT_EQ(sign_flip_p({}, 0), 1);
  EXPECT_EQ(sign_flip_p({1, std::nan("")}, 0), 1);
}

TEST(PairedStatistics, an_undecided_effect_says_how_many_pairs_would_decide) {
  std::vector<double> effects{0.06, -0.04, 0.05, -0.05, 0.04, -0.06};
  PairedResult r = analyse(effects, std::log1p(0.05), 0.05 / 3);
  EXPECT_GT(r.upper, std::log1p(0.05));
  EXPECT_GT(r.pairs_to_decide, 6u);
  EXPECT_LT(r.pairs_to_decide, 100u);
}

TEST(Holm, rejects_step_by_step) {
  EXPECT_EQ(holm({0.01, 0.04, 0.03}, 0.05), (std::vector<bool>{true, false, false}));
  EXPECT_EQ(holm({0.01, 0.02, 0.03}, 0.05), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(holm({0.5}, 0.05), (std::vector<bool>{false}));
  EXPECT_TRUE(holm({}, 0.05).empty());
}

// Three looks with early stopping in both directions, as the gate runs them.
struct Rates {
  double pass = 0, fail = 0;
};
Rates simulate(double effect, double sd, double margin) {
  std::mt19937_64 random(20240607);
  std::normal_distribution<double> noise(effect, sd);
  constexpr int kRuns = 2000;
  Looks looks;
  int pass = 0, fail = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> effects;
    for (uint32_t pairs : looks.pairs) {
      while (effects.size() < pairs) effects.push_back(noise(random));
      PairedResult r = analyse(effects, margin, looks.alpha_per_look());
      if (r.upper < margin) {
        ++pass;
        break;
      }
      if (r.p_fail <= looks.alpha_per_look()) {
        ++fail;
        break;
      }
    }
  }
  return {double(pass) / kRuns, double(fail) / kRuns};
}

TEST(ErrorRates, an_equal_candidate_almost_never_fails_and_mostly_passes) {
  Rates rates = simulate(0, 0.05, std::log1p(0.05));
  EXPECT_LT(rates.fail, 0.01);
  EXPECT_GT(rates.pass, 0.93);
}

TEST(ErrorRates, a_candidate_at_the_margin_fails_and_passes_within_alpha) {
  Rates rates = simulate(std::log1p(0.05), 0.03, std::log1p(0.05));
  EXPECT_LT(rates.fail, 0.06);
  EXPECT_LT(rates.pass, 0.06);
}

TEST(ErrorRates, ten_percent_slower_is_caught) {
  EXPECT_GT(simulate(std::log1p(0.10), 0.03, std::log1p(0.05)).fail, 0.97);
}

}  // namespace
}  // namespace kgate
