// A stored verdict is read back as it was written; a summary says what is in a trace.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "../trace/stream.h"
#include "report/report.h"
#include "support/fd.h"

namespace kgate {
namespace {

Verdict stored() {
  Verdict verdict;
  verdict.exit = Exit::regression;
  verdict.headline = "FAIL  slow.ptx";
  verdict.deciding = "service.p99";
  verdict.pairs = 6;
  verdict.seconds = 1.5;
  MetricVerdict metric;
  metric.id = "service.p99";
  metric.subject = "gemm";
  metric.gated = true;
  metric.outcome = Outcome::fail;
  metric.limit.max_regression = 0.1;
  metric.limit.max_increase = 2000;
  metric.by_default = true;
  metric.baseline = 10, metric.candidate = 20, metric.effect = 1, metric.lower = 0.9;
  metric.pairs = 6;
  metric.absolute = true;
  metric.explanation = "where the time went";
  verdict.metrics.push_back(metric);
  metric.gated = false;
  metric.outcome = Outcome::inconclusive;
  metric.limit = {};
  metric.by_default = false;
  verdict.metrics.push_back(metric);
  verdict.findings = {{"service.p99", "judge", "text", "where", Exit::regression},
                      {"hang", "replay", "t", "", Exit::pass}};
  verdict.classes = {{3, "grid 1x1x1", 0.5, 10, 20}};
  verdict.health = {{"ring_lost_api", 1, 0, "note"}};
  verdict.facts = {{"device", "H200"}};
  return verdict;
}

TEST(ReadVerdict, is_the_inverse_of_the_json_report) {
  std::string json = render_json(stored());
  auto read = read_verdict(json);
  ASSERT_TRUE(read) << read.failure().what;
  EXPECT_EQ(render_json(*read), json);
  EXPECT_EQ(render_terminal(*read, false), render_terminal(stored(), false));
}

TEST(ReadVerdict, damaged_text_is_a_failure) {
  std::string json = render_json(stored());
  for (size_t cut = 0; cut < json.size() - 2; cut += 97) EXPECT_FALSE(read_verdict(json.substr(0, cut))) << cut;
  for (const char* text :
       {"", "[]", "{}", "7", R"({"schema_version":2})", R"({"schema_version":"1"})",
        R"({"schema_version":1,"exit_code":0,"metrics":[7],"findings":[],"classes":[],"health":[],"facts":{}})",
        R"({"schema_version":1,"exit_code":0,"metrics":{},"findings":[],"classes":[],"health":[],"facts":{"a":1}})"})
    EXPECT_FALSE(read_verdict(text)) << text;
}

TEST(Summary, says_what_is_in_the_trace_and_which_row_is_past_its_limit) {
  TempDir dir;
  test::Stream s;
  s.name(1, "k").round(0, 0, 1000, 99'000);
  for (uint32_t i = 0; i < 3; ++i) s.whole(0, i, 2000 + 1000 * i, 10 + i, 100 + i);
  auto store = TraceStore::create(dir.path() / "t.db", {"T2", {{"device", "H200"}}}, test::one_kernel(3));
  CollectorHealth collector;
  collector.dropped = 4;
  store->add_block(s.bytes(), {}, {}, nullptr, &collector);
  store->add_verdict(render_json(stored()));
  store->finish();
  TraceSummary summary = summarise(*store);
  EXPECT_EQ(summary.rounds, 1u);
  EXPECT_EQ(summary.requests, 3u);
  ASSERT_EQ(summary.kernels.size(), 1u);
  EXPECT_EQ(summary.kernels[0].name, "k");
  EXPECT_EQ(summary.kernels[0].launches, 3u);
  EXPECT_EQ(summary.kernels[0].p50_ns, 101);
  EXPECT_EQ(summary.kernels[0].share, 1);
  ASSERT_EQ(summary.verdicts.size(), 1u);
  std::string text = summary_terminal(summary, false);
  for (const char* needle : {"tier T2", "3 requests", "cupti_dropped = 4", "H200", "100.0 %"})
    EXPECT_NE(text.find(needle), std::string::npos) << needle << "\n" << text;
  EXPECT_NE(summary_markdown(summary).find("cupti\\_dropped"), std::string::npos);
  auto json = nlohmann::json::parse(summary_json(summary));
  EXPECT_EQ(json["trace"]["tier"], "T2");
  EXPECT_EQ(json["kernels"][0]["p99_ns"], 102);
  EXPECT_EQ(json["verdicts"][0]["deciding"], "service.p99");
}

}  // namespace
}  // namespace kgate
