// The same Driver on a real GPU; skipped where there is none.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "../vgpu/samples.h"

namespace kgate {
namespace {

class RealGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    // Once, before this process uses CUDA: the probe forks, and a child of a process with a context cannot start CUDA.
    static const auto choice = gpu::choose_device("gpu");
    if (!choice) GTEST_SKIP() << choice.failure().what;
    auto opened = gpu::Driver::open(choice->library);
    ASSERT_TRUE(opened) << opened.failure().what;
    driver = std::move(*opened);
    driver->initialise(choice->ordinal);
  }
  std::unique_ptr<gpu::Driver> driver;
};

TEST_F(RealGpu, has_properties) {
  const gpu::DeviceProperties& p = driver->properties();
  EXPECT_EQ(p.kind, gpu::DeviceKind::real);
  EXPECT_FALSE(p.name.empty());
  EXPECT_GE(p.arch(), 50);
  EXPECT_GT(p.sm_count, 0);
  EXPECT_EQ(p.uuid.size(), 32u);
  EXPECT_NE(p.library.find("libcuda.so"), std::string::npos);
  EXPECT_FALSE(driver->last_launch_counters());
  EXPECT_FALSE(driver->last_fault());
}

TEST_F(RealGpu, adds_two_vectors) {
  VectorAdd add(*driver);
  add.launch.stream = driver->create_stream();
  add.run();
  driver->synchronize(add.launch.stream);
  add.expect_right();
  auto parameters = driver->parameters(add.launch.function);
  if (parameters) {
    EXPECT_EQ(parameters->size(), 4u);
    EXPECT_EQ(parameters->back(), (std::pair<size_t, size_t>{24, 4}));
  }
  EXPECT_GT(driver->occupancy_blocks_per_sm(add.launch.function, 128, 0), 0);
  EXPECT_GT(driver->attribute(add.launch.function, gpu::CU_FUNC_ATTRIBUTE_NUM_REGS), 0);
}

TEST_F(RealGpu, bad_ptx_has_a_log) {
  std::string text = kVectorAdd;
  size_t at = text.find("  add.f32 %f3");
  text.replace(at, 13, "  add.f32 %f3$$,");
  std::string line = "line " + std::to_string(1 + std::count(text.begin(), text.begin() + at, '\n'));
  try {
    driver->load_module(image(text));
    ADD_FAILURE() << "bad PTX was loaded";
  } catch (const gpu::GpuError& error) {
    EXPECT_EQ(error.code, gpu::CUDA_ERROR_INVALID_PTX);
    EXPECT_NE(error.detail.find(line), std::string::npos) << error.detail;
  }
}

TEST_F(RealGpu, refusals_have_the_codes_that_the_virtual_gpu_has) {
  VectorAdd add(*driver);
  EXPECT_EQ(code_of([&] { driver->function(add.module, "vector_sub"); }), gpu::CUDA_ERROR_NOT_FOUND);
  gpu::Launch launch = add.launch;
  launch.grid = {0, 1, 1};
  EXPECT_EQ(code_of([&] { driver->launch(launch, add.params.bytes()); }), gpu::CUDA_ERROR_INVALID_VALUE);
  launch = add.launch;
  launch.block = {2048, 1, 1};
  EXPECT_EQ(code_of([&] { driver->launch(launch, add.params.bytes()); }), gpu::CUDA_ERROR_INVALID_VALUE);
  launch = add.launch;
  launch.shared = 100 << 10;
  EXPECT_EQ(code_of([&] { driver->launch(launch, add.params.bytes()); }), gpu::CUDA_ERROR_INVALID_VALUE);
  driver->allow_dynamic_shared(add.launch.function, 64 << 10);
  EXPECT_EQ(code_of([&] { driver->allocate(0); }), gpu::CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(code_of([&] { driver->allocate(size_t{1} << 50); }), gpu::CUDA_ERROR_OUT_OF_MEMORY);
  gpu::CUdeviceptr p = driver->allocate(256);
  driver->free(p);
  EXPECT_EQ(code_of([&] { driver->free(p); }), gpu::CUDA_ERROR_INVALID_VALUE);
  gpu::Launch fixed;
  fixed.function = driver->function(driver->load_module(image(kMisbehaving)), "fixed_block");
  fixed.block = {64, 1, 1};
  EXPECT_EQ(code_of([&] { driver->launch(fixed, {}); }), gpu::CUDA_ERROR_INVALID_VALUE);
  add.run();
  driver->synchronize_context();
}

TEST_F(RealGpu, memory_can_be_had_again_at_the_same_address) {
  constexpr size_t kBytes = 64 << 20;
  gpu::CUdeviceptr p = driver->allocate(kBytes);
  driver->free(p);
  auto again = driver->allocate_at(p, kBytes);
  if (!again) GTEST_SKIP() << "the driver granted another address";
  EXPECT_EQ(*again, p);
  driver->fill(p, 0x5a, kBytes, nullptr);
  unsigned char last = 0;
  driver->download(&last, p + kBytes - 1, 1);
  EXPECT_EQ(last, 0x5a);
  EXPECT_EQ(driver->allocate_at(p + 1, 64), std::nullopt);
  driver->free(p);
}

TEST_F(RealGpu, a_wild_pointer_surfaces_at_the_synchronization_and_stays) {
  VectorAdd add(*driver);
  add.params.c = 0x10;
  add.run();
  EXPECT_EQ(code_of([&] { driver->synchronize(nullptr); }), gpu::CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(code_of([&] { driver->allocate(64); }), gpu::CUDA_ERROR_ILLEGAL_ADDRESS);
}

}  // namespace
}  // namespace kgate
