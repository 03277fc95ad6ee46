#include <climits>

#include "candidate/compile.h"
#include "support.h"

#ifdef KGATE_HAVE_CUDA_HEADERS
#include <cuda_occupancy.h>
#endif

namespace kgate {
namespace {

TEST(Occupancy, each_limit_is_named_when_it_binds) {
  auto warps = theoretical_occupancy(90, 32, 0, 1024);
  ASSERT_TRUE(warps);
  EXPECT_EQ(warps->blocks_per_sm, 2);
  EXPECT_DOUBLE_EQ(warps->fraction, 1.0);
  EXPECT_STREQ(warps->limiter, "warps");
  EXPECT_STREQ(theoretical_occupancy(90, 16, 0, 32)->limiter, "blocks");
  EXPECT_STREQ(theoretical_occupancy(90, 255, 0, 128)->limiter, "registers");
  EXPECT_EQ(theoretical_occupancy(90, 255, 0, 128)->blocks_per_sm, 2);
  auto shared = theoretical_occupancy(90, 32, 100 * 1024, 128);
  EXPECT_EQ(shared->blocks_per_sm, 2);  // 2 x (100 + 1) KiB of 228
  EXPECT_DOUBLE_EQ(shared->fraction, 2 * 4 / 64.0);
  EXPECT_STREQ(shared->limiter, "shared memory");
  EXPECT_STREQ(theoretical_occupancy(120, 32, 0, 128, 16)->limiter, "barriers");
}

TEST(Occupancy, a_block_that_does_not_fit_has_none) {
  EXPECT_EQ(theoretical_occupancy(90, 32, 228 * 1024, 128)->blocks_per_sm, 0);
  EXPECT_EQ(theoretical_occupancy(90, 255, 0, 1024)->blocks_per_sm, 0);
  EXPECT_EQ(theoretical_occupancy(90, 300, 0, 32)->blocks_per_sm, 0);
  EXPECT_EQ(theoretical_occupancy(90, 32, UINT32_MAX, 128)->blocks_per_sm, 0);
}

TEST(Occupancy, unknown_architectures_and_impossible_blocks_give_nothing) {
  EXPECT_FALSE(theoretical_occupancy(70, 32, 0, 128));
  EXPECT_FALSE(theoretical_occupancy(999, 32, 0, 128));
  EXPECT_FALSE(theoretical_occupancy(90, 32, 0, 0));
  EXPECT_FALSE(theoretical_occupancy(90, 32, 0, 1025));
}

#ifdef KGATE_HAVE_CUDA_HEADERS
struct Sm {
  int arch, threads;
  size_t shared, reserved;
};

TEST(Occupancy, agrees_with_the_toolkits_own_calculator) {
  for (const Sm& sm : {Sm{75, 1024, 64, 0}, Sm{80, 2048, 164, 1}, Sm{86, 1536, 100, 1}, Sm{87, 1536, 164, 1},
                       Sm{89, 1536, 100, 1}, Sm{90, 2048, 228, 1}, Sm{100, 2048, 228, 1}, Sm{101, 1536, 228, 1},
                       Sm{103, 2048, 228, 1}, Sm{110, 1536, 228, 1}, Sm{120, 1536, 100, 1}, Sm{121, 1536, 100, 1}}) {
    cudaOccDeviceProp device;
    device.computeMajor = sm.arch / 10;
    device.computeMinor = sm.arch % 10;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = sm.threads;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.warpSize = 32;
    device.sharedMemPerBlock = 48 * 1024;
    device.sharedMemPerMultiprocessor = sm.shared * 1024;
    device.numSms = 1;
    device.reservedSharedMemPerBlock = sm.reserved * 1024;
    device.sharedMemPerBlockOptin = (sm.shared - sm.reserved) * 1024;
    cudaOccDeviceState state;
    state.carveoutConfig = 100;
    for (int registers : {8, 24, 32, 33, 64, 72, 96, 128, 168, 255})
      for (int block : {1, 32, 33, 64, 96, 128, 192, 256, 384, 512, 768, 1024})
        for (size_t shared : {size_t{0}, size_t{1}, size_t{512}, size_t{4096}, size_t{16 * 1024 + 4}, size_t{47 * 1024}})
          for (int barriers : {0, 1, 2, 16}) {
            cudaOccFuncAttributes function;
            function.maxThreadsPerBlock = INT_MAX;
            function.numRegs = registers;
            function.sharedSizeBytes = shared;
            function.partitionedGCConfig = PARTITIONED_GC_OFF;
            function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
            function.maxDynamicSharedSizeBytes = 0;
            function.numBlockBarriers = barriers;
            function.virtualResourceCount = 0;
            cudaOccResult theirs;
            ASSERT_EQ(cudaOccMaxActiveBlocksPerMultiprocessor(&theirs, &device, &function, &state, block, 0), CUDA_OCC_SUCCESS);
            auto ours = theoretical_occupancy(sm.arch, static_cast<uint32_t>(registers), static_cast<uint32_t>(shared),
                                              static_cast<uint32_t>(block), static_cast<uint32_t>(barriers));
            ASSERT_TRUE(ours);
            ASSERT_EQ(ours->blocks_per_sm, theirs.activeBlocksPerMultiprocessor)
                << "sm_" << sm.arch << " registers " << registers << " block " << block << " shared " << shared
                << " barriers " << barriers;
          }
  }
}
#endif

}  // namespace
}  // namespace kgate
