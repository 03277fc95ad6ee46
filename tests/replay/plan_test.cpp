#include "replay/plan.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/fd.h"

namespace kgate {
namespace {

Workload small_workload() {
  Workload w;
  w.modules = {{"m.ptx", "ptx", ""}};
  w.kernels = {{0, "k", {{0, 8}, {8, 4}}, 12}};
  w.buffers.resize(2);
  w.buffers[0].bytes = 100;
  w.buffers[1].bytes = 8192;
  LaunchSpec launch;
  launch.grid = launch.block = {1, 1, 1};
  launch.params.resize(12);
  w.launches = {launch};
  w.calls = {Call{}};
  w.calls[0].launch = 0;
  w.requests = {{0, 0, {0}}};
  return w;
}

ReplayPlan small_plan() {
  ReplayPlan plan;
  plan.mode = ReplayMode::timing;
  plan.workload = "/some/where.kgw";
  Arm baseline;
  baseline.label = "baseline";
  Arm candidate;
  candidate.label = "candidate";
  candidate.modules = {{"c.cubin",
                        std::string("\x7f"
                                    "ELF\0\xff",
                                    6),
                        ""}};
  candidate.kernels = {{0, "k2", {{0, 8}, {8, 8}}, 16}};
  candidate.kernel_ids = {"abc"};
  LaunchSpec launch;
  launch.grid = {7, 2, 1};
  launch.block = {128, 1, 1};
  launch.cluster = {2, 1, 1};
  launch.shared = 1024;
  launch.params.assign(16, std::byte{0xa7});
  launch.relocations = {{8, 1, -16}};
  candidate.replace[0] = {launch, launch};
  plan.arms = {baseline, candidate};
  plan.rounds = abba_rounds(0, 2, 5, 1);
  plan.readback = {1, 0};
  plan.judged = {0};
  plan.guard_bytes = 4096;
  plan.guard_value = 0x11;
  plan.trace = false;
  return plan;
}

TEST(PlanFiles, a_plan_survives_the_round_trip) {
  TempDir dir;
  ReplayPlan plan = small_plan();
  write_plan(plan, dir.path());
  auto back = read_plan(dir.path());
  ASSERT_TRUE(back) << back.failure().what;
  EXPECT_EQ(back->mode, plan.mode);
  EXPECT_EQ(back->workload, plan.workload);
  ASSERT_EQ(back->arms.size(), 2u);
  const Arm& arm = back->arms[1];
  EXPECT_EQ(arm.modules[0].image, plan.arms[1].modules[0].image);
  EXPECT_EQ(arm.kernels[0].params, plan.arms[1].kernels[0].params);
  EXPECT_EQ(arm.kernel_ids, plan.arms[1].kernel_ids);
  ASSERT_EQ(arm.replace.at(0).size(), 2u);
  const LaunchSpec& launch = arm.replace.at(0)[1].launch;
  EXPECT_EQ(launch.grid.x, 7u);
  EXPECT_EQ(launch.cluster.x, 2u);
  EXPECT_EQ(launch.shared, 1024u);
  EXPECT_EQ(launch.params, plan.arms[1].replace.at(0)[1].launch.params);
  EXPECT_EQ(launch.relocations[0].delta, -16);
  ASSERT_EQ(back->rounds.size(), 4u);
  EXPECT_EQ(back->rounds[3].round, 8u);
  EXPECT_EQ(back->readback, plan.readback);
  EXPECT_EQ(back->guard_bytes, 4096u);
  EXPECT_EQ(back->guard_value, 0x11);
  EXPECT_FALSE(back->trace);
  EXPECT_TRUE(back->honour_arrivals);
}

TEST(PlanFiles, an_empty_replacement_stays_empty_and_is_not_lost) {
  TempDir dir;
  ReplayPlan plan = small_plan();
  plan.arms[1].replace[0].clear();
  write_plan(plan, dir.path());
  auto back = read_plan(dir.path());
  ASSERT_TRUE(back);
  ASSERT_TRUE(back->arms[1].replace.contains(0));
  EXPECT_TRUE(back->arms[1].replace.at(0).empty());
}

TEST(PlanFiles, an_image_that_was_changed_is_refused) {
  TempDir dir;
  write_plan(small_plan(), dir.path());
  ASSERT_TRUE(write_file_atomic(dir.path() / "arm1.module0", "something else"));
  auto back = read_plan(dir.path());
  ASSERT_FALSE(back);
  EXPECT_NE(back.failure().what.find("arm1.module0"), std::string::npos);
}

TEST(PlanFiles, a_missing_folder_or_image_is_named) {
  auto missing = read_plan("/nonexistent/plan");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.failure().where.find("/nonexistent/plan"), std::string::npos);
  TempDir dir;
  write_plan(small_plan(), dir.path());
  std::filesystem::remove(dir.path() / "arm1.module0");
  EXPECT_FALSE(read_plan(dir.path()));
}

TEST(PlanFiles, a_plan_cut_anywhere_is_refused) {
  TempDir dir;
  write_plan(small_plan(), dir.path());
  std::string text = *read_file(dir.path() / "plan.json");
  for (size_t n = 0; n < text.size(); n += 7) {
    ASSERT_TRUE(write_file_atomic(dir.path() / "plan.json", text.substr(0, n)));
    EXPECT_FALSE(read_plan(dir.path())) << n;
  }
}

TEST(PlanFiles, steps_workspaces_samples_and_placement_come_back) {
  TempDir dir;
  ReplayPlan plan = small_plan();
  plan.mode = ReplayMode::live;
  plan.placement = Placement::shifted;
  plan.require_exact = true;
  plan.speed = 2.5;
  plan.samples = {{0, kNone, {1, 0}}};
  Arm& arm = plan.arms[1];
  Buffer scratch;
  scratch.name = "scratch";
  scratch.bytes = 64;
  scratch.content = ContentPoison{};
  arm.workspaces = {scratch};
  ArmItem fill, wait, make;
  fill.kind = ArmItem::Kind::memset;
  fill.buffer = 2;
  fill.offset = 16;
  fill.bytes = 48;
  fill.value = 9;
  fill.legacy = true;
  wait.kind = ArmItem::Kind::sync;
  make.kind = ArmItem::Kind::allocate;
  make.bytes = 4096;
  arm.replace[0] = {fill, wait, make, arm.replace[0].front()};
  write_plan(plan, dir.path());
  auto back = read_plan(dir.path());
  ASSERT_TRUE(back) << back.failure().what;
  EXPECT_EQ(back->mode, ReplayMode::live);
  EXPECT_EQ(back->placement, Placement::shifted);
  EXPECT_TRUE(back->require_exact);
  EXPECT_EQ(back->speed, 2.5);
  ASSERT_EQ(back->samples.size(), 1u);
  EXPECT_EQ(back->samples[0].node, kNone);
  EXPECT_EQ(back->samples[0].buffers, (std::vector<uint32_t>{1, 0}));
  ASSERT_EQ(back->arms[1].workspaces.size(), 1u);
  EXPECT_EQ(back->arms[1].workspaces[0].bytes, 64u);
  EXPECT_TRUE(std::holds_alternative<ContentPoison>(back->arms[1].workspaces[0].content));
  const auto& items = back->arms[1].replace.at(0);
  ASSERT_EQ(items.size(), 4u);
  EXPECT_EQ(items[0].kind, ArmItem::Kind::memset);
  EXPECT_TRUE(items[0].legacy);
  EXPECT_EQ(items[0].buffer, 2u);
  EXPECT_EQ(items[0].offset, 16u);
  EXPECT_EQ(items[0].bytes, 48u);
  EXPECT_EQ(items[0].value, 9u);
  EXPECT_EQ(items[1].kind, ArmItem::Kind::sync);
  EXPECT_EQ(items[2].kind, ArmItem::Kind::allocate);
  EXPECT_EQ(items[2].bytes, 4096u);
  EXPECT_EQ(items[3].kind, ArmItem::Kind::launch);
}

TEST(PlanFiles, unknown_fields_and_wrong_types_are_refused) {
  TempDir dir;
  write_plan(small_plan(), dir.path());
  std::string text = *read_file(dir.path() / "plan.json");
  auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    size_t at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) changed.replace(at, from.size(), to);
    EXPECT_TRUE(write_file_atomic(dir.path() / "plan.json", changed));
    return bool(read_plan(dir.path()));
  };
  EXPECT_TRUE(with("\"trace\":false", "\"trace\":true"));
  EXPECT_FALSE(with("\"trace\":false", "\"trace\":false,\"extra\":1"));
  EXPECT_FALSE(with("\"trace\":false", "\"trace\":0"));
  EXPECT_FALSE(with("\"guard_value\":17", "\"guard_value\":256"));
  EXPECT_FALSE(with("\"kgate_plan\":3", "\"kgate_plan\":1"));
  EXPECT_FALSE(with("a7a7", "a7zz"));
  EXPECT_FALSE(with("a7a7", "a7a"));
  EXPECT_FALSE(with("[7,2,1]", "[7,2]"));
  EXPECT_FALSE(with("[7,2,1]", "[7,2,-1]"));
}

TEST(Rounds, pairs_alternate_which_arm_comes_first) {
  auto rounds = abba_rounds(0, 4, 0, 7);
  ASSERT_EQ(rounds.size(), 8u);
  uint32_t a = rounds[0].arm, b = a ^ 1;
  std::vector<uint32_t> expected = {a, b, b, a, a, b, b, a};
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(rounds[i].arm, expected[i]) << i;
    EXPECT_EQ(rounds[i].pair, i / 2);
    EXPECT_EQ(rounds[i].round, i);
  }
}

TEST(Rounds, blocks_continue_the_same_alternation) {
  auto whole = abba_rounds(0, 6, 0, 42);
  auto second = abba_rounds(3, 3, 6, 42);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(second[i].arm, whole[6 + i].arm);
    EXPECT_EQ(second[i].pair, whole[6 + i].pair);
    EXPECT_EQ(second[i].round, whole[6 + i].round);
  }
}

TEST(Rounds, the_seed_decides_which_arm_is_called_first) {
  int first[2] = {};
  for (uint64_t seed = 0; seed < 200; ++seed) ++first[abba_rounds(0, 1, 0, seed)[0].arm];
  EXPECT_GT(first[0], 60);
  EXPECT_GT(first[1], 60);
}

TEST(Readback, regions_are_aligned_and_hold_both_guards) {
  ReplayPlan plan = small_plan();
  plan.rounds = {{0, 0, 0}, {1, 0, 1}};
  plan.guard_bytes = 64;
  auto regions = readback_layout(plan, small_workload());
  ASSERT_EQ(regions.size(), 4u);
  uint64_t end = 0;
  for (const auto& r : regions) {
    EXPECT_EQ(r.offset % 4096, 0u);
    EXPECT_GE(r.offset, end);
    EXPECT_EQ(r.guard, 64u);
    end = r.offset + 2 * r.guard + r.bytes;
  }
  EXPECT_EQ(regions[0].buffer, 1u);
  EXPECT_EQ(regions[0].bytes, 8192u);
  EXPECT_EQ(regions[3].buffer, 0u);
}

TEST(ValidatePlan, accepts_what_fits) { EXPECT_TRUE(validate_plan(small_plan(), small_workload())); }

TEST(ValidatePlan, refuses_every_index_that_points_nowhere) {
  Workload w = small_workload();
  auto refused = [&](auto change) {
    ReplayPlan plan = small_plan();
    change(plan);
    return !validate_plan(plan, w);
  };
  EXPECT_TRUE(refused([](ReplayPlan& p) { p.rounds[0].arm = 2; }));
  EXPECT_TRUE(refused([](ReplayPlan& p) { p.rounds[1].round = p.rounds[0].round; }));
  EXPECT_TRUE(refused([](ReplayPlan& p) { p.rounds.clear(); }));
  EXPECT_TRUE(refused([](ReplayPlan& p) { p.arms.clear(); }));
  EXPECT_TRUE(refused([](ReplayPlan& p) { p.arms[1].label = "baseline"; }));
  EXPECT_TRUE(refused([](ReplayPlan& p) { p.arms[1].replace[1] = {}; }));
  EXPECT_TRUE(refused([](ReplayPlan& p) { p.arms[1].replace[0][0].launch.kernel = 1; }));
  EXPECT_TRUE(refused([](ReplayPlan& p) { p.arms[1].replace[0][0].launch.params.resize(15); }));
  EXPECT_TRUE(refused([](ReplayPlan& p) { p.arms[1].replace[0][0].launch.relocations[0].buffer = 2; }));
  EXPECT_TRUE(refused([](ReplayPlan& p) { p.arms[1].replace[0][0].launch.relocations[0].param_offset = 9; }));
  EXPECT_TRUE(refused([](ReplayPlan& p) { p.arms[1].replace[0][0].launch.relocations[0].param_offset = 0xffffffff; }));
  EXPECT_TRUE(refused([](ReplayPlan& p) { p.arms[1].replace[0][0].launch.grid.y = 0; }));
  EXPECT_TRUE(refused([](ReplayPlan& p) { p.arms[1].kernels[0].module = 1; }));
  EXPECT_TRUE(refused([](ReplayPlan& p) { p.arms[1].kernel_ids.clear(); }));
  EXPECT_TRUE(refused([](ReplayPlan& p) { p.readback = {2}; }));
  EXPECT_TRUE(refused([](ReplayPlan& p) { p.judged = {1}; }));
  EXPECT_TRUE(refused([](ReplayPlan& p) { p.measured_requests = 0; }));
  EXPECT_TRUE(refused([](ReplayPlan& p) { p.mode = ReplayMode::numeric; }));
  w.requests.clear();
  EXPECT_TRUE(refused([](ReplayPlan&) {}));
}

}  // namespace
}  // namespace kgate
