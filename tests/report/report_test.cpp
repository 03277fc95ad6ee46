// The verdict in three formats: what a person needs is there, untrusted text is tame, the budget holds.

#include "report/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace kgate {
namespace {

Verdict regression() {
  Verdict verdict;
  verdict.exit = Exit::regression;
  verdict.headline = "FAIL  slow.ptx: kernel_time.p50: 3.50 us → 4.60 us (+31.4 %)";
  verdict.deciding = "kernel_time.p50";
  MetricVerdict metric;
  metric.id = "kernel_time.p50";
  metric.gated = true;
  metric.outcome = Outcome::fail;
  metric.limit.max_regression = 0.05;
  metric.baseline = 3500;
  metric.candidate = 4600;
  metric.effect = 0.314;
  metric.lower = 0.30;
  metric.upper = 0.33;
  metric.label = "slower";
  verdict.metrics.push_back(metric);
  verdict.findings.push_back({"kernel_time.p50", "judge", "kernel_time.p50: ...", "", Exit::regression});
  verdict.facts = {{"device", "NVIDIA H200"}, {"tier", "T0"}, {"command", "kgate check -c c.yaml slow.ptx"}};
  verdict.pairs = 6;
  return verdict;
}

TEST(Terminal, says_verdict_metric_size_limit_and_how_to_repeat) {
  std::string text = render_terminal(regression(), false);
  for (const char* needle : {"FAIL", "kernel_time.p50", "+31.4 % [+30.0, +33.0]", "+5 %", "NVIDIA H200", "tier T0",
                             "6 pairs", "repeat: kgate check -c c.yaml slow.ptx"})
    EXPECT_NE(text.find(needle), std::string::npos) << needle << "\n" << text;
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_NE(render_terminal(regression(), true).find("\033[1;31m"), std::string::npos);
}

TEST(Json, has_the_documented_keys_and_never_a_nan) {
  Verdict verdict = regression();
  verdict.metrics[0].lower = std::nan("");
  verdict.metrics[0].upper = INFINITY;
  auto json = nlohmann::json::parse(render_json(verdict));
  EXPECT_EQ(json["schema_version"], kVerdictSchemaVersion);
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["verdict"], "regression");
  EXPECT_EQ(json["metrics"][0]["id"], "kernel_time.p50");
  EXPECT_EQ(json["metrics"][0]["unit"], "ns");
  EXPECT_TRUE(json["metrics"][0]["lower"].is_null());
  EXPECT_TRUE(json["metrics"][0]["upper"].is_null());
  EXPECT_EQ(json["facts"]["device"], "NVIDIA H200");
}

TEST(Json, survives_bytes_that_are_not_utf8) {
  Verdict verdict = regression();
  verdict.findings[0].text = "\xff\xfe";
  EXPECT_TRUE(nlohmann::json::accept(render_json(verdict)));
}

TEST(Markdown, puts_the_verdict_first_and_escapes_untrusted_text) {
  Verdict verdict = regression();
  verdict.findings.push_back({"crash", "replay", "<script>alert(1)</script> | `x` @everyone", "k<int>", Exit::broken});
  std::string text = render_markdown(verdict);
  EXPECT_EQ(text.rfind("### ❌ kgate: FAIL", 0), 0u) << text;
  EXPECT_EQ(text.find("<script>"), std::string::npos);
  EXPECT_EQ(text.find(" @everyone"), std::string::npos);
  EXPECT_NE(text.find("\\|"), std::string::npos);
}

TEST(Markdown, stays_within_what_a_job_summary_takes) {
  Verdict verdict = regression();
  for (int i = 0; i < 5000; ++i)
    verdict.findings.push_back({"wrong_numbers", "equivalence", std::string(500, 'x'), "shape", Exit::broken});
  std::string text = render_markdown(verdict);
  EXPECT_LE(text.size(), 64u * 1024);
  EXPECT_NE(text.find("more findings"), std::string::npos);
}

TEST(Explanation, is_in_every_format_and_tame) {
  Verdict verdict = regression();
  verdict.metrics[0].explanation = "kernel_time.p50 +1.10 us: k<int> | \033[31m 100 %";
  EXPECT_NE(render_terminal(verdict, false).find("why: kernel_time.p50 +1.10 us"), std::string::npos);
  EXPECT_EQ(render_terminal(verdict, false).find('\033'), std::string::npos);
  EXPECT_NE(render_markdown(verdict).find("kernel\\_time.p50 +1.10 us: k&lt;int&gt; \\|"), std::string::npos)
      << render_markdown(verdict);
  auto json = nlohmann::json::parse(render_json(verdict));
  EXPECT_EQ(json["metrics"][0]["explanation"], verdict.metrics[0].explanation);
  verdict.exit = Exit::broken;  // times of what computes something else mean nothing
  EXPECT_EQ(render_terminal(verdict, false).find("why:"), std::string::npos);
}

TEST(Explanation, never_breaks_the_budget) {
  Verdict verdict = regression();
  verdict.metrics.resize(2000, verdict.metrics[0]);
  for (auto& metric : verdict.metrics) metric.explanation = std::string(400, 'x');
  EXPECT_LE(render_markdown(verdict).size(), 64u * 1024);
}

TEST(Texts, a_zero_baseline_and_equal_values_have_words) {
  MetricVerdict metric;
  metric.id = "sync_stall";
  metric.gated = true;
  metric.baseline = 0;
  metric.candidate = 3200;
  EXPECT_EQ(change_text(metric), "+3.20 us/request (from 0)");
  metric.candidate = 0;
  EXPECT_EQ(change_text(metric), "equal");
  metric.limit.max_increase = 2000;
  metric.limit.max_regression = 0.05;
  EXPECT_EQ(limit_text(metric), "+5 % or +2.00 us/request");
}

TEST(NextStep, tells_how_many_pairs_would_decide) {
  Verdict verdict = regression();
  verdict.exit = Exit::inconclusive;
  verdict.metrics[0].outcome = Outcome::inconclusive;
  verdict.metrics[0].pairs_to_decide = 40;
  EXPECT_NE(next_step(verdict).find("--max-pairs 40"), std::string::npos);
}

}  // namespace
}  // namespace kgate
