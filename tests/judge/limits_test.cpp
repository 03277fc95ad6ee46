// Which limits are in force, what cannot be measured, and which exit code wins.

#include <gtest/gtest.h>

#include <algorithm>

#include "judge/verdict.h"

namespace kgate {
namespace {

bool has(const std::vector<EffectiveLimit>& limits, const std::string& id) {
  return std::any_of(limits.begin(), limits.end(), [&](const auto& l) { return l.limit.metric == id; });
}

Contract with_limit(const std::string& id) {
  Contract contract;
  contract.has_limits = true;
  Limit limit;
  limit.metric = id;
  limit.max_regression = 0.05;
  contract.limits = {limit};
  return contract;
}

TEST(Limits, defaults_judge_what_the_device_can_see) {
  auto gpu = effective_limits({}, false, true, true);
  EXPECT_TRUE(has(gpu, "kernel_time.p99"));
  EXPECT_TRUE(has(gpu, "response.p99"));
  EXPECT_FALSE(has(gpu, "service.p99"));
  EXPECT_FALSE(has(gpu, "virtual.instructions"));
  auto simulated = effective_limits({}, true, true, true);
  EXPECT_TRUE(has(simulated, "virtual.instructions"));
  EXPECT_FALSE(has(simulated, "kernel_time.p99"));
  EXPECT_TRUE(has(effective_limits({}, false, false, true), "service.p99"));
}

TEST(Limits, a_contract_with_limits_means_exactly_those) {
  auto limits = effective_limits(with_limit("service.p99"), false, false, true);
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_FALSE(limits[0].by_default);
}

TEST(Limits, without_a_baseline_only_the_spill_ceiling_is_a_default) {
  auto limits = effective_limits({}, true, false, false);
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_EQ(limits[0].limit.metric, "spill_bytes");
  EXPECT_EQ(limits[0].limit.max, 0);
}

TEST(Limits, a_time_limit_on_the_virtual_gpu_is_unfit_unless_the_scope_is_narrowed) {
  auto limits = effective_limits(with_limit("service.p99"), true, false, true);
  auto findings = unmeasurable(limits, true, Scope::full, true, false);
  EXPECT_EQ(exit_of(findings), Exit::environment);
  EXPECT_TRUE(unmeasurable(limits, true, Scope::numeric, true, false).empty());
}

TEST(Limits, a_relative_limit_without_a_baseline_is_exit_4) {
  auto limits = effective_limits(with_limit("kernel_time.p50"), false, false, false);
  EXPECT_EQ(exit_of(unmeasurable(limits, false, Scope::full, false, false)), Exit::no_baseline);
}

TEST(Limits, an_absolute_limit_on_what_only_a_replay_measures_needs_a_baseline_too) {
  Contract contract = with_limit("virtual.instructions");
  contract.limits[0].max_regression.reset();
  contract.limits[0].max = 1;
  auto limits = effective_limits(contract, true, false, false);
  EXPECT_EQ(exit_of(unmeasurable(limits, true, Scope::full, false, false)), Exit::no_baseline);
}

TEST(Limits, counts_of_the_virtual_gpu_are_unmeasurable_on_a_real_one) {
  auto limits = effective_limits(with_limit("virtual.sectors"), false, false, true);
  EXPECT_EQ(exit_of(unmeasurable(limits, false, Scope::full, true, false)), Exit::environment);
}

TEST(ExitOf, the_gravest_finding_wins) {
  auto finding = [](Exit exit) { return Finding{"x", "judge", "", "", exit}; };
  EXPECT_EQ(exit_of({}), Exit::pass);
  EXPECT_EQ(exit_of({finding(Exit::pass)}), Exit::pass);
  EXPECT_EQ(exit_of({finding(Exit::inconclusive), finding(Exit::regression)}), Exit::regression);
  EXPECT_EQ(exit_of({finding(Exit::regression), finding(Exit::broken)}), Exit::broken);
  EXPECT_EQ(exit_of({finding(Exit::regression), finding(Exit::environment)}), Exit::environment);
}

}  // namespace
}  // namespace kgate
