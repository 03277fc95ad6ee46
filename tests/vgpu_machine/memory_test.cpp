// Loads, stores, spaces, atomics, asynchronous copies, and what is counted; the device's memory itself.
#include <array>

#include "one_instruction.h"

namespace kgate::vgpu {
namespace {

TEST(DeviceMemoryTable, hands_out_aligned_disjoint_ranges_with_gaps) {
  DeviceMemory memory(1 << 20);
  uint64_t a = memory.allocate(100), b = memory.allocate(1, 4096);
  EXPECT_EQ(a % 256, 0u);
  EXPECT_EQ(b % 4096, 0u);
  EXPECT_GE(b, a + 100 + 128);
  EXPECT_TRUE(memory.contains(a + 99, 1));
  EXPECT_FALSE(memory.contains(a + 99, 2));
  EXPECT_FALSE(memory.contains(a + 100, 1));
  EXPECT_FALSE(memory.contains(a - 1, 1));
  ASSERT_TRUE(memory.find(a + 50));
  EXPECT_EQ(memory.find(a + 50)->base, a);
  EXPECT_EQ(memory.used(), 101u);
  EXPECT_FALSE(memory.free(a + 1));
  EXPECT_TRUE(memory.free(a));
  EXPECT_FALSE(memory.free(a));
  EXPECT_FALSE(memory.find(a));
}

TEST(DeviceMemoryTable, refuses_what_does_not_fit) {
  DeviceMemory memory(1 << 20);
  EXPECT_EQ(memory.allocate(0), 0u);
  EXPECT_EQ(memory.allocate((1 << 20) + 1), 0u);
  EXPECT_EQ(memory.allocate(~uint64_t{0}), 0u);
  EXPECT_EQ(memory.allocate(64, 3), 0u);
  uint64_t all = memory.allocate(1 << 20);
  EXPECT_NE(all, 0u);
  EXPECT_EQ(memory.allocate(1), 0u);
  EXPECT_TRUE(memory.free(all));
  for (int i = 0; i < 100; ++i) {  // the reservation is walked through and around
    uint64_t at = memory.allocate(1 << 19);
    ASSERT_NE(at, 0u) << i;
    ASSERT_TRUE(memory.free(at));
  }
}

TEST(Memory, narrow_loads_extend_into_wider_registers) {
  std::vector<uint32_t> a{0x80ff7f01};
  auto load = [&](const std::string& form) { return run_one<uint32_t, uint32_t>(form + " $d, [p1];", a)[0]; };
  EXPECT_EQ(load("ld.global.u8"), 0x01u);
  EXPECT_EQ(load("ld.global.u16"), 0x7f01u);
  EXPECT_EQ((run_one<uint32_t, uint32_t>("ld.global.s8 $d, [p1+2];", a)[0]), 0xffffffffu);
  EXPECT_EQ((run_one<uint32_t, uint32_t>("ld.global.s16 $d, [p1+2];", a)[0]), 0xffff80ffu);
  EXPECT_EQ((run_one<uint64_t, uint32_t>("ld.global.s32 $d, [p1];", a)[0]), 0xffffffff80ff7f01u);
  EXPECT_EQ((run_one<uint32_t, uint32_t>("st.global.u8 [p0], $a; ld.global.u32 $d, [p0];", a)[0]), 0x01u);
}

TEST(Memory, vectors_in_every_width_whole_and_masked) {
  for (uint32_t lanes : {32u, 45u}) {
    std::vector<__uint128_t> a(lanes);
    for (size_t i = 0; i < a.size(); ++i) a[i] = (__uint128_t{i * 0x0101010101010101} << 64) | (i * 0x1111);
    std::string text = wrap_kernel(
        ".reg .b64 o, i, w<2>, off; .reg .b32 t, v<4>; .reg .b16 h<8>;\nld.param.u64 o, [q0]; ld.param.u64 i, [q1]; "
        "mov.u32 t, %tid.x; mul.wide.u32 off, t, 16;\n"
        "add.u64 o, o, off; add.u64 i, i, off;\nld.global.nc.L1::no_allocate.L2::128B.v4.b32 {v0, v1, v2, v3}, [i];\n"
        "st.global.cs.v4.f32 [o], {v3, v2, v1, v0};\nld.global.cg.v2.u64 {w0, w1}, [o];\nst.global.v2.b64 [o], {w1, "
        "w0};\nld.global.v4.u16 {h0, h1, h2, h3}, [o];\n"
        "st.global.v4.u16 [o], {h1, h0, h3, h2};\nld.global.v4.b32 {v0, _, _, v3}, [o]; st.global.v2.b32 [o+8], {v3, "
        "v0};",
        ".param .u64 q0, .param .u64 q1");
    BenchGpu gpu(text);
    uint64_t in = gpu.upload(a), out = gpu.upload(std::vector<__uint128_t>(lanes));
    expect_clean(gpu.launch("k", {1}, {lanes}, 0, out, in));
    auto got = gpu.download<std::array<uint32_t, 4>>(out, lanes);
    for (uint32_t l = 0; l < lanes; ++l) {
      uint32_t v[4];
      std::memcpy(v, &a[l], 16);
      auto swapped = [](uint32_t x) { return x << 16 | x >> 16; };
      std::array<uint32_t, 4> expected{swapped(v[1]), swapped(v[0]), v[2], swapped(v[1])};
      ASSERT_EQ(got[l], expected) << l;
    }
  }
}

TEST(Memory, generic_pointers_reach_their_windows) {
  std::vector<uint32_t> a(40);
  for (uint32_t i = 0; i < 40; ++i) a[i] = i * 3;
  auto got = run_one<uint32_t, uint32_t>(
      "{ .shared .align 4 .b8 s[256]; .local .align 4 .b8 l[8]; .reg .b64 g, h, i; .reg .pred a, b, c;\n"
      "mov.u64 g, s; cvta.shared.u64 g, g; mul.wide.u32 h, t, 4; add.u64 g, g, h; mov.u64 h, l; cvta.local.u64 h, h;\n"
      "st.u32 [h+4], $a; selp.b64 i, g, h, $p; st.u32 [i], 1000; ld.u32 u, [i]; ld.u32 $d, [h+4]; add.u32 $d, $d, u;\n"
      "isspacep.shared a, g; isspacep.local b, h; isspacep.global c, p1; and.pred a, a, b; and.pred a, a, c; @!a "
      "mov.u32 $d, 1; cvta.to.shared.u64 g, g;\n"
      "@$p ld.shared.u32 u, [g]; @$p sub.u32 $d, $d, u; @$p add.u32 $d, $d, 1000; }",
      a);
  for (uint32_t i = 0; i < 40; ++i) EXPECT_EQ(got[i], a[i] + 1000) << i;
}

TEST(Memory, parameters_by_value_arrays_and_vectors) {
  std::string text = wrap_kernel(
      ".reg .b64 p, w<2>, a; .reg .b32 x<4>, s; .reg .b16 h; ld.param.u64 p, [o]; ld.param.v2.b32 {x0, x1}, [block+8]; "
      "ld.param.s16 h, [tail];\n"
      "cvt.s32.s16 x2, h; mov.b64 a, block; ld.param.u32 x3, [a+4]; add.u32 s, x0, x1; add.u32 s, s, x2; add.u32 s, s, "
      "x3; st.global.u32 [p], s;",
      ".param .u64 .ptr .global .align 16 o, .param .align 16 .b8 block[32], .param .u16 tail");
  BenchGpu gpu(text);
  const FunctionInfo& info = gpu.program->entries()[0];
  ASSERT_EQ(info.params.size(), 3u);
  EXPECT_EQ(info.params[1].offset, 16u);
  EXPECT_EQ(info.params[2].offset, 48u);
  EXPECT_EQ(info.param_bytes, 50u);
  uint64_t out = gpu.upload(std::vector<uint32_t>(1));
  std::array<uint32_t, 8> block{0, 1000, 20, 3, 0, 0, 0, 0};
  expect_clean(gpu.launch("k", {1}, {1}, 0, out, block, int16_t{-5}));
  EXPECT_EQ(gpu.download<uint32_t>(out, 1)[0], 1018u);
}

TEST(Memory, globals_are_initialised_and_point_at_each_other) {
  std::string text = wrap_kernel(
      ".reg .b64 p, q; .reg .b32 v; ld.param.u64 p, [d]; ld.global.u64 q, [where]; ld.u32 v, [q]; st.global.u32 [p], "
      "v; ld.const.u32 v, [c+4]; st.global.u32 [p+4], v;");
  text.insert(
      text.find(".visible"),
      ".global .align 4 .u32 values[4] = {1, 2, 3, -4};\n.global .align 8 .u64 where[1] = {generic(values)+12};\n"
      ".const .align 4 .f32 c[2] = {0f00000000, 0f40490FDB};\n");
  BenchGpu gpu(text);
  uint64_t out = gpu.upload(std::vector<uint32_t>(2));
  expect_clean(gpu.launch("k", {1}, {1}, 0, out));
  EXPECT_EQ(gpu.download<uint32_t>(out, 2), (std::vector<uint32_t>{uint32_t(-4), 0x40490fdb}));
  EXPECT_TRUE(gpu.program->global("values"));
  EXPECT_FALSE(gpu.program->global("nothing"));
}

TEST(Memory, atomics_return_the_old_value_in_lane_order) {
  auto old =
      run_one<uint32_t, uint32_t>("ld.param.u64 p1, [q1]; atom.global.add.u32 $d, [p1], 1;", std::vector<uint32_t>(32));
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(old[l], l);
  auto dec =
      run_one<uint32_t, uint32_t>("ld.param.u64 p1, [q1]; atom.global.dec.u32 $d, [p1], 3;", std::vector<uint32_t>(6));
  EXPECT_EQ(dec, (std::vector<uint32_t>{0, 3, 2, 1, 0, 3}));
  auto shared = run_one<float, float>(
      "{ .shared .align 8 .b8 s[8]; st.shared.f32 [s], 0f00000000; bar.sync 0; red.shared.add.f32 [s], $a; bar.sync 0; "
      "ld.shared.f32 $d, [s]; }",
      std::vector<float>(40, 0.5f));
  EXPECT_EQ(shared[0], 20.0f);
  auto half = run_one<uint32_t, uint32_t>(
      "ld.param.u64 p0, [q0]; red.global.add.noftz.f16x2 [p0], $a; ld.global.b32 $d, [p0];", {0x3c004000});
  EXPECT_EQ(half[0], 0x3c004000u);
  auto cas = run_one<uint64_t, uint64_t>(
      "ld.param.u64 p1, [q1]; atom.global.cas.b64 $d, [p1], 7, 9; ld.global.u64 $d, [p1];", {7});
  EXPECT_EQ(cas[0], 9u);
  auto f64 = run_one<double, double>(
      "ld.param.u64 p1, [q1]; atom.relaxed.gpu.global.add.f64 $d, [p1], 0d3FE0000000000000;", {1.5});
  EXPECT_EQ(f64[0], 1.5);
}

TEST(Memory, asynchronous_copies_fill_the_rest_with_zeros) {
  std::string text = wrap_kernel(
      ".shared .align 16 .b8 s[64]; .reg .b64 o, i; .reg .b32 v<4>, n; .reg .pred z;\nld.param.u64 o, [q0]; "
      "ld.param.u64 i, [q1]; ld.param.u32 n, [q2];\n"
      "mov.u32 v0, s; cp.async.cg.shared.global [v0+16], [i], 16, n; cp.async.commit_group; cp.async.wait_group 0; "
      "bar.sync 0;\n"
      "ld.shared.v4.u32 {v0, v1, v2, v3}, [s+16]; st.global.v4.u32 [o], {v0, v1, v2, v3};",
      ".param .u64 q0, .param .u64 q1, .param .u32 q2");
  BenchGpu gpu(text);
  uint64_t in = gpu.upload(std::vector<uint32_t>{1, 2, 3, 4}), out = gpu.upload(std::vector<uint32_t>(4));
  expect_clean(gpu.launch("k", {1}, {1}, 0, out, in, 8));
  EXPECT_EQ(gpu.download<uint32_t>(out, 4), (std::vector<uint32_t>{1, 2, 0, 0}));
  expect_clean(gpu.launch("k", {1}, {1}, 0, out, uint64_t{0}, 0));  // nothing is read, so the source may be anything
  EXPECT_EQ(gpu.download<uint32_t>(out, 4), (std::vector<uint32_t>(4)));
}

LaunchOutcome strided(const std::string& access, uint32_t stride) {
  std::string text = wrap_kernel(
      ".shared .align 16 .b8 s[16384]; .reg .b64 p, o; .reg .b32 t, u, v; .reg .b64 w;\nld.param.u64 p, [d]; mov.u32 "
      "t, %tid.x; mul.lo.u32 u, t, " +
      std::to_string(stride) + "; cvt.u64.u32 o, u; add.u64 p, p, o; mov.u32 v, s; add.u32 u, u, v;\n" + access);
  BenchGpu gpu(text);
  uint64_t at = gpu.upload(std::vector<uint32_t>(8192));
  auto outcome = gpu.launch("k", {1}, {32}, 0, at);
  expect_clean(outcome);
  return outcome;
}

TEST(Counts, sectors_of_global_requests) {
  EXPECT_EQ(strided("ld.global.u32 v, [p];", 4).counters.global_load_sectors, 4u);
  EXPECT_EQ(strided("ld.global.u32 v, [p];", 32).counters.global_load_sectors, 32u);
  EXPECT_EQ(strided("ld.global.u32 v, [p];", 8).counters.global_load_sectors, 8u);
  EXPECT_EQ(strided("ld.global.u32 v, [p];", 0).counters.global_load_sectors, 1u);
  EXPECT_EQ(strided("ld.global.u8 v, [p];", 1).counters.global_load_sectors, 1u);
  EXPECT_EQ(strided("st.global.u64 [p], w;", 8).counters.global_store_sectors, 8u);
  EXPECT_EQ(strided("st.global.u64 [p], w;", 8).counters.global_requests, 1u);
}

TEST(Counts, bank_conflicts_of_shared_requests) {
  EXPECT_EQ(strided("ld.shared.u32 v, [u];", 4).counters.bank_conflicts, 0u);
  EXPECT_EQ(strided("ld.shared.u32 v, [u];", 8).counters.bank_conflicts, 1u);
  EXPECT_EQ(strided("ld.shared.u32 v, [u];", 128).counters.bank_conflicts, 31u);
  EXPECT_EQ(strided("ld.shared.u32 v, [u];", 0).counters.bank_conflicts, 0u);
  EXPECT_EQ(strided("ld.shared.u8 v, [u];", 1).counters.bank_conflicts, 0u);
  EXPECT_EQ(strided("ld.shared.u64 w, [u];", 8).counters.bank_conflicts, 0u);
  EXPECT_EQ(strided("ld.shared.u32 v, [u];", 132).counters.bank_conflicts, 0u);
}

TEST(Counts, instructions_of_straight_code) {
  BenchGpu gpu(wrap_kernel(".reg .b32 t; mov.u32 t, 1; add.u32 t, t, 1;"));
  auto outcome = gpu.launch("k", {3}, {40}, 0, uint64_t{0});
  EXPECT_EQ(outcome.counters.warp_instructions, 3u * 2 * 3);
  EXPECT_EQ(outcome.counters.thread_instructions, 3u * 40 * 3);
}

}  // namespace
}  // namespace kgate::vgpu
