// Opening a driver library.
#include <gtest/gtest.h>

#include "gpu/driver.h"

namespace kgate::gpu {
namespace {

TEST(OpenDriver, a_missing_library_is_named_with_a_hint) {
  auto driver = Driver::open("/nonexistent/libcuda.so.1");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.failure().where, "/nonexistent/libcuda.so.1");
  EXPECT_NE(driver.failure().what.find("No such file"), std::string::npos) << driver.failure().what;
  EXPECT_FALSE(driver.failure().hint.empty());
}

TEST(OpenDriver, a_library_that_is_no_driver_is_refused_by_what_it_lacks) {
  auto driver = Driver::open("libm.so.6");
  ASSERT_FALSE(driver);
  EXPECT_NE(driver.failure().what.find("cuInit"), std::string::npos) << driver.failure().what;
}

TEST(OpenDriver, a_file_that_is_no_library_is_refused) {
  auto driver = Driver::open("/proc/self/cmdline");
  ASSERT_FALSE(driver);
  EXPECT_FALSE(driver.failure().hint.empty());
}

TEST(OpenDriver, a_driver_without_a_device_ends_in_environment) {
  auto driver = Driver::open(KGATE_TEST_EMPTY_DRIVER);
  ASSERT_TRUE(driver);
  EXPECT_FALSE((*driver)->is_virtual());
  try {
    (*driver)->initialise(0);
    ADD_FAILURE() << "initialised without a device";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::environment);
    EXPECT_NE(error.failure().what.find("CUDA_ERROR_NO_DEVICE"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace kgate::gpu
