// Rules of a contract, carried out by a worker on the virtual GPU: what the memory holds afterwards.
#include <gtest/gtest.h>

#include "replay/arms.h"
#include "sample.h"

namespace kgate {

namespace {

constexpr uint32_t kPoison = 0xffffffff;

// `first` stands for the only name that a rule gives.
KernelImage image(const std::string& first) {
  KernelImage image{"candidate", "candidate.ptx", sample::ptx(), {}};
  for (std::string name : {first, std::string("add"), std::string("step")}) {
    Entry entry;
    entry.name = name;
    entry.params = {{"out", 0, 8, 8}, {"a", 8, 8, 8}, {"b", 16, 8, 8}, {"n", 24, 4, 4}};
    entry.param_bytes = 28;
    image.entries.push_back({entry, "id of " + name});
  }
  return image;
}

// Launches 0 add, then 1 step, over the same buffers.
sample::Builder builder() {
  sample::Builder builder;
  builder.launch("add");
  builder.launch("step");
  return builder;
}

Workload on_a_stream() {
  sample::Builder made = builder();
  made.request();
  made.call(CallKind::launch).launch = 0;
  made.launch_and_sync(1);
  return made.w;
}

Workload in_a_graph() {
  sample::Builder made = builder();
  WorkloadGraph graph;
  for (uint32_t n = 0; n < 2; ++n) {
    GraphNode node;
    node.kind = GraphNode::Kind::kernel;
    node.launch = n;
    if (n) node.after = {n - 1};
    graph.nodes.push_back(node);
  }
  made.w.graphs.push_back(graph);
  made.request();
  made.call(CallKind::graph_launch).graph = 0;
  made.call(CallKind::stream_sync);
  return made.w;
}

// Elements 0, 1 and 99 of `out` after a round of the baseline and one of the candidate; or what went wrong.
struct Ran {
  std::vector<uint32_t> baseline, candidate;
  std::string wrong;
};

Ran ran(Workload workload, const std::string& rule, const std::string& with, const std::string& first = "add") {
  Contract contract =
      parse_contract("kgate: 1\nkernel: add\nreplace:\n  - launches: " + rule +
                         "\n    let: {out: ptr@0, a: ptr@8, b: ptr@16, n: i32@24, g: grid.x}\n    with:" + with,
                     "c.yaml");
  auto made = compare_arms(workload, contract, nullptr, image(first));
  if (!made) return {{}, {}, made.failure().what};
  sample::Replay replay(std::move(workload));
  replay.plan.arms = made->arms;
  replay.plan.rounds = {{0, 0, 0}, {1, 0, 1}};
  replay.plan.readback = {0};
  replay.plan.judged = made->judged;
  WorkerOutcome outcome = replay();
  Ran ran;
  if (outcome.end != WorkerEnd::completed) {
    ran.wrong = worker_end_name(outcome.end) + (" " + outcome.detail) + (outcome.fault ? outcome.fault->detail : "");
    return ran;
  }
  for (auto [region, into] : {std::pair{0, &ran.baseline}, {1, &ran.candidate}}) {
    auto all = sample::values(replay, outcome, static_cast<size_t>(region));
    *into = {all[0], all[1], all[99]};
  }
  return ran;
}

using Values = std::vector<uint32_t>;
const Values kSum{1001, 1002, 1100};  // i + 1000 + 1

const std::string kSplit = R"(
      - {workspace: w, bytes: "n * 4", init: zeros}
      - {entry: step, grid: [g, 1, 1], block: [32, 1, 1], args: [w, w, w, n]}
      - {entry: add, grid: ["2 * g", 1, 1], block: [16, 1, 1], args: [out, w, b, n]}
)";

}  // namespace

TEST(BindingRun, a_split_hands_on_through_its_workspace) {
  for (Workload workload : {on_a_stream(), in_a_graph()}) {
    Ran split = ran(workload, "{kernel: add}", kSplit);
    EXPECT_EQ(split.wrong, "");
    EXPECT_EQ(split.baseline, kSum);
    EXPECT_EQ(split.candidate, (Values{1002, 1002, 1002}));  // 0 + 1, + 1000, and the recorded step
  }
}

TEST(BindingRun, what_is_deleted_does_nothing) {
  for (Workload workload : {on_a_stream(), in_a_graph()}) {
    Ran deleted = ran(workload, "{kernel: step}", " []\n");
    EXPECT_EQ(deleted.wrong, "");
    EXPECT_EQ(deleted.baseline, kSum);
    EXPECT_EQ(deleted.candidate, (Values{1000, 1001, 1099}));
  }
}

TEST(BindingRun, a_fusion_takes_the_place_of_the_first) {
  for (Workload workload : {on_a_stream(), in_a_graph()}) {
    Ran fused = ran(workload, "{kernel: add, then: step}",
                    "\n      - {entry: sub, grid: [g, 1, 1], block: [32, 1, 1], args: [out, b, a, n]}\n", "sub");
    EXPECT_EQ(fused.wrong, "");
    EXPECT_EQ(fused.baseline, kSum);
    EXPECT_EQ(fused.candidate, (Values{1000, 999, 901}));
  }
}

TEST(BindingRun, a_memset_fills_where_the_pointer_points) {
  for (Workload workload : {on_a_stream(), in_a_graph()}) {
    const int32_t fewer = 99;
    std::memcpy(workload.launches[0].params.data() + 24, &fewer, 4);
    workload.launches[0].relocations[0].delta = 4;
    Ran filled = ran(workload, "{kernel: add}", "\n      - {memset: out, bytes: 4, value: 1}\n");
    EXPECT_EQ(filled.wrong, "");
    EXPECT_EQ(filled.candidate, (Values{0, 0x01010102, 0}));  // the step follows; poison + 1 is 0
  }
}

TEST(BindingRun, a_host_side_waits_allocates_and_uses_the_legacy_stream) {
  Ran host = ran(on_a_stream(), "{kernel: add}", R"(
      - {workspace: w, bytes: "n * 4", allocate: each_launch}
      - {memset: w, bytes: "n * 4", stream: legacy}
      - {sync: true, stream: legacy}
      - {entry: add, grid: [g, 1, 1], block: [32, 1, 1], stream: legacy, args: [out, w, b, n]}
      - {sync: true, stream: legacy}
)");
  EXPECT_EQ(host.wrong, "");
  EXPECT_EQ(host.baseline, kSum);
  EXPECT_EQ(host.candidate, (Values{1001, 1001, 1001}));
}

TEST(BindingRun, a_workspace_of_any_content_is_no_zeros) {
  Ran any = ran(on_a_stream(), "{kernel: add, then: step}", R"(
      - {workspace: w, bytes: "n * 4"}
      - {entry: add, grid: [g, 1, 1], block: [32, 1, 1], args: [out, w, b, n]}
)");
  EXPECT_EQ(any.wrong, "");
  EXPECT_EQ(any.candidate, (Values{kPoison + 1000, kPoison + 1000, kPoison + 1000}));
}

}  // namespace kgate
