// Warp collectives, barriers, divergence.
#include <set>

#include "one_instruction.h"

namespace kgate::vgpu {
namespace {

std::vector<uint32_t> iota(uint32_t n) {
  std::vector<uint32_t> out(n);
  for (uint32_t i = 0; i < n; ++i) out[i] = i;
  return out;
}

TEST(Collectives, shuffles_follow_the_segment_and_clamp_rules) {
  auto a = iota(32);
  for (uint32_t width : {32u, 8u}) {
    uint32_t segment = (32 - width) << 8;
    for (uint32_t delta : {1u, 3u, 5u}) {
      auto run = [&](const std::string& mode, uint32_t c) {
        std::string text = "shfl.sync." + mode + ".b32 $d|$q, $a, " + std::to_string(delta) + ", " +
                           std::to_string(c | segment) +
                           ", -1;"
                           " @$q add.u32 $d, $d, 100;";
        return run_one<uint32_t, uint32_t>(text, a);
      };
      auto up = run("up", 0), down = run("down", 31), bfly = run("bfly", 31), idx = run("idx", 31);
      for (uint32_t l = 0; l < 32; ++l) {
        uint32_t low = l / width * width, high = low + width - 1;
        EXPECT_EQ(up[l], l >= low + delta ? l - delta + 100 : l) << l;
        EXPECT_EQ(down[l], l + delta <= high ? l + delta + 100 : l) << l;
        EXPECT_EQ(bfly[l], (l ^ delta) <= high ? (l ^ delta) + 100 : l) << l;
        EXPECT_EQ(idx[l], low + delta % width + 100) << l;
      }
    }
  }
}

TEST(Collectives, votes_and_matches) {
  auto a = iota(32);
  for (auto& v : a) v %= 5;
  auto ballot = run_one<uint32_t, uint32_t>("setp.eq.u32 $q, $a, 2; vote.sync.ballot.b32 $d, $q, -1;", a);
  uint32_t twos = 0;
  for (uint32_t l = 0; l < 32; ++l) twos |= uint32_t{a[l] == 2} << l;
  EXPECT_EQ(ballot, std::vector<uint32_t>(32, twos));
  auto negated = run_one<uint32_t, uint32_t>("setp.eq.u32 $q, $a, 2; vote.sync.ballot.b32 $d, !$q, -1;", a);
  EXPECT_EQ(negated[0], ~twos);
  auto answer = [&](const std::string& mode, uint32_t limit) {
    return run_one<uint32_t, uint32_t>("setp.lt.u32 $q, $a, " + std::to_string(limit) + "; vote.sync." + mode +
                                           ".pred $q, $q, -1; selp.u32 $d, 1, 0, $q;",
                                       a)[0];
  };
  EXPECT_EQ(answer("all", 5), 1u);
  EXPECT_EQ(answer("all", 4), 0u);
  EXPECT_EQ(answer("any", 1), 1u);
  EXPECT_EQ(answer("any", 0), 0u);
  EXPECT_EQ(answer("uni", 0), 1u);
  EXPECT_EQ(answer("uni", 3), 0u);
  auto match = run_one<uint32_t, uint32_t>("match.any.sync.b32 $d, $a, -1;", a);
  for (uint32_t l = 0; l < 32; ++l) {
    uint32_t expected = 0;
    for (uint32_t k = 0; k < 32; ++k) expected |= uint32_t{a[k] == a[l]} << k;
    EXPECT_EQ(match[l], expected);
  }
  EXPECT_EQ((run_one<uint32_t, uint32_t>("match.all.sync.b32 $d|$q, $a, -1; @$q mov.u32 $d, 5;", a)[0]), 0u);
  EXPECT_EQ((run_one<uint32_t, uint32_t>("match.all.sync.b32 $d|$q, 7, -1; @!$q mov.u32 $d, 5;", a)[0]), ~0u);
}

TEST(Collectives, warp_reductions_and_election) {
  std::vector<uint32_t> a = iota(32);
  a[7] = 0xfffffff0;
  auto one = [&](const std::string& form) {
    return run_one<uint32_t, uint32_t>("redux.sync." + form + " $d, $a, -1;", a)[3];
  };
  EXPECT_EQ(one("add.u32"), 496u - 7 - 16);
  EXPECT_EQ(one("min.u32"), 0u);
  EXPECT_EQ(one("max.u32"), 0xfffffff0);
  EXPECT_EQ(one("min.s32"), 0xfffffff0);
  EXPECT_EQ(one("max.s32"), 31u);
  EXPECT_EQ(one("or.b32"), ~0u);
  EXPECT_EQ(one("and.b32"), 0u);
  auto leader = run_one<uint32_t, uint32_t>("mov.u32 $d, 0; elect.sync _|$q, -1; @$q mov.u32 $d, 1;", a);
  EXPECT_EQ(leader[0], 1u);
  EXPECT_EQ(leader[1], 0u);
}

TEST(Collectives, halves_of_a_warp_shuffle_apart_with_their_own_masks) {
  auto got = run_one<uint32_t, uint32_t>(
      "setp.lt.u32 $q, $a, 16;\n@$q bra L;\nshfl.sync.idx.b32 $d, $a, 20, 31, 0xffff0000;\nbra E;\nL: "
      "shfl.sync.idx.b32 $d, $a, 3, 31, 0x0000ffff;\nE:",
      iota(32));
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(got[l], l < 16 ? 3u : 20u);
  auto mixed = run_one<uint32_t, uint32_t>(
      "setp.lt.u32 $q, $a, 16; selp.b32 u, 0x0000ffff, 0xffff0000, $q; vote.sync.ballot.b32 $d, $p, u;", iota(32));
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(mixed[l], 0xaaaaaaaau & (l < 16 ? 0xffffu : 0xffff0000u));
}

TEST(Collectives, lanes_that_diverged_meet_at_bar_warp_sync) {
  auto got = run_one<uint32_t, uint32_t>(
      ".shared .align 4 .b8 s[128]; shl.b32 u, $a, 2; mov.u32 t, s; add.u32 u, u, t;\n"
      "setp.lt.u32 $q, $a, 16;\n@$q bra W;\nmov.u32 t, 5;\nW: st.shared.u32 [u], $a;\nbar.warp.sync -1;\nxor.b32 u, u, "
      "64; ld.shared.u32 $d, [u];",
      iota(32));
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(got[l], l ^ 16);
}

TEST(Collectives, lanes_outside_a_dead_part_of_the_mask_go_on) {
  auto got = run_one<uint32_t, uint32_t>(
      "setp.ge.u32 $q, $a, 8; st.global.u32 [p0], 9; @$q exit; vote.sync.ballot.b32 $d, 1, -1;", iota(32));
  EXPECT_EQ(got[0], 0xffu);
  EXPECT_EQ(got[8], 9u);
}

TEST(Collectives, active_mask_counts_who_is_here) {
  auto got =
      run_one<uint32_t, uint32_t>("mov.u32 $d, 0; setp.lt.u32 $q, $a, 4; @!$q bra E; activemask.b32 $d; E:", iota(32));
  EXPECT_EQ(got[0], 0xfu);
  EXPECT_EQ(got[4], 0u);
}

TEST(Barriers, reductions_over_the_block) {
  auto count = run_one<uint32_t, uint32_t>("setp.lt.u32 $q, $a, 50; bar.red.popc.u32 $d, 0, $q;", iota(70));
  EXPECT_EQ(count, std::vector<uint32_t>(70, 50));
  auto all = run_one<uint32_t, uint32_t>("setp.lt.u32 $q, $a, 69; bar.red.and.pred $q, 0, $q; selp.u32 $d, 1, 0, $q;",
                                         iota(70));
  EXPECT_EQ(all, std::vector<uint32_t>(70, 0));
  auto any =
      run_one<uint32_t, uint32_t>("setp.lt.u32 $q, $a, 1; bar.red.or.pred $q, 0, $q; selp.u32 $d, 1, 0, $q;", iota(70));
  EXPECT_EQ(any, std::vector<uint32_t>(70, 1));
}

TEST(Barriers, producers_arrive_and_consumers_wait) {
  auto got = run_one<uint32_t, uint32_t>(
      ".shared .align 4 .b8 s[128]; mov.u32 u, %laneid; shl.b32 u, u, 2; mov.u32 t, s; add.u32 u, u, t; mov.u32 $d, "
      "0;\n"
      "setp.ge.u32 $q, $a, 32;\n@$q bra P;\nbar.sync 1, 64;\nld.shared.u32 $d, [u];\nbra E;\nP: st.shared.u32 [u], "
      "$a;\nbar.arrive 1, 64;\nE:",
      iota(64));
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(got[l], l + 32);
}

TEST(Barriers, order_what_warps_write_and_read) {
  auto got = run_one<uint32_t, uint32_t>(
      ".shared .align 4 .b8 s[512]; shl.b32 u, $a, 2; mov.u32 t, s; add.u32 t, t, u; st.shared.u32 [t], $a; bar.sync "
      "0;\n"
      "mov.u32 t, s; xor.b32 u, u, 508; add.u32 t, t, u; ld.shared.u32 $d, [t];",
      iota(128));
  for (uint32_t l = 0; l < 128; ++l) EXPECT_EQ(got[l], 127 - l);
}

TEST(Divergence, tables_of_branch_targets) {
  std::vector<uint32_t> a = iota(40);
  for (auto& v : a) v %= 3;
  auto got = run_one<uint32_t, uint32_t>(
      "T: .branchtargets A, B, C;\nbrx.idx $a, T;\nA: mov.u32 $d, 10; bra E;\nB: mov.u32 $d, 20; bra E;\nC: mov.u32 "
      "$d, 30;\nE:",
      a);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(got[i], 10 * (a[i] + 1));
}

TEST(Divergence, blocks_that_wait_for_later_blocks_make_progress) {
  // Each block but the last spins until its successor has set its flag.
  std::string body =
      ".reg .pred q; .reg .b32 b, n, v; .reg .b64 p, at;\nld.param.u64 p, [d]; mov.u32 b, %ctaid.x; mov.u32 n, "
      "%nctaid.x; sub.u32 n, n, 1;\n"
      "mul.wide.u32 at, b, 4; add.u64 at, p, at; setp.eq.u32 q, b, n;\n@q bra S;\n"
      "L: ld.acquire.gpu.global.u32 v, [at+4]; setp.eq.u32 q, v, 0; @q bra L;\nS: st.release.gpu.global.u32 [at], 1;";
  BenchGpu gpu(wrap_kernel(body));
  uint64_t at = gpu.upload(std::vector<uint32_t>(5));
  gpu.budget = 0;
  expect_clean(gpu.launch("k", {4}, {32}, 0, at));
  EXPECT_EQ(gpu.download<uint32_t>(at, 4), std::vector<uint32_t>(4, 1));
}

}  // namespace
}  // namespace kgate::vgpu
