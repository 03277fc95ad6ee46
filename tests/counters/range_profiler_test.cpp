// The order of the range profiler's calls and what each of its refusals becomes, against a fake CUPTI.
#include "trace/range_profiler.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/counters/fake_profiler.h"

namespace kgate {
namespace {

struct RangeProfilerTest : testing::Test {
  FakeProfiler* fake = nullptr;

  void SetUp() override {
    void* library = dlopen(KGATE_FAKE_PROFILER, RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    fake = static_cast<FakeProfiler*>(dlsym(library, "kgate_fake_profiler"));
    ASSERT_NE(fake, nullptr);
    *fake = {};
  }
  void fail(const char* call, int result) {
    std::string(call).copy(fake->fail_call, sizeof fake->fail_call - 1);
    fake->fail_with = result;
  }
  static Result<std::unique_ptr<RangeProfiler>> open() { return RangeProfiler::open(KGATE_FAKE_PROFILER, nullptr, 0); }
  static Result<std::vector<std::vector<double>>> measure(RangeProfiler& profiler, uint32_t set, int ranges) {
    if (auto ready = profiler.configure(trace::counter_set(set), 4); !ready) return ready.failure();
    if (auto started = profiler.start(); !started) return started.failure();
    for (int i = 0; i < ranges; ++i) {
      if (auto pushed = profiler.push(); !pushed) return pushed.failure();
      if (auto popped = profiler.pop(); !popped) return popped.failure();
    }
    return profiler.stop();
  }
};

TEST_F(RangeProfilerTest, values_come_by_range_and_counter) {
  auto profiler = open();
  ASSERT_TRUE(profiler) << profiler.failure().what;
  auto values = measure(**profiler, trace::kSetSm, 3);
  ASSERT_TRUE(values) << values.failure().what;
  EXPECT_EQ(*values, (std::vector<std::vector<double>>{{0, 1, 2, 3}, {100, 101, 102, 103}, {200, 201, 202, 203}}));
}

TEST_F(RangeProfilerTest, ranges_are_told_apart_by_name_not_by_place) {
  fake->reverse_ranges = true;
  auto profiler = open();
  ASSERT_TRUE(profiler);
  auto values = measure(**profiler, trace::kSetL2Hits, 2);
  ASSERT_TRUE(values) << values.failure().what;
  EXPECT_EQ(*values, (std::vector<std::vector<double>>{{0}, {100}}));
}

TEST_F(RangeProfilerTest, a_second_set_is_configured_after_the_first_was_disabled) {
  auto profiler = open();
  ASSERT_TRUE(profiler);
  ASSERT_TRUE(measure(**profiler, trace::kSetSm, 1));
  // A second time with the same object: the real library went on reading the first images until it was disabled.
  ASSERT_TRUE((*profiler)->configure(trace::counter_set(trace::kSetRequests), 4));
  std::string calls = fake->calls;
  EXPECT_LT(calls.find("cuptiRangeProfilerDisable"), calls.rfind("cuptiRangeProfilerEnable")) << calls;
}

TEST_F(RangeProfilerTest, a_set_of_several_passes_is_refused_with_the_chip_and_the_number) {
  fake->passes = 3;
  auto profiler = open();
  ASSERT_TRUE(profiler);
  auto ready = (*profiler)->configure(trace::counter_set(trace::kSetSm), 4);
  ASSERT_FALSE(ready);
  EXPECT_NE(ready.failure().what.find("FAKE100 needs 3 passes"), std::string::npos) << ready.failure().what;
}

TEST_F(RangeProfilerTest, missing_rights_name_the_way_to_get_them) {
  fail("cuptiRangeProfilerEnable", gpu::CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
  auto profiler = open();
  ASSERT_TRUE(profiler);
  auto ready = (*profiler)->configure(trace::counter_set(trace::kSetSm), 4);
  ASSERT_FALSE(ready);
  EXPECT_NE(ready.failure().hint.find("NVreg_RestrictProfilingToAdminUsers=0"), std::string::npos);
}

TEST_F(RangeProfilerTest, another_holder_of_the_monitors_is_said_with_the_way_out) {
  fail("cuptiRangeProfilerStart", gpu::CUPTI_ERROR_HARDWARE_BUSY);
  auto profiler = open();
  ASSERT_TRUE(profiler);
  auto values = measure(**profiler, trace::kSetSm, 1);
  ASSERT_FALSE(values);
  EXPECT_NE(values.failure().hint.find("dcgmi profile --pause"), std::string::npos);
}

TEST_F(RangeProfilerTest, a_configuration_that_cannot_be_profiled_is_refused_at_the_door) {
  fake->supported = 1;
  auto profiler = open();
  ASSERT_FALSE(profiler);
  EXPECT_NE(profiler.failure().what.find("cannot be profiled"), std::string::npos);
}

TEST_F(RangeProfilerTest, an_unknown_chip_is_refused_by_name) {
  fail("cuptiProfilerHostInitialize", gpu::CUPTI_ERROR_INVALID_CHIP_NAME);
  auto profiler = open();
  ASSERT_TRUE(profiler);
  auto ready = (*profiler)->configure(trace::counter_set(trace::kSetSm), 4);
  ASSERT_FALSE(ready);
  EXPECT_NE(ready.failure().hint.find("This GPU"), std::string::npos);
}

TEST_F(RangeProfilerTest, dropped_lost_and_unfinished_ranges_are_no_values) {
  auto expect_failure = [&](const char* text) {
    auto profiler = open();
    ASSERT_TRUE(profiler);
    auto values = measure(**profiler, trace::kSetSm, 2);
    ASSERT_FALSE(values) << text;
    EXPECT_NE(values.failure().what.find(text), std::string::npos) << values.failure().what;
  };
  fake->dropped = 1;
  expect_failure("dropped 1");
  *fake = {};
  fake->lose_last_range = true;
  expect_failure("1 of 2");
  *fake = {};
  fake->all_passes_submitted = 0;
  expect_failure("another pass");
}

TEST_F(RangeProfilerTest, a_library_without_the_profiler_says_what_it_lacks) {
  auto profiler = RangeProfiler::open("libm.so.6", nullptr, 0);
  ASSERT_FALSE(profiler);
  EXPECT_NE(profiler.failure().what.find("lacks cupti"), std::string::npos) << profiler.failure().what;
}

}  // namespace
}  // namespace kgate
