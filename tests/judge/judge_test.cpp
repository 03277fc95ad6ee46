// From series and limits to an outcome. Nothing passes by absence.

#include <gtest/gtest.h>

#include <cmath>

#include "judge/verdict.h"

namespace kgate {
namespace {

MetricSeries series(const std::vector<std::pair<double, double>>& pairs, uint64_t samples = 1000) {
  MetricSeries s;
  for (auto [baseline, candidate] : pairs)
    s.pairs.push_back({static_cast<uint32_t>(s.pairs.size()), baseline, candidate});
  s.samples_per_round = samples;
  return s;
}

MetricSeries ratio_series(double ratio) {
  std::vector<std::pair<double, double>> pairs;
  for (int i = 0; i < 6; ++i) {
    double base = 1000 + i;
    pairs.emplace_back(base, base * ratio * (1 + 0.001 * (i % 3 - 1)));
  }
  return series(pairs);
}

EffectiveLimit regression_limit(const std::string& id, double fraction) {
  Limit limit;
  limit.metric = id;
  limit.max_regression = fraction;
  return {limit, false};
}

JudgeResult judge_one(const std::string& id, const MetricSeries& s, const EffectiveLimit& limit) {
  MetricTable table{{id, s}};
  JudgeInput input;
  input.metrics = &table;
  input.limits = {limit};
  return judge(input);
}

TEST(Judge, a_slower_candidate_fails_on_the_metric_that_decided) {
  JudgeResult r = judge_one("kernel_time.p50", ratio_series(1.3), regression_limit("kernel_time.p50", 0.05));
  EXPECT_EQ(r.outcome, Outcome::fail);
  EXPECT_EQ(r.deciding, "kernel_time.p50");
  EXPECT_NEAR(*r.metrics[0].effect, 0.3, 0.01);
  ASSERT_EQ(r.findings.size(), 1u);
  EXPECT_EQ(r.findings[0].exit, Exit::regression);
}

TEST(Judge, an_equal_and_a_faster_candidate_pass) {
  EXPECT_EQ(judge_one("kernel_time.p50", ratio_series(1.0), regression_limit("kernel_time.p50", 0.05)).outcome,
            Outcome::pass);
  JudgeResult faster = judge_one("kernel_time.p50", ratio_series(0.8), regression_limit("kernel_time.p50", 0.05));
  EXPECT_EQ(faster.outcome, Outcome::pass);
  EXPECT_EQ(faster.metrics[0].label, "faster");
}

TEST(Judge, slower_within_the_limit_passes_and_says_so) {
  JudgeResult r = judge_one("kernel_time.p50", ratio_series(1.03), regression_limit("kernel_time.p50", 0.05));
  EXPECT_EQ(r.outcome, Outcome::pass);
  EXPECT_EQ(r.metrics[0].label, "slower, within the limit");
}

TEST(Judge, an_effect_at_the_limit_is_inconclusive) {
  EXPECT_EQ(judge_one("kernel_time.p50", ratio_series(1.05), regression_limit("kernel_time.p50", 0.05)).outcome,
            Outcome::inconclusive);
}

TEST(Judge, a_limit_without_a_measurement_is_inconclusive) {
  MetricTable empty;
  JudgeInput input;
  input.metrics = &empty;
  input.limits = {regression_limit("kernel_time.p50", 0.05)};
  JudgeResult r = judge(input);
  EXPECT_EQ(r.outcome, Outcome::inconclusive);
  EXPECT_EQ(r.metrics[0].note, "not measured");
}

TEST(Judge, p99_of_too_few_samples_is_refused_with_the_number_needed) {
  MetricSeries s = ratio_series(1.3);
  s.samples_per_round = 298;
  JudgeResult r = judge_one("service.p99", s, regression_limit("service.p99", 0.05));
  EXPECT_EQ(r.outcome, Outcome::inconclusive);
  EXPECT_NE(r.metrics[0].note.find("299"), std::string::npos) << r.metrics[0].note;
}

TEST(Judge, an_absolute_floor_forgives_a_large_ratio_of_a_small_value) {
  EffectiveLimit limit = regression_limit("sync_stall", 0.05);
  limit.limit.max_increase = 2000;
  EXPECT_EQ(
      judge_one("sync_stall", series({{10, 900}, {12, 950}, {11, 890}, {9, 940}, {10, 900}, {10, 905}}), limit).outcome,
      Outcome::pass);
  EXPECT_EQ(
      judge_one("sync_stall", series({{10, 5000}, {12, 5100}, {11, 4900}, {9, 5050}, {10, 5000}, {10, 5001}}), limit)
          .outcome,
      Outcome::fail);
}

TEST(Judge, a_zero_baseline_has_a_defined_answer) {
  JudgeResult r = judge_one("others.delay", series({{0, 3200}, {0, 3100}, {0, 3300}, {0, 3250}, {0, 3150}, {0, 3200}}),
                            regression_limit("others.delay", 0.05));
  EXPECT_EQ(r.outcome, Outcome::fail);
  EXPECT_TRUE(r.metrics[0].absolute);
  EXPECT_TRUE(std::isfinite(*r.metrics[0].effect));
}

TEST(Judge, exact_metrics_decide_at_once_and_variation_is_a_warning) {
  EXPECT_EQ(judge_one("sync_count", series({{1, 2}}), regression_limit("sync_count", 0)).outcome, Outcome::fail);
  EXPECT_EQ(judge_one("sync_count", series({{1, 1}}), regression_limit("sync_count", 0)).outcome, Outcome::pass);
  JudgeResult varied = judge_one("launch_count", series({{3, 3}, {3, 2}}), regression_limit("launch_count", 0));
  EXPECT_NE(varied.metrics[0].note.find("varies"), std::string::npos);
}

TEST(Judge, one_pair_past_an_exact_limit_fails_whatever_the_average) {
  JudgeResult r = judge_one("virtual.instructions", series({{100, 118}, {100, 100}}),
                            regression_limit("virtual.instructions", 0.10));
  EXPECT_EQ(r.outcome, Outcome::fail);
  EXPECT_EQ(*r.metrics[0].candidate, 118);
}

TEST(Judge, a_static_regression_outranks_an_unfit_trace) {
  MetricTable table;
  JudgeInput input;
  input.metrics = &table;
  input.statics.candidate["spill_bytes"] = 64;
  Limit limit;
  limit.metric = "spill_bytes";
  limit.max = 0;
  input.limits = {{limit, false}};
  input.health = {{"cupti_dropped", 3, 0, ""}};
  EXPECT_EQ(exit_of(judge(input).findings), Exit::regression);
}

TEST(Judge, a_demanded_gain_must_be_proven) {
  Limit limit;
  limit.metric = "kernel_time.p50";
  limit.min_improvement = 0.10;
  EXPECT_EQ(judge_one("kernel_time.p50", ratio_series(0.8), {limit, false}).outcome, Outcome::pass);
  EXPECT_EQ(judge_one("kernel_time.p50", ratio_series(1.0), {limit, false}).outcome, Outcome::fail);
}

TEST(Judge, an_absolute_ceiling_needs_no_baseline) {
  MetricSeries s;
  for (uint32_t i = 0; i < 6; ++i) s.pairs.push_back({i, std::nullopt, 1000.0 + i});
  s.samples_per_round = 1000;
  Limit limit;
  limit.metric = "kernel_time.p50";
  limit.max = 2000;
  EXPECT_EQ(judge_one("kernel_time.p50", s, {limit, false}).outcome, Outcome::pass);
  limit.max = 500;
  EXPECT_EQ(judge_one("kernel_time.p50", s, {limit, false}).outcome, Outcome::fail);
}

TEST(Judge, spills_past_their_limit_fail_without_a_run) {
  JudgeInput input;
  input.statics.candidate["spill_bytes"] = 64;
  Limit limit;
  limit.metric = "spill_bytes";
  limit.max = 0;
  input.limits = {{limit, true}};
  input.scope = Scope::static_only;
  EXPECT_EQ(judge(input).outcome, Outcome::fail);
}

TEST(Judge, lost_records_make_the_verdict_inconclusive_even_for_a_regression) {
  MetricTable table{{"kernel_time.p50", ratio_series(1.3)}};
  JudgeInput input;
  input.metrics = &table;
  input.limits = {regression_limit("kernel_time.p50", 0.05)};
  input.health = {{"cupti_dropped", 3, 0, ""}};
  JudgeResult r = judge(input);
  EXPECT_EQ(r.outcome, Outcome::inconclusive);
  EXPECT_EQ(exit_of(r.findings), Exit::environment);
}

TEST(Judge, all_gated_metrics_must_pass) {
  MetricTable table{{"kernel_time.p50", ratio_series(0.9)}, {"service.p99", ratio_series(1.3)}};
  JudgeInput input;
  input.metrics = &table;
  input.limits = {regression_limit("kernel_time.p50", 0.05), regression_limit("service.p99", 0.05)};
  JudgeResult r = judge(input);
  EXPECT_EQ(r.outcome, Outcome::fail);
  EXPECT_EQ(r.deciding, "service.p99");
  EXPECT_EQ(r.metrics[0].id, "service.p99");  // worst first
}

}  // namespace
}  // namespace kgate
