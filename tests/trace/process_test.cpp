// Traced applications: what is made of their records, and which finding each kind of broken trace gives.
#include <gtest/gtest.h>

#include "gpu/cupti_abi.h"
#include "stream.h"
#include "support/fd.h"
#include "trace/demangle.h"

namespace kgate {
namespace {

using test::health_of;
using test::Stream;
using namespace gpu;
constexpr auto kGraphLaunch = CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch;
constexpr auto kStreamSync = CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize;
constexpr uint32_t kBeginCapture = 540, kEndCapture = 498;  // cuStreamBeginCapture_v2_ptsz, cuStreamEndCapture_ptsz
constexpr uint64_t kMs = 1'000'000;

class Process : public ::testing::Test {
 protected:
  TempDir dir_;
  std::unique_ptr<TraceStore> store_ = TraceStore::create(dir_.path() / "run.db", {"T0", {}}, {});
  Stream stream_;
  ProcessTrace process_;

  Process() {
    process_.process = 77, process_.command = "app --x";
    process_.symbols = {{"cuLaunchKernel", ProbeSymbol::Use::launch, ProbeSymbol::Cost::emulated, 0, 0},
                        {"cuStreamSynchronize", ProbeSymbol::Use::sync, ProbeSymbol::Cost::emulated, 0, 0}};
    stream_.name(1, "k").name(2, "_Z3sumIfEvPT_");
  }
  void begin(uint64_t end = 900 * kMs) {
    stream_.add(wire::Kind::process, wire::kNoRound, wire::ProcessRecord{{}, kMs, end, 77, 1});
  }
  void collector(wire::CollectorRecord record = {}) { stream_.add(wire::Kind::collector, wire::kNoRound, record); }
  void take(bool whole = true) {
    if (whole) begin(), collector();
    process_.records = stream_.bytes();
    store_->add_process(process_);
  }
  void graph_kernel(uint64_t start, uint32_t correlation, uint32_t graph, uint32_t node) {
    wire::KernelRecord k{};
    k.start = start, k.end = start + 100, k.correlation = correlation, k.name = 1, k.graph = graph,
    k.graph_node_lo = node;
    stream_.add(wire::Kind::kernel, 0, k);
  }
  void graph_record(uint32_t graph, uint64_t time, uint32_t kernels, uint32_t open = 0) {
    stream_.add(wire::Kind::graph, wire::kNoRound, wire::GraphRecord{{}, time, graph, kernels, 0, 0, 0, open});
  }
  std::string value(const std::string& sql) {
    std::string text = "no row";
    auto result = store_->query(sql, [&](auto&, auto& values) { text = values[0].value_or("NULL"); });
    return result ? text : "error: " + result.failure().what;
  }
  // The rows that are past their limit.
  std::string not_ok() {
    std::string names;
    for (const HealthRow& row : store_->health())
      if (!row.ok()) names += (names.empty() ? "" : " ") + row.name;
    return names;
  }
  void probe() { process_.probes = ProbeHealth{}; }
};

TEST_F(Process, request_is_what_a_thread_asks_for_between_two_synchronisations) {
  stream_.api(2 * kMs, 2 * kMs + 10, 1, 7).kernel(3 * kMs, 3 * kMs + 100, 1);
  stream_.api(4 * kMs, 5 * kMs, 2, 7, kStreamSync);
  stream_.api(6 * kMs, 7 * kMs, 3, 7, kStreamSync);                            // nothing launched: no request
  stream_.api(8 * kMs, 8 * kMs + 10, 4, 8).kernel(9 * kMs, 9 * kMs + 300, 4);  // never waited for
  probe(), take();
  auto requests = store_->requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].issue, 2 * kMs);
  EXPECT_EQ(requests[0].end, 5 * kMs);
  auto kernels = store_->kernels();
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].sequence, 0u);
  EXPECT_EQ(kernels[1].sequence, 0xffffffffu);
  EXPECT_TRUE(kernels[1].judged);
  EXPECT_EQ(kernels[1].phase, wire::Phase::measured);
  EXPECT_EQ(kernels[1].thread, 8u);
  EXPECT_EQ(value("SELECT command FROM processes"), "app --x");
}

TEST_F(Process, every_entry_point_that_launches_is_known) {  // graph launches by the driver were missed elsewhere
  uint32_t correlation = 1;
  for (uint32_t cbid : {307u, 442u, 477u, 478u, 480u, 514u, 515u, 652u, 653u}) {
    stream_.api(2 * kMs + correlation * 1000, 2 * kMs + correlation * 1000 + 10, correlation, 7, cbid);
    graph_kernel(3 * kMs + correlation * 1000, correlation, cbid == 514 || cbid == 515 ? 5 : 0, 1);
    ++correlation;
  }
  take();
  EXPECT_EQ(value("SELECT COUNT(*) FROM api_calls WHERE is_launch"), "9");
  EXPECT_EQ(value("SELECT COUNT(*) FROM kernel_launches WHERE launch_ns IS NULL"), "0");
  EXPECT_EQ(health_of(*store_, "unmatched_kernels"), 0);
}

TEST_F(Process, correlation_id_that_wrapped_belongs_to_the_last_call_before_the_kernel) {
  stream_.kernel(60 * kMs, 60 * kMs + 5, 9).kernel(3 * kMs, 3 * kMs + 5, 9);
  stream_.api(50 * kMs, 50 * kMs + 10, 9).api(2 * kMs, 2 * kMs + 10, 9);
  probe(), take();
  auto kernels = store_->kernels();
  EXPECT_EQ(kernels[0].launch_begin, 50 * kMs);
  EXPECT_EQ(kernels[1].launch_begin, 2 * kMs);
}

TEST_F(Process, ids_of_two_processes_do_not_mix) {
  stream_.api(2 * kMs, 2 * kMs + 10, 1).kernel(3 * kMs, 3 * kMs + 100, 1);
  probe(), take();
  Stream other;
  other.name(1, "other").kernel(4 * kMs, 4 * kMs + 50, 1).api(2 * kMs + 500, 2 * kMs + 600, 1);
  ProcessTrace second;
  second.process = 78, second.parent = 77, second.records = other.bytes();
  store_->add_process(second);
  auto kernels = store_->kernels();
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[1].process, 78u);
  EXPECT_EQ(kernels[1].round, 1u);
  EXPECT_EQ(kernels[1].previous_end, 0u);
  EXPECT_EQ(kernels[1].launch_begin, 2 * kMs + 500);
}

TEST_F(Process, whole_trace_is_fit_to_judge) {
  stream_.api(2 * kMs, 2 * kMs + 10, 1).kernel(3 * kMs, 3 * kMs + 100, 1);
  process_.host_events = {{HostEventKind::api, 0, 7, 2 * kMs - 100, 2 * kMs + 100, 0, 0}};
  probe(), take();
  EXPECT_EQ(not_ok(), "");
  store_->finish();
  EXPECT_TRUE(store_->info().facts.contains("clock_uncertainty_ns"));
}

TEST_F(Process, lost_and_dropped_records_are_findings) {
  wire::CollectorRecord lossy{};
  lossy.dropped = 3;
  begin(), collector(lossy), probe(), take(false);
  EXPECT_EQ(not_ok(), "cupti_dropped");
}

TEST_F(Process, buffers_that_ran_out_forced_records_and_wide_clocks_are_findings) {
  wire::CollectorRecord bad{};
  bad.buffers_exhausted = 1, bad.forced = 1, bad.clock_half_width = 6'000, bad.clock_offset_end = 20'000;
  begin(), collector(bad), probe(), take(false);
  EXPECT_EQ(not_ok(), "clock_half_width_ns clock_offset_drift_ns cupti_buffers_exhausted cupti_forced");
}

TEST_F(Process, kernel_without_a_time_or_ending_before_it_starts_is_a_finding) {
  stream_.api(2 * kMs, 2 * kMs + 10, 1).kernel(0, 0, 1).api(3 * kMs, 3 * kMs + 10, 2).kernel(4 * kMs, 3 * kMs, 2);
  probe(), process_.host_events = {{HostEventKind::api, 0, 7, 2 * kMs, 2 * kMs + 20, 0, 0},
                                   {HostEventKind::api, 0, 7, 3 * kMs, 3 * kMs + 20, 0, 0}};
  take();
  EXPECT_EQ(not_ok(), "invalid_times");
  EXPECT_EQ(health_of(*store_, "invalid_times"), 2);
}

TEST_F(Process, launch_without_a_kernel_is_a_finding_although_nothing_was_reported_dropped) {
  stream_.api(2 * kMs, 2 * kMs + 10, 1);
  take();
  EXPECT_EQ(health_of(*store_, "unmatched_launches"), 1);
}

TEST_F(Process, captured_launch_runs_nothing_and_is_no_finding) {
  stream_.api(2 * kMs, 2 * kMs + 10, 1, 7, kBeginCapture).api(3 * kMs, 3 * kMs + 10, 2, 8);
  stream_.add(wire::Kind::graph_node, 0, wire::GraphNodeRecord{{}, 3 * kMs + 5, 8, 1});
  stream_.api(4 * kMs, 4 * kMs + 10, 3, 7, kEndCapture).api(5 * kMs, 5 * kMs + 10, 4, 8);
  take();
  EXPECT_EQ(health_of(*store_, "unmatched_launches"), 1);  // the one after the capture
  EXPECT_EQ(health_of(*store_, "launches_without_kernel"), 0);
  store_->finish();
  EXPECT_EQ(store_->info().facts.at("captured_launches"), "1");
}

TEST_F(Process, node_of_another_thread_or_kind_does_not_make_a_launch_a_captured_one) {
  stream_.api(3 * kMs, 3 * kMs + 10, 2, 8).api(5 * kMs, 5 * kMs + 10, 4, 8);
  stream_.add(wire::Kind::graph_node, 0, wire::GraphNodeRecord{{}, 3 * kMs + 5, 7, 1});
  stream_.add(wire::Kind::graph_node, 0, wire::GraphNodeRecord{{}, 3 * kMs + 5, 8, 0});
  stream_.add(wire::Kind::graph_node, 0, wire::GraphNodeRecord{{}, 4 * kMs, 8, 1});
  take();
  EXPECT_EQ(health_of(*store_, "unmatched_launches"), 2);
}

TEST_F(Process, launch_during_a_capture_that_made_no_node_is_shown_and_not_judged) {
  stream_.api(2 * kMs, 2 * kMs + 10, 1, 7, kBeginCapture).api(3 * kMs, 3 * kMs + 10, 2, 8);
  stream_.api(4 * kMs, 4 * kMs + 10, 3, 7, kEndCapture);
  process_.host_events = {{HostEventKind::api, 0, 8, 3 * kMs - 5, 3 * kMs + 20, 0, 0}};
  probe(), take();
  EXPECT_EQ(health_of(*store_, "launches_without_kernel"), 1);
  EXPECT_EQ(not_ok(), "");
}

TEST_F(Process, kernel_that_nothing_launched_is_a_finding) {
  stream_.kernel(2 * kMs, 3 * kMs, 1);
  take();
  EXPECT_EQ(health_of(*store_, "unmatched_kernels"), 1);
}

TEST_F(Process, graph_launch_that_lacks_a_kernel_is_a_finding) {
  graph_record(5, kMs, 3);
  stream_.api(2 * kMs, 2 * kMs + 10, 1, 7, kGraphLaunch);
  graph_kernel(3 * kMs, 1, 5, 10), graph_kernel(3 * kMs + 200, 1, 5, 11);
  take();
  EXPECT_EQ(health_of(*store_, "graph_nodes_missing"), 1);
  EXPECT_EQ(health_of(*store_, "unmatched_kernels"), 0);
  EXPECT_EQ(value("SELECT GROUP_CONCAT(graph_id || ':' || graph_node) FROM kernel_launches"), "5:10,5:11");
}

TEST_F(Process, without_a_graph_record_the_largest_launch_says_what_is_missing) {
  for (uint32_t launch = 1; launch <= 2; ++launch) {
    stream_.api(launch * 10 * kMs, launch * 10 * kMs + 10, launch, 7, kGraphLaunch);
    for (uint32_t node = launch; node <= 3; ++node) graph_kernel(launch * 10 * kMs + node * 1000, launch, 5, node);
  }
  take();
  EXPECT_EQ(health_of(*store_, "graph_nodes_missing"), 1);
}

TEST_F(Process, graph_id_that_is_used_again_is_another_graph) {
  graph_record(5, kMs, 2), graph_record(5, 15 * kMs, 1);
  stream_.api(10 * kMs, 10 * kMs + 10, 1, 7, kGraphLaunch).api(20 * kMs, 20 * kMs + 10, 2, 7, kGraphLaunch);
  graph_kernel(11 * kMs, 1, 5, 1), graph_kernel(12 * kMs, 1, 5, 2), graph_kernel(21 * kMs, 2, 5, 1);
  take();
  EXPECT_EQ(health_of(*store_, "graph_nodes_missing"), 0);
}

TEST_F(Process, graph_with_conditional_nodes_is_named_and_not_counted) {
  graph_record(5, kMs, 4, 1);
  stream_.api(2 * kMs, 2 * kMs + 10, 1, 7, kGraphLaunch);
  graph_kernel(3 * kMs, 1, 5, 1), graph_kernel(4 * kMs, 1, 5, 1);
  probe(), process_.symbols.push_back({"cuGraphLaunch", ProbeSymbol::Use::graph_launch, {}, 0, 0});
  process_.host_events = {{HostEventKind::api, 2, 7, 2 * kMs, 2 * kMs + 20, 0, 0}};
  take();
  EXPECT_EQ(health_of(*store_, "graphs_uncountable"), 1);
  EXPECT_EQ(not_ok(), "");
}

TEST_F(Process, process_that_did_not_end_in_order_is_a_finding) {
  begin(0), collector(), probe(), take(false);
  EXPECT_EQ(not_ok(), "unfinished_processes");
}

TEST_F(Process, child_that_used_cuda_and_was_not_probed_is_a_finding) {
  take();
  EXPECT_EQ(not_ok(), "unprobed_children");
}

TEST_F(Process, events_that_the_ring_had_no_room_for_are_findings_by_kind) {
  probe();
  process_.probes->lost_api = 1, process_.probes->lost_sched = 2, process_.probes->lost_fork = 3;
  process_.probes->unmatched_returns = 4;
  take();
  EXPECT_EQ(not_ok(), "ring_lost_api ring_lost_fork ring_lost_sched unmatched_returns");
}

TEST_F(Process, launch_that_only_the_probes_saw_is_a_finding) {
  process_.host_events = {{HostEventKind::api, 0, 7, 2 * kMs, 2 * kMs + 20, 0, 0},
                          {HostEventKind::api, 0, 7, 2 * kMs + 5, 2 * kMs + 10, 0, 0}};  // inside: counts once
  probe(), take();
  EXPECT_EQ(health_of(*store_, "host_launches_vs_launches"), 1);
}

TEST_F(Process, worker_s_records_in_an_application_are_findings) {
  stream_.round(0, 0, 1, 2).launch(0, 0, 1, 2);
  probe(), take();
  EXPECT_EQ(health_of(*store_, "record_stream_bad"), 2);
}

TEST_F(Process, wait_below_the_clock_uncertainty_is_not_known) {
  stream_.api(2 * kMs, 2 * kMs + 10, 1).kernel(2 * kMs + 3'000, 2 * kMs + 9'000, 1);       // bound by its launch
  stream_.api(2 * kMs + 20, 2 * kMs + 30, 2).kernel(2 * kMs + 9'500, 2 * kMs + 9'900, 2);  // by the kernel before
  stream_.api(5 * kMs, 5 * kMs + 10, 3).kernel(6 * kMs, 6 * kMs + 100, 3);                 // bound, and far
  take();
  auto kernels = store_->kernels();
  EXPECT_EQ(kernels[0].queue_ns, std::nullopt);
  EXPECT_EQ(kernels[1].queue_ns, 500u);
  EXPECT_EQ(kernels[2].queue_ns, kMs - 10);
  EXPECT_EQ(health_of(*store_, "launch_to_start_unknown"), 1);
}

TEST_F(Process, call_is_split_by_what_its_thread_did_off_the_cpu) {
  process_.host_events = {{HostEventKind::api, 1, 7, 1000, 2000, 0, 0},
                          {HostEventKind::off_cpu, 0, 7, 500, 1200, 1, 100},   // wakes at 1100: reaches in
                          {HostEventKind::off_cpu, 0, 7, 1300, 1400, 0, 100},  // preempted
                          {HostEventKind::off_cpu, 0, 7, 1900, 2500, 2, 50},   // reaches out
                          {HostEventKind::off_cpu, 0, 8, 1000, 2000, 1, 0}};   // another thread
  take();
  auto calls = store_->host_calls();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].blocked_ns, 100u + 100u);
  EXPECT_EQ(calls[0].preempted_ns, 100u);
  EXPECT_EQ(calls[0].run_queue_ns, 100u);
  EXPECT_EQ(value("SELECT on_cpu_ns FROM host_calls"), "600");
}

TEST_F(Process, names_keep_their_mangled_form_beside_one_for_people) {
  stream_.name(3, "say \"hi\", it's {a}").api(2 * kMs, 2 * kMs + 10, 1).kernel(3 * kMs, 3 * kMs + 9, 1, 2);
  stream_.api(4 * kMs, 4 * kMs + 10, 2).kernel(5 * kMs, 5 * kMs + 9, 2, 3);
  process_.kernel_ids = {{"_Z3sumIfEvPT_", "abc"}};
  take();
  EXPECT_EQ(value("SELECT demangled FROM kernel_launches WHERE kernel_name = '_Z3sumIfEvPT_' AND kernel_id = 'abc'"),
            "void sum<float>(float*)");
  EXPECT_EQ(value("SELECT demangled FROM kernel_launches WHERE kernel_id = ''"), "say \"hi\", it's {a}");
}

TEST(ShortName, drops_return_type_and_parameters_and_keeps_template_arguments) {
  for (auto [name, expected] : {
           std::pair{"void sum<float>(float*)", "sum<float>"},
           {"void (anonymous namespace)::f<int (*)(int)>(int (*)(int), long)",
            "(anonymous namespace)::f<int (*)(int)>"},
           {"std::pair<int, int> ns::g<unsigned int>(int)", "ns::g<unsigned int>"},
           {"ns::Less::operator()(int)", "ns::Less::operator()"},
           {"bool operator< <int>(int)", "bool operator< <int>"},
           {"softmax_kernel", "softmax_kernel"},
           {"say \"hi\" (x", "say \"hi\" (x"},
           {")", ")"},
           {"()", "()"},
           {"", ""},
       })
    EXPECT_EQ(trace::short_kernel_name(name, 60), expected) << name;
}

TEST(ShortName, long_ones_keep_both_ends_and_fit) {
  std::string name = "void at::native::elementwise<" + std::string(300, 'x') + ", Gelu>(int, float)";
  std::string shortened = trace::short_kernel_name(name, 60);
  EXPECT_EQ(shortened.size(), 60u);
  EXPECT_TRUE(shortened.starts_with("at::native::elementwise<")) << shortened;
  EXPECT_TRUE(shortened.ends_with(", Gelu>")) << shortened;
  EXPECT_EQ(trace::short_kernel_name(std::string(200, '('), 60).size(), 60u);
}

TEST(Demangle, name_that_stands_for_gigabytes_stays_itself) {
  std::string bomb = "_Z1f1AIiiE", digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (size_t i = 0; i < 34; ++i) {
    std::string last = std::string("S") + digits[i] + "_";
    bomb += "S_I" + last + last + "E";
  }
  EXPECT_EQ(trace::demangle({"_Z1gv", bomb, "plain", "_Zbroken"}),
            (std::vector<std::string>{"g()", bomb, "plain", "_Zbroken"}));
}

}  // namespace
}  // namespace kgate
