#include <gtest/gtest.h>

#include <cstdlib>

#include "sample.h"

namespace kgate {
namespace {

using namespace sample;

Builder one_launch(const std::string& entry) {
  Builder b;
  uint32_t launch = b.launch(entry);
  b.request();
  b.launch_and_sync(launch);
  return b;
}

std::vector<uint32_t> sums() {
  std::vector<uint32_t> sums(kCount);
  for (uint32_t i = 0; i < kCount; ++i) sums[i] = 1000 + i;
  return sums;
}

TEST(NumericRun, computes_and_reads_back) {
  Builder b = one_launch("add");
  Replay run(b.w);
  run.plan.arms = {arm("baseline", b)};
  run.plan.readback = {0, 1};
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  EXPECT_EQ(values(run, outcome, 0), sums());
  EXPECT_EQ(values(run, outcome, 1)[7], 7u);
  ASSERT_TRUE(outcome.device);
  EXPECT_EQ(outcome.device->kind, gpu::DeviceKind::virtual_gpu);
  EXPECT_TRUE(outcome.load_ns.contains("baseline"));
}

TEST(NumericRun, each_arm_starts_from_the_same_content) {
  Builder b = one_launch("step");
  b.w.buffers[0].content = ContentBytes{bytes_of({41})};
  Replay run(b.w);
  run.plan.arms = {arm("baseline", b), arm("again", b), arm("candidate", b, "add")};
  run.plan.rounds = {{0, 0, 0}, {1, 0, 1}, {2, 0, 2}};
  run.plan.readback = {0};
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  EXPECT_EQ(values(run, outcome, 0)[0], 42u);
  EXPECT_EQ(values(run, outcome, 1)[0], 42u);
  EXPECT_EQ(values(run, outcome, 0)[1], 1u);
  EXPECT_EQ(values(run, outcome, 2), sums());
}

TEST(NumericRun, every_kind_of_call_does_what_it_says) {
  Builder b;
  b.w.streams.resize(2);
  b.w.events = 1;
  uint32_t launch = b.launch("add");
  b.request();
  Call& upload = b.call(CallKind::upload);  // 'a' as it was, from element 50 on
  upload.dst = 1, upload.dst_offset = 200, upload.bytes = 200;
  b.call(CallKind::launch).launch = launch;
  b.call(CallKind::event_record).event = 0;
  Call& wait = b.call(CallKind::event_wait);
  wait.event = 0, wait.stream = 1;
  b.request();
  Call& memset = b.call(CallKind::memset);
  memset.dst = 1, memset.dst_offset = 4, memset.bytes = 8, memset.value = 0x11, memset.stream = 1;
  Call& copy = b.call(CallKind::copy);
  copy.dst = 1, copy.dst_offset = 12, copy.src = 0, copy.src_offset = 4, copy.bytes = 4, copy.stream = 1;
  b.call(CallKind::event_sync).event = 0;
  b.call(CallKind::context_sync);
  Call& download = b.call(CallKind::download);
  download.src = 0, download.bytes = 400;
  Replay run(b.w);
  run.plan.arms = {arm("baseline", b)};
  run.plan.readback = {0, 1};
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  EXPECT_EQ(values(run, outcome, 0), sums());
  auto a = values(run, outcome, 1);
  EXPECT_EQ(a[0], 0u);
  EXPECT_EQ(a[1], 0x11111111u);
  EXPECT_EQ(a[2], 0x11111111u);
  EXPECT_EQ(a[3], 1001u);
  EXPECT_EQ(a[4], 4u);
  EXPECT_EQ(a[60], 60u);
}

TEST(NumericRun, intact_guards_come_back_as_they_were) {
  Builder b = one_launch("add");
  b.w.buffers[0].align = 4096;
  Replay run(b.w);
  run.plan.arms = {arm("baseline", b)};
  run.plan.readback = {0};
  run.plan.guard_bytes = 512;
  run.plan.guard_value = 0x7e;
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  EXPECT_EQ(values(run, outcome, 0), sums());
  EXPECT_EQ(guards(run, outcome, 0), std::string(1024, '\x7e'));
}

TEST(NumericRun, a_write_past_the_end_shows_in_the_guard) {
  Builder b = one_launch("past");
  Replay run(b.w);
  run.plan.arms = {arm("baseline", b)};
  run.plan.readback = {0};
  run.plan.guard_bytes = 256;
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  std::string expected(512, '\xc5');
  uint32_t last = kCount - 1;
  std::memcpy(expected.data() + 256, &last, 4);
  EXPECT_EQ(guards(run, outcome, 0), expected);
}

TEST(NumericRun, without_guards_a_write_past_the_end_is_a_fault_with_its_request_and_line) {
  Builder b;
  uint32_t good = b.launch("add"), bad = b.launch("past");
  b.request();
  b.launch_and_sync(good);
  b.request();
  b.launch_and_sync(bad);
  Replay run(b.w);
  run.plan.arms = {arm("baseline", b)};
  run.plan.readback = {0};
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::fault) << outcome.detail;
  ASSERT_TRUE(outcome.fault);
  EXPECT_EQ(outcome.fault->kind, "out of bounds");
  EXPECT_EQ(outcome.fault->arm, 0u);
  EXPECT_EQ(outcome.fault->request, 1u);
  EXPECT_EQ(outcome.fault->launch, bad);
  EXPECT_GT(outcome.fault->line, 0u);
  EXPECT_NE(outcome.fault->statement.find("st.global.u32"), std::string::npos);
  EXPECT_EQ(outcome.fault->name, "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_FALSE(outcome.collector);
}

TEST(NumericRun, an_endless_kernel_is_a_fault_when_its_budget_is_used_up) {
  Builder b = one_launch("spin");
  Replay run(b.w);
  run.plan.arms = {arm("baseline", b)};
  ::setenv("KGATE_VGPU_BUDGET", "10000", 1);
  auto outcome = run();
  ::unsetenv("KGATE_VGPU_BUDGET");
  ASSERT_EQ(outcome.end, WorkerEnd::fault) << outcome.detail;
  EXPECT_NE(outcome.fault->kind.find("budget"), std::string::npos) << outcome.fault->kind;
  EXPECT_EQ(outcome.fault->request, 0u);
}

TEST(NumericRun, the_fault_names_the_arm_that_failed) {
  Builder b = one_launch("add");
  Replay run(b.w);
  run.plan.arms = {arm("baseline", b), arm("candidate", b, "far")};
  run.plan.rounds = {{0, 0, 0}, {1, 0, 1}};
  run.plan.readback = {0};
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::fault) << outcome.detail;
  EXPECT_EQ(outcome.fault->arm, 1u);
  EXPECT_EQ(values(run, outcome, 0), sums()) << "what the first arm computed is kept";
}

TEST(NumericRun, a_launch_that_is_left_out_is_not_made) {
  Builder b = one_launch("add");
  Replay run(b.w);
  Arm without = arm("candidate", b, "add");
  without.replace[0].clear();
  run.plan.arms = {without};
  run.plan.readback = {0};
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  EXPECT_EQ(values(run, outcome, 0), std::vector<uint32_t>(kCount, 0xffffffff));
  EXPECT_TRUE(records<wire::LaunchRecord>(outcome, wire::Kind::launch).empty());
  EXPECT_EQ(records<wire::RequestRecord>(outcome, wire::Kind::request).size(), 1u);
}

TEST(NumericRun, what_does_not_load_is_a_fault_of_its_arm) {
  Builder b = one_launch("add");
  Replay run(b.w);
  run.plan.arms = {arm("baseline", b), arm("candidate", b, "no_such_entry")};
  run.plan.rounds = {{1, 0, 0}};
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::fault) << outcome.detail;
  EXPECT_EQ(outcome.fault->stage, "load");
  EXPECT_EQ(outcome.fault->arm, 1u);
  EXPECT_EQ(outcome.fault->name, "CUDA_ERROR_NOT_FOUND");

  run.plan.arms[1] = arm("candidate", b, "add");
  run.plan.arms[1].modules[0].image = "this is not PTX";
  outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::fault) << outcome.detail;
  EXPECT_EQ(outcome.fault->stage, "load");
  EXPECT_EQ(outcome.fault->arm, 1u);
}

TEST(NumericRun, parameters_that_the_driver_sees_otherwise_are_refused_before_any_launch) {
  Builder b = one_launch("add");
  Replay run(b.w);
  Arm other = arm("candidate", b, "add");
  other.kernels[0].params = {{0, 8}, {8, 8}, {16, 8}, {24, 8}};
  other.kernels[0].param_bytes = 32;
  other.replace[0][0].launch.params.resize(32);
  run.plan.arms = {other};
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::fault) << outcome.detail;
  EXPECT_EQ(outcome.fault->stage, "load");
  EXPECT_EQ(outcome.fault->name, "other parameters");
}

TEST(NumericRun, a_device_that_is_too_small_is_told_with_both_sizes) {
  Builder b = one_launch("add");
  Buffer large;
  large.bytes = uint64_t{5} << 30;
  large.content = ContentZeros{};
  b.w.buffers.push_back(large);
  Replay run(b.w);
  run.plan.arms = {arm("baseline", b)};
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::fault) << outcome.detail;
  EXPECT_EQ(outcome.fault->stage, "memory");
  EXPECT_EQ(outcome.fault->name, "out of memory");
  EXPECT_NE(outcome.fault->detail.find("needs 5.00 GiB"), std::string::npos) << outcome.fault->detail;
}

TEST(NumericRun, copies_for_restoring_move_to_host_memory_when_the_device_is_full) {
  Builder b = one_launch("step");
  Buffer large;
  large.bytes = 24 << 20;
  large.content = ContentBytes{"x"};
  b.w.buffers.push_back(large);
  b.w.buffers[0].content = ContentBytes{bytes_of({7})};
  Replay run(b.w);
  run.plan.arms = {arm("one", b), arm("two", b)};
  run.plan.rounds = {{0, 0, 0}, {1, 0, 1}};
  run.plan.readback = {0};
  ::setenv("KGATE_VGPU_MEMORY", "32M", 1);
  auto outcome = run();
  ::unsetenv("KGATE_VGPU_MEMORY");
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  EXPECT_EQ(values(run, outcome, 0)[0], 8u);
  EXPECT_EQ(values(run, outcome, 1)[0], 8u);
}

}  // namespace
}  // namespace kgate
