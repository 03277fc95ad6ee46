// Applications that use the CUDA runtime: CUPTI's kernels refer to the runtime's call, whose driver call is recorded or
// not, and the probes see the driver's call inside it. Each launch and each wait counts once.
#include <gtest/gtest.h>

#include "gpu/cupti_abi.h"
#include "stream.h"
#include "support/fd.h"
#include "trace/driver_calls.h"
#include "trace/nested_calls.h"

namespace kgate {
namespace {

using test::health_of;
using test::Stream;
using namespace gpu;

constexpr uint64_t kMs = 1'000'000;
constexpr uint32_t runtime(uint32_t cbid) { return cbid | wire::kRuntimeCall; }
constexpr uint32_t kMalloc = runtime(20), kMemcpy = runtime(31), kStreamSync = runtime(131), kLaunch = runtime(211),
                   kGraphLaunch = runtime(311), kBeginCapture = runtime(315), kEndCapture = runtime(319);
constexpr uint32_t kDriverLaunch = CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                   kDriverSync = CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize,
                   kDriverCopy = CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2,
                   kDriverAlloc = CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2;

class Runtime : public ::testing::Test {
 protected:
  TempDir dir_;
  std::unique_ptr<TraceStore> store_ = TraceStore::create(dir_.path() / "run.db", {"T0", {}}, {});
  Stream stream_;
  ProcessTrace process_;

  Runtime() {
    process_.process = 77, process_.probes = ProbeHealth{};
    process_.symbols = {{"cuLaunchKernel", ProbeSymbol::Use::launch, ProbeSymbol::Cost::emulated, 0, 0},
                        {"cuGraphLaunch", ProbeSymbol::Use::graph_launch, ProbeSymbol::Cost::emulated, 0, 0}};
    stream_.name(1, "k");
    stream_.add(wire::Kind::process, wire::kNoRound, wire::ProcessRecord{{}, kMs, 900 * kMs, 77, 1});
    stream_.add(wire::Kind::collector, wire::kNoRound, wire::CollectorRecord{});
  }
  void probed(uint64_t begin, uint64_t end, uint16_t symbol = 0, uint32_t thread = 7) {
    process_.host_events.push_back({HostEventKind::api, symbol, thread, begin, end, 0, 0});
  }
  void failed(uint64_t start, uint32_t cbid) {
    stream_.add(wire::Kind::api, 0, wire::ApiRecord{{}, start, start + 10, cbid, 99, 7, 9});
  }
  void take() {
    process_.records = stream_.bytes();
    store_->add_process(process_);
  }
  std::string not_ok() {
    std::string names;
    for (const HealthRow& row : store_->health())
      if (!row.ok()) names += (names.empty() ? "" : " ") + row.name;
    return names;
  }
  std::string value(const std::string& sql) {
    std::string text = "no row";
    auto result = store_->query(sql, [&](auto&, auto& values) { text = values[0].value_or("NULL"); });
    return result ? text : "error: " + result.failure().what;
  }
  std::string count(const std::string& what) { return value("SELECT COUNT(*) FROM api_calls WHERE " + what); }
};

TEST_F(Runtime, launch_without_a_record_of_the_driver_has_its_kernel_and_its_probe_hit) {
  stream_.api(2 * kMs, 2 * kMs + 50, 1, 7, kLaunch).kernel(3 * kMs, 3 * kMs + 100, 1);
  probed(2 * kMs + 10, 2 * kMs + 40);
  take();
  EXPECT_EQ(not_ok(), "");
  EXPECT_EQ(count("is_launch"), "1");
  EXPECT_EQ(value("SELECT name FROM api_calls"), "cudaLaunchKernel");
  EXPECT_EQ(store_->kernels()[0].launch_begin, 2 * kMs);
  EXPECT_EQ(store_->kernels()[0].launch_end, 2 * kMs + 50);
}

TEST_F(Runtime, launch_with_both_records_counts_once_whichever_its_kernel_refers_to) {
  stream_.api(2 * kMs + 10, 2 * kMs + 40, 1, 7, kDriverLaunch).api(2 * kMs, 2 * kMs + 50, 1, 7, kLaunch);
  stream_.kernel(3 * kMs, 3 * kMs + 100, 1);
  stream_.api(4 * kMs, 4 * kMs + 50, 2, 7, kLaunch).api(4 * kMs + 10, 4 * kMs + 40, 3, 7, kDriverLaunch);
  stream_.kernel(5 * kMs, 5 * kMs + 100, 3);  // the driver's own id
  probed(2 * kMs + 10, 2 * kMs + 40), probed(4 * kMs + 10, 4 * kMs + 40);
  take();
  EXPECT_EQ(not_ok(), "");
  EXPECT_EQ(count("1"), "4");
  EXPECT_EQ(count("is_launch"), "2");
  EXPECT_EQ(count("is_launch AND name = 'cudaLaunchKernel'"), "2");
  EXPECT_EQ(store_->kernels()[1].launch_begin, 4 * kMs);
}

TEST_F(Runtime, records_whose_clock_reads_cross_are_told_by_their_id) {
  stream_.api(2 * kMs, 2 * kMs + 50, 1, 7, kLaunch).api(2 * kMs - 3, 2 * kMs + 40, 1, 7, kDriverLaunch);
  stream_.kernel(3 * kMs, 3 * kMs + 100, 1);
  probed(2 * kMs, 2 * kMs + 45);
  take();
  EXPECT_EQ(not_ok(), "");
  EXPECT_EQ(count("is_launch"), "1");
}

TEST_F(Runtime, launches_of_both_kinds_in_two_threads_keep_apart) {
  stream_.api(2 * kMs, 2 * kMs + 50, 1, 7, kLaunch).kernel(3 * kMs, 3 * kMs + 100, 1);
  stream_.api(2 * kMs + 10, 2 * kMs + 40, 2, 8, kDriverLaunch).kernel(4 * kMs, 4 * kMs + 100, 2);  // in time only
  stream_.api(5 * kMs, 5 * kMs + 50, 3, 7, kDriverLaunch).kernel(6 * kMs, 6 * kMs + 100, 3);
  probed(2 * kMs + 5, 2 * kMs + 45), probed(2 * kMs + 5, 2 * kMs + 45, 0, 8), probed(5 * kMs - 5, 5 * kMs + 55);
  take();
  EXPECT_EQ(not_ok(), "");
  EXPECT_EQ(count("is_launch"), "3");
}

TEST_F(Runtime, lost_launch_is_still_a_finding) {
  stream_.api(2 * kMs, 2 * kMs + 50, 1, 7, kLaunch).api(2 * kMs + 10, 2 * kMs + 40, 1, 7, kDriverLaunch);
  probed(2 * kMs + 10, 2 * kMs + 40);
  take();
  EXPECT_EQ(not_ok(), "unmatched_launches");
  EXPECT_EQ(health_of(*store_, "unmatched_launches"), 1);
}

TEST_F(Runtime, launch_that_only_the_probes_saw_is_a_finding) {
  stream_.api(2 * kMs, 2 * kMs + 50, 1, 7, kLaunch).kernel(3 * kMs, 3 * kMs + 100, 1);
  probed(2 * kMs + 10, 2 * kMs + 40), probed(8 * kMs, 8 * kMs + 30);
  take();
  EXPECT_EQ(not_ok(), "host_launches_vs_launches");
}

TEST_F(Runtime, launch_that_the_runtime_refuses_never_reached_the_driver) {
  failed(2 * kMs, kLaunch);
  take();
  EXPECT_EQ(not_ok(), "");
}

TEST_F(Runtime, graph_launch_by_the_runtime_brings_all_kernels_of_its_graph) {
  stream_.add(wire::Kind::graph, wire::kNoRound, wire::GraphRecord{{}, kMs, 5, 2, 0, 0, 0, 0});
  stream_.api(2 * kMs, 2 * kMs + 50, 1, 7, kGraphLaunch);
  for (uint32_t node : {10u, 11u}) {
    wire::KernelRecord k{};
    k.start = 3 * kMs + node, k.end = k.start + 1, k.correlation = 1, k.name = 1, k.graph = 5, k.graph_node_lo = node;
    stream_.add(wire::Kind::kernel, 0, k);
  }
  probed(2 * kMs + 10, 2 * kMs + 40, 1);
  take();
  EXPECT_EQ(not_ok(), "");
  EXPECT_EQ(health_of(*store_, "graph_nodes_missing"), 0);
  store_->finish();
  EXPECT_EQ(store_->info().facts.at("graph_launches"), "1");
}

TEST_F(Runtime, waits_copies_and_allocations_count_once) {
  stream_.api(2 * kMs, 3 * kMs, 1, 7, kStreamSync).api(2 * kMs + 10, 3 * kMs - 10, 2, 7, kDriverSync);
  stream_.api(4 * kMs, 5 * kMs, 3, 7, kMemcpy).api(4 * kMs + 10, 5 * kMs - 10, 4, 7, kDriverCopy);
  stream_.api(6 * kMs, 7 * kMs, 5, 7, kMalloc).api(6 * kMs + 10, 7 * kMs - 10, 6, 7, kDriverAlloc);
  stream_.api(8 * kMs, 9 * kMs, 7, 7, kDriverSync);
  take();
  EXPECT_EQ(count("is_sync"), "3");
  EXPECT_EQ(count("is_alloc"), "1");
  EXPECT_EQ(value("SELECT SUM(end_ns - start_ns) FROM api_calls WHERE is_sync"), std::to_string(3 * kMs));
}

TEST_F(Runtime, call_that_is_more_than_the_one_around_it_counts_for_itself) {
  stream_.api(2 * kMs, 3 * kMs, 1, 7, kMalloc).api(2 * kMs + 10, 3 * kMs - 10, 2, 7, kDriverSync);
  stream_.api(4 * kMs, 5 * kMs, 3, 7, runtime(4000)).api(4 * kMs + 10, 5 * kMs - 10, 4, 7, kDriverLaunch);
  stream_.kernel(6 * kMs, 6 * kMs + 10, 4);
  probed(4 * kMs, 5 * kMs);
  take();
  EXPECT_EQ(not_ok(), "");
  EXPECT_EQ(count("is_sync AND name = 'cuStreamSynchronize'"), "1");
  EXPECT_EQ(count("is_launch AND name = 'cuLaunchKernel'"), "1");
  EXPECT_EQ(count("name = 'runtime call 4000'"), "1");
}

TEST_F(Runtime, request_ends_with_the_wait_of_the_runtime) {
  stream_.api(2 * kMs, 2 * kMs + 50, 1, 7, kLaunch).kernel(3 * kMs, 3 * kMs + 100, 1);
  stream_.api(4 * kMs, 5 * kMs, 2, 7, kStreamSync).api(4 * kMs + 10, 5 * kMs - 10, 3, 7, kDriverSync);
  take();
  auto requests = store_->requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].issue, 2 * kMs);
  EXPECT_EQ(requests[0].end, 5 * kMs);
}

TEST_F(Runtime, capture_by_the_runtime_excuses_a_launch_by_the_driver) {
  stream_.api(2 * kMs, 2 * kMs + 10, 1, 7, kBeginCapture).api(3 * kMs, 3 * kMs + 10, 2, 7, kDriverLaunch);
  stream_.add(wire::Kind::graph_node, 0, wire::GraphNodeRecord{{}, 3 * kMs + 5, 7, 1});
  stream_.api(4 * kMs, 4 * kMs + 10, 3, 7, kEndCapture);
  probed(3 * kMs - 5, 3 * kMs + 15);
  take();
  EXPECT_EQ(not_ok(), "");
}

TEST(NestedCalls, marks_of_the_writer_are_not_taken_over) {
  Stream stream;
  stream.api(1, 2, 1, 7, kDriverLaunch | wire::kNestedCall);
  EXPECT_EQ(trace::read_records(stream.bytes()).apis[0].cbid, kDriverLaunch);
}

TEST(NestedCalls, hostile_nests_and_ids_end_in_time_and_inside_the_vectors) {
  Stream stream;
  for (uint32_t i = 0; i < 100'000; ++i)
    stream.api(1 + i, 400'000 - i, i % 3, 7, i % 2 != 0 ? kLaunch : 0xffffffff - i);
  trace::Records records = trace::read_records(stream.bytes());
  ASSERT_EQ(records.outer.size(), records.apis.size());
  for (uint32_t outer : records.outer) {
    ASSERT_LT(outer, records.apis.size());
    EXPECT_EQ(records.outer[outer], outer);
  }
}

TEST(RuntimeCalls, every_way_to_launch_wait_and_allocate_is_known) {
  for (uint32_t id : {13u, 211u, 213u, 214u, 269u, 270u, 272u, 311u, 312u, 430u, 431u, 505u, 506u})
    EXPECT_TRUE(trace::driver_call(runtime(id)).is_launch) << id;
  for (uint32_t id : {126u, 131u, 137u, 165u, 239u, 31u, 215u})
    EXPECT_TRUE(trace::driver_call(runtime(id)).is_sync) << id;
  for (uint32_t id : {20u, 22u, 206u, 373u, 374u, 375u, 376u})
    EXPECT_TRUE(trace::driver_call(runtime(id)).is_alloc) << id;
  EXPECT_FALSE(trace::driver_call(runtime(41)).is_sync);  // cudaMemcpyAsync
  EXPECT_EQ(trace::driver_call(runtime(506)).name, "__cudaLaunchKernel_ptsz");
  EXPECT_EQ(trace::driver_call(runtime(4095)).name, "runtime call 4095");
  EXPECT_EQ(trace::driver_call(0xffffffff).name, "unknown runtime call");
}

}  // namespace
}  // namespace kgate
