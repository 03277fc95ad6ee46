// Rules of a contract as items of an arm: numbers, addresses, workspaces, and what is refused.
#include <gtest/gtest.h>

#include "replay/arms.h"
#include "replay/rules.h"
#include "sample.h"

namespace kgate {

namespace {

using Kind = ArmItem::Kind;

// Entries over (out, a, b, n), and `wide` with a scratch pointer more.
KernelImage image(const std::vector<std::string>& names) {
  KernelImage image{"candidate", "candidate.ptx", sample::ptx(), {}};
  for (const std::string& name : names) {
    Entry entry;
    entry.name = name;
    entry.params = {{"out", 0, 8, 8}, {"a", 8, 8, 8}, {"b", 16, 8, 8}, {"n", 24, 4, 4}};
    entry.param_bytes = 28;
    if (name == "wide") {
      entry.params.push_back({"scratch", 32, 8, 8});
      entry.param_bytes = 40;
    }
    image.entries.push_back({entry, "id of " + name});
  }
  return image;
}

Contract contract(const std::string& rules, const std::string& kernel = "add") {
  return parse_contract("kgate: 1\nkernel: " + kernel + "\n" + (rules.empty() ? "" : "replace:\n" + rules), "c.yaml");
}

const std::string kAdd =
    "  - launches: {kernel: add}\n    let: {out: ptr@0, a: ptr@8, b: ptr@16, n: i32@24, half: i32@8, g: grid.x}\n"
    "    with:\n";

Workload one_launch() {
  sample::Builder builder;
  builder.request();
  builder.launch_and_sync(builder.launch("add"));
  return builder.w;
}

// The launch's node in a graph, launched once.
Workload one_node() {
  sample::Builder builder;
  uint32_t launch = builder.launch("add");
  GraphNode node;
  node.kind = GraphNode::Kind::kernel;
  node.launch = launch;
  builder.w.graphs.push_back({{node}});
  builder.request();
  builder.call(CallKind::graph_launch).graph = 0;
  builder.call(CallKind::stream_sync);
  return builder.w;
}

Result<Comparison> compare(const Workload& workload, const std::string& items,
                           const std::vector<std::string>& entries) {
  return compare_arms(workload, contract(kAdd + items), nullptr, image(entries));
}

std::string said(const Result<Comparison>& result) {
  return result ? "made" : result.failure().where + ": " + result.failure().what;
}

// A plan of the two arms that a worker would take.
std::string checked(const Comparison& comparison, const Workload& workload) {
  ReplayPlan plan;
  plan.arms = comparison.arms;
  plan.rounds = {{0, 0, 0}, {1, 0, 1}};
  plan.judged = comparison.judged;
  auto valid = validate_plan(plan, workload);
  return valid ? "valid" : valid.failure().what;
}

}  // namespace

TEST(Substitution, a_split_becomes_items_over_one_workspace) {
  sample::Builder builder;
  builder.request();
  builder.launch_and_sync(builder.launch("add"));
  builder.w.launches.push_back(builder.w.launches[0]);
  builder.w.launches[1].grid.x = 9;
  builder.launch_and_sync(1);
  auto made =
      compare(builder.w,
              "      - {workspace: part, bytes: \"g * 64\", init: zeros}\n"
              "      - {memset: part, bytes: \"g * 8\", value: 3, stream: legacy}\n"
              "      - {memset: out, bytes: 16}\n"
              "      - {entry: wide, grid: [\"cdiv(g, 2)\", 2, 1], block: [64, 1, 1], shared: 32, cluster: [1, 2, 1],\n"
              "         cooperative: true, programmatic: true, args: [part, a, b, 7, part]}\n"
              "      - {sync: true}\n"
              "      - {entry: sub, grid: [1, 1, 1], block: [32, 1, 1], stream: legacy, args: [out, part, null, n]}\n",
              {"wide", "sub"});
  ASSERT_TRUE(made) << said(made);
  EXPECT_EQ(checked(*made, builder.w), "valid");
  const Arm& arm = made->arms[1];
  ASSERT_EQ(arm.workspaces.size(), 1u);
  EXPECT_EQ(arm.workspaces[0].bytes, 576u);  // of the larger grid
  EXPECT_TRUE(std::holds_alternative<ContentZeros>(arm.workspaces[0].content));
  ASSERT_EQ(arm.kernels.size(), 2u);
  EXPECT_EQ(arm.kernel_ids[1], "id of sub");
  const auto& items = arm.replace.at(0);
  ASSERT_EQ(items.size(), 5u);
  EXPECT_EQ(items[0].kind, Kind::memset);
  EXPECT_TRUE(items[0].legacy);
  EXPECT_EQ(items[0].buffer, 3u);  // after the workload's three
  EXPECT_EQ(items[0].bytes, 32u);
  EXPECT_EQ(items[0].value, 3);
  EXPECT_EQ(items[1].buffer, 0u);
  const LaunchSpec& wide = items[2].launch;
  EXPECT_EQ(wide.grid, (Dim3{2, 2, 1}));
  EXPECT_EQ(wide.cluster, (Dim3{1, 2, 1}));
  EXPECT_EQ(wide.shared, 32u);
  EXPECT_TRUE(wide.cooperative && wide.programmatic);
  EXPECT_EQ(wide.params.size(), 40u);
  ASSERT_EQ(wide.relocations.size(), 4u);
  EXPECT_EQ(wide.relocations[0].buffer, 3u);
  EXPECT_EQ(wide.relocations[1].buffer, 1u);
  EXPECT_EQ(wide.relocations[3].param_offset, 32u);
  EXPECT_EQ(items[3].kind, Kind::sync);
  EXPECT_FALSE(items[3].legacy);
  EXPECT_EQ(items[4].launch.kernel, 1u);
  EXPECT_TRUE(items[4].legacy);
  EXPECT_EQ(items[4].launch.relocations.size(), 2u);  // none for null
  EXPECT_TRUE(made->arms[0].replace.empty());         // the baseline is what was recorded
}

TEST(Substitution, a_workspace_of_each_launch_is_allocated_before_anything_else) {
  auto made =
      compare(one_launch(),
              "      - {memset: out, bytes: 16}\n      - {workspace: w, bytes: \"n * 4\", allocate: each_launch}\n"
              "      - {entry: wide, grid: [1, 1, 1], block: [32, 1, 1], args: [out, a, b, n, w]}\n",
              {"wide"});
  ASSERT_TRUE(made) << said(made);
  const auto& items = made->arms[1].replace.at(0);
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0].kind, Kind::allocate);
  EXPECT_EQ(items[0].bytes, 400u);
  EXPECT_EQ(items[1].kind, Kind::memset);
  EXPECT_EQ(made->arms[1].workspaces[0].bytes, 400u);
}

TEST(Substitution, addresses_are_passed_on_whole_with_their_distance) {
  Workload workload = one_launch();
  workload.launches[0].relocations[1].delta = 16;
  auto made = compare(workload,
                      "      - {memset: a, bytes: 384}\n"
                      "      - {entry: add, grid: [1, 1, 1], block: [32, 1, 1], args: [a, out, b, n]}\n",
                      {"add"});
  ASSERT_TRUE(made) << said(made);
  const auto& items = made->arms[1].replace.at(0);
  EXPECT_EQ(items[0].offset, 16u);
  EXPECT_EQ(items[1].launch.relocations[0].delta, 16);
  EXPECT_EQ(items[1].launch.relocations[0].param_offset, 0u);
}

TEST(Substitution, what_does_not_fit_is_refused_with_its_place) {
  const std::string launch = "      - {entry: add, grid: [1, 1, 1], block: [32, 1, 1], args: ";
  const std::string of = " (a launch of 'add' with grid 4x1x1 and block 32x1x1)";
  auto refused = [&](const std::string& items, const std::vector<std::string>& entries = {"add"}) {
    return said(compare(one_launch(), items, entries));
  };
  EXPECT_EQ(refused(launch + "[out, a, b]}\n"), "c.yaml:4:5: 3 arguments for 'add', which has 4 parameters" + of);
  EXPECT_EQ(refused(launch + "[out, a, b, half]}\n"),
            "c.yaml:4:5: argument 4 reads bytes 8 to 11, a part of the address at byte 8" + of);
  EXPECT_EQ(refused("      - {memset: out, bytes: 401}\n"),
            "c.yaml:4:5: a memset of 401 bytes at byte 0 of a buffer of 400 bytes" + of);
  EXPECT_EQ(refused("      - {workspace: w, bytes: 8}\n      - {memset: w, bytes: 9}\n"),
            "c.yaml:4:5: a memset of 9 bytes at byte 0 of a buffer of 8 bytes" + of);
  EXPECT_EQ(refused("      - {workspace: w, bytes: \"n - 101\"}\n"),
            "c.yaml:4:5: the bytes of 'w' \"n - 101\" is -1, not within 0 to 1099511627776" + of);
  EXPECT_EQ(
      refused("      - {entry: add, grid: [3, 1, 1], block: [32, 1, 1], cluster: [2, 1, 1], args: [out, a, b, n]}\n"),
      "c.yaml:4:5: a grid of 3x1x1 is no multiple of the cluster 2x1x1" + of);
  EXPECT_EQ(
      refused("      - {entry: add, grid: [32, 1, 1], block: [32, 1, 1], cluster: [16, 2, 1], args: [out, a, b, n]}\n"),
      "c.yaml:4:5: a cluster of 32 blocks; at most 16" + of);
  EXPECT_EQ(refused(launch + "[out, a, b, n]}\n      - {entry: sup, grid: [1, 1, 1], block: [1, 1, 1], args: []}\n",
                    {"add", "sub"}),
            "c.yaml:4:5: the candidate 'candidate.ptx' has no entry 'sup'" + of);

  Workload null = one_launch();
  null.launches[0].relocations.erase(null.launches[0].relocations.begin());
  EXPECT_EQ(said(compare(null, "      - {memset: out, bytes: 4}\n", {"add"})),
            "c.yaml:4:5: a memset through a pointer that points into no buffer of the workload" + of);
  Workload before = one_launch();
  before.launches[0].relocations[0].delta = -4;
  EXPECT_EQ(said(compare(before, "      - {memset: out, bytes: 4}\n", {"add"})),
            "c.yaml:4:5: a memset of 4 bytes at byte -4 of a buffer of 400 bytes" + of);

  KernelImage strict = image({"add"});
  strict.entries[0].entry.reqntid = Dim3{64, 1, 1};
  EXPECT_EQ(said(compare_arms(one_launch(), contract(kAdd + launch + "[out, a, b, n]}\n"), nullptr, strict)),
            "c.yaml:4:5: 'add' requires a block of 64x1x1 (.reqntid); it would be launched with 32x1x1" + of);
}

TEST(Substitution, a_graph_holds_no_host_side) {
  const std::string node = "c.yaml:4:5: a launch of 'add' is a node of a CUDA graph, which cannot hold ";
  const std::string of = " (a launch of 'add' with grid 4x1x1 and block 32x1x1)";
  auto refused = [&](const std::string& items) { return said(compare(one_node(), items, {"add"})); };
  EXPECT_EQ(refused("      - {sync: true}\n"), node + "a `sync`" + of);
  EXPECT_EQ(refused("      - {memset: out, bytes: 4, stream: legacy}\n"), node + "`stream: legacy`" + of);
  EXPECT_EQ(refused("      - {entry: add, grid: [1, 1, 1], block: [32, 1, 1], stream: legacy, args: [out, a, b, n]}\n"),
            node + "`stream: legacy`" + of);
  EXPECT_EQ(refused("      - {workspace: w, bytes: 4, allocate: each_launch}\n"),
            node + "`allocate: each_launch`" + of);
  auto made = compare(one_node(),
                      "      - {workspace: w, bytes: 4}\n      - {memset: w, bytes: 4}\n"
                      "      - {entry: add, grid: [1, 1, 1], block: [32, 1, 1], args: [out, a, b, n]}\n",
                      {"add"});
  ASSERT_TRUE(made) << said(made);
  EXPECT_EQ(made->arms[1].replace.at(0).size(), 2u);
  EXPECT_EQ(made->judged, std::vector<uint32_t>{0});
}

TEST(Substitution, without_with_the_recorded_launch_is_kept_whole) {
  Workload workload = one_launch();
  workload.launches[0].cluster = {2, 1, 1};
  workload.launches[0].cooperative = workload.launches[0].programmatic = true;
  auto made = compare_arms(workload, contract(""), nullptr, image({"other"}));  // the only entry, whatever its name
  ASSERT_TRUE(made) << said(made);
  const LaunchSpec& launch = made->arms[1].replace.at(0).at(0).launch;
  EXPECT_EQ(launch.cluster, (Dim3{2, 1, 1}));
  EXPECT_TRUE(launch.cooperative && launch.programmatic);
  EXPECT_EQ(launch.relocations.size(), 3u);
  EXPECT_EQ(made->arms[1].kernels[0].entry, "other");
}

TEST(Substitution, one_name_in_all_means_the_entry_that_is_judged) {
  auto made = compare(one_launch(), "      - {entry: add, grid: [1, 1, 1], block: [32, 1, 1], args: [out, a, b, n]}\n",
                      {"chosen", "add"});
  ASSERT_TRUE(made) << said(made);
  EXPECT_EQ(made->arms[1].kernels.at(0).entry, "chosen");
}

TEST(Substitution, a_deleted_launch_leaves_nothing_behind) {
  auto made =
      compare_arms(one_launch(), contract("  - launches: {kernel: add}\n    with: []\n"), nullptr, image({"add"}));
  ASSERT_TRUE(made) << said(made);
  EXPECT_TRUE(made->arms[1].replace.at(0).empty());
  EXPECT_TRUE(made->arms[1].kernels.empty());
  EXPECT_EQ(checked(*made, one_launch()), "valid");
}

}  // namespace kgate
