// Planted bugs: each must end in its own kind of fault, with the line, the statement and the thread.
#include "bench_gpu.h"
#include "one_instruction.h"

namespace kgate::vgpu {
namespace {

// One kernel with a pointer parameter in p, the thread in t (u32) and its word address in at.
std::string pointer_kernel(const std::string& body) {
  return wrap_kernel(
      ".reg .pred q<4>; .reg .b32 t, r<8>; .reg .b64 p, at, w<4>; .reg .f32 f<4>;\n.shared .align 16 .b8 tile[256];\n"
      "ld.param.u64 p, [d];\nmov.u32 t, %tid.x;\nmul.wide.u32 at, t, 4;\nadd.u64 at, p, at;\n" +
      body);
}

Fault must_fault(const LaunchOutcome& outcome, FaultKind kind) {
  if (!outcome.fault) {
    ADD_FAILURE() << "no fault; expected " << fault_name(kind);
    return {};
  }
  EXPECT_EQ(fault_name(outcome.fault->kind), std::string(fault_name(kind))) << outcome.fault->message;
  return *outcome.fault;
}

Fault run_fault(const std::string& body, FaultKind kind, Dim3 block = {32}, uint64_t budget = 1'000'000,
                size_t words = 64) {
  BenchGpu gpu(pointer_kernel(body));
  gpu.budget = budget;
  uint64_t at = gpu.upload(std::vector<uint32_t>(words));
  return must_fault(gpu.launch("k", {2}, block, 0, at), kind);
}

TEST(Faults, one_word_past_an_allocation) {
  Fault fault = run_fault("st.global.u32 [at+4], t;", FaultKind::out_of_bounds, {64});
  EXPECT_EQ(fault.thread, (Dim3{63, 0, 0}));
  EXPECT_EQ(fault.block, (Dim3{0, 0, 0}));
  EXPECT_EQ(fault.statement, "st.global.u32 [at+4], t");
  EXPECT_GT(fault.line, 0u);
  EXPECT_NE(fault.message.find("0 bytes past the end of the allocation of 256 bytes"), std::string::npos)
      << fault.message;
}

TEST(Faults, before_an_allocation_null_and_stray_pointers) {
  run_fault("ld.global.u32 r0, [p+-4];", FaultKind::out_of_bounds);
  Fault null = run_fault("mov.u64 w0, 0; ld.global.u32 r0, [w0];", FaultKind::out_of_bounds);
  EXPECT_NE(null.message.find("null"), std::string::npos);
  run_fault("mov.u64 w0, 0x123456789000; ld.u32 r0, [w0];", FaultKind::out_of_bounds);
  run_fault("mov.u64 w0, 0xffffffffffffff00; st.global.u32 [w0], t;", FaultKind::out_of_bounds);
  run_fault("mov.u64 w0, 0xfffffffffffffffc; st.u32 [w0], t;", FaultKind::out_of_bounds);
  run_fault("atom.global.add.u32 r0, [p+256], 1;", FaultKind::out_of_bounds);
}

TEST(Faults, an_access_that_straddles_the_end) {
  run_fault("ld.global.v2.u32 {r0, r1}, [p+8];", FaultKind::out_of_bounds, {1}, 1000, 3);
}

TEST(Faults, freed_memory_is_not_memory) {
  BenchGpu gpu(pointer_kernel("ld.global.u32 r0, [at];"));
  uint64_t at = gpu.upload(std::vector<uint32_t>(64)), other = gpu.upload(std::vector<uint32_t>(64));
  expect_clean(gpu.launch("k", {1}, {32}, 0, at));
  EXPECT_TRUE(gpu.memory.free(at));
  must_fault(gpu.launch("k", {1}, {32}, 0, at), FaultKind::out_of_bounds);
  uint64_t again = gpu.upload(std::vector<uint32_t>(64));
  EXPECT_NE(again, at) << "a freed range must not be handed out at once";
  must_fault(gpu.launch("k", {1}, {32}, 0, at), FaultKind::out_of_bounds);
  expect_clean(gpu.launch("k", {1}, {32}, 0, other));
}

TEST(Faults, misaligned_accesses) {
  Fault fault = run_fault("ld.global.v4.f32 {f0, f1, f2, f3}, [p+4];", FaultKind::misaligned);
  EXPECT_EQ(fault.address & 15, 4u);
  run_fault("ld.global.u32 r0, [p+2];", FaultKind::misaligned);
  run_fault("st.shared.v2.u32 [tile+4], {t, t};", FaultKind::misaligned);
  run_fault("atom.shared.add.u32 r0, [tile+1], 1;", FaultKind::misaligned);
}

TEST(Faults, shared_local_and_parameter_bounds) {
  Fault fault = run_fault("shl.b32 r0, t, 2; mov.u32 r1, tile; add.u32 r0, r0, r1; st.shared.u32 [r0+192], t;",
                          FaultKind::out_of_bounds);
  EXPECT_EQ(fault.thread.x, 16u);
  run_fault(".local .b8 mine[16]; mov.u64 w0, mine; ld.local.u32 r0, [w0+16];", FaultKind::out_of_bounds);
  run_fault("mov.u64 w0, d; cvta.param.u64 w1, w0; ld.u32 r0, [w1+8];", FaultKind::out_of_bounds);
}

TEST(Faults, traps_breakpoints_and_assertions) {
  EXPECT_EQ(run_fault("setp.eq.u32 q0, t, 5; @q0 trap;", FaultKind::trap).thread.x, 5u);
  run_fault("brkpt;", FaultKind::trap);
  std::string text = wrap_kernel(
      ".reg .b64 a<4>; .reg .b32 n;\n.param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;\n"
      "mov.u64 a0, message; cvta.global.u64 a0, a0; st.param.b64 [p0], a0; st.param.b64 [p1], a0; mov.u32 n, 7; "
      "st.param.b32 [p2], n;\n"
      "st.param.b64 [p3], a0; mov.u64 a1, 1; st.param.b64 [p4], a1; call.uni __assertfail, (p0, p1, p2, p3, p4);");
  text.insert(
      text.find(".visible"),
      ".extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 e, .param .b64 f);\n"
      ".global .align 1 .b8 message[6] = {105, 32, 60, 32, 110, 0};\n");
  BenchGpu gpu(text);
  Fault fault = must_fault(gpu.launch("k", {1}, {32}, 0, uint64_t{0}), FaultKind::trap);
  EXPECT_NE(fault.message.find("i < n"), std::string::npos) << fault.message;
}

TEST(Faults, an_endless_loop_exhausts_the_budget) {
  Fault fault = run_fault("L: add.u32 r0, r0, 1; bra L;", FaultKind::budget_exhausted, {32}, 100'000);
  EXPECT_NE(fault.statement.find("bra"), std::string::npos);
  run_fault("L: setp.lt.u32 q0, t, 7; @q0 bra L; bar.sync 0;", FaultKind::budget_exhausted, {64}, 100'000);
  run_fault("L: ld.volatile.global.u32 r0, [p]; setp.eq.u32 q0, r0, 0; @q0 bra L;", FaultKind::budget_exhausted, {256},
            1'000'000);
}

TEST(Faults, a_wait_that_nothing_can_end_is_found_long_before_the_budget) {
  const uint64_t plenty = uint64_t{1} << 50;
  Fault fault = run_fault("L: ld.volatile.global.u32 r0, [p]; setp.eq.u32 q0, r0, 0; @q0 bra L;",
                          FaultKind::budget_exhausted, {256}, plenty);
  EXPECT_NE(fault.message.find("endless"), std::string::npos) << fault.message;
  run_fault("L: atom.global.cas.b32 r0, [p], 1, 2; setp.ne.u32 q0, r0, 1; @q0 bra L;", FaultKind::budget_exhausted,
            {32}, plenty);
  run_fault(
      "setp.lt.u32 q1, t, 5; @q1 bra E; L: ld.volatile.global.u32 r0, [p]; setp.eq.u32 q0, r0, 0; @q0 bra L; E: "
      "bar.sync 0;",
      FaultKind::budget_exhausted, {64}, plenty);
}

TEST(Faults, lanes_that_wait_for_another_warp_get_what_they_wait_for) {
  BenchGpu gpu(pointer_kernel(
      "setp.lt.u32 q0, t, 8; @!q0 bra W; L: ld.volatile.global.u32 r0, [p]; setp.eq.u32 q1, r0, 0; @q1 bra L;\n"
      "W: setp.eq.u32 q2, t, 63; mov.u32 r1, 1; @q2 st.global.u32 [p], r1;"));
  uint64_t at = gpu.upload(std::vector<uint32_t>(64));
  gpu.budget = 0;
  expect_clean(gpu.launch("k", {1}, {64}, 0, at));
}

TEST(Faults, different_aligned_barriers_in_one_warp) {
  Fault fault = run_fault(
      "and.b32 r0, t, 1; setp.eq.u32 q0, r0, 0;\n@q0 bra E;\nbar.sync 0;\nbra D;\nE: bar.sync 0;\nD: st.global.u32 "
      "[at], t;",
      FaultKind::barrier_misuse);
  EXPECT_NE(fault.message.find("different aligned barriers"), std::string::npos) << fault.message;
}

TEST(Faults, a_barrier_that_half_a_warp_skips) {
  run_fault("setp.lt.u32 q0, t, 16;\n@!q0 bra D;\nbar.sync 0;\nD: st.global.u32 [at], t;", FaultKind::barrier_misuse);
}

TEST(Faults, leaving_early_before_a_barrier_is_fine) {
  BenchGpu gpu(pointer_kernel("setp.ge.u32 q0, t, 40;\n@q0 bra D;\nbar.sync 0;\nst.global.u32 [at], t;\nD:"));
  uint64_t at = gpu.upload(std::vector<uint32_t>(64, 99));
  expect_clean(gpu.launch("k", {1}, {64}, 0, at));
  auto got = gpu.download<uint32_t>(at, 64);
  EXPECT_EQ(got[39], 39u);
  EXPECT_EQ(got[40], 99u);
}

TEST(Faults, warps_at_different_barriers_deadlock_with_their_lines) {
  Fault fault =
      run_fault("setp.lt.u32 q0, t, 32;\n@q0 bra A;\nbar.sync 1;\nbra D;\nA: bar.sync 2;\nD: st.global.u32 [at], t;",
                FaultKind::deadlock, {64});
  EXPECT_NE(fault.message.find("at barrier 1"), std::string::npos) << fault.message;
  EXPECT_NE(fault.message.find("at barrier 2"), std::string::npos) << fault.message;
}

TEST(Faults, a_collective_whose_partners_never_come) {
  Fault fault = run_fault(
      "setp.lt.u32 q0, t, 16;\n@!q0 bra B;\nshfl.sync.bfly.b32 r0, t, 1, 31, 0xffffffff;\nbra D;\n"
      "B: bar.sync 0;\nD: st.global.u32 [at], t;",
      FaultKind::deadlock);
  EXPECT_NE(fault.message.find("for other lanes"), std::string::npos) << fault.message;
  run_fault("shfl.sync.bfly.b32 r0, t, 1, 31, 0x0000ffff;", FaultKind::illegal_instruction);
}

TEST(Faults, barrier_arguments_are_checked) {
  run_fault("mov.u32 r0, 16; bar.sync r0;", FaultKind::barrier_misuse);
  run_fault("bar.sync 0, 33;", FaultKind::barrier_misuse);
  run_fault("bar.sync t;", FaultKind::barrier_misuse);
}

TEST(Faults, unsupported_forms_fault_when_reached_and_only_then) {
  Fault fault = run_fault("wgmma.fence.sync.aligned;", FaultKind::unsupported);
  EXPECT_EQ(fault.statement, "wgmma.fence.sync.aligned");
  run_fault("mbarrier.init.shared.b64 [tile], 1;", FaultKind::unsupported);
  run_fault("add.frobnicate.u32 r0, t, t;", FaultKind::unsupported);
  BenchGpu gpu(
      pointer_kernel("setp.eq.u32 q0, t, 99; @q0 wgmma.fence.sync.aligned;\n@q0 bra N; bra D; N: "
                     "mbarrier.init.shared.b64 [tile], 1; D:"));
  expect_clean(gpu.launch("k", {1}, {32}, 0, uint64_t{0}));
}

TEST(Faults, recursion_is_refused_by_name) {
  std::string text = wrap_kernel(".param .b32 a; .reg .b32 x; mov.u32 x, 3; st.param.b32 [a], x; call.uni f, (a);");
  text.insert(text.find(".visible"),
              ".func f (.param .b32 n) { .param .b32 a; .reg .b32 x; ld.param.b32 x, [n]; st.param.b32 [a], x; "
              "call.uni f, (a); ret; }\n");
  BenchGpu gpu(text);
  Fault fault = must_fault(gpu.launch("k", {1}, {32}, 0, uint64_t{0}), FaultKind::unsupported);
  EXPECT_NE(fault.message.find("recursion"), std::string::npos);
}

TEST(Faults, launches_that_the_entry_cannot_take) {
  std::string text = wrap_kernel("");
  text.insert(text.find("{\nr") == std::string::npos ? text.find("{") : text.find("{"), ".reqntid 64 ");
  BenchGpu gpu(text);
  must_fault(gpu.launch("k", {1}, {32}, 0, uint64_t{0}), FaultKind::bad_launch);
  must_fault(gpu.launch("k", {0}, {64}, 0, uint64_t{0}), FaultKind::bad_launch);
  must_fault(gpu.launch("k", {1, 70000}, {64}, 0, uint64_t{0}), FaultKind::bad_launch);
  must_fault(gpu.launch("k", {1}, {64}, 300'000, uint64_t{0}), FaultKind::bad_launch);
  expect_clean(gpu.launch("k", {1}, {64}, 1024, uint64_t{0}));
  std::vector<std::byte> short_params(4);
  auto outcome = gpu.program->launch(0, LaunchRequest{{1}, {64}, 0, short_params, 0});
  must_fault(outcome, FaultKind::bad_launch);
  must_fault(gpu.program->launch(7, LaunchRequest{{1}, {64}, 0, {}, 0}), FaultKind::bad_launch);
}

TEST(Faults, text_that_is_no_ptx_does_not_load) {
  DeviceMemory memory(1 << 20);
  for (std::string text : {std::string(), std::string("hello"),
                           std::string("\x7f"
                                       "ELF\2\1\1",
                                       7),
                           std::string(".version 99.0\n.target sm_90\n.entry k() {}\n"),
                           std::string(".version 8.0\n.target sm_90\n.entry k() { add.u32 %r1, %r2, 1; }\n")}) {
    auto loaded = Program::load(text, memory);
    ASSERT_FALSE(loaded) << text;
    EXPECT_TRUE(loaded.failure().where.starts_with("line ")) << text;
  }
}

}  // namespace
}  // namespace kgate::vgpu
