// Which launches a rule takes: order of rules, fusions on streams and in graphs, several kernels.
#include "replay/rules.h"

#include <gtest/gtest.h>

#include "replay/arms.h"
#include "sample.h"

namespace kgate {

namespace {

Contract contract(const std::string& rules, const std::string& kernel = "add") {
  return parse_contract("kgate: 1\nkernel: " + kernel + "\n" + (rules.empty() ? "" : "replace:\n" + rules), "c.yaml");
}

Contract fusion(const std::string& launches) {
  return contract("  - launches: " + launches +
                  "\n    let: {out: ptr@0, late: next.ptr@0, n: next.i32@24}\n    with:\n" +
                  "      - {entry: fused, grid: [1, 1, 1], block: [32, 1, 1], args: [late, out, null, n]}\n");
}

std::string said(const Result<std::vector<Taken>>& result) {
  if (!result) return result.failure().where + ": " + result.failure().what;
  std::string text;
  for (const Taken& taken : *result) {
    text += text.empty() ? "" : " ";
    for (size_t i = 0; i < taken.launches.size(); ++i) text += (i ? "+" : "") + std::to_string(taken.launches[i]);
  }
  return text;
}

std::string taken(const Workload& workload, const Contract& contract) {
  return said(taken_launches(workload, contract));
}

// Launches 0 add, 1 sub, 2 step; one request that calls `order` of them on stream 0.
sample::Builder calls(const std::vector<uint32_t>& order) {
  sample::Builder builder;
  for (const char* entry : {"add", "sub", "step"}) builder.launch(entry);
  builder.request();
  for (uint32_t launch : order) builder.call(CallKind::launch).launch = launch;
  builder.call(CallKind::stream_sync);
  return builder;
}

KernelImage image(const std::vector<std::string>& names, const std::string& label = "candidate") {
  KernelImage image{label, label + ".ptx", sample::ptx(), {}};
  for (const std::string& name : names) {
    Entry entry;
    entry.name = name;
    entry.params = {{"out", 0, 8, 8}, {"a", 8, 8, 8}, {"b", 16, 8, 8}, {"n", 24, 4, 4}};
    entry.param_bytes = 28;
    image.entries.push_back({entry, "id of " + name});
  }
  return image;
}

const char* const kEach =
    "  - launches: {kernel: add}\n  - launches: {kernel: \"s*\"}\n    with: []\n  - launches: {kernel: sub}\n";

}  // namespace

TEST(Rules, the_first_that_matches_takes_a_launch) {
  Workload workload = calls({0, 1, 2}).w;
  EXPECT_EQ(taken(workload, contract("  - launches: {kernel: \"s?b\"}\n  - launches: {kernel: \"*\"}\n")), "1 0 2");
  EXPECT_EQ(taken(workload, contract("")), "0");
  EXPECT_EQ(taken(workload, contract_for_kernel("s*")), "1 2");
}

TEST(Rules, a_rule_that_takes_nothing_is_refused) {
  Workload workload = calls({0, 1, 2}).w;
  EXPECT_EQ(taken(workload, contract("", "ad")), "c.yaml: the workload 'sample' never launches 'ad'");
  EXPECT_EQ(taken(workload, contract("  - launches: {kernel: add}\n  - launches: {kernel: mul}\n")),
            "c.yaml:5:5: the workload 'sample' never launches 'mul'");
  EXPECT_EQ(taken(workload, contract(kEach)), "c.yaml:7:5: the rules before it take every launch of 'sub'");
  EXPECT_EQ(taken(workload, fusion("{kernel: sub, then: add}")),
            "c.yaml:4:5: the workload 'sample' never launches 'sub' directly followed by 'add' on its stream");
}

TEST(Rules, of_a_workload_of_one_kernel_the_other_rules_are_left_alone) {
  sample::Builder builder;
  builder.request();
  builder.launch_and_sync(builder.launch("add"));
  Contract rules = contract("  - launches: {kernel: add}\n  - launches: {kernel: mul}\n");
  EXPECT_EQ(taken(builder.w, rules), "0");
  builder.w.origin.device = "a GPU";
  EXPECT_EQ(taken(builder.w, rules), "c.yaml:5:5: the workload 'sample' never launches 'mul'");
}

TEST(Fusion, takes_what_directly_follows_on_the_stream) {
  EXPECT_EQ(taken(calls({0, 1, 2, 0, 1}).w, fusion("{kernel: add, then: sub}")), "0+1");
  EXPECT_EQ(taken(calls({0, 1, 2, 0, 1, 2}).w, fusion("{kernel: add, then: [\"s?b\", step]}")), "0+1+2");
}

TEST(Fusion, other_streams_and_the_host_do_not_matter) {
  sample::Builder builder = calls({0});
  builder.w.streams.resize(2);
  builder.w.events = 1;
  builder.call(CallKind::launch).launch = 2;
  builder.w.calls.back().stream = 1;
  builder.call(CallKind::event_record).event = 0;
  builder.call(CallKind::alloc).bytes = 16;
  builder.call(CallKind::context_sync);
  builder.call(CallKind::launch).launch = 1;
  EXPECT_EQ(taken(builder.w, fusion("{kernel: add, then: sub}")), "0+1");
}

TEST(Fusion, work_on_the_stream_and_the_end_of_a_request_come_between) {
  const std::string never =
      "c.yaml:4:5: the workload 'sample' never launches 'add' directly followed by 'sub' on its stream";
  for (CallKind between : {CallKind::copy, CallKind::upload, CallKind::download, CallKind::memset, CallKind::event_wait,
                           CallKind::graph_launch, CallKind::host_function}) {
    sample::Builder builder = calls({0});
    builder.call(between);
    builder.call(CallKind::launch).launch = 1;
    EXPECT_EQ(taken(builder.w, fusion("{kernel: add, then: sub}")), never) << call_kind_name(between);
  }
  sample::Builder builder = calls({0});
  builder.request();
  builder.call(CallKind::launch).launch = 1;
  EXPECT_EQ(taken(builder.w, fusion("{kernel: add, then: sub}")), never);
  EXPECT_EQ(taken(calls({0, 2, 1}).w, fusion("{kernel: add, then: sub}")), never);
}

TEST(Fusion, must_be_the_same_everywhere) {
  Contract rule = fusion("{kernel: add, then: \"s*\"}");
  EXPECT_EQ(taken(calls({0, 1, 0}).w, rule),
            "c.yaml:4:5: the launch of 'add' with grid 4x1x1 is not followed by 's*' everywhere");
  EXPECT_EQ(taken(calls({0, 1, 0, 2}).w, rule),
            "c.yaml:4:5: the launch of 'add' with grid 4x1x1 is followed by different launches: 'sub' and 'step'");
  EXPECT_EQ(taken(calls({0, 1, 2, 1}).w, rule),
            "c.yaml:4:5: the launch of 'sub' with grid 4x1x1 follows 'add', and also runs elsewhere");
  sample::Builder builder = calls({0, 1});
  builder.w.launches[2] = builder.w.launches[1];
  builder.w.launches[2].grid.x = 7;
  builder.call(CallKind::launch).launch = 0;
  builder.call(CallKind::launch).launch = 2;
  EXPECT_EQ(taken(builder.w, rule),
            "c.yaml:4:5: the launch of 'add' with grid 4x1x1 is followed by different launches: 'sub' with other "
            "arguments or another grid");
  EXPECT_EQ(taken(calls({0, 0}).w, fusion("{kernel: add, then: add}")),
            "c.yaml:4:5: the launch of 'add' with grid 4x1x1 is not followed by 'add' everywhere");
}

TEST(Fusion, what_an_earlier_rule_replaces_cannot_go_away) {
  Contract rules = contract("  - launches: {kernel: sub}\n  - launches: {kernel: add, then: sub}\n    with: []\n");
  EXPECT_EQ(taken(calls({0, 1}).w, rules),
            "c.yaml:5:5: the launch of 'sub' with grid 4x1x1 would go away with 'add' and is replaced itself");
}

TEST(Fusion, in_a_graph_follows_the_only_edge) {
  auto graph = [](const std::vector<std::vector<uint32_t>>& after) {
    sample::Builder builder = calls({});
    WorkloadGraph graph;
    for (uint32_t n = 0; n < after.size(); ++n) {
      GraphNode node;
      node.kind = GraphNode::Kind::kernel;
      node.launch = n;
      node.after = after[n];
      graph.nodes.push_back(node);
    }
    builder.w.graphs.push_back(graph);
    builder.call(CallKind::graph_launch).graph = 0;
    return taken(builder.w, fusion("{kernel: add, then: sub}"));
  };
  EXPECT_EQ(graph({{}, {0}, {1}}), "0+1");
  const std::string never =
      "c.yaml:4:5: the workload 'sample' never launches 'add' directly followed by 'sub' on its stream";
  EXPECT_EQ(graph({{}, {0}, {0}}), never);  // something else depends on the first
  EXPECT_EQ(graph({{}, {}, {}}), never);    // nothing does
  EXPECT_EQ(graph({{}, {0}, {0, 1}}), never);
}

TEST(CompareArms, a_fusion_replaces_the_first_and_removes_the_rest) {
  Workload workload = calls({0, 1, 2}).w;
  const int32_t n = 55;
  std::memcpy(workload.launches[1].params.data() + 24, &n, 4);
  workload.launches[1].relocations[0].buffer = 2;
  auto made = compare_arms(workload, fusion("{kernel: add, then: sub}"), nullptr, image({"fused"}));
  ASSERT_TRUE(made) << made.failure().what;
  EXPECT_EQ(made->judged, (std::vector<uint32_t>{0, 1}));
  const Arm& arm = made->arms[1];
  ASSERT_EQ(arm.replace.size(), 2u);
  EXPECT_TRUE(arm.replace.at(1).empty());
  const LaunchSpec& launch = arm.replace.at(0).at(0).launch;
  EXPECT_EQ(launch.relocations.at(0).buffer, 2u);  // `late`: of the launch that follows
  EXPECT_EQ(launch.relocations.at(1).buffer, 0u);
  EXPECT_EQ(std::memcmp(launch.params.data() + 24, &n, 4), 0);
  EXPECT_EQ(made->names.judged_launch, (std::vector<bool>{true, true, false}));
  EXPECT_TRUE(made->names.sum_requests);
}

TEST(CompareArms, of_several_kernels_each_takes_the_entry_of_its_name) {
  Workload workload = calls({0, 1, 2}).w;
  Contract rules = contract_for_kernel("s*");
  auto made = compare_arms(workload, rules, nullptr, image({"step", "sub", "unused"}));
  ASSERT_TRUE(made) << made.failure().what;
  EXPECT_TRUE(made->arms[0].replace.empty());
  const Arm& arm = made->arms[1];
  ASSERT_EQ(arm.kernels.size(), 2u);
  EXPECT_EQ(arm.kernels[arm.replace.at(1).at(0).launch.kernel].entry, "sub");
  EXPECT_EQ(arm.kernels[arm.replace.at(2).at(0).launch.kernel].entry, "step");

  KernelImage baseline = image({"sub", "step"}, "baseline");
  made = compare_arms(workload, rules, &baseline, image({"step", "sub"}));
  ASSERT_TRUE(made) << made.failure().what;
  EXPECT_EQ(made->arms[0].replace.size(), 2u);

  auto lacking = compare_arms(workload, rules, nullptr, image({"sub"}));
  ASSERT_FALSE(lacking);
  EXPECT_EQ(lacking.failure().what,
            "the candidate 'candidate.ptx' has no entry 'step' (a launch of 'step' with grid 4x1x1 and block 32x1x1)");
  baseline = image({"sub"}, "baseline");
  lacking = compare_arms(workload, rules, &baseline, image({"step", "sub"}));
  ASSERT_FALSE(lacking);
  EXPECT_EQ(lacking.failure().what.find("the baseline 'baseline.ptx' has no entry 'step'"), 0u);
}

TEST(CompareArms, of_one_kernel_both_arms_replace_the_launch) {
  KernelImage baseline = image({"was"}, "baseline");
  auto made = compare_arms(calls({0, 1}).w, contract(""), &baseline, image({"is"}));
  ASSERT_TRUE(made) << made.failure().what;
  EXPECT_EQ(made->arms[0].kernels.at(0).entry, "was");
  EXPECT_EQ(made->arms[1].kernels.at(0).entry, "is");
  EXPECT_EQ(made->arms[0].replace.count(0), 1u);
  EXPECT_EQ(made->arms[0].replace.count(1), 0u);
  EXPECT_FALSE(made->names.sum_requests);
  made = compare_arms(calls({0, 1}).w, contract("  - launches: {kernel: add}\n    with: []\n"), nullptr, image({"is"}));
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->names.sum_requests);
}

}  // namespace kgate
