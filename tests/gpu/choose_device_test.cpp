// --device: every answer comes with a reason, and a sick driver cannot take kgate down with it.
#include <gtest/gtest.h>

#include <cstdlib>

#include "gpu/driver.h"

namespace kgate::gpu {
namespace {

class ChooseDevice : public ::testing::Test {
 protected:
  ChooseDevice() {
    setenv("KGATE_VGPU_LIB", KGATE_TEST_EMPTY_DRIVER, 1);
    setenv("KGATE_CUDA_LIB", "/nonexistent/libcuda.so.1", 1);
  }
  ~ChooseDevice() override {
    unsetenv("KGATE_VGPU_LIB");
    unsetenv("KGATE_CUDA_LIB");
  }
};

TEST_F(ChooseDevice, gpu_without_a_driver_fails_with_a_hint) {
  auto choice = choose_device("gpu");
  ASSERT_FALSE(choice);
  EXPECT_NE(choice.failure().what.find("libcuda"), std::string::npos) << choice.failure().what;
  EXPECT_NE(choice.failure().hint.find("--device virtual"), std::string::npos);
}

TEST_F(ChooseDevice, a_crashing_driver_is_a_reason) {
  setenv("KGATE_CUDA_LIB", KGATE_TEST_CRASHING_DRIVER, 1);
  auto choice = choose_device("gpu");
  ASSERT_FALSE(choice);
  EXPECT_NE(choice.failure().what.find("crashed"), std::string::npos) << choice.failure().what;
}

TEST_F(ChooseDevice, a_driver_that_ends_the_process_is_a_reason) {
  setenv("KGATE_CUDA_LIB", KGATE_TEST_EXITING_DRIVER, 1);
  auto choice = choose_device("gpu");
  ASSERT_FALSE(choice);
  EXPECT_NE(choice.failure().what.find("exit 7"), std::string::npos) << choice.failure().what;
}

TEST_F(ChooseDevice, a_driver_without_devices_is_a_reason) {
  setenv("KGATE_CUDA_LIB", KGATE_TEST_EMPTY_DRIVER, 1);
  auto choice = choose_device("gpu");
  ASSERT_FALSE(choice);
  EXPECT_NE(choice.failure().what.find("CUDA_ERROR_NO_DEVICE"), std::string::npos) << choice.failure().what;
}

TEST_F(ChooseDevice, words_it_does_not_know_are_refused) {
  for (const char* bad : {"bogus", "", "gpu:", "gpu:x", "gpu:-1", "gpu:1x", "GPU", "gpu:99999999999", "virtual:0"}) {
    auto choice = choose_device(bad);
    ASSERT_FALSE(choice) << bad;
    EXPECT_NE(choice.failure().hint.find("auto, gpu, gpu:N or virtual"), std::string::npos) << bad;
  }
}

TEST_F(ChooseDevice, a_missing_virtual_library_is_named) {
  setenv("KGATE_VGPU_LIB", "/nonexistent/libkgate_vgpu.so", 1);
  for (const char* option : {"virtual", "auto"}) {
    auto choice = choose_device(option);
    ASSERT_FALSE(choice) << option;
    EXPECT_EQ(choice.failure().where, "/nonexistent/libkgate_vgpu.so");
    EXPECT_FALSE(choice.failure().hint.empty());
  }
}

TEST_F(ChooseDevice, the_virtual_library_lies_beside_the_program) {
  unsetenv("KGATE_VGPU_LIB");
  EXPECT_TRUE(virtual_library_path().ends_with("/lib/libkgate_vgpu.so")) << virtual_library_path();
}

TEST_F(ChooseDevice, a_virtual_library_that_does_not_start_is_refused) {
  auto choice = choose_device("virtual");
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.failure().where, KGATE_TEST_EMPTY_DRIVER);
  EXPECT_FALSE(choice.failure().hint.empty());
}

#ifdef KGATE_TEST_VGPU
TEST_F(ChooseDevice, virtual_is_taken_with_its_properties) {
  setenv("KGATE_VGPU_LIB", KGATE_TEST_VGPU, 1);
  auto choice = choose_device("virtual");
  ASSERT_TRUE(choice) << choice.failure().what;
  EXPECT_EQ(choice->kind, DeviceKind::virtual_gpu);
  EXPECT_EQ(choice->library, KGATE_TEST_VGPU);
  EXPECT_EQ(choice->properties.name, "kgate virtual GPU");
  EXPECT_EQ(choice->properties.arch(), 90);
}

TEST_F(ChooseDevice, auto_falls_to_the_virtual_gpu_and_says_why) {
  setenv("KGATE_VGPU_LIB", KGATE_TEST_VGPU, 1);
  auto choice = choose_device("auto");
  ASSERT_TRUE(choice) << choice.failure().what;
  EXPECT_EQ(choice->kind, DeviceKind::virtual_gpu);
  EXPECT_NE(choice->why.find("libcuda"), std::string::npos) << choice->why;
}

TEST_F(ChooseDevice, bad_settings_of_the_virtual_gpu_are_named) {
  setenv("KGATE_VGPU_LIB", KGATE_TEST_VGPU, 1);
  setenv("KGATE_VGPU_MEMORY", "lots", 1);
  auto choice = choose_device("virtual");
  unsetenv("KGATE_VGPU_MEMORY");
  ASSERT_FALSE(choice);
  EXPECT_NE(choice.failure().what.find("KGATE_VGPU_MEMORY"), std::string::npos) << choice.failure().what;
}

TEST_F(ChooseDevice, any_library_with_a_device_will_do_for_gpu) {
  setenv("KGATE_CUDA_LIB", KGATE_TEST_VGPU, 1);
  auto choice = choose_device("gpu:0");
  ASSERT_TRUE(choice) << choice.failure().what;
  EXPECT_EQ(choice->library, KGATE_TEST_VGPU);
  auto second = choose_device("gpu:1");
  ASSERT_FALSE(second);
  EXPECT_NE(second.failure().what.find("no device 1"), std::string::npos);
}
#endif

}  // namespace
}  // namespace kgate::gpu
