// The pure functions that metrics are made of.

#include "judge/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "../trace/stream.h"
#include "support/fd.h"

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

// One round of hand-made records, measured.
class Measure : public ::testing::Test {
 protected:
  TempDir dir_;
  test::Stream stream_;
  std::vector<HostEvent> host_events_;
  CollectorHealth collector_;

  Measure() { stream_.name(1, "k").round(0, 0, 1000, 900'000); }
  void sync(uint64_t start, uint64_t end, uint32_t thread, uint32_t cbid, uint32_t correlation) {
    stream_.api(start, end, correlation, thread, cbid);
  }
  void sync_record(uint64_t start, uint64_t end, uint32_t correlation, uint32_t type = 3) {
    stream_.add(wire::Kind::sync, 0, wire::SyncRecord{{}, start, end, type, correlation, 1, 1});
  }
  std::optional<double> value(const std::string& id, bool judged = true) {
    ArmKernels plan = test::one_kernel(1);
    plan.judged_launch[0] = judged;
    auto store = TraceStore::create(dir_.path() / "m.db", {"T0", {}}, plan);
    store->add_block(stream_.bytes(), host_events_, {}, nullptr, &collector_);
    MetricTable table = measure(*store, false);
    auto found = table.find(id);
    return found != table.end() && !found->second.pairs.empty() ? found->second.pairs[0].baseline : std::nullopt;
  }
};
using namespace gpu;

TEST_F(Measure, sync_stall_counts_each_moment_of_a_thread_once) {
  stream_.request(0, 0, 2000, 90'000, 7).request(0, 1, 2000, 90'000, 8);
  sync(50'000, 50'000, 7, CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, 9);  // no length
  sync(10'000, 20'000, 7, CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize, 1);
  sync(12'000, 15'000, 7, CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, 2);      // inside the other
  sync_record(11'000, 19'000, 1);                                            // CUPTI's own record of it
  sync(18'000, 25'000, 7, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2, 3);       // blocks, and overlaps
  sync(10'000, 14'000, 8, CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize, 4);    // another thread waits, too
  sync(30'000, 40'000, 7, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2, 5);  // does not block
  sync(60'000, 70'000, 7, CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent, 6);     // the stream waits, not the host
  sync_record(61'000, 69'000, 6, 2);
  EXPECT_EQ(value("sync_stall"), (15'000 + 4'000) / 2.0);
  EXPECT_EQ(value("sync_count"), 5 / 2.0);
}

TEST_F(Measure, wait_that_only_cupti_saw_counts_as_a_stall) {
  stream_.request(0, 0, 2000, 90'000, 7);
  sync(30'000, 40'000, 7, CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2, 5);
  sync_record(31'000, 39'000, 5);
  EXPECT_EQ(value("sync_stall"), 8'000);
  EXPECT_EQ(value("sync_count"), 0);
}

TEST_F(Measure, kernel_waits_for_what_ran_before_it_and_not_for_the_queue_s_length) {
  stream_.request(0, 0, 2000, 400'000);
  stream_.launch(0, 0, 3000, 3100).api(3010, 3090, 1).kernel(103'090, 150'000, 1);  // 100 us after its launch
  stream_.launch(0, 0, 3200, 3300).api(3210, 3290, 2).kernel(150'700, 151'000, 2);  // 700 ns after the other
  EXPECT_EQ(value("queue_wait.p99"), 100'000);
  EXPECT_EQ(value("others.delay", false), (150'000 - 3090) + (151'000 - 150'000));
  EXPECT_EQ(value("others.delay"), 0);
  EXPECT_EQ(value("launch_count"), 2);
  EXPECT_EQ(value("launch_api.p99"), 80);
}

// Two kernels are judged in the baseline's round, and the candidate launches one in their place, or none.
TEST_F(Measure, launches_without_partners_are_summed_over_their_request) {
  ArmKernels plan = test::one_kernel(3);
  plan.judged_launch = {true, true, false};
  stream_.round(1, 1, 1'000'000, 1'900'000);
  stream_.request(0, 0, 2000, 90'000).request(0, 1, 100'000, 190'000).request(0, 2, 200'000, 290'000);
  stream_.launch(0, 0, 3000, 3100).api(3010, 3090, 1).kernel(4'000, 5'000, 1);
  stream_.launch(0, 0, 6000, 6100, 7, 1).api(6010, 6090, 2).kernel(7'000, 7'500, 2);
  stream_.launch(0, 1, 101'000, 101'100, 7, 1).api(101'010, 101'090, 3).kernel(102'000, 102'300, 3);
  stream_.launch(0, 2, 201'000, 201'100, 7, 2).api(201'010, 201'090, 4).kernel(202'000, 209'000, 4);  // not judged
  for (uint32_t sequence : {0, 1, 2}) {
    uint64_t begin = 1'002'000 + 100'000 * sequence;
    stream_.request(1, sequence, begin, begin + 50'000);
  }
  stream_.launch(1, 0, 1'003'000, 1'003'100).api(1'003'010, 1'003'090, 5).kernel(1'004'000, 1'004'900, 5);
  auto measured = [&](bool sums) {
    plan.sum_requests = sums;
    auto store = TraceStore::create(dir_.path() / "m.db", {"T0", {}}, plan);
    store->add_block(stream_.bytes(), host_events_, {}, nullptr, &collector_);
    EXPECT_EQ(class_times(*store).empty(), sums);
    return measure(*store, false).at("kernel_time.p99").pairs.at(0);
  };
  EXPECT_EQ(measured(false).baseline, 1'000);  // of a launch
  EXPECT_EQ(measured(true).baseline, 1'500);   // of a request
  EXPECT_EQ(measured(true).candidate, 900);
  plan.sum_requests = true;
  auto store = TraceStore::create(dir_.path() / "n.db", {"T0", {}}, plan);
  store->add_block(stream_.bytes(), host_events_, {}, nullptr, &collector_);
  MetricTable table = measure(*store, false);
  EXPECT_EQ(table.at("kernel_time.p50").samples_per_round, 2u);  // the third request has no judged launch in any arm
  EXPECT_EQ(table.at("kernel_time.p50").pairs.at(0).baseline, 300);
  EXPECT_EQ(table.at("kernel_time.p50").pairs.at(0).candidate, 0);
}

TEST_F(Measure, host_scheduling_is_of_the_threads_that_issued_requests_and_of_the_measured_part) {
  stream_.request(0, 0, 10'000, 20'000, 7);
  host_events_ = {{HostEventKind::off_cpu, 0, 7, 12'000, 15'000, 1, 400},  // sleeps 2600, then waits for a CPU
                  {HostEventKind::off_cpu, 0, 7, 9'000, 10'500, 0, 1500},  // preempted, half before the first issue
                  {HostEventKind::off_cpu, 0, 7, 30'000, 40'000, 1, 0},    // after the last request
                  {HostEventKind::off_cpu, 0, 8, 10'000, 20'000, 1, 0}};   // the driver's own thread
  EXPECT_EQ(value("blocked"), 2'600);
  EXPECT_EQ(value("preempted"), 500);
  EXPECT_EQ(value("runqueue"), 400 + 500);
}

TEST_F(Measure, without_switches_nothing_is_said_of_sleep_and_preemption) {
  stream_.request(0, 0, 10'000, 20'000, 7);
  host_events_ = {{HostEventKind::off_cpu, 0, 7, 10'000, 20'000, kUnknownState, 300}};
  EXPECT_EQ(value("blocked"), std::nullopt);
  EXPECT_EQ(value("preempted"), std::nullopt);
  EXPECT_EQ(value("runqueue"), 300);
}

TEST_F(Measure, allocations_and_frees_are_counted) {
  stream_.request(0, 0, 2000, 90'000, 7);
  sync(3000, 3010, 7, CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, 1);
  sync(4000, 4010, 7, CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2, 2);
  EXPECT_EQ(value("alloc_count"), 2);
}

}  // namespace
}  // namespace kgate
