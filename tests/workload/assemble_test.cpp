// What becomes of recorded calls: kinds, threads, streams, gaps, polls, launches, code, edges.
#include "workload/assemble.h"

#include <gtest/gtest.h>

#include <numeric>

#include "assemble_sample.h"

namespace kgate {
namespace {

using namespace test;

std::vector<CallKind> kinds(const Workload& w) {
  std::vector<CallKind> kinds;
  for (const Call& call : w.calls) kinds.push_back(call.kind);
  return kinds;
}

bool noted(const Workload& w, std::string_view text) {
  for (const std::string& note : w.origin.notes)
    if (note.find(text) != std::string::npos) return true;
  return false;
}

std::string refusal(Recorded& recorded, const AssembleOptions& options, Exit code) {
  try {
    recorded.assemble(options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return std::string(error.what()) + " hint: " + error.failure().hint;
  }
  ADD_FAILURE() << "not refused";
  return {};
}

TEST(Assemble, a_slice_becomes_a_workload) {
  Recorded r;
  r.alloc(kBase, 4096);
  r.launch_add(kBase);  // before the slice
  r.begin();
  r.launch_add(kBase + 16);
  r.sync();
  r.end();
  r.launch_add(kBase);
  const Assembled out = r.assemble({.name = "app", .command = "./app --fast", .begun = "2026-01-01T00:00:00Z"});
  const Workload& w = out.workload;
  EXPECT_EQ(kinds(w), (std::vector{CallKind::launch, CallKind::stream_sync}));
  EXPECT_EQ(w.name, "app");
  EXPECT_EQ(w.origin.device, "Test GPU");
  EXPECT_EQ(w.origin.arch, 90);
  EXPECT_EQ(w.origin.sm_count, 132);
  EXPECT_EQ(w.origin.command, "./app --fast");
  EXPECT_EQ(w.origin.begun, "2026-01-01T00:00:00Z");
  EXPECT_TRUE(w.blocking_sync);
  EXPECT_EQ(w.addresses, Addresses::unknown);
  EXPECT_EQ(w.arrivals, Arrivals::closed);
  ASSERT_EQ(w.launches.size(), 1u);
  ASSERT_EQ(w.launches[0].relocations.size(), 1u);
  EXPECT_EQ(w.launches[0].relocations[0].delta, 16);
  EXPECT_EQ(w.launches[0].block.x, 32u);
  ASSERT_EQ(w.kernels.size(), 1u);
  EXPECT_EQ(w.kernels[0].entry, "add_one");
  EXPECT_EQ(w.kernels[0].param_bytes, 12u);
  ASSERT_EQ(w.modules.size(), 1u);
  EXPECT_EQ(w.modules[0].image, kRecordedPtx);
  EXPECT_EQ(w.modules[0].portable, "");
  EXPECT_EQ(out.launches, 1u);
  EXPECT_TRUE(out.complete);
  EXPECT_EQ(w.sha256, workload_hash(w));
}

TEST(Assemble, calls_are_sorted_by_issue_and_keep_their_host_gaps) {
  Recorded r;
  r.alloc(kBase, 4096);
  r.begin();
  r.launch_add(kBase);
  r.gap = 2500;
  auto late = r.make<StreamCallRecord>(Kind::stream_sync);  // issued before the next one, finished after it
  r.gap = 7;
  r.thread = 200;
  r.launch_add(kBase, 0);
  r.launch_add(kBase, 0);
  r.add(late);
  r.end();
  const Workload w = r.assemble().workload;
  EXPECT_EQ(kinds(w), (std::vector{CallKind::launch, CallKind::stream_sync, CallKind::launch, CallKind::launch}));
  EXPECT_EQ(w.threads, 2u);
  EXPECT_EQ(w.calls[0].host_gap_ns, 0u);
  EXPECT_EQ(w.calls[1].host_gap_ns, 2500u);
  EXPECT_EQ(w.calls[2].thread, 1u);
  EXPECT_EQ(w.calls[2].host_gap_ns, 0u);
  EXPECT_EQ(w.calls[3].host_gap_ns, 7u);
}

TEST(Assemble, captured_and_failed_calls_are_left_out) {
  Recorded r;
  r.alloc(kBase, 4096);
  r.begin();
  r.flags = kCaptured;
  r.launch_add(kBase);
  r.flags = 0;
  r.result = 719;
  r.launch_add(kBase);
  r.result = 0;
  r.launch_add(kBase);
  r.end();
  const Workload w = r.assemble().workload;
  EXPECT_EQ(kinds(w), std::vector{CallKind::launch});
  EXPECT_TRUE(noted(w, "failed with error 719"));
}

TEST(Assemble, equal_launches_are_one) {
  Recorded r;
  r.alloc(kBase, 4096);
  r.begin();
  for (int i = 0; i < 3; ++i) r.launch_add(kBase);
  r.launch_add(kBase + 8);
  r.end();
  const Workload w = r.assemble().workload;
  EXPECT_EQ(w.launches.size(), 2u);
  EXPECT_EQ(w.calls[2].launch, 0u);
  EXPECT_EQ(w.calls[3].launch, 1u);
}

TEST(Assemble, pointers_in_structures_are_found_and_small_parameters_are_no_pointers) {
  Recorded r;
  r.alloc(kBase, 4096);
  r.alloc(kBase + 8192, 4096);
  r.begin();
  std::string params(32, '\0');
  const uint64_t x = kBase, y = kBase + 8192 + 24, past = kBase + 4096;
  std::memcpy(params.data(), &x, 8);
  std::memcpy(params.data() + 8, &y, 8);
  std::memcpy(params.data() + 24, &past, 8);
  r.launch(0xf2, params);
  r.end();
  const Workload w = r.assemble().workload;
  const auto& found = w.launches.at(0).relocations;
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].param_offset, 0u);
  EXPECT_EQ(found[1].param_offset, 8u);
  EXPECT_EQ(found[1].buffer, 1u);
  EXPECT_EQ(found[1].delta, 24);
  EXPECT_EQ(found[2].param_offset, 24u);
  EXPECT_EQ(found[2].buffer, 0u);
  EXPECT_EQ(found[2].delta, 4096);
}

TEST(Assemble, an_end_pointer_belongs_to_the_buffer_that_begins_there) {
  Recorded r;
  r.alloc(kBase, 4096);
  r.alloc(kBase + 4096, 4096);
  r.begin();
  r.launch_add(kBase + 4096);
  r.launch_add(kBase);
  r.end();
  const Workload w = r.assemble().workload;
  ASSERT_EQ(w.buffers.size(), 2u);
  EXPECT_EQ(w.launches[0].relocations.at(0).buffer, 1u);
  EXPECT_EQ(w.launches[0].relocations.at(0).delta, 0);
}

TEST(Assemble, a_pointer_to_host_memory_is_refused_by_name) {
  Recorded r;
  r.alloc(kBase, 4096, Memory::pinned_host);
  r.begin();
  r.launch_add(kBase);
  r.end();
  EXPECT_NE(refusal(r, {}, Exit::environment).find("kernel add_one gets a pointer to host memory"), std::string::npos);
}

TEST(Assemble, streams_keep_kind_and_priority_and_handles_may_be_used_again) {
  Recorded r;
  r.alloc(kBase, 4096);
  r.stream(0x51, 1, -5);
  r.stream(0x52, 0, 0);
  r.begin();
  r.launch_add(kBase, 0x51);
  r.launch_add(kBase, 0x52);
  r.launch_add(kBase, 0);
  r.launch_add(kBase, 1);
  r.launch_add(kBase, 2);
  r.handle(Kind::stream_destroyed, 0x51);
  r.stream(0x51, 0, 0);
  r.launch_add(kBase, 0x51);
  r.end();
  const Workload w = r.assemble().workload;
  ASSERT_EQ(w.streams.size(), 5u);
  EXPECT_EQ(w.streams[0].kind, StreamKind::non_blocking);
  EXPECT_EQ(w.streams[0].priority, -5);
  EXPECT_EQ(w.streams[1].kind, StreamKind::blocking);
  EXPECT_EQ(w.streams[2].kind, StreamKind::legacy);
  EXPECT_EQ(w.calls[3].stream, 2u);
  EXPECT_EQ(w.streams[3].kind, StreamKind::per_thread);
  EXPECT_EQ(w.streams[4].kind, StreamKind::blocking);
  EXPECT_EQ(w.calls[5].stream, 4u);
}

TEST(Assemble, polling_becomes_one_wait_from_the_first_poll_on) {
  Recorded r;
  r.alloc(kBase, 4096);
  r.begin();
  r.event(Kind::event_query, 0xe1);  // succeeds at once: left out
  r.launch_add(kBase);
  r.event(Kind::event_record, 0xe1);
  r.gap = 50;
  r.result = 600;
  r.event(Kind::event_query, 0xe1);
  r.event(Kind::event_query, 0xe1);
  r.on_stream(Kind::stream_query, 0);
  r.result = 0;
  r.event(Kind::event_query, 0xe1);
  r.event(Kind::event_query, 0xe1);
  r.on_stream(Kind::stream_query, 0);
  r.end();
  const Workload w = r.assemble().workload;
  EXPECT_EQ(kinds(w),
            (std::vector{CallKind::launch, CallKind::event_record, CallKind::event_sync, CallKind::stream_sync}));
  EXPECT_EQ(w.calls[2].host_gap_ns, 50u);
  EXPECT_EQ(w.calls[2].event, 0u);
  EXPECT_EQ(w.events, 1u);
}

TEST(Assemble, frees_of_older_memory_wait_and_new_memory_keeps_its_calls) {
  Recorded r;
  r.alloc(kBase, 4096);
  r.alloc(kBase + 8192, 4096);
  r.alloc(kBase + 16384, 4096, Memory::async);
  r.begin();
  r.launch_add(kBase);
  r.alloc(kBase + 32768, 512);
  r.alloc(kBase + 65536, 512, Memory::pinned_host);
  r.free(kBase + 8192);
  r.free(kBase + 16384, true);
  r.free(kBase + 32768);
  r.free(kBase + 65536);
  r.end();
  const Workload w = r.assemble().workload;
  EXPECT_EQ(kinds(w), (std::vector{CallKind::launch, CallKind::alloc, CallKind::context_sync, CallKind::free}));
  EXPECT_EQ(w.calls[1].bytes, 512u);
  EXPECT_EQ(w.calls[1].allocation, 0u);
  EXPECT_EQ(w.calls[3].allocation, 0u);
}

TEST(Assemble, copies_fills_and_host_functions_keep_their_shape) {
  Recorded r;
  r.alloc(kBase, 1 << 20);
  r.alloc(kBase + (1 << 21), 1 << 20);
  r.begin();
  r.launch_add(kBase);
  auto copy = r.copy(kBase + 64, kBase + (1 << 21), 100, Side::device, Side::device);
  copy.rows = 3, copy.dst_pitch = 128, copy.src_pitch = 256, copy.async = 1;
  r.add(copy);
  copy = r.copy(kBase, 0x1234, 32, Side::device, Side::pinned);
  copy.payload = r.blob(std::string(32, 'x'));
  r.add(copy);
  r.add(copy);
  r.add(r.copy(0x1234, kBase + 8, 4, Side::pageable, Side::device));
  auto fill = r.make<MemsetRecord>(Kind::memset);
  fill.dst = kBase + 4, fill.count = 10, fill.rows = 1, fill.value = 7, fill.unit = 4;
  r.add(fill);
  r.on_stream(Kind::host_function, 0);
  r.end();
  const Workload w = r.assemble().workload;
  EXPECT_EQ(kinds(w), (std::vector{CallKind::launch, CallKind::copy, CallKind::upload, CallKind::upload,
                                   CallKind::download, CallKind::memset, CallKind::host_function}));
  EXPECT_EQ(w.calls[1].dst_offset, 64u);
  EXPECT_EQ(w.calls[1].pitch.rows, 3u);
  EXPECT_EQ(w.calls[1].pitch.dst, 128u);
  EXPECT_EQ(w.calls[1].pitch.src, 256u);
  EXPECT_TRUE(w.calls[1].async);
  EXPECT_TRUE(w.calls[2].pinned);
  ASSERT_EQ(w.payloads.size(), 1u);
  EXPECT_EQ(std::get<ContentBytes>(w.payloads[0].content).bytes, std::string(32, 'x'));
  EXPECT_EQ(w.calls[3].payload, 0u);
  EXPECT_FALSE(w.calls[4].pinned);
  EXPECT_EQ(w.calls[5].bytes, 40u);
  EXPECT_EQ(w.calls[5].unit, 4);
}

TEST(Assemble, a_copy_to_unknown_memory_is_refused) {
  Recorded r;
  r.alloc(kBase, 4096);
  r.begin();
  r.launch_add(kBase);
  r.add(r.copy(kBase + 4000, kBase, 200, Side::device, Side::device));
  r.end();
  EXPECT_NE(refusal(r, {}, Exit::environment).find("a copy fills memory that is no known allocation"),
            std::string::npos);
}

TEST(Assemble, graphs_keep_nodes_edges_and_their_generation) {
  Recorded r;
  r.alloc(kBase, 4096);
  r.graph(0x61, {r.kernel_node(kBase)});
  r.handle(Kind::graph_destroyed, 0x61);
  Recorded::GraphNodeSpec fill;
  fill.node.kind = NodeKind::memset, fill.node.dst = kBase, fill.node.bytes = 64, fill.node.rows = 1,
  fill.node.unit = 1;
  fill.after = {0};
  r.graph(0x61, {r.kernel_node(kBase + 8), fill, r.kernel_node(kBase + 8, {0, 1})});
  r.begin();
  r.graph_launch(0x61);
  r.graph_launch(0x61);
  r.end();
  const Assembled out = r.assemble();
  const Workload& w = out.workload;
  EXPECT_EQ(kinds(w), (std::vector{CallKind::graph_launch, CallKind::graph_launch}));
  ASSERT_EQ(w.graphs.size(), 1u);
  ASSERT_EQ(w.graphs[0].nodes.size(), 3u);
  EXPECT_EQ(w.graphs[0].nodes[2].after, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(w.graphs[0].nodes[0].launch, w.graphs[0].nodes[2].launch);
  EXPECT_EQ(out.launches, 4u);
}

TEST(Assemble, code_is_the_cubin_and_ptx_stays_beside_it) {
  const std::string cubin = read_file(std::filesystem::path(KGATE_SOURCE_DIR) / "tests/corpus/softmax_good.sm_90.cubin")
                                .value_or_throw(Exit::internal);
  const std::string ptx = read_file(std::filesystem::path(KGATE_SOURCE_DIR) / "tests/corpus/softmax_good.ptx")
                              .value_or_throw(Exit::internal);
  Recorded r;
  r.alloc(kBase, 4096);
  r.module("", 0x222, 77, cubin);
  r.module(ptx + std::string(1, '\0'), 0x222, 77);
  r.function(0xf3, 0x222, "softmax_rows", {});
  r.begin();
  std::string params(32, '\0');
  const uint64_t x = kBase;
  std::memcpy(params.data(), &x, 8);
  r.launch(0xf3, params);
  r.end();
  const Workload w = r.assemble().workload;
  ASSERT_EQ(w.modules.size(), 1u);
  EXPECT_EQ(w.modules[0].image, cubin);
  EXPECT_EQ(w.modules[0].portable, ptx);
  EXPECT_FALSE(w.kernels[0].params.empty());  // of the cubin, since the record had none
}

TEST(Assemble, lazily_loaded_code_is_found_by_name_and_doubt_is_noted) {
  const std::string other = std::string(kRecordedPtx) + "// another\n";
  Recorded r;
  r.module(other, 0x333);
  r.function(0xf9, 0, "add_one", {{0, 8}, {8, 4}});
  r.alloc(kBase, 4096);
  r.begin();
  r.launch(0xf9, Recorded::add_one_params(kBase));
  r.module(other + "//", 0x444);  // too late
  r.end();
  const Workload w = r.assemble().workload;
  EXPECT_EQ(w.modules.at(0).image, other);
  EXPECT_TRUE(noted(w, "several modules hold a kernel add_one"));
}

TEST(Assemble, a_handle_that_is_given_out_again_means_the_newer_kernel_from_then_on) {
  Recorded r;
  r.alloc(kBase, 4096);
  r.begin();
  auto first = r.make<LaunchRecord>(Kind::launch);
  first.function = 0xf1;
  first.grid[0] = first.grid[1] = first.grid[2] = first.block[0] = first.block[1] = first.block[2] = 1;
  first.param_bytes = 12;
  r.function(0xf1, 0x111, "mul_two", {{0, 8}, {8, 24}});  // on file at once, unlike calls
  r.add(first, Recorded::add_one_params(kBase));
  r.launch(0xf1, std::string(32, '\0'));
  r.end();
  const Workload w = r.assemble().workload;
  EXPECT_EQ(w.kernels.at(w.launches.at(0).kernel).entry, "add_one");
  EXPECT_EQ(w.kernels.at(w.launches.at(1).kernel).entry, "mul_two");
}

TEST(Assemble, a_kernel_without_code_is_refused) {
  Recorded r;
  r.function(0xf9, 0, "unheard_of", {});
  r.begin();
  r.launch(0xf9, "");
  r.end();
  EXPECT_NE(refusal(r, {}, Exit::environment).find("the code of kernel unheard_of"), std::string::npos);
}

TEST(Assemble, threads_wait_for_what_the_other_had_finished) {
  Recorded r;
  r.alloc(kBase, 4096);
  r.alloc(kBase + 8192, 4096);
  r.stream(0x51), r.stream(0x52);
  r.begin();
  r.launch_add(kBase, 0x51);                // 0
  r.event(Kind::event_record, 0xe1, 0x51);  // 1
  r.thread = 200;
  r.event(Kind::event_wait, 0xe1, 0x52);  // 2: after 1
  r.launch_add(kBase + 8192, 0x52);       // 3: nothing shared
  r.launch_add(kBase, 0x52);              // 4: memory of 0
  r.thread = 100;
  r.launch_add(kBase + 8192, 0x51);  // 5: memory of 3
  r.end();
  const Workload w = r.assemble().workload;
  EXPECT_TRUE(w.calls[1].after.empty());
  EXPECT_EQ(w.calls[2].after, std::vector<uint32_t>{1});
  EXPECT_TRUE(w.calls[3].after.empty());
  EXPECT_EQ(w.calls[4].after, std::vector<uint32_t>{0});
  EXPECT_EQ(w.calls[5].after, std::vector<uint32_t>{3});
}

TEST(Assemble, calls_that_overlapped_did_not_wait_for_each_other) {
  Recorded r;
  r.alloc(kBase, 4096);
  r.begin();
  auto first = r.make<StreamCallRecord>(Kind::stream_sync);
  first.head.end += 1'000'000;
  r.add(first);
  r.thread = 200;
  r.launch_add(kBase);
  r.end();
  EXPECT_TRUE(r.assemble().workload.calls[1].after.empty());
}

TEST(Assemble, what_was_refused_in_the_slice_is_listed) {
  Recorded r;
  r.alloc(kBase, 4096);
  r.note("texture objects are used", true);  // before the slice
  r.begin();
  r.launch_add(kBase);
  r.note("a second context is used", true);
  r.note("memory of another process is mapped", true);
  r.end();
  const std::string text = refusal(r, {}, Exit::environment);
  EXPECT_NE(text.find("a second context is used"), std::string::npos);
  EXPECT_NE(text.find("memory of another process is mapped"), std::string::npos);
  EXPECT_EQ(text.find("texture"), std::string::npos);
}

TEST(Assemble, a_kernel_that_the_slice_lacks_is_refused_with_the_nearest_name) {
  Recorded r;
  r.alloc(kBase, 4096);
  r.begin();
  r.launch_add(kBase);
  r.end();
  const std::string text = refusal(r, {.kernel = "ad_one"}, Exit::environment);
  EXPECT_NE(text.find("launches no kernel 'ad_one'"), std::string::npos);
  EXPECT_NE(text.find("did you mean 'add_one'?"), std::string::npos);
  EXPECT_EQ(r.assemble({.kernel = "add*"}).launches, 1u);
}

TEST(Assemble, a_slice_without_launches_or_no_slice_is_refused) {
  Recorded r;
  r.begin();
  r.sync();
  r.end();
  EXPECT_NE(refusal(r, {}, Exit::environment).find("no kernel is launched"), std::string::npos);
  Recorded never;
  never.sync();
  EXPECT_NE(refusal(never, {}, Exit::environment).find("never began"), std::string::npos);
}

}  // namespace
}  // namespace kgate
