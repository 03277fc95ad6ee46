#include "gpu/gpu_monitor.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

namespace kgate::gpu {
namespace {

constexpr const char* kUuid = "00112233445566778899aabbccddeeff";

struct Monitor : testing::Test {
  void SetUp() override { ::setenv("KGATE_NVML", KGATE_TEST_NVML, 1); }
  void TearDown() override {
    ::unsetenv("KGATE_NVML");
    for (const auto& [name, value] : set_) ::unsetenv(name.c_str());
  }
  void answer(const std::string& name, const std::string& value) {
    set_["KGATE_FAKE_NVML_" + name] = value;
    ::setenv(("KGATE_FAKE_NVML_" + name).c_str(), value.c_str(), 1);
  }
  std::map<std::string, std::string> set_;
};

TEST_F(Monitor, reads_clocks_and_reasons) {
  answer("REASONS", "0x44");
  answer("SM", "1980");
  answer("MEMORY", "3201");
  answer("POWER", "512000");
  answer("THERMAL_NS", "77");
  auto monitor = GpuMonitor::open(kUuid);
  ASSERT_TRUE(monitor) << monitor.failure().what;
  GpuReading reading = (*monitor)->read();
  EXPECT_EQ(reading.reasons, kClocksPowerCap | kClocksHwThermal);
  EXPECT_TRUE(reading.reasons & kClocksSlowed);
  EXPECT_EQ(reading.sm_mhz, 1980u);
  EXPECT_EQ(reading.memory_mhz, 3201u);
  EXPECT_EQ(reading.milliwatts, 512000u);
  EXPECT_EQ(reading.thermal_ns, 77u);
  EXPECT_FALSE(reading.power_ns);
  EXPECT_FALSE(reading.celsius) << "a call that this NVML does not have";
}

TEST_F(Monitor, what_the_device_does_not_tell_is_absent_and_not_zero) {
  auto monitor = GpuMonitor::open(kUuid);
  ASSERT_TRUE(monitor);
  EXPECT_FALSE((*monitor)->read().sm_mhz);
  GpuFacts facts = (*monitor)->facts();
  EXPECT_FALSE(facts.mig);
  EXPECT_FALSE(facts.processes);
  EXPECT_FALSE(facts.persistence);
}

TEST_F(Monitor, facts_say_who_else_computes_here) {
  answer("MIG", "1");
  answer("PROCESSES", "3");
  auto monitor = GpuMonitor::open(kUuid);
  ASSERT_TRUE(monitor);
  EXPECT_EQ((*monitor)->facts().mig, true);
  EXPECT_EQ((*monitor)->facts().processes, 3u);
}

TEST_F(Monitor, another_device_is_a_failure_that_names_the_call) {
  auto monitor = GpuMonitor::open(std::string(32, 'f'));
  ASSERT_FALSE(monitor);
  EXPECT_NE(monitor.failure().what.find("nvmlDeviceGetHandleByUUID"), std::string::npos);
  EXPECT_FALSE(GpuMonitor::open(""));
}

TEST_F(Monitor, a_library_that_is_no_nvml_says_what_it_lacks) {
  ::setenv("KGATE_NVML", "libm.so.6", 1);
  auto monitor = GpuMonitor::open(kUuid);
  ASSERT_FALSE(monitor);
  EXPECT_NE(monitor.failure().what.find("lacks nvmlInit_v2"), std::string::npos);
}

TEST(ClockReasons, are_words_and_unknown_bits_stay_visible) {
  EXPECT_EQ(clock_reasons(0), "none");
  EXPECT_EQ(clock_reasons(kClocksPowerCap | kClocksHwThermal), "power cap, hardware thermal slowdown");
  EXPECT_EQ(clock_reasons(kClocksIdle | 0x4000), "idle, 0x4000");
}

}  // namespace
}  // namespace kgate::gpu
