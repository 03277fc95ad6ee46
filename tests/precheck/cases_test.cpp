// Contract shapes as workloads of one launch each.

#include "precheck/cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "precheck/numbers.h"

namespace kgate {
namespace {

Contract softmax_contract() {
  return parse_contract(R"(kgate: 1
kernel: softmax_rows
params:
  - {name: out, tensor: "f32[rows, cols]", role: out}
  - {name: x, tensor: "f32[rows, cols]", role: in}
  - {name: cols, scalar: i32}
launch: {grid: ["rows", 1, 1], block: [128, 1, 1], shared: 0}
shapes:
  - {rows: 2, cols: [3, 5]}
reference: {baseline: true}
)",
                        "softmax.yaml");
}

Prepared kernel_with(const std::vector<std::pair<uint32_t, uint32_t>>& params) {
  Prepared prepared;
  prepared.label = "candidate";
  prepared.entry.name = "softmax_rows";
  for (auto [offset, size] : params) prepared.entry.params.push_back({"", offset, size, size});
  prepared.entry.param_bytes = 20;
  prepared.image = "image";
  prepared.source.path = "candidate.ptx";
  return prepared;
}

TEST(Cases, every_shape_and_one_with_nan_inputs) {
  auto cases = make_cases(softmax_contract(), 7);
  ASSERT_EQ(cases.size(), 3u);
  EXPECT_EQ(cases[0].label, "cols=3 rows=2");
  EXPECT_FALSE(cases[1].special);
  EXPECT_TRUE(cases[2].special);
}

TEST(Cases, inputs_depend_on_seed_and_parameter_only_and_nan_is_placed_early_and_late) {
  Contract contract = softmax_contract();
  auto cases = make_cases(contract, 7);
  auto slots = tensor_slots(contract, cases[2]);
  std::string first = input_bytes(contract, cases[2], 1, slots[1]);
  EXPECT_EQ(first, input_bytes(contract, cases[2], 1, slots[1]));
  EXPECT_NE(input_bytes(contract, cases[0], 1, slots[0]).substr(0, 8), first.substr(0, 8));
  EXPECT_TRUE(std::isnan(load_element(Dtype::f32, first.data(), 9)));
  EXPECT_TRUE(std::isnan(load_element(Dtype::f32, first.data(), 3)));
}

TEST(Cases, the_workload_is_valid_and_packs_parameters_in_the_contracts_order) {
  Contract contract = softmax_contract();
  auto cases = make_cases(contract, 7);
  Workload workload =
      numeric_workload(contract, kernel_with({{0, 8}, {8, 8}, {16, 4}}), Subject::candidate, cases, 0, cases.size());
  auto valid = validate(workload);
  EXPECT_TRUE(valid) << valid.failure().what << " " << valid.failure().where;
  ASSERT_EQ(workload.launches.size(), 3u);
  EXPECT_EQ(workload.launches[1].grid.x, 2u);
  int32_t cols = 0;
  std::memcpy(&cols, workload.launches[1].params.data() + 16, 4);
  EXPECT_EQ(cols, 5);
  ASSERT_EQ(workload.launches[1].relocations.size(), 2u);
  EXPECT_EQ(workload.launches[1].relocations[1].buffer, 3u);
}

TEST(Cases, the_reference_gets_double_outputs) {
  Contract contract = softmax_contract();
  auto cases = make_cases(contract, 7);
  Workload workload =
      numeric_workload(contract, kernel_with({{0, 8}, {8, 8}, {16, 4}}), Subject::reference, cases, 0, 1);
  EXPECT_EQ(workload.buffers[0].bytes, 6 * sizeof(double));
  EXPECT_EQ(workload.buffers[1].bytes, 6 * sizeof(float));
}

TEST(Cases, a_parameter_of_another_size_is_refused_by_name) {
  Contract contract = softmax_contract();
  auto cases = make_cases(contract, 7);
  auto fits = check_candidate_launch(contract, kernel_with({{0, 8}, {8, 8}, {16, 8}}), cases[0]);
  ASSERT_FALSE(fits);
  EXPECT_NE(fits.failure().what.find("parameter 3 of 'softmax_rows'"), std::string::npos) << fits.failure().what;
  try {
    numeric_workload(contract, kernel_with({{0, 8}, {8, 8}, {16, 8}}), Subject::baseline, cases, 0, 1);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_input);
    EXPECT_NE(std::string(error.what()).find("parameter"), std::string::npos) << error.what();
  }
}

TEST(Cases, a_contract_without_a_launch_has_none) {
  Contract contract = contract_for_kernel("softmax_rows");
  EXPECT_TRUE(make_cases(contract, 7).empty());
  Prepared candidate = kernel_with({});
  PrecheckResult result;
  check_equivalence(contract, candidate, nullptr, nullptr, {}, {}, result);
  EXPECT_FALSE(result.equivalence);
  EXPECT_TRUE(result.findings.empty());
}

// `softmax_contract` with a binding.
Contract bound_contract(const std::string& replace) {
  Contract contract = softmax_contract();
  contract.binding = parse_contract("kgate: 1\nkernel: softmax_rows\nreplace:\n" + replace, "softmax.yaml").binding;
  return contract;
}

const char* const kSplit = R"(
  - launches: {kernel: softmax_rows}
    let: {out: ptr@0, x: ptr@8, cols: i32@16, rows: grid.x}
    with:
      - {workspace: part, bytes: "cols * 8"}
      - {memset: part, bytes: "cols * 8"}
      - {entry: softmax_rows, grid: [2, 1, 1], block: [64, 1, 1], args: [part, x, cols]}
      - {sync: true}
      - {entry: finish, grid: [rows, 1, 1], block: [32, 1, 1], args: [out, part, cols]}
)";

TEST(Cases, a_candidate_runs_all_its_items_in_place_of_each_launch) {
  Contract contract = bound_contract(kSplit);
  auto cases = make_cases(contract, 7);
  Prepared candidate = kernel_with({{0, 8}, {8, 8}, {16, 4}});
  candidate.others.push_back({candidate.entry, "id of finish", {}});
  candidate.others[0].entry.name = "finish";
  EXPECT_TRUE(check_candidate_launch(contract, candidate, cases[0]));
  Workload workload = numeric_workload(contract, candidate, Subject::candidate, cases, 0, 3);
  auto arm = candidate_arm(contract, candidate, workload);
  ASSERT_TRUE(arm) << arm.failure().what;
  EXPECT_EQ(arm->replace.size(), 3u);
  ASSERT_EQ(arm->replace.at(1).size(), 4u);
  EXPECT_EQ(arm->kernels.size(), 2u);
  ASSERT_EQ(arm->workspaces.size(), 1u);
  EXPECT_EQ(arm->workspaces[0].bytes, 40u);  // of the widest shape
  ReplayPlan plan;
  plan.mode = ReplayMode::numeric;
  plan.arms = {*arm};
  plan.rounds = {{0, 0, 0}};
  auto valid = validate_plan(plan, workload);
  EXPECT_TRUE(valid) << valid.failure().what;
}

TEST(Cases, a_rule_that_does_not_take_the_contracts_kernel_alone_is_refused) {
  Prepared candidate = kernel_with({{0, 8}, {8, 8}, {16, 4}});
  auto said = [&](const std::string& rule) {
    Contract contract = bound_contract("  - launches: " + rule + "\n    with: []\n");
    auto fits = check_candidate_launch(contract, candidate, make_cases(contract, 7)[0]);
    return fits ? "fits" : fits.failure().where + ": " + fits.failure().what;
  };
  EXPECT_EQ(said("{kernel: rmsnorm}"),
            "softmax.yaml:4:5: no rule of `replace:` takes the contract's own kernel 'softmax_rows'");
  EXPECT_EQ(said("{kernel: \"softmax*\", then: scale}"),
            "softmax.yaml:4:5: the rule takes 'softmax_rows' together with what follows it, and the contract's shapes "
            "launch it alone");
  EXPECT_EQ(said("{kernel: softmax_rows}"), "fits");
}

TEST(Resources, several_entries_count_together) {
  Contract contract = bound_contract(kSplit);
  Prepared candidate = kernel_with({{0, 8}, {8, 8}, {16, 4}});
  ResourceUsage small, large;
  small.registers = 16, small.spill_store_bytes = 4, small.spill_load_bytes = 4;
  large.registers = 64, large.spill_store_bytes = 8, large.spill_load_bytes = 0;
  candidate.usage = small;
  candidate.others.push_back({candidate.entry, "id", large});
  candidate.others[0].entry.name = "finish";
  PrecheckResult result;
  check_resources(contract, candidate, nullptr, result);
  EXPECT_EQ(result.statics.candidate.at("registers"), 64);
  EXPECT_EQ(result.statics.candidate.at("spill_bytes"), 16);
}

TEST(Resources, only_the_same_code_launched_the_same_way_is_identical) {
  Prepared candidate = kernel_with({{0, 8}}), baseline = candidate;
  candidate.kernel_id = baseline.kernel_id = "one";
  auto identical = [&](const Contract& contract) {
    PrecheckResult result;
    check_resources(contract, candidate, &baseline, result);
    return result.identical_code;
  };
  EXPECT_TRUE(identical(softmax_contract()));
  EXPECT_TRUE(identical(bound_contract("  - launches: {kernel: softmax_rows}\n")));
  EXPECT_FALSE(identical(bound_contract("  - launches: {kernel: softmax_rows}\n    with: []\n")));
  baseline.others.push_back({baseline.entry, "two", {}});
  baseline.others[0].entry.name = "softmax_cols";
  EXPECT_TRUE(identical(softmax_contract()));
  JudgedKernels both{{"softmax_rows", "softmax_cols"}, {}};
  auto all_identical = [&] {
    PrecheckResult result;
    check_resources(bound_contract("  - launches: {kernel: \"softmax*\"}\n"), candidate, &baseline, result, &both);
    return result.identical_code;
  };
  EXPECT_FALSE(all_identical());
  candidate.others = baseline.others;
  EXPECT_TRUE(all_identical());
  candidate.others[0].kernel_id = "three";
  EXPECT_FALSE(all_identical());
}

TEST(Resources, of_several_judged_kernels_both_sides_count_all) {
  Prepared candidate = kernel_with({{0, 8}});
  auto usage = [](uint32_t registers, uint32_t spills) {
    ResourceUsage made;
    made.registers = registers, made.spill_store_bytes = spills, made.spill_load_bytes = 0;
    return made;
  };
  candidate.usage = usage(20, 8);
  candidate.others.push_back({candidate.entry, "id", usage(40, 16)});
  candidate.others[0].entry.name = "softmax_cols";
  candidate.others.push_back({candidate.entry, "id", usage(255, 999)});
  candidate.others[1].entry.name = "softmax_unused";
  JudgedKernels both{{"softmax_rows", "softmax_cols"}, {candidate, candidate}};
  both.recorded[1].usage = usage(30, 4);
  PrecheckResult result;
  check_resources(bound_contract("  - launches: {kernel: \"softmax*\"}\n"), candidate, nullptr, result, &both);
  EXPECT_EQ(result.statics.candidate.at("registers"), 40);
  EXPECT_EQ(result.statics.candidate.at("spill_bytes"), 24);
  EXPECT_EQ(result.statics.baseline.at("registers"), 30);
  EXPECT_EQ(result.statics.baseline.at("spill_bytes"), 12);
}

Workload with_launches(const std::vector<int32_t>& widths) {
  Workload workload;
  workload.modules.push_back({"m", "image", "hash"});
  WorkloadKernel kernel;
  kernel.entry = "softmax_rows";
  kernel.params = {{0, 8}, {8, 8}, {16, 4}};
  kernel.param_bytes = 20;
  workload.kernels.push_back(kernel);
  workload.buffers.resize(2);
  workload.buffers[0].bytes = 4096;
  workload.buffers[1].bytes = 2048;
  for (int32_t width : widths) {
    LaunchSpec launch;
    launch.grid = {2, 1, 1};
    launch.block = {128, 1, 1};
    launch.params.resize(20);
    std::memcpy(launch.params.data() + 16, &width, 4);
    launch.relocations = {{0, 0, 96}, {8, 1, 0}};
    workload.launches.push_back(launch);
  }
  return workload;
}

TEST(LaunchCases, every_distinct_launch_of_the_workload_is_a_case_with_its_scalars_and_sizes) {
  Contract contract = softmax_contract();
  auto launches = make_launch_cases(contract, with_launches({16, 33, 16}), {0, 1, 2}, 7);
  ASSERT_TRUE(launches) << launches.failure().what;
  EXPECT_EQ(launches->distinct, 2u);
  ASSERT_EQ(launches->cases.size(), 2u);
  EXPECT_EQ(launches->cases[0].tensor_bytes, (std::vector<uint64_t>{4000, 2048}));
  Workload numeric =
      numeric_workload(contract, kernel_with({{0, 8}, {8, 8}, {16, 4}}), Subject::candidate, launches->cases, 0, 2);
  EXPECT_TRUE(validate(numeric));
  int32_t widths[2];
  for (int i = 0; i < 2; ++i) std::memcpy(&widths[i], numeric.launches[i].params.data() + 16, 4);
  EXPECT_EQ(widths[0] + widths[1], 49);
  EXPECT_EQ(numeric.launches[1].relocations[0].buffer, 2u);
}

TEST(LaunchCases, many_launches_are_sampled_evenly_and_counted) {
  std::vector<int32_t> widths;
  std::vector<uint32_t> judged;
  for (int32_t i = 0; i < 200; ++i) {
    widths.push_back(i + 1);
    judged.push_back(static_cast<uint32_t>(i));
  }
  auto launches = make_launch_cases(softmax_contract(), with_launches(widths), judged, 7);
  ASSERT_TRUE(launches);
  EXPECT_EQ(launches->distinct, 200u);
  EXPECT_EQ(launches->cases.size(), kMaxLaunchCases);
}

TEST(LaunchCases, a_workload_kernel_with_other_parameters_is_refused) {
  Workload workload = with_launches({16});
  workload.kernels[0].params = {{0, 8}, {8, 4}};
  EXPECT_FALSE(make_launch_cases(softmax_contract(), workload, {0}, 7));
}

TEST(Cases, a_block_that_the_entry_forbids_is_refused) {
  Contract contract = softmax_contract();
  auto cases = make_cases(contract, 7);
  Prepared prepared = kernel_with({{0, 8}, {8, 8}, {16, 4}});
  prepared.entry.reqntid = Dim3{64, 1, 1};
  auto fits = check_candidate_launch(contract, prepared, cases[0]);
  ASSERT_FALSE(fits);
  EXPECT_NE(fits.failure().what.find("requires a block of 64x1x1"), std::string::npos) << fits.failure().what;
}

}  // namespace
}  // namespace kgate
