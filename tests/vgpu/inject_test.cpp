// KGATE_VGPU_INJECT is read strictly: a misspelt word must not look like a healthy collector.
#include <gtest/gtest.h>

#include "vgpu/cupti_inject.h"

namespace kgate::vgpu::cupti {
namespace {

TEST(Injection, reads_a_comma_list) {
  auto injection = parse_injection("drop_records=3, zero_times,end_before_start=2,kernel_without_launch");
  ASSERT_TRUE(injection);
  EXPECT_EQ(injection->drop_records, 3u);
  EXPECT_EQ(injection->zero_times, UINT64_MAX);
  EXPECT_EQ(injection->end_before_start, 2u);
  EXPECT_EQ(injection->kernel_without_launch, 1u);
  EXPECT_FALSE(injection->other_subscriber);
}

TEST(Injection, nothing_asked_is_nothing_injected) {
  auto injection = parse_injection("");
  ASSERT_TRUE(injection);
  EXPECT_EQ(injection->drop_records + injection->lose_records + injection->zero_times, 0u);
}

TEST(Injection, refuses_what_it_does_not_know) {
  for (const char* bad : {"drop", "drop_records", "drop_records=", "drop_records=x", "drop_records=1x", "zero_times=-1",
                          "drop_records=1,,", ",", "other_subscriber=1", "zero_times=99999999999999999999"}) {
    EXPECT_FALSE(parse_injection(bad)) << bad;
  }
}

}  // namespace
}  // namespace kgate::vgpu::cupti
