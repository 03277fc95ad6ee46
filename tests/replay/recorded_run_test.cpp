// What a recording asks of the replay: steps beside launches, graphs, host memory, interleaved threads, recorded
// addresses; the memory that sampled launches change; and how faithful the end is.
#include <gtest/gtest.h>

#include "replay/fidelity_run.h"
#include "replay/live_samples.h"
#include "sample.h"
#include "workload/block_hash.h"
#include "workload/kgw.h"

namespace kgate {
namespace {

using namespace sample;

ArmItem memset_item(uint32_t buffer, uint64_t offset, uint64_t bytes, uint8_t value) {
  ArmItem item;
  item.kind = ArmItem::Kind::memset;
  item.buffer = buffer, item.offset = offset, item.bytes = bytes, item.value = value;
  return item;
}

ArmItem item_of(ArmItem::Kind kind, uint64_t bytes = 0) {
  ArmItem item;
  item.kind = kind;
  item.bytes = bytes;
  return item;
}

Builder one_launch(const std::string& entry) {
  Builder b;
  uint32_t launch = b.launch(entry);
  b.request();
  b.launch_and_sync(launch);
  return b;
}

TEST(ArmSteps, run_in_order_on_the_arm_s_own_memory) {
  Builder b = one_launch("add");
  Replay run(b.w);
  Arm candidate = arm("candidate", b, "add");
  Buffer scratch;
  scratch.name = "scratch", scratch.bytes = kCount * 4;
  candidate.workspaces = {scratch};
  // out = scratch + b, with scratch filled before; then the first element of out is overwritten.
  LaunchSpec launch = b.spec(0);
  launch.relocations = {{0, 0, 0}, {8, 3, 0}, {16, 2, 0}};
  ArmItem legacy(launch);
  legacy.legacy = true;
  candidate.replace[0] = {item_of(ArmItem::Kind::allocate, 4096), memset_item(3, 0, kCount * 4, 0), legacy,
                          item_of(ArmItem::Kind::sync), memset_item(0, 0, 4, 0x22)};
  run.plan.arms = {candidate};
  run.plan.readback = {0};
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  EXPECT_EQ(values(run, outcome, 0)[0], 0x22222222u);
  EXPECT_EQ(values(run, outcome, 0)[1], 1000u);
  auto launches = records<wire::LaunchRecord>(outcome, wire::Kind::launch);
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0].item, 0u);  // numbered among the launches
}

TEST(ArmSteps, workspace_is_as_it_was_before_each_arm) {
  Builder b = one_launch("step");
  Replay run(b.w);
  Arm first = arm("first", b, "step");
  Buffer scratch;
  scratch.name = "scratch", scratch.bytes = kCount * 4;
  first.workspaces = {scratch};
  LaunchSpec on_scratch = b.spec(0);
  on_scratch.relocations[0].buffer = 3;
  LaunchSpec copy = b.spec(0);  // out += 1
  first.replace[0] = {on_scratch, copy};
  Arm second = first;
  second.label = "second";
  run.plan.arms = {first, second};
  run.plan.rounds = {{0, 0, 0}, {1, 0, 1}};
  run.plan.readback = {0};
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  EXPECT_EQ(values(run, outcome, 0), values(run, outcome, 1));
  EXPECT_EQ(records<wire::LaunchRecord>(outcome, wire::Kind::launch)[1].item, 1u);
}

// Two requests of two threads whose calls alternate: a is stepped by thread 0, then out = a + b by thread 1.
Builder interleaved() {
  Builder b;
  uint32_t step = b.launch("step", 1), add = b.launch("add");
  b.w.streams.resize(2);
  b.w.threads = 2;
  auto call = [&](CallKind kind, uint32_t thread) -> Call& {
    Call made;
    made.kind = kind, made.thread = made.stream = thread;
    b.w.calls.push_back(made);
    return b.w.calls.back();
  };
  call(CallKind::launch, 0).launch = step;
  call(CallKind::stream_sync, 0);
  Call& second = call(CallKind::launch, 1);
  second.launch = add;
  second.after = {1};
  call(CallKind::launch, 0).launch = step;
  call(CallKind::stream_sync, 1);
  call(CallKind::stream_sync, 0);
  b.w.calls[3].after = {2};
  b.w.requests = {{0, 0, {0, 1, 3, 5}}, {0, 1, {2, 4}}};
  return b;
}

TEST(NumericRun, interleaved_requests_keep_the_order_of_their_calls) {
  Builder b = interleaved();
  Replay run(b.w);
  run.plan.arms = {arm("baseline", b)};
  run.plan.readback = {0, 1};
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  EXPECT_EQ(values(run, outcome, 0)[5], 1006u);  // between the two steps
  EXPECT_EQ(values(run, outcome, 1)[5], 7u);
  EXPECT_EQ(records<wire::RequestRecord>(outcome, wire::Kind::request).size(), 2u);
}

TEST(RecordedCalls, payloads_allocations_and_wide_fills_are_replayed) {
  Builder b;
  b.w.origin.device = "some GPU";
  b.w.streams = {WorkloadStream{StreamKind::legacy, 0}, WorkloadStream{StreamKind::blocking, 0}};
  uint32_t add = b.launch("add");
  std::vector<uint32_t> sevens(kCount, 7);
  b.w.payloads = {{kCount * 4, ContentBytes{bytes_of(sevens)}}};
  b.request();
  for (bool pinned : {false, true}) {
    Call& upload = b.call(CallKind::upload);
    upload.dst = 1, upload.bytes = kCount * 4, upload.payload = 0, upload.pinned = upload.async = pinned;
    upload.stream = pinned;
  }
  Call& made = b.call(CallKind::alloc);
  made.bytes = 4096, made.allocation = 0;
  b.call(CallKind::launch).launch = add;
  Call& fill = b.call(CallKind::memset);
  fill.dst = 0, fill.dst_offset = 8, fill.bytes = 8, fill.unit = 4, fill.value = 0x01020304;
  Call& gone = b.call(CallKind::free);
  gone.allocation = 0;
  b.call(CallKind::host_function);
  b.call(CallKind::context_sync);
  Call& download = b.call(CallKind::download);
  download.src = 0, download.bytes = 400, download.pinned = true, download.async = true;
  b.call(CallKind::context_sync);
  Replay run(b.w);
  run.plan.arms = {arm("baseline", b)};
  run.plan.readback = {0};
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  EXPECT_EQ(values(run, outcome, 0)[0], 1007u);
  EXPECT_EQ(values(run, outcome, 0)[2], 0x01020304u);
  EXPECT_EQ(values(run, outcome, 0)[3], 0x01020304u);
  EXPECT_EQ(values(run, outcome, 0)[4], 1007u);
}

// A graph: step a, out = a + b, and an element of out filled at last.
Builder with_graph() {
  Builder b;
  uint32_t step = b.launch("step", 1), add = b.launch("add");
  GraphNode first, second, third;
  first.kind = second.kind = GraphNode::Kind::kernel;
  first.launch = step;
  second.launch = add, second.after = {0};
  third.kind = GraphNode::Kind::memset, third.after = {1};
  third.dst = 0, third.bytes = 4, third.value = 0x33;
  b.w.graphs = {{{first, second, third}}};
  b.request();
  b.call(CallKind::graph_launch).graph = 0;
  b.call(CallKind::stream_sync);
  return b;
}

TEST(Graphs, taken_apart_compute_what_they_compute) {
  Builder b = with_graph();
  Replay run(b.w);
  Arm candidate = arm("candidate", b, "sub");
  candidate.replace.clear();
  candidate.replace[1] = {b.spec(0)};  // out = a − b
  run.plan.arms = {arm("baseline", b), candidate};
  run.plan.rounds = {{0, 0, 0}, {1, 0, 1}};
  run.plan.readback = {0};
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  EXPECT_EQ(values(run, outcome, 0)[0], 0x33333333u);
  EXPECT_EQ(values(run, outcome, 0)[5], 1006u);
  EXPECT_EQ(values(run, outcome, 1)[5], static_cast<uint32_t>(6 - 1000));
}

TEST(Graphs, timing_on_the_virtual_gpu_counts_each_kernel) {
  Builder b = with_graph();
  Replay run(b.w);
  run.plan.mode = ReplayMode::timing;
  run.plan.warmup_requests = 1, run.plan.measured_requests = 2;
  run.plan.arms = {arm("baseline", b)};
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  EXPECT_EQ(records<wire::LaunchRecord>(outcome, wire::Kind::launch).size(), 6u);
  EXPECT_EQ(records<wire::VirtualCountersRecord>(outcome, wire::Kind::virtual_counters).size(), 6u);
  EXPECT_EQ(lost_records(outcome), 0u);
}

// Content and hashes after the last call, as a recorder would have left them.
void add_end(Workload& w, uint32_t buffer, const std::vector<uint32_t>& values) {
  std::string bytes = bytes_of(values);
  w.buffers[buffer].end_hashes = block_hashes(std::as_bytes(std::span(bytes)), kHashBlockBytes);
}

Builder faithful_graph() {
  Builder b = with_graph();
  b.w.origin.device = "some GPU";
  b.w.addresses = Addresses::unknown;
  std::vector<uint32_t> a(kCount), out(kCount);
  for (uint32_t i = 0; i < kCount; ++i) a[i] = i + 1, out[i] = i + 1001;
  out[0] = 0x33333333;
  add_end(b.w, 0, out), add_end(b.w, 1, a);
  for (uint32_t i = 0; i < 3; ++i) b.w.buffers[i].address = 0x7ffd00000000 + i * 0x1000;
  return b;
}

TEST(Fidelity, rebuilt_graph_leaves_what_the_recording_left) {
  Builder b = faithful_graph();
  Replay run(b.w);
  write_kgw(run.workload, run.plan.workload);
  auto answer = measure_fidelity(run.workload, run.plan.workload, run.options);
  ASSERT_TRUE(answer) << answer.failure().what;
  EXPECT_EQ(answer->fidelity.blocks, 2u);
  EXPECT_EQ(answer->fidelity.equal, 2u);
  EXPECT_EQ(answer->fidelity.shifted_equal, 2u);
  EXPECT_EQ(answer->fidelity.buffers, 3u);
  EXPECT_EQ(answer->addresses, Addresses::relocatable);
}

TEST(Fidelity, other_memory_than_recorded_is_counted) {
  Builder b = faithful_graph();
  b.w.buffers[0].end_hashes[0] ^= 1;
  Replay run(b.w);
  write_kgw(run.workload, run.plan.workload);
  auto answer = measure_fidelity(run.workload, run.plan.workload, run.options);
  ASSERT_TRUE(answer) << answer.failure().what;
  EXPECT_EQ(answer->fidelity.equal, 1u);
  EXPECT_EQ(answer->addresses, Addresses::relocatable);  // wrong alike wherever it lies
}

TEST(Fidelity, address_that_hides_in_a_scalar_pins_the_recording) {
  Builder b = faithful_graph();
  for (auto& launch : b.w.launches) {  // the pointer to `out` is a number that nobody relocates
    Relocation hidden = launch.relocations.front();
    launch.relocations.erase(launch.relocations.begin());
    std::memcpy(launch.params.data() + hidden.param_offset, &b.w.buffers[hidden.buffer].address, 8);
  }
  Replay run(b.w);
  write_kgw(run.workload, run.plan.workload);
  auto answer = measure_fidelity(run.workload, run.plan.workload, run.options);
  ASSERT_TRUE(answer) << answer.failure().what;
  EXPECT_EQ(answer->fidelity.exact, 3u);
  EXPECT_EQ(answer->fidelity.equal, 2u);
  EXPECT_EQ(answer->addresses, Addresses::pinned) << answer->text;
}

TEST(Placement, recording_that_needs_its_addresses_is_refused_elsewhere) {
  Builder b = faithful_graph();
  b.w.buffers[1].address = 0x1000;  // nothing can lie there
  Replay run(b.w);
  run.plan.arms = {arm("baseline", b)};
  run.plan.placement = Placement::recorded;
  run.plan.require_exact = true;
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::fault);
  EXPECT_EQ(outcome.fault->name, "other addresses");
  EXPECT_NE(outcome.fault->detail.find("2 of 3"), std::string::npos) << outcome.fault->detail;
}

std::vector<const LiveBlock*> changed(const LiveResult& result, uint32_t sample, uint32_t pass) {
  std::vector<const LiveBlock*> found;
  for (const LiveBlock* block : result.blocks)
    if (block->sample == sample && block->pass == pass) found.push_back(block);
  return found;
}

uint32_t word(const std::byte* bytes, size_t index) {
  uint32_t value;
  std::memcpy(&value, bytes + 4 * index, 4);
  return value;
}

// a is stepped twice, sampled at the second time; then out = a + b.
Builder stepped_twice() {
  Builder b;
  uint32_t step = b.launch("step", 1), add = b.launch("add");
  b.request();
  b.call(CallKind::launch).launch = step;
  b.call(CallKind::launch).launch = step;
  b.call(CallKind::launch).launch = add;
  b.call(CallKind::stream_sync);
  return b;
}

TEST(Live, candidate_runs_on_recorded_memory_and_leaves_no_trace) {
  Builder b = stepped_twice();
  Replay run(b.w);
  run.plan.mode = ReplayMode::live;
  run.plan.samples = {{1, kNone, {0, 1}}, {2, kNone, {0, 1}}};
  run.plan.live_blocks = 100;
  Arm candidate = arm("candidate", b, "sub");  // in place of both steps: a = a − b
  candidate.replace[0].front().launch.relocations[0].buffer = 1;
  run.plan.arms = {candidate};
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  auto live = read_live(outcome.readback.bytes(), run.plan, run.workload);
  ASSERT_TRUE(live) << live.failure().what;
  auto first = changed(*live, 0, 0);
  ASSERT_EQ(first.size(), 1u);  // 400 bytes: one block
  EXPECT_EQ(first[0]->buffer, 1u);
  EXPECT_EQ(word(first[0]->before, 5), 6u);  // after the first step, which was made as recorded
  EXPECT_EQ(word(first[0]->after, 5), static_cast<uint32_t>(6 - 1000));
  // The launch after it, not replaced, finds the memory that the recorded steps left, and is run twice.
  for (uint32_t pass : {0, 1}) {
    auto second = changed(*live, 1, pass);
    ASSERT_EQ(second.size(), 1u) << pass;
    EXPECT_EQ(second[0]->buffer, 0u);
    EXPECT_EQ(word(second[0]->after, 5), 1007u);
  }
}

TEST(Live, node_of_a_graph_is_sampled) {
  Builder b = with_graph();
  Replay run(b.w);
  run.plan.mode = ReplayMode::live;
  run.plan.samples = {{0, 1, {0}}};
  run.plan.live_blocks = 10;
  run.plan.arms = {arm("recorded", b)};
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  auto live = read_live(outcome.readback.bytes(), run.plan, run.workload);
  ASSERT_TRUE(live) << live.failure().what;
  auto blocks = changed(*live, 0, 0);
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(word(blocks[0]->after, 0), 1001u);  // before the fill that comes behind it
}

TEST(Live, what_finds_no_room_is_counted) {
  Builder b = stepped_twice();
  Replay run(b.w);
  run.plan.mode = ReplayMode::live;
  run.plan.samples = {{1, kNone, {0, 1}}};
  run.plan.live_blocks = 0;
  run.plan.arms = {arm("recorded", b)};
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  auto live = read_live(outcome.readback.bytes(), run.plan, run.workload);
  ASSERT_TRUE(live);
  EXPECT_EQ(live->lost, 2u);
}

TEST(Live, doctored_samples_are_refused) {
  Builder b = stepped_twice();
  ReplayPlan plan;
  plan.samples = {{1, kNone, {1}}};
  std::vector<std::byte> memory(live_bytes(2));
  auto& header = *reinterpret_cast<LiveHeader*>(memory.data());
  auto* blocks = reinterpret_cast<LiveBlock*>(memory.data() + sizeof(LiveHeader));
  auto fails = [&](const char* what) {
    auto result = read_live(memory, plan, b.w);
    ASSERT_FALSE(result) << what;
    EXPECT_NE(result.failure().what.find(what), std::string::npos) << result.failure().what;
  };
  header.blocks = 3;
  fails("more blocks");
  header.blocks = 1;
  fails("does not read");  // buffer 0
  blocks[0].buffer = 1, blocks[0].sample = 1;
  fails("does not exist");
  blocks[0].sample = 0, blocks[0].block = 1;
  fails("past the end");
  blocks[0].block = 0, header.blocks = 2, blocks[1] = blocks[0];
  fails("twice");
  EXPECT_FALSE(read_live(std::span(memory).first(4), plan, b.w));
}

}  // namespace
}  // namespace kgate
