#include "worker/clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace kgate::worker {
namespace {

TEST(Clock, waits_until_the_moment_and_not_less) {
  std::atomic<bool> stop{false};
  for (uint64_t ahead : {uint64_t{0}, uint64_t{1}, uint64_t{30'000}, uint64_t{200'000}, uint64_t{30'000'000}}) {
    uint64_t due = now_ns() + ahead;
    wait_until(due, stop);
    EXPECT_GE(now_ns(), due);
  }
}

TEST(Clock, a_moment_that_has_passed_is_no_wait) {
  std::atomic<bool> stop{false};
  wait_until(0, stop);
  wait_until(now_ns() - 1, stop);
}

TEST(Clock, stop_ends_the_longest_wait) {
  std::atomic<bool> stop{false};
  uint64_t never = now_ns() + uint64_t{3'600} * 1'000'000'000;
  std::thread waiter([&] { wait_until(never, stop); });
  stop = true;
  waiter.join();
  EXPECT_LT(now_ns(), never);
}

TEST(Clock, threads_have_ids_of_their_own) {
  uint32_t other = 0;
  std::thread([&] { other = os_thread_id(); }).join();
  EXPECT_NE(other, os_thread_id());
}

}  // namespace
}  // namespace kgate::worker
