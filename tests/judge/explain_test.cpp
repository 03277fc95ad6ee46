// Where the time went: the parts of hand-made requests add up, the sentence names what was planted, and what blocks
// its neighbours is caught although it is fast alone.

#include "judge/explain.h"

#include <gtest/gtest.h>

#include <numeric>

#include "../trace/stream.h"
#include "judge/metrics.h"
#include "support/fd.h"

namespace kgate {
namespace {

using wire::Phase;

double part(const Parts& parts, Part which) { return parts[static_cast<size_t>(which)]; }

TEST(Split, gives_each_instant_to_the_first_part_that_is_going_on) {
  Parts parts{};
  split({{100, 200}}, {{90, 120, Part::launch_calls}, {110, 150, Part::judged_kernel}, {120, 180, Part::sync}},
        Part::host, parts);
  EXPECT_EQ(part(parts, Part::launch_calls), 10);
  EXPECT_EQ(part(parts, Part::judged_kernel), 40);
  EXPECT_EQ(part(parts, Part::sync), 30);
  EXPECT_EQ(part(parts, Part::host), 20);
}

TEST(Split, overlapping_slices_and_empty_ones_count_nothing_twice) {
  Parts parts{};
  split({{0, 10}, {20, 30}, {40, 40}},
        {{0, 10, Part::copies}, {5, 25, Part::copies}, {7, 7, Part::judged_kernel}, {60, 50, Part::sync}}, Part::host,
        parts);
  EXPECT_EQ(part(parts, Part::copies), 15);
  EXPECT_EQ(part(parts, Part::host), 5);
  EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), 0.0), 20);
}

// One request on thread 7: launch call, judged kernel, another kernel, synchronise. Times in ns from its issue.
struct Shape {
  uint64_t launch = 10, queue = 10, judged = 100, other = 50, sync_tail = 20, preempted = 0;
};

class Rows {
 public:
  Rows& round(uint32_t number, uint32_t arm, const Shape& shape, uint32_t requests = 40, const Shape* slow = nullptr) {
    uint64_t begin = at_;
    for (uint32_t i = 0; i < requests; ++i) request(number, arm, i, slow && i < 10 ? *slow : shape);
    rows.rounds.push_back({number, arm, number / 2, begin, at_});
    return *this;
  }
  TraceRows rows;

 private:
  void request(uint32_t round, uint32_t arm, uint32_t sequence, const Shape& s) {
    uint64_t issue = at_, launched = issue + s.preempted + s.launch, start = launched + s.queue;
    if (s.preempted) rows.off_cpu.push_back({round, arm, 7, issue, issue + s.preempted, 0, 0});
    rows.off_cpu.push_back(
        {round, arm, 7, start, start + s.judged, 1, 0});  // asleep in the synchronise: no host's fault
    uint64_t judged_end = start + s.judged, end = judged_end + s.other + s.sync_tail;
    rows.api_calls.push_back({round, arm, sequence, 7, Phase::measured, "cuLaunchKernel", true, false, false,
                              issue + s.preempted, launched});
    rows.api_calls.push_back(
        {round, arm, sequence, 7, Phase::measured, "cuStreamSynchronize", false, true, false, launched, end});
    KernelRow k{};
    k.round = round, k.arm = arm, k.sequence = sequence, k.phase = Phase::measured, k.name = "judged", k.judged = true;
    k.launch_begin = issue + s.preempted, k.launch_end = launched, k.start = start, k.end = judged_end;
    k.grid[0] = 64, k.grid[1] = k.grid[2] = k.block[1] = k.block[2] = 1, k.block[0] = 128;
    rows.kernels.push_back(k);
    k.name = "other", k.judged = false, k.start = judged_end, k.end = judged_end + s.other, k.previous_end = judged_end;
    rows.kernels.push_back(k);
    rows.requests.push_back({round, arm, sequence, sequence, 7, Phase::measured, 0, issue, issue, end, 0, false});
    at_ = end + 1000;
  }
  uint64_t at_ = 1'000'000;
};

MetricVerdict metric(const std::string& id, double baseline, double candidate) {
  MetricVerdict verdict;
  verdict.id = id;
  verdict.gated = true;
  verdict.outcome = Outcome::fail;
  verdict.baseline = baseline;
  verdict.candidate = candidate;
  return verdict;
}

TEST(Breakdown, parts_of_a_request_add_up_to_its_service_time) {
  Rows made;
  made.round(0, 0, {}).round(1, 1, {.judged = 280, .preempted = 30});
  Breakdown b = break_down(made.rows, Span::service, false);
  ASSERT_EQ(b.pairs, 1u);
  EXPECT_EQ(b.samples, 40u);
  EXPECT_DOUBLE_EQ(b.baseline_total, 190);
  EXPECT_DOUBLE_EQ(b.candidate_total, 400);
  EXPECT_DOUBLE_EQ(part(b.baseline, Part::judged_kernel), 100);
  EXPECT_DOUBLE_EQ(part(b.candidate, Part::judged_kernel), 280);
  EXPECT_DOUBLE_EQ(part(b.candidate, Part::preempted), 30);
  EXPECT_DOUBLE_EQ(part(b.candidate, Part::launch_calls), 10);
  EXPECT_DOUBLE_EQ(part(b.candidate, Part::queueing), 10);
  EXPECT_DOUBLE_EQ(part(b.candidate, Part::other_kernels), 50);
  EXPECT_DOUBLE_EQ(part(b.candidate, Part::sync), 20);
  EXPECT_DOUBLE_EQ(part(b.candidate, Part::blocked), 0);
}

TEST(Breakdown, pairs_without_both_arms_and_disturbed_requests_are_left_out) {
  Rows made;
  made.round(0, 0, {}).round(1, 1, {}).round(2, 0, {.judged = 9000});
  made.rows.requests[3].quarantined = true;  // of the baseline: its twin goes too
  Breakdown b = break_down(made.rows, Span::service, false);
  EXPECT_EQ(b.pairs, 1u);
  EXPECT_EQ(b.samples, 39u);
  EXPECT_DOUBLE_EQ(b.baseline_total, 190);
  EXPECT_EQ(break_down({}, Span::service, true).pairs, 0u);
}

TEST(Explain, tail_of_the_service_time_names_the_judged_kernel_with_its_share) {
  Rows made;
  Shape slow{.queue = 30'000, .judged = 180'000};
  made.round(0, 0, {}).round(1, 1, {}, 40, &slow);
  std::string text = explain_metric(made.rows, metric("service.p99", 190, 210'000));
  EXPECT_NE(text.find("service.p99 +209.81 us: in the slowest 1 % of requests (10 a round, +209.89 us on average): "
                      "judged kernel +179.90 us (86 %), queueing +29.99 us (14 %)"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("unexplained"), std::string::npos) << text;
}

TEST(Explain, preemption_is_told_from_the_kernel) {
  Rows made;
  made.round(0, 0, {}).round(1, 1, {.preempted = 5000});
  std::string text = explain_metric(made.rows, metric("service.p50", 190, 5190));
  EXPECT_NE(text.find("preempted +5.00 us (100 %), judged kernel +0 ns"), std::string::npos) << text;
}

TEST(Explain, change_that_the_rows_do_not_show_is_unexplained) {
  Rows made;
  made.round(0, 0, {}).round(1, 1, {.judged = 600});
  std::string text = explain_metric(made.rows, metric("service.p50", 190, 10'000));
  EXPECT_NE(text.find("; unexplained: +9.31 us"), std::string::npos) << text;
}

TEST(Explain, stall_is_split_into_work_and_what_no_work_covers) {
  Rows made;
  made.round(0, 0, {}).round(1, 1, {.judged = 1100, .sync_tail = 1020});
  std::string text = explain_metric(made.rows, metric("sync_stall", 180, 2180));
  EXPECT_NE(text.find("waiting for: "), std::string::npos) << text;
  EXPECT_NE(text.find("judged kernel +1.00 us (50 %)"), std::string::npos) << text;
  EXPECT_NE(text.find("synchronisation beyond the GPU's work +1.00 us (50 %)"), std::string::npos) << text;
}

TEST(Explain, missing_scheduler_events_are_said) {
  Rows made;
  made.round(0, 0, {}).round(1, 1, {.judged = 1100});
  made.rows.off_cpu = {{0, 0, 7, 0, 1000, kUnknownState, 50}};
  std::string text = explain_metric(made.rows, metric("service.p50", 190, 1190));
  EXPECT_NE(text.find("the host's scheduling was not traced"), std::string::npos) << text;
}

TEST(Explain, kernel_time_names_the_launch_classes_that_lost) {
  Rows made;
  made.round(0, 0, {}).round(1, 1, {.judged = 150});
  for (auto& row : made.rows.kernels) {
    row.launch_class = row.sequence % 4 == 0;
    row.launch = row.launch_class;
    row.grid[0] = row.launch_class ? 512 : 64;
    if (row.launch_class && row.judged) row.end = row.start + 100;  // unchanged in both arms
  }
  std::string text = explain_metric(made.rows, metric("kernel_time.p50", 100, 150));
  EXPECT_NE(
      text.find("grid 64x1x1 block 128x1x1 (75 % of launches) p50 100 ns → 150 ns (+50.0 %), 100 % of the mean's"),
      std::string::npos)
      << text;
}

TEST(Explain, more_calls_are_named) {
  Rows made;
  made.round(0, 0, {}).round(1, 1, {});
  for (uint32_t i = 0; i < 40; ++i)
    made.rows.api_calls.push_back({1, 1, i, 7, Phase::measured, "cuMemAlloc_v2", false, false, true, 1, 2});
  std::string text = explain_metric(made.rows, metric("alloc_count", 0, 1));
  EXPECT_EQ(text, "alloc_count +1/request: cuMemAlloc_v2 0 → 1 a request");
}

TEST(Explain, figures_without_parts_have_no_sentence) {
  EXPECT_EQ(explain_metric({}, metric("spill_bytes", 0, 64)), "");
  EXPECT_EQ(explain_metric({}, metric("service.p99", 1, 2)), "");
  EXPECT_EQ(explain_metric({}, metric("no.such", 1, 2)), "");
}

TEST(Explain, names_the_three_largest_parts_and_the_judged_kernel_always) {
  Rows made;
  made.round(0, 0, {}).round(1, 1, {.launch = 5010, .queue = 4010, .judged = 110, .other = 3050, .sync_tail = 2020});
  std::string text = explain_metric(made.rows, metric("service.p50", 190, 14'200));
  EXPECT_NE(text.find("launch calls +5.00 us (36 %), queueing +4.00 us (29 %), judged kernel +10 ns (0 %), rest +5.00 "
                      "us (36 %)"),
            std::string::npos)
      << text;
}

TEST(Explain, gains_and_losses_that_cancel_have_no_shares) {
  Rows made;
  made.round(0, 0, {.judged = 5100}).round(1, 1, {.queue = 6010, .judged = 100});
  std::string text = explain_metric(made.rows, metric("service.p50", 5190, 6190));
  EXPECT_NE(text.find("queueing +6.00 us, judged kernel -5.00 us"), std::string::npos) << text;
  EXPECT_EQ(text.find('%'), std::string::npos) << text;
}

// A candidate that is faster alone but fills the device: the neighbour on another stream, launched at the same moment,
// now begins when it ends. Every pair has the same picture with a little noise.
void neighbours(test::Stream& s, uint32_t round, uint32_t arm, uint64_t begin) {
  uint32_t correlation = round * 10'000 + 1;
  uint64_t judged = (arm ? 9000 : 10'000) + round % 3 * 7, beside = 20'000 + round % 5 * 11;
  uint64_t delay = arm ? judged : 400;
  s.round(round, arm, begin, begin + 100'000'000, round / 2);
  for (uint32_t i = 0; i < 320; ++i) {
    uint64_t at = begin + 1000 + i * 100'000;
    s.request(round, i, at, at + 60'000);
    for (uint32_t launch : {0u, 1u}) {
      wire::LaunchRecord l{};
      l.begin = at + 100 + 200 * launch, l.end = l.begin + 100, l.sequence = l.request = i, l.launch = launch;
      l.phase = Phase::measured, l.thread = 7, l.replaced = arm == 1 && launch == 0, l.kernel = launch;
      s.add(wire::Kind::launch, round, l).api(l.begin + 1, l.end - 1, correlation);
      uint64_t start = l.end + 100 + (launch ? delay : 0);
      s.kernel(start, start + (launch ? beside : judged), correlation++, launch ? 3 : arm ? 2 : 1, 4, 1 + launch);
    }
  }
}

TEST(Explain, candidate_that_is_fast_alone_and_blocks_its_neighbours_fails_by_name) {
  TempDir dir;
  ArmKernels plan;
  plan.workload_kernels = {{"softmax", "id-softmax"}, {"gemm_on_the_other_stream", "id-gemm"}};
  plan.arm_kernels = {{}, {{"softmax_greedy", "id-greedy"}}};
  plan.judged_launch = {true, false};
  plan.launch_kernel = {0, 1};
  auto store = TraceStore::create(dir.path() / "trace.db", {"T0", {}}, plan);
  test::Stream s;
  s.name(1, "softmax").name(2, "softmax_greedy").name(3, "gemm_on_the_other_stream");
  for (uint32_t round = 0; round < 12; ++round) neighbours(s, round, round % 2, 1'000'000 + round * 200'000'000ull);
  CollectorHealth collector;
  store->add_block(s.bytes(), {}, {}, nullptr, &collector);

  MetricTable table = measure(*store, false);
  JudgeInput input;
  input.metrics = &table;
  input.health = store->health();
  for (const char* id : {"kernel_time.p50", "kernel_time.p99", "others.delay"}) {
    EffectiveLimit limit;
    limit.limit.metric = id;
    limit.limit.max_regression = 0.05;
    input.limits.push_back(limit);
  }
  JudgeResult result = judge(input);
  explain(*store, result.metrics);

  EXPECT_EQ(result.outcome, Outcome::fail);
  EXPECT_EQ(result.deciding, "others.delay");
  for (const auto& one : result.metrics) {
    if (one.id.starts_with("kernel_time.")) {
      EXPECT_EQ(one.outcome, Outcome::pass) << one.id;
      EXPECT_EQ(one.label, "faster");
      EXPECT_EQ(one.explanation, "");
    }
    if (one.id != "others.delay") continue;
    EXPECT_EQ(one.outcome, Outcome::fail);
    EXPECT_EQ(one.explanation.rfind("others.delay +8.6", 0), 0u) << one.explanation;
    EXPECT_NE(one.explanation.find("gemm_on_the_other_stream +8.6"), std::string::npos) << one.explanation;
    EXPECT_NE(one.explanation.find("of it before it began"), std::string::npos) << one.explanation;
    EXPECT_NE(one.explanation.find("the judged kernel itself takes 10.01 us → 9.01 us"), std::string::npos)
        << one.explanation;
  }
}

// What happened to a metric, and whether there is anything to explain.
TEST(Explain, only_what_failed_or_is_worse_has_a_sentence) {
  TempDir dir;
  auto store = TraceStore::create(dir.path() / "trace.db", {"T0", {}}, test::one_kernel());
  test::Stream s;
  s.name(1, "k").name(2, "v2").round(0, 0, 1000, 9999).round(1, 1, 20'000, 29'999);
  s.whole(0, 0, 2000, 10).whole(1, 0, 21'000, 11, 900);
  CollectorHealth collector;
  store->add_block(s.bytes(), {}, {}, nullptr, &collector);
  auto sentence = [&](Outcome outcome, double candidate, double lower, double upper, bool gated = true) {
    std::vector<MetricVerdict> metrics{metric("service.p50", 600, candidate)};
    metrics[0].outcome = outcome, metrics[0].gated = gated;
    metrics[0].effect = candidate / 600 - 1, metrics[0].lower = lower, metrics[0].upper = upper;
    explain(*store, metrics);
    return metrics[0].explanation;
  };
  EXPECT_NE(sentence(Outcome::fail, 1400, 1, 1.5), "");
  EXPECT_NE(sentence(Outcome::inconclusive, 1400, -0.5, 3), "");
  EXPECT_NE(sentence(Outcome::pass, 601, 0.0001, 0.01), "");
  EXPECT_EQ(sentence(Outcome::pass, 601, -0.01, 0.01), "");
  EXPECT_EQ(sentence(Outcome::pass, 500, -0.2, -0.1), "");
  EXPECT_EQ(sentence(Outcome::inconclusive, 590, -0.5, 0.5), "");
  EXPECT_EQ(sentence(Outcome::fail, 1400, 1, 1.5, false), "");
}

}  // namespace
}  // namespace kgate
