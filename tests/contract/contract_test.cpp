#include "contract/contract.h"

#include <gtest/gtest.h>

#include "sample.h"

namespace kgate {

TEST(Contract, the_documented_example_is_read_whole) {
  Contract contract = parse_contract(kSample, "/repo/configs/softmax.yaml");
  EXPECT_EQ(contract.kernel, "softmax_rows");
  ASSERT_EQ(contract.params.size(), 3u);
  const auto& out = std::get<TensorParam>(contract.params[0].kind);
  EXPECT_EQ(out.dtype, Dtype::f16);
  EXPECT_EQ(out.role, Role::out);
  ASSERT_EQ(out.dims.size(), 2u);
  EXPECT_EQ(out.dims[1].text(), "cols");
  const auto& cols = std::get<ScalarParam>(contract.params[2].kind);
  EXPECT_EQ(cols.dtype, Dtype::i32);
  EXPECT_FALSE(cols.value);
  ASSERT_EQ(contract.shapes.size(), 7u);
  EXPECT_EQ(contract.shapes[1], (Environment{{"rows", 1}, {"cols", 1}}));
  EXPECT_EQ(contract.shapes[2], (Environment{{"rows", 1}, {"cols", 31}}));
  EXPECT_EQ(contract.shapes[6], (Environment{{"rows", 7}, {"cols", 4096}}));
  EXPECT_EQ(*contract.launch.grid[0].evaluate(contract.shapes[0]), 512);
  EXPECT_EQ(contract.reference->path, "/repo/workloads/references/softmax.cu");
  EXPECT_EQ(contract.reference->entry, "softmax_ref");
  EXPECT_EQ(contract.tolerance.at(Dtype::f16).rtol, 2e-3);
  EXPECT_EQ(*contract.workload, "/repo/workloads/decode.kgw");
  EXPECT_EQ(*contract.baseline, "/repo/workloads/kernels/softmax.ptx");
  EXPECT_EQ(contract.baseline_entry, "softmax_rows");
  EXPECT_TRUE(contract.binding.replacements.empty());
  ASSERT_EQ(contract.limits.size(), 4u);
  EXPECT_EQ(contract.limits[0].metric, "service.p99");
  EXPECT_EQ(*contract.limits[0].max_regression, 0.05);
  EXPECT_FALSE(contract.limits[0].max);
  EXPECT_EQ(contract.limits[0].where, "/repo/configs/softmax.yaml:17:3");
  EXPECT_EQ(*contract.limits[2].max_increase, 2000);
  EXPECT_EQ(*contract.limits[3].max, 0);
  EXPECT_TRUE(contract.has_limits);
  EXPECT_FALSE(contract.limits_only);
  EXPECT_EQ(contract.sha256.size(), 64u);
}

namespace {

const Contract read_config(const char* name, bool allow_policy = false) {
  return read_contract(std::filesystem::path(KGATE_SOURCE_DIR) / "configs" / name, allow_policy);
}

}  // namespace

TEST(Contract, the_configs_to_copy_from_are_read) {
  EXPECT_EQ(read_config("softmax.yaml").shapes.size(), 7u);
  Contract rmsnorm = read_config("rmsnorm.yaml");
  EXPECT_EQ(rmsnorm.shapes.size(), 1u + 2 * 3);  // of 2 * 2 * 2, ld 512 with cols 1000 is outside
  EXPECT_TRUE(rmsnorm.reference_is_baseline);
  EXPECT_FALSE(rmsnorm.reference);
  EXPECT_EQ(rmsnorm.baseline_entry, "rmsnorm");
  const auto& out = std::get<TensorParam>(rmsnorm.params[0].kind);
  EXPECT_EQ(out.strides[0].text(), "ld");
  EXPECT_EQ(*std::get<TensorParam>(rmsnorm.params[1].kind).low, -2);
  EXPECT_TRUE(std::get<TensorParam>(rmsnorm.params[3].kind).zeroed);
  EXPECT_EQ(std::get<ScalarParam>(rmsnorm.params[5].kind).value->text(), "ld");
  EXPECT_EQ(*std::get<ScalarParam>(rmsnorm.params[6].kind).real, 1e-6);
  EXPECT_EQ(rmsnorm.limits[1].metric, "kernel_time.p50");
  EXPECT_EQ(*rmsnorm.limits[1].min_improvement, 0.02);
  EXPECT_EQ(*rmsnorm.limits[2].max_increase, 1);
  EXPECT_TRUE(read_config("policy-example.yaml", true).limits_only);
}

TEST(Contract, a_policy_is_read_only_where_one_is_allowed) {
  const std::string policy =
      "kgate: 1\nlimits:\n  sync_stall: {max_increase: 0}\n  local_bytes: {max: 1KiB}\n  occupancy: {max_regression: "
      "7%}\n";
  Contract read = parse_contract(policy, "p.yaml", true);
  EXPECT_TRUE(read.limits_only);
  ASSERT_EQ(read.limits.size(), 3u);
  EXPECT_EQ(*read.limits[1].max, 1024);
  EXPECT_EQ(*read.limits[2].max_regression, 0.07);
  try {
    parse_contract(policy, "p.yaml");
    FAIL() << "a policy is no contract";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_input);
    EXPECT_EQ(error.failure().hint, "a file with only limits is a policy: give it beside a contract, not as one");
  }
  EXPECT_FALSE(parse_contract(kSample, "c.yaml", true).limits_only);
  EXPECT_NE(problems("kgate: 1\n", true), "");
}

TEST(Contract, only_a_workload_may_stand_in_for_params_and_launch) {
  Contract contract = parse_contract("kgate: 1\nkernel: k\nworkload: w.kgw\nlimits: {}\n", "/a/c.yaml");
  EXPECT_TRUE(contract.params.empty());
  EXPECT_TRUE(contract.shapes.empty());
  EXPECT_EQ(*contract.workload, "/a/w.kgw");
  EXPECT_TRUE(contract.has_limits);
  EXPECT_TRUE(contract.limits.empty());
  EXPECT_FALSE(contract.has_shapes);
  EXPECT_TRUE(parse_contract(kSample, "c.yaml").has_shapes);
  EXPECT_EQ(problems("kgate: 1\nkernel: k\n"), "");  // the workload may be named on the command line
}

TEST(Contract, without_a_launch_parameters_give_dtypes_and_roles) {
  const std::string text =
      "kgate: 1\nkernel: k\nparams:\n  - {name: o, tensor: bf16, role: inout}\n  - {name: eps, scalar: f32}\n"
      "  - {name: n, scalar: i32}\n";
  Contract contract = parse_contract(text, "c.yaml");
  const auto& tensor = std::get<TensorParam>(contract.params.at(0).kind);
  EXPECT_FALSE(contract.has_shapes);
  EXPECT_FALSE(tensor.sized);
  EXPECT_EQ(tensor.dtype, Dtype::bf16);
  EXPECT_EQ(tensor.role, Role::inout);
  EXPECT_TRUE(contract.shapes.empty());
  EXPECT_EQ(problems(with("bf16", "\"bf16[64]\"", text)),
            "c.yaml:4:23: params[0].tensor: without a 'launch' the workload brings the tensor's size; write bf16, or "
            "give 'launch' and 'shapes'");
  EXPECT_EQ(problems(with("scalar: i32", "scalar: i32, value: 7", text)),
            "c.yaml:6:35: params[2].value: without a 'launch' the workload brings what 'value' would say; remove it, "
            "or give 'launch' and 'shapes'");
  EXPECT_EQ(problems(with("role: inout", "role: inout, range: [0, 1]", text)),
            "c.yaml:4:49: params[0].range: without a 'launch' the workload brings what 'range' would say; remove it, "
            "or give 'launch' and 'shapes'");
  EXPECT_EQ(problems(with("bf16", "bf15", text)),
            "c.yaml:4:23: params[0].tensor: unknown dtype 'bf15'; did you mean 'bf16'?");
  EXPECT_EQ(problems(with("params:", "reference: {baseline: true}\nparams:", text)),
            "c.yaml:3:12: reference: the contract has 'reference' but no 'launch'; give 'params' and 'launch'; without "
            "them numbers are compared on the workload's own launches");
  EXPECT_EQ(problems("kgate: 1\nkernel: k\nlaunch: {grid: [1, 1, 1], block: [1, 1, 1]}\n"),
            "c.yaml:1:1: the contract has 'launch' but no 'params'; they belong together");
}

TEST(Contract, a_tensor_of_a_launch_has_dimensions) {
  EXPECT_EQ(problems(with("\"f16[rows, cols]\"", "f16")),
            "c.yaml:4:26: params[0].tensor: the tensor has no dimensions, and the contract has a 'launch'; write "
            "dtype[dim, dim], for example \"f16[rows, cols]\"");
}

TEST(Contract, a_kernel_alone_makes_a_contract) {
  Contract contract = contract_for_kernel("softmax_rows");
  EXPECT_EQ(contract.kernel, "softmax_rows");
  EXPECT_EQ(contract.baseline_entry, "softmax_rows");
  EXPECT_TRUE(contract.params.empty() && contract.binding.replacements.empty() && contract.tolerance.empty());
  EXPECT_FALSE(contract.has_shapes || contract.has_limits);
  Contract pattern = contract_for_kernel("*softmax*");
  EXPECT_TRUE(pattern.kernel.empty());
  ASSERT_EQ(pattern.binding.replacements.size(), 1u);
  EXPECT_EQ(pattern.binding.replacements[0].kernel_glob, "*softmax*");
  EXPECT_FALSE(pattern.binding.replacements[0].with);
  EXPECT_NE(pattern.sha256, contract.sha256);
  try {
    contract_for_kernel("");
    FAIL() << "a contract of nothing";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
  }
}

TEST(Contract, combinations_outside_the_constraints_are_left_out_of_a_product) {
  Contract contract = parse_contract(with("shapes:", "constraints: [\"cols % 8 == 0\"]\nshapes:"), "c.yaml");
  ASSERT_EQ(contract.shapes.size(), 3u);
  EXPECT_EQ(contract.shapes[1], (Environment{{"rows", 1}, {"cols", 4096}}));
  EXPECT_EQ(contract.shapes[2], (Environment{{"rows", 7}, {"cols", 4096}}));
}

TEST(Contract, equal_shapes_count_once) {
  EXPECT_EQ(parse_contract(with("cols: 1000}", "cols: 1000}\n  - {cols: 1000, rows: 512}"), "c.yaml").shapes.size(),
            7u);
}

TEST(Contract, without_shapes_everything_is_a_number) {
  Contract contract = parse_contract(
      "kgate: 1\nkernel: k\nparams: [{name: o, tensor: \"f32[16]\", role: out}]\nlaunch: {grid: [1, 1, 1], block: [16, "
      "1, 1]}\n",
      "c.yaml");
  ASSERT_EQ(contract.shapes.size(), 1u);
  EXPECT_TRUE(contract.shapes[0].empty());
  EXPECT_EQ(*contract.launch.shared.evaluate({}), 0);
}

TEST(Contract, parameters_lie_at_their_natural_alignment) {
  Contract contract;
  for (Dtype dtype : {Dtype::i8, Dtype::i16, Dtype::i32}) contract.params.push_back({"s", ScalarParam{dtype, {}, {}}});
  contract.params.push_back({"t", TensorParam{}});
  contract.params.push_back({"b", ScalarParam{Dtype::boolean, {}, {}}});
  contract.params.push_back({"d", ScalarParam{Dtype::f64, {}, {}}});
  contract.params.push_back({"h", ScalarParam{Dtype::f16, {}, {}}});
  std::vector<ParamSlot> slots = param_layout(contract);
  std::vector<uint32_t> offsets;
  for (const ParamSlot& slot : slots) offsets.push_back(slot.offset);
  EXPECT_EQ(offsets, (std::vector<uint32_t>{0, 2, 4, 8, 16, 24, 32}));
  EXPECT_EQ(param_block_bytes(contract), 34u);
  EXPECT_EQ(param_block_bytes(Contract{}), 0u);
}

TEST(Contract, tensors_span_what_their_strides_reach) {
  const Environment shape{{"rows", 3}, {"cols", 5}, {"ld", 8}, {"none", 0}};
  auto tensor = [](std::initializer_list<const char*> dims, std::initializer_list<const char*> strides) {
    TensorParam made;
    for (const char* dim : dims) made.dims.push_back(*Expr::parse(dim));
    for (const char* stride : strides) made.strides.push_back(*Expr::parse(stride));
    return made;
  };
  EXPECT_EQ(*tensor_elements(tensor({"rows", "cols"}, {}), shape), 15u);
  EXPECT_EQ(*tensor_elements(tensor({"rows", "cols"}, {"ld", "1"}), shape), 21u);
  EXPECT_EQ(*tensor_elements(tensor({"rows", "cols"}, {"0", "1"}), shape), 5u);
  EXPECT_EQ(*tensor_elements(tensor({}, {}), shape), 1u);
  EXPECT_EQ(*tensor_elements(tensor({"rows", "none"}, {}), shape), 0u);
  EXPECT_EQ(*tensor_elements(tensor({"none", "cols"}, {"ld", "1"}), shape), 0u);
  EXPECT_FALSE(tensor_elements(tensor({"rows - 4"}, {}), shape));
  EXPECT_FALSE(tensor_elements(tensor({"rows"}, {"-1"}), shape));
  EXPECT_FALSE(tensor_elements(tensor({"rows"}, {"1", "1"}), shape));
  EXPECT_FALSE(tensor_elements(tensor({"rows", "4611686018427387904"}, {}), shape));
  EXPECT_FALSE(tensor_elements(tensor({"rows"}, {"9223372036854775807"}), shape));
  EXPECT_FALSE(tensor_elements(tensor({"depth"}, {}), shape));
}

TEST(Contract, dtypes_have_names_sizes_and_default_tolerances) {
  for (const char* name : dtype_names()) {
    Dtype dtype = *dtype_from_name(name);
    EXPECT_STREQ(dtype_name(dtype), name);
    Tolerance tolerance = default_tolerance(dtype);
    EXPECT_EQ(tolerance.rtol > 0 && tolerance.atol > 0, is_floating(dtype)) << name;
  }
  EXPECT_EQ(dtype_names().size(), 16u);
  EXPECT_EQ(dtype_bytes(Dtype::bf16), 2u);
  EXPECT_EQ(dtype_from_name("f8"), std::nullopt);
  EXPECT_LT(default_tolerance(Dtype::f32).rtol, default_tolerance(Dtype::f16).rtol);
  EXPECT_LT(default_tolerance(Dtype::f16).rtol, default_tolerance(Dtype::bf16).rtol);
}

}  // namespace kgate
