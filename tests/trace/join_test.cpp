#include "trace/join.h"

#include <gtest/gtest.h>

#include "stream.h"

namespace kgate::trace {
namespace {

using test::Stream;

TEST(Join, launch_finds_its_kernel_through_the_api_record_although_everything_is_out_of_order) {
  Stream s;
  s.kernel(300, 400, 12).kernel(100, 200, 11).api(52, 58, 12).launch(0, 1, 50, 60).api(12, 18, 11).launch(0, 0, 10, 20);
  Records r = read_records(s.bytes());
  Join join = join_records(r, {}, {});
  ASSERT_EQ(join.launches.size(), 2u);
  EXPECT_EQ(r.kernels[join.launches[0].kernel].start, 300u);
  EXPECT_EQ(r.kernels[join.launches[1].kernel].start, 100u);
  EXPECT_TRUE(join.free_kernels.empty());
}

TEST(Join, launches_of_two_threads_at_the_same_time_are_told_apart) {
  Stream s;
  s.launch(0, 0, 10, 20, 7)
      .launch(0, 1, 10, 20, 8)
      .api(12, 18, 2, 8)
      .api(12, 18, 1, 7)
      .kernel(30, 40, 1)
      .kernel(50, 60, 2);
  Records r = read_records(s.bytes());
  Join join = join_records(r, {}, {});
  EXPECT_EQ(r.kernels[join.launches[0].kernel].correlation, 1u);
  EXPECT_EQ(r.kernels[join.launches[1].kernel].correlation, 2u);
}

TEST(Join, api_record_is_used_once_and_only_inside_the_launch) {
  Stream s;
  s.launch(0, 0, 100'000, 100'020).launch(0, 1, 200'000, 200'020).api(150'000, 150'010, 1).kernel(1, 2, 1);
  Records r = read_records(s.bytes());
  Join join = join_records(r, {}, {});
  EXPECT_EQ(join.launches[0].api, kNoIndex);
  EXPECT_EQ(join.launches[1].api, kNoIndex);
  EXPECT_EQ(join.free_kernels.size(), 1u);
}

TEST(Join, calls_that_launch_nothing_are_not_taken_for_the_launch) {
  Stream s;
  s.launch(0, 0, 10, 50)
      .api(12, 14, 1, 7, gpu::CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize)
      .api(20, 30, 2)
      .kernel(60, 70, 2);
  Records r = read_records(s.bytes());
  EXPECT_EQ(r.apis[join_records(r, {}, {}).launches[0].api].correlation, 2u);
}

TEST(Join, second_kernel_of_a_correlation_id_is_left_free) {
  Stream s;
  s.launch(0, 0, 10, 20).api(12, 18, 5).kernel(90, 95, 5).kernel(30, 40, 5);
  Records r = read_records(s.bytes());
  Join join = join_records(r, {}, {});
  EXPECT_EQ(r.kernels[join.launches[0].kernel].start, 30u);
  ASSERT_EQ(join.free_kernels.size(), 1u);
  EXPECT_EQ(r.kernels[join.free_kernels[0]].start, 90u);
}

// Arm 0 launches graph 3 as two kernels, workload launches 4 and 5.
Stream graph_stream() {
  Stream s;
  s.round(0, 0, 1, 1'000'000);
  wire::GraphPlanRecord plan{};
  plan.graph = 3;
  plan.node = 0x200000000, plan.launch = 4;
  s.add(wire::Kind::graph_plan, wire::kNoRound, plan);
  plan.node = 0x200000001, plan.launch = 5, plan.item = 1;
  s.add(wire::Kind::graph_plan, wire::kNoRound, plan);
  return s;
}

void graph_call(Stream& s, uint64_t at, uint32_t correlation, bool with_second = true) {
  wire::GraphCallRecord call{};
  call.begin = at, call.end = at + 20, call.graph = 3, call.thread = 7, call.phase = wire::Phase::measured;
  s.add(wire::Kind::graph_call, 0, call);
  s.api(at + 2, at + 18, correlation, 7, gpu::CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch);
  for (uint32_t node = 0; node < (with_second ? 2 : 1); ++node) {
    wire::KernelRecord k{};
    k.start = at + 100 - 10 * node, k.end = k.start + 5, k.correlation = correlation;  // the second one starts first
    k.graph_node_lo = node, k.graph_node_hi = 2;
    s.add(wire::Kind::kernel, 0, k);
  }
}

TEST(Join, kernels_of_a_graph_call_are_told_apart_by_their_nodes) {
  Stream s = graph_stream();
  graph_call(s, 1000, 11), graph_call(s, 2000, 12);
  Records r = read_records(s.bytes());
  Join join = join_records(r, {}, {});
  ASSERT_EQ(r.launches.size(), 4u);
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(r.launches[i].launch, i % 2 == 0 ? 4u : 5u);
    ASSERT_NE(join.launches[i].kernel, kNoIndex);
    const auto& kernel = r.kernels[join.launches[i].kernel];
    EXPECT_EQ(kernel.graph_node_lo, i % 2);
    EXPECT_EQ(kernel.correlation, i < 2 ? 11u : 12u);
    EXPECT_EQ(r.apis[join.launches[i].api].correlation, kernel.correlation);
  }
  EXPECT_TRUE(join.free_kernels.empty());
}

TEST(Join, kernel_that_a_graph_call_lacks_is_not_replaced_by_another) {
  Stream s = graph_stream();
  graph_call(s, 1000, 11, false), graph_call(s, 2000, 12);
  Records r = read_records(s.bytes());
  Join join = join_records(r, {}, {});
  ASSERT_EQ(join.launches.size(), 4u);
  EXPECT_EQ(join.launches[1].kernel, kNoIndex);
  EXPECT_NE(join.launches[3].kernel, kNoIndex);
}

TEST(Join, graph_call_is_one_call_for_the_probes_however_many_kernels_it_has) {
  Stream s = graph_stream();
  graph_call(s, 1000, 11);
  s.launch(0, 1, 3'000, 3'020);
  std::vector<ProbeSymbol> symbols = {
      {"cuGraphLaunch", ProbeSymbol::Use::graph_launch, ProbeSymbol::Cost::emulated, 0, 0},
      {"cuLaunchKernel", ProbeSymbol::Use::launch, ProbeSymbol::Cost::emulated, 0, 0}};
  std::vector<HostEvent> events = {{HostEventKind::api, 1, 7, 3'002, 3'010, 0, 0},
                                   {HostEventKind::api, 0, 7, 1'002, 1'010, 0, 0}};
  Records r = read_records(s.bytes());
  Join join = join_records(r, events, symbols);
  ASSERT_EQ(join.launches.size(), 3u);
  EXPECT_EQ(join.launches[0].host, 0u);  // the plain launch
  EXPECT_EQ(join.launches[1].host, 1u);
  EXPECT_EQ(join.launches[2].host, 1u);
}

TEST(Join, graph_of_no_kernels_claims_its_call_all_the_same) {
  Stream s;
  s.round(0, 0, 1, 1'000'000);
  wire::GraphCallRecord call{};
  call.begin = 1000, call.end = 1020, call.thread = 7, call.phase = wire::Phase::measured;
  s.add(wire::Kind::graph_call, 0, call);
  Records r = read_records(s.bytes());
  EXPECT_TRUE(r.launches.empty());
  ASSERT_EQ(r.graph_calls.size(), 1u);
  EXPECT_EQ(join_records(r, {}, {}).launches.size(), 0u);
}

TEST(Join, graph_calls_of_more_kernels_than_there_can_be_are_refused) {
  Stream s = graph_stream();
  wire::GraphPlanRecord plan{};
  plan.graph = 3, plan.node = 9;
  for (int i = 0; i < 5000; ++i) s.add(wire::Kind::graph_plan, wire::kNoRound, plan);
  wire::GraphCallRecord call{};
  call.begin = 1000, call.end = 1020, call.graph = 3, call.phase = wire::Phase::measured;
  for (int i = 0; i < 5000; ++i) s.add(wire::Kind::graph_call, 0, call);
  Records r = read_records(s.bytes());
  EXPECT_LE(r.launches.size(), size_t{1} << 24);
  EXPECT_GE(r.bad, 1u);
  EXPECT_NE(r.first_bad.find("graph calls"), std::string::npos);
}

TEST(Join, host_events_are_matched_by_thread_and_time_when_there_is_no_cupti) {
  Stream s;
  s.launch(0, 0, 10'000, 10'020).launch(0, 1, 20'000, 20'020);
  std::vector<ProbeSymbol> symbols = {
      {"cuLaunchKernel", ProbeSymbol::Use::launch, ProbeSymbol::Cost::emulated, 0, 0},
      {"cuStreamSynchronize", ProbeSymbol::Use::sync, ProbeSymbol::Cost::emulated, 0, 0}};
  std::vector<HostEvent> events = {{HostEventKind::api, 0, 7, 20'002, 20'010, 0, 0},
                                   {HostEventKind::api, 1, 7, 10'001, 10'002, 0, 0},
                                   {HostEventKind::api, 0, 7, 10'003, 10'010, 0, 0}};
  Records r = read_records(s.bytes());
  Join join = join_records(r, events, symbols);
  EXPECT_EQ(join.launches[0].host, 2u);
  EXPECT_EQ(join.launches[1].host, 0u);
}

TEST(Join, previous_end_is_of_the_same_stream_and_includes_copies) {
  Stream s;
  s.kernel(100, 200, 1, 1, 4, 1).kernel(500, 600, 2, 1, 4, 1).kernel(150, 160, 3, 1, 4, 2);
  wire::MemoryRecord copy{};
  copy.start = 210, copy.end = 450, copy.stream = 1;
  s.add(wire::Kind::memory, 0, copy);
  Join join = join_records(read_records(s.bytes()), {}, {});
  EXPECT_EQ(join.previous_end, (std::vector<uint64_t>{0, 450, 0}));
}

TEST(Timeline, finds_the_round_and_the_request_of_a_time) {
  Stream s;
  s.round(4, 1, 1000, 2000).round(3, 0, 0, 900).request(4, 0, 1100, 1200).request(4, 1, 1300, 1400, 8);
  Records r = read_records(s.bytes());
  Timeline t(r);
  EXPECT_EQ(r.rounds[t.round_at(1500)].head.round, 4u);
  EXPECT_EQ(t.round_at(950), kNoIndex);
  EXPECT_EQ(t.round_at(2001), kNoIndex);
  EXPECT_EQ(t.request_at(4, 7, 1150), 0u);
  EXPECT_EQ(t.request_at(4, 8, 1150), kNoIndex);
  EXPECT_EQ(t.request_at(4, 8, 1400), 1u);
  EXPECT_EQ(t.round_index(3), 1u);
  EXPECT_EQ(t.round_index(5), kNoIndex);
}

}  // namespace
}  // namespace kgate::trace
