// Result names and the stickiness of errors.
#include <gtest/gtest.h>

#include "gpu/cupti_abi.h"
#include "gpu/driver.h"

namespace kgate::gpu {
namespace {

TEST(GpuErrors, text_holds_call_name_code_and_detail) {
  GpuError error(700, "cuStreamSynchronize", "CUDA_ERROR_ILLEGAL_ADDRESS", "address 0x10");
  EXPECT_STREQ(error.what(), "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700): address 0x10");
  EXPECT_STREQ(GpuError(1, "cuMemAlloc_v2", "CUDA_ERROR_INVALID_VALUE", "").what(),
               "cuMemAlloc_v2: CUDA_ERROR_INVALID_VALUE (1)");
}

TEST(GpuErrors, faults_of_kernels_are_sticky_and_refusals_are_not) {
  for (int code : {214, 700, 702, 710, 714, 715, 716, 717, 718, 719}) {
    EXPECT_TRUE(GpuError(code, "", "", "").sticky()) << code;
  }
  for (int code : {1, 2, 3, 218, 400, 500, 701, 720, 801}) EXPECT_FALSE(GpuError(code, "", "", "").sticky()) << code;
}

TEST(GpuErrors, names_are_cudas_own) {
  EXPECT_STREQ(result_name(0), "CUDA_SUCCESS");
  EXPECT_STREQ(result_name(716), "CUDA_ERROR_MISALIGNED_ADDRESS");
  EXPECT_EQ(result_name(12345), nullptr);
  EXPECT_STREQ(driver_cbid_name(442), "cuLaunchKernel_ptsz");
  EXPECT_EQ(driver_cbid_name(0), nullptr);
}

}  // namespace
}  // namespace kgate::gpu
