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

}  // namespace kgate
