// How the calls of a recording are cut into requests.
#include <gtest/gtest.h>

#include "assemble_sample.h"

namespace kgate {
namespace {

using namespace test;
using Calls = std::vector<std::vector<uint32_t>>;

Calls requests(const Workload& w) {
  Calls all;
  for (const Request& request : w.requests) all.push_back(request.calls);
  return all;
}

Recorded started() {
  Recorded r;
  r.alloc(kBase, 4096);
  r.stream(0x51), r.stream(0x52);
  r.begin();
  return r;
}

TEST(AssembleRequests, a_wait_for_work_ends_a_request) {
  Recorded r = started();
  r.sync(0x51);                                                   // 0: nothing to wait for
  r.launch_add(kBase, 0x51);                                      // 1
  r.launch_add(kBase, 0x51);                                      // 2
  r.sync(0x51);                                                   // 3
  r.sync(0x51);                                                   // 4
  r.launch_add(kBase, 0x51);                                      // 5
  r.add(r.copy(0x1234, kBase, 4, Side::pageable, Side::device));  // 6: a download waits
  r.launch_add(kBase, 0x51);                                      // 7
  r.context_sync();                                               // 8
  r.launch_add(kBase, 0x51);                                      // 9: nobody waits
  r.end();
  EXPECT_EQ(requests(r.assemble().workload), (Calls{{0, 1, 2, 3}, {4, 5, 6}, {7, 8, 9}}));
}

TEST(AssembleRequests, ranges_are_requests_with_their_preparation) {
  Recorded r = started();
  r.launch_add(kBase, 0x51);  // 0
  r.range(Kind::range_push, "step");
  r.launch_add(kBase, 0x51);          // 1
  r.range(Kind::range_push, "step");  // inside of itself
  r.sync(0x51);                       // 2
  r.range(Kind::range_pop);
  r.launch_add(kBase, 0x51);  // 3
  r.range(Kind::range_pop);
  r.range(Kind::range_push, "other");
  r.launch_add(kBase, 0x51);  // 4
  r.range(Kind::range_pop);
  r.range(Kind::range_start, "step", 9);
  r.launch_add(kBase, 0x51);  // 5
  r.thread = 200;
  r.range(Kind::range_end, "", 9);
  r.thread = 100;
  r.launch_add(kBase, 0x51);  // 6
  r.end();
  EXPECT_EQ(requests(r.assemble({.request_range = "step"}).workload), (Calls{{0, 1, 2, 3}, {4, 5, 6}}));
}

TEST(AssembleRequests, a_range_that_nobody_entered_is_refused) {
  Recorded r = started();
  r.launch_add(kBase, 0x51);
  r.end();
  try {
    r.assemble({.request_range = "step"});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::environment);
    EXPECT_NE(std::string(error.what()).find("no NVTX range named step"), std::string::npos);
  }
}

TEST(AssembleRequests, helpers_are_cut_where_the_busiest_thread_begins_requests) {
  Recorded r = started();
  for (int i = 0; i < 3; ++i) {
    r.thread = 100;
    r.launch_add(kBase, 0x51);  // 0, 3, 6
    r.thread = 200;
    r.launch_add(kBase, 0x52);  // 1, 4, 7
    r.thread = 100;
    r.sync(0x51);  // 2, 5, 8
  }
  r.end();
  const Workload w = r.assemble().workload;
  EXPECT_EQ(requests(w), (Calls{{0, 2}, {1}, {3, 5}, {4}, {6, 8}, {7}}));
  EXPECT_EQ(w.requests[1].thread, 1u);
  const Workload cut = r.assemble({.requests = 2}).workload;
  EXPECT_EQ(requests(cut), (Calls{{0, 2}, {1}, {3, 5}, {4}}));
}

TEST(AssembleRequests, without_any_wait_each_thread_is_one_request) {
  Recorded r = started();
  r.launch_add(kBase, 0x51);
  r.thread = 200;
  r.launch_add(kBase, 0x52);
  r.thread = 100;
  r.launch_add(kBase, 0x51);
  r.end();
  EXPECT_EQ(requests(r.assemble().workload), (Calls{{0, 2}, {1}}));
}

TEST(AssembleRequests, a_limit_leaves_out_what_comes_later_with_its_code_and_memory) {
  Recorded r = started();
  r.launch_add(kBase, 0x51);
  r.sync(0x51);
  r.launch(0xf2, std::string(32, '\0'), 0x52);
  r.sync(0x52);
  r.end();
  const Workload w = r.assemble({.requests = 1}).workload;
  EXPECT_EQ(w.calls.size(), 2u);
  EXPECT_EQ(w.kernels.size(), 1u);
  EXPECT_EQ(w.streams.size(), 1u);
}

TEST(AssembleRequests, release_of_what_a_cut_off_request_had_allocated_is_a_wait_or_nothing) {
  Recorded r = started();
  r.launch_add(kBase, 0x51);  // 0
  r.thread = 200;
  r.alloc(kBase + (1 << 21), 4096);
  r.alloc(kBase + (2 << 21), 4096, Memory::async);
  r.launch_add(kBase, 0x52);
  r.sync(0x52);
  r.thread = 100;
  r.free(kBase + (1 << 21));        // 1: cuMemFree waits
  r.free(kBase + (2 << 21), true);  // on a stream: nothing is left of it
  r.sync(0x51);                     // 2
  r.launch_add(kBase, 0x51);
  r.sync(0x51);
  r.end();
  const Workload whole = r.assemble().workload;
  EXPECT_EQ(std::count_if(whole.calls.begin(), whole.calls.end(),
                          [](const Call& call) { return call.kind == CallKind::free; }),
            2);
  const Workload cut = r.assemble({.requests = 1}).workload;
  ASSERT_FALSE(cut.calls.empty());
  for (const Call& call : cut.calls) {
    EXPECT_NE(call.kind, CallKind::free);
    EXPECT_NE(call.kind, CallKind::alloc);
  }
  EXPECT_EQ(std::count_if(cut.calls.begin(), cut.calls.end(),
                          [](const Call& call) { return call.kind == CallKind::context_sync; }),
            1);
}

}  // namespace
}  // namespace kgate
