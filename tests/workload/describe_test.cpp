// What people are told of a workload: everything that matters, on one screen, however large or hostile it is.
#include <gtest/gtest.h>

#include <algorithm>

#include "recorded_sample.h"
#include "sample.h"
#include "workload/build.h"

namespace kgate {
namespace {

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Describe, a_recording_says_where_it_is_from_and_what_is_in_it) {
  const std::string text = describe_workload(test::recorded_sample().workload);
  EXPECT_HAS(text, "on NVIDIA H200 (sm_90, 132 multiprocessors, driver 13.0), 2026-03-01T12:00:00Z");
  EXPECT_HAS(text, "command   ./serve --model tiny");
  EXPECT_HAS(text, "4 of 2 to 4 calls, 2 threads, 2 events");
  EXPECT_HAS(text, "2 waits of a thread for another thread's call");
  EXPECT_HAS(text, "4 (1 non_blocking, 1 blocking, 1 legacy, 1 per_thread; 1 with a priority)");
  EXPECT_HAS(text,
             "graph 0           1 launches of 8 nodes (2 kernel, 1 copy, 1 memset, 1 event_record, 1 event_wait, 1 "
             "host_function, 1 empty)");
  EXPECT_HAS(text, "upload 1.00 MiB");  // rows times bytes: 2 * 32 + 1 MiB + 4 KiB + 8
  EXPECT_HAS(text, "unknown: kept as recorded, since no replay");
  EXPECT_HAS(text, "managed memory is replayed as device memory");
  EXPECT_HAS(text, "with PTX");
}

TEST(Describe, launches_of_graphs_count_once_a_graph_launch) {
  Workload w = test::recorded_sample().workload;
  w.calls[6].kind = CallKind::graph_launch, w.calls[6].graph = 0;
  const std::string text = describe_workload(w);
  EXPECT_HAS(text, "5 of 2 kernels, 4 of them by graphs");
  EXPECT_HAS(text, "60.0 %");  // gemm: once by itself, once in each of two graph launches
  EXPECT_HAS(text, "40.0 %");
}

TEST(Describe, fidelity_is_told_in_words) {
  Workload w = test::recorded_sample().workload;
  EXPECT_HAS(describe_workload(w),
             "replayed  on NVIDIA H200, driver 13.0: 98.0 % of 100 blocks of memory equal, 2 of 3 "
             "buffers at their recorded address; 97.0 % equal with all addresses shifted");
  w.fidelity[0] = {"x", 5'120'000, 5'119'999, 12, 12, 1};
  EXPECT_HAS(describe_workload(w), ">99.9 % of 5120000 blocks");  // not all of them
  EXPECT_HAS(describe_workload(w), "<0.1 % equal with all addresses shifted");
  w.fidelity[0] = {"x", 0, 0, 12, 12, 0};
  EXPECT_HAS(describe_workload(w), "no memory to compare, 12 of 12 buffers");
  w.fidelity.clear();
  EXPECT_HAS(describe_workload(w), "replayed  not yet");
  EXPECT_HAS(describe_workload(w), "unknown: kept as recorded until a replay");
  w.addresses = Addresses::pinned;
  EXPECT_HAS(describe_workload(w), "pinned: needs the recorded addresses of 3 buffers");
}

TEST(Describe, a_built_workload_says_nothing_of_recordings) {
  const std::string text = describe_workload(test::sample_workload());
  EXPECT_EQ(text.find("recorded  on"), std::string::npos) << text;
  EXPECT_EQ(text.find("replayed"), std::string::npos) << text;
  EXPECT_EQ(text.find("graphs ("), std::string::npos) << text;
  EXPECT_HAS(text, "free: made to lie anywhere");
}

TEST(Describe, a_large_recording_fits_one_screen_and_says_what_was_cut) {
  Workload w = test::recorded_sample().workload;
  for (int i = 0; i < 40; ++i) {
    w.origin.notes.push_back("note " + std::to_string(i));
    w.modules.push_back(w.modules[0]);
    w.kernels.push_back({0, "kernel_" + std::to_string(i) + std::string(300, 'N') + "_last", {}, 0});
    w.graphs.push_back(w.graphs[0]);
    LaunchSpec launch = w.launches[1];
    launch.kernel = static_cast<uint32_t>(w.kernels.size() - 1);
    w.launches.push_back(launch);
    Call call;
    call.launch = static_cast<uint32_t>(w.launches.size() - 1);
    w.requests[2].calls.push_back(static_cast<uint32_t>(w.calls.size()));
    w.calls.push_back(call);
  }
  ASSERT_TRUE(validate(w));
  const std::string text = describe_workload(w);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 60) << text;
  for (const char* rest : {"... and 38 more", "... and 32 more", "... and 36 more"}) EXPECT_HAS(text, rest);
  EXPECT_HAS(text, "NNN..." + std::string(11, 'N') + "_last");
}

TEST(Describe, json_has_everything) {
  const std::string json = workload_json(test::recorded_sample().workload);
  EXPECT_HAS(json, "\"driver_version\": 13000");
  EXPECT_HAS(json, "\"addresses\": \"unknown\"");
  EXPECT_HAS(json, "\"shifted_equal\": 97");
  EXPECT_HAS(json, "\"host_function\": 1");
  EXPECT_HAS(json, "\"per_thread\"");
  EXPECT_HAS(json, "\"launches_in_graphs\": 2");
  EXPECT_HAS(json, "\"thread_waits\": 2");
  EXPECT_HAS(workload_json(test::sample_workload()), "\"recorded\": null");
}

}  // namespace
}  // namespace kgate
