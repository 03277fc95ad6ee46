// Two sets of traces: file i pairs with file i, the largest kernels are judged, and what is in one arm only, or not the
// same in both, is never passed over in silence.

#include "judge/compare.h"

#include <gtest/gtest.h>

#include <cmath>

#include "../trace/stream.h"
#include "support/fd.h"

namespace kgate {
namespace {

const ClassKey kGemm{"gemm", "grid (64,1,1) block (128,1,1)"}, kNorm{"norm", "grid (8,1,1) block (256,1,1)"};

ArmTrace trace_of(const std::string& path, double gemm, double norm = 3000) {
  ArmTrace trace;
  trace.path = path;
  trace.info = {"T0", {{"device", "H200"}, {"driver_version", "12080"}}};
  trace.health = {{"cupti_dropped", 0, 0, ""}};
  trace.classes[kGemm] = {1000, gemm * 1000, gemm, gemm * 1.2, 0, 0, 0, {"id-gemm"}, {64}};
  trace.classes[kNorm] = {1000, norm * 1000, norm, norm * 1.2, 0, 0, 0, {"id-norm"}, {32}};
  trace.metrics["service.p50"] = {gemm + norm, 1000};
  trace.metrics["launch_count"] = {2, 1000};
  return trace;
}

// `count` traces whose processes differ by up to 2 %, the same way in every arm that is asked for.
std::vector<ArmTrace> arm(const std::string& name, size_t count, double factor) {
  std::vector<ArmTrace> traces;
  for (size_t i = 0; i < count; ++i)
    traces.push_back(
        trace_of(name + std::to_string(i), 10'000 * factor * (1 + 0.003 * std::sin(double(i) * 7 + factor))));
  return traces;
}

const MetricVerdict* find(const Verdict& verdict, const std::string& id, const std::string& subject) {
  for (const auto& metric : verdict.metrics)
    if (metric.id == id && metric.subject.rfind(subject, 0) == 0) return &metric;
  return nullptr;
}
const Finding* finding(const Verdict& verdict, const std::string& id) {
  for (const auto& one : verdict.findings)
    if (one.id == id) return &one;
  return nullptr;
}

TEST(Compare, equal_arms_of_six_traces_pass) {
  Verdict verdict = compare(arm("a", 6, 1), arm("b", 6, 1.001), {});
  EXPECT_EQ(verdict.exit, Exit::pass) << verdict.headline;
  EXPECT_EQ(verdict.pairs, 6u);
  ASSERT_NE(find(verdict, "kernel_time.p50", "gemm"), nullptr);
  EXPECT_TRUE(find(verdict, "kernel_time.p99", "norm")->gated);
  EXPECT_FALSE(find(verdict, "service.p50", "")->gated);
}

TEST(Compare, slower_kernel_fails_by_name_and_says_whether_its_code_changed) {
  auto slow = arm("b", 6, 1.2);
  Verdict verdict = compare(arm("a", 6, 1), slow, {});
  EXPECT_EQ(verdict.exit, Exit::regression);
  const MetricVerdict* gemm = find(verdict, "kernel_time.p50", "gemm");
  ASSERT_NE(gemm, nullptr);
  EXPECT_EQ(gemm->outcome, Outcome::fail);
  EXPECT_NEAR(*gemm->effect, 0.2, 0.01);
  EXPECT_NE(gemm->explanation.find("gemm is the same code in both arms"), std::string::npos) << gemm->explanation;
  EXPECT_EQ(find(verdict, "kernel_time.p50", "norm")->outcome, Outcome::pass);
  EXPECT_NE(verdict.headline.find("gemm grid (64,1,1)"), std::string::npos) << verdict.headline;
  for (auto& trace : slow) trace.classes[kGemm].kernel_ids = {"other"}, trace.classes[kGemm].registers = {96};
  verdict = compare(arm("a", 6, 1), slow, {});
  EXPECT_NE(find(verdict, "kernel_time.p50", "gemm")->explanation.find("gemm is other code, registers 64 → 96"),
            std::string::npos);
}

TEST(Compare, one_trace_an_arm_decides_nothing_and_says_what_would) {
  Verdict verdict = compare(arm("a", 1, 1), arm("b", 1, 1), {});
  EXPECT_EQ(verdict.exit, Exit::inconclusive);
  EXPECT_NE(verdict.advice.find("6 traces an arm"), std::string::npos) << verdict.advice;
}

TEST(Compare, too_few_traces_for_their_noise_name_the_number_that_would_decide) {
  std::vector<ArmTrace> a, b;
  for (double value : {10'000.0, 10'300.0, 9800.0}) a.push_back(trace_of("a" + std::to_string(value), value));
  for (double value : {10'400.0, 10'100.0, 10'200.0}) b.push_back(trace_of("b" + std::to_string(value), value));
  Verdict verdict = compare(a, b, {});
  EXPECT_EQ(verdict.exit, Exit::inconclusive);
  EXPECT_NE(verdict.advice.find("traces an arm would decide"), std::string::npos) << verdict.advice;
  EXPECT_GT(find(verdict, "kernel_time.p50", "gemm")->pairs_to_decide, 3u);
}

TEST(Compare, kernel_of_one_arm_only_is_no_pass_unless_it_was_meant) {
  auto b = arm("b", 6, 1);
  for (auto& trace : b) {
    trace.classes[{"fused", "grid (1,1,1) block (1,1,1)"}] = trace.classes[kNorm];
    trace.classes.erase(kNorm);
  }
  Verdict verdict = compare(arm("a", 6, 1), b, {});
  EXPECT_EQ(verdict.exit, Exit::inconclusive);
  size_t named = 0;
  for (const auto& one : verdict.findings)
    named += one.id == "unmatched_kernel" && (one.text.rfind("norm: in the baseline only, 23.", 0) == 0 ||
                                              one.text.rfind("fused: in the candidate only, 23.", 0) == 0);
  EXPECT_EQ(named, 2u);
  EXPECT_NE(verdict.advice.find("--allow-unmatched"), std::string::npos);
  CompareOptions meant;
  meant.allow_unmatched = true;
  EXPECT_EQ(compare(arm("a", 6, 1), b, meant).exit, Exit::pass);
}

TEST(Compare, launch_classes_that_vanish_count_by_their_time) {
  auto a = arm("a", 6, 1);
  ClassKey rare{"gemm", "grid (1,1,1) block (128,1,1)"};
  for (auto& trace : a) trace.classes[rare] = {10, 10'000, 1000, 1000, 0, 0, 0, {}, {64}};
  Verdict verdict = compare(a, arm("b", 6, 1), {});
  EXPECT_EQ(verdict.exit, Exit::pass);  // 0.1 % of the kernel's time: a note
  ASSERT_NE(finding(verdict, "unmatched_class"), nullptr);
  EXPECT_NE(finding(verdict, "unmatched_class")->text.find("grid (1,1,1)"), std::string::npos);
  for (auto& trace : a) trace.classes[rare].total_ns = 5e6;
  EXPECT_EQ(compare(a, arm("b", 6, 1), {}).exit, Exit::inconclusive);
}

TEST(Compare, lost_records_make_the_environment_unfit_and_name_trace_and_row) {
  auto b = arm("b", 6, 1.5);
  b[2].health = {{"cupti_dropped", 7, 0, "buffer pool"}};
  Verdict verdict = compare(arm("a", 6, 1), b, {});
  EXPECT_EQ(verdict.exit, Exit::environment);
  ASSERT_NE(finding(verdict, "trace_unfit"), nullptr);
  EXPECT_EQ(finding(verdict, "trace_unfit")->where, "b2");
  EXPECT_NE(verdict.headline.find("cupti_dropped = 7"), std::string::npos) << verdict.headline;
}

TEST(Compare, a_trace_that_does_not_speak_of_its_health_is_unfit) {
  auto candidate = arm("b", 6, 1);
  candidate[2].health.clear();
  Verdict verdict = compare(arm("a", 6, 1), candidate, {});
  EXPECT_EQ(verdict.exit, Exit::environment);
  ASSERT_NE(finding(verdict, "trace_unfit"), nullptr);
  EXPECT_EQ(finding(verdict, "trace_unfit")->where, "b2");
}

TEST(Compare, other_device_tier_or_driver_is_refused_unless_it_is_under_test) {
  auto b = arm("b", 6, 1);
  for (auto& trace : b) trace.info.facts["driver_version"] = "13000";
  Verdict verdict = compare(arm("a", 6, 1), b, {});
  EXPECT_EQ(verdict.exit, Exit::environment);
  EXPECT_NE(verdict.headline.find("driver_version: 12080 and 13000"), std::string::npos) << verdict.headline;
  CompareOptions options;
  options.across = {"driver_version"};
  verdict = compare(arm("a", 6, 1), b, options);
  EXPECT_EQ(verdict.exit, Exit::pass);
  EXPECT_NE(finding(verdict, "different_run")->text.find("under test"), std::string::npos);
  b[3].info.facts["driver_version"] = "12080";  // within an arm nothing may differ
  EXPECT_EQ(compare(arm("a", 6, 1), b, options).exit, Exit::environment);
  b = arm("b", 6, 1);
  for (auto& trace : b) trace.info.tier = "T2";
  EXPECT_EQ(compare(arm("a", 6, 1), b, {}).exit, Exit::environment);
}

TEST(Compare, only_the_five_largest_are_judged_and_the_report_says_so) {
  auto a = arm("a", 6, 1), b = arm("b", 6, 1);
  for (auto* side : {&a, &b})
    for (auto& trace : *side)
      for (int i = 0; i < 10; ++i)
        trace.classes[{"small" + std::to_string(i), "grid (1,1,1) block (32,1,1)"}] = {
            1000, 1e5 * (i + 1), 100.0 * (i + 1), 120.0 * (i + 1), 0, 0, 0, {}, {16}};
  Verdict verdict = compare(a, b, {});
  EXPECT_EQ(verdict.exit, Exit::pass);
  size_t gated = 0;
  for (const auto& metric : verdict.metrics) gated += metric.gated;
  EXPECT_EQ(gated, 2 * kMostGatedClasses);
  EXPECT_FALSE(find(verdict, "kernel_time.p50", "small0")->gated);
  ASSERT_NE(finding(verdict, "classes_shown"), nullptr);
  EXPECT_NE(finding(verdict, "classes_shown")->text.find("the 5 largest of 12"), std::string::npos);
}

TEST(Compare, tail_of_few_launches_is_shown_by_default_and_undecided_when_asked_for) {
  auto a = arm("a", 6, 1), b = arm("b", 6, 1);
  for (auto* side : {&a, &b})
    for (auto& trace : *side) trace.classes[kGemm].launches = 50;
  Verdict verdict = compare(a, b, {});
  EXPECT_EQ(verdict.exit, Exit::pass);
  EXPECT_FALSE(find(verdict, "kernel_time.p99", "gemm")->gated);
  EXPECT_NE(find(verdict, "kernel_time.p99", "gemm")->note.find("needs 299"), std::string::npos);
  CompareOptions options;
  Limit limit;
  limit.metric = "kernel_time.p99";
  limit.max_regression = 0.05;
  limit.where = "--limit";
  options.limits = {limit};
  EXPECT_EQ(compare(a, b, options).exit, Exit::inconclusive);
}

TEST(Compare, limits_on_the_run_judge_counts_exactly) {
  auto b = arm("b", 2, 1);
  for (auto& trace : b) trace.metrics["launch_count"] = {3, 1000};
  CompareOptions options;
  Limit limit;
  limit.metric = "launch_count";
  limit.max_increase = 0;
  limit.where = "--limit";
  options.limits = {limit};
  options.unlimited = {"kernel_time.p50", "kernel_time.p99"};
  Verdict verdict = compare(arm("a", 2, 1), b, options);
  EXPECT_EQ(verdict.exit, Exit::regression);
  EXPECT_EQ(verdict.deciding, "launch_count");
}

TEST(Compare, virtual_traces_are_judged_by_their_counts_and_never_by_time) {
  auto make = [](const std::string& path, double instructions, double time) {
    ArmTrace trace = trace_of(path, time);
    trace.virtual_device = true;
    for (auto& [key, figures] : trace.classes) figures.instructions = instructions, figures.sectors = 64;
    return trace;
  };
  Verdict verdict = compare({make("a", 1000, 10)}, {make("b", 1000, 9000)}, {});
  EXPECT_EQ(verdict.exit, Exit::pass) << verdict.headline;
  EXPECT_EQ(find(verdict, "kernel_time.p50", "gemm"), nullptr);
  verdict = compare({make("a", 1000, 10)}, {make("b", 1200, 10)}, {});
  EXPECT_EQ(verdict.exit, Exit::regression);
  EXPECT_EQ(verdict.deciding, "virtual.instructions");
  EXPECT_EQ(compare({make("a", 1, 1)}, {trace_of("b", 1)}, {}).exit, Exit::environment);  // one of each kind
}

TEST(Compare, nothing_in_common_is_no_pass) {
  ArmTrace empty = trace_of("a", 1);
  empty.classes.clear();
  empty.metrics.clear();
  Verdict verdict = compare({empty}, {empty}, {});
  EXPECT_EQ(verdict.exit, Exit::inconclusive);
  EXPECT_NE(finding(verdict, "nothing_compared"), nullptr);
  EXPECT_THROW(compare({}, {}, {}), Error);
  EXPECT_THROW(compare(arm("a", 2, 1), arm("b", 3, 1), {}), Error);
}

TEST(FoldClasses, replacements_of_a_launch_are_one_time_and_names_are_the_workloads) {
  std::vector<KernelRow> rows;
  for (uint32_t i = 0; i < 4; ++i)
    for (uint32_t item : {0u, 1u}) {
      KernelRow row{};
      row.arm = 1, row.sequence = i, row.item = item, row.phase = wire::Phase::measured, row.name = "split_k";
      row.launch_begin = 1000 * i + item, row.start = 1000 * i + 100 * item + 1, row.end = row.start + 50 + item;
      rows.push_back(row);
    }
  rows.push_back(rows[0]);
  rows.back().phase = wire::Phase::warmup;
  rows.push_back(rows[0]);
  rows.back().arm = 0;
  rows.push_back(rows[0]);
  rows.back().end = 0;  // not collected
  auto classes = fold_classes(rows, 1, {{0, kGemm}});
  ASSERT_EQ(classes.size(), 1u);
  const ClassFigures& figures = classes.at(kGemm);
  EXPECT_EQ(figures.launches, 4u);
  EXPECT_EQ(figures.p50_ns, 101);
  EXPECT_EQ(figures.total_ns, 404);
  EXPECT_EQ(fold_classes(rows, 1, {}).begin()->first.kernel, "split_k");
}

TEST(ReadArm, takes_the_candidate_of_a_checks_trace_or_the_only_arm) {
  TempDir dir;
  test::Stream s;
  s.name(1, "k").name(2, "v2").round(0, 0, 1000, 9999).round(1, 1, 20000, 29999);
  s.whole(0, 0, 2000, 10, 100);
  wire::LaunchRecord launch{};
  launch.begin = 21010, launch.end = 21030, launch.phase = wire::Phase::measured, launch.thread = 7,
  launch.replaced = 1;
  s.request(1, 0, 21000, 21700).add(wire::Kind::launch, 1, launch).api(21012, 21028, 50).kernel(21040, 21290, 50, 2);
  auto store = TraceStore::create(dir.path() / "t.db", {"T0", {{"device", "H200"}}}, test::one_kernel());
  CollectorHealth collector;
  store->add_block(s.bytes(), {}, {}, nullptr, &collector);
  store->finish();
  ArmTrace candidate = read_arm(*store, ArmChoice::automatic), baseline = read_arm(*store, ArmChoice::baseline);
  ASSERT_EQ(candidate.classes.size(), 1u);
  EXPECT_EQ(candidate.classes.begin()->first.kernel, "k");  // as the workload calls it
  EXPECT_EQ(candidate.classes.begin()->first.label, "grid (4,1,1) block (128,1,1)");
  EXPECT_EQ(candidate.classes.begin()->second.p50_ns, 250);
  EXPECT_EQ(baseline.classes.begin()->second.p50_ns, 100);
  EXPECT_EQ(baseline.classes.begin()->first, candidate.classes.begin()->first);
  EXPECT_EQ(candidate.metrics.at("service.p50").value, 700);
  EXPECT_FALSE(candidate.virtual_device);
}

}  // namespace
}  // namespace kgate
