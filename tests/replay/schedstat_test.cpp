// The host side of tier T2.

#include "replay/schedstat.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kgate {
namespace {

TEST(SchedStat, the_first_sample_only_sets_the_start) { EXPECT_TRUE(SchedStat(::getpid()).sample().empty()); }

TEST(SchedStat, every_thread_has_a_span_that_says_that_no_switch_was_seen) {
  SchedStat stat(::getpid());
  (void)stat.sample();
  ::usleep(2000);
  auto events = stat.sample();
  ASSERT_FALSE(events.empty());
  for (const auto& event : events) {
    EXPECT_EQ(event.kind, HostEventKind::off_cpu);
    EXPECT_EQ(event.state, kUnknownState);
    EXPECT_GE(event.end - event.begin, 2'000'000u);
    EXPECT_LE(event.run_queue_ns, event.end - event.begin + 10'000'000);
  }
}

TEST(SchedStat, a_process_that_is_gone_gives_nothing) {
  pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  SchedStat stat(child);
  EXPECT_TRUE(stat.sample().empty());
  EXPECT_TRUE(stat.sample().empty());
}

}  // namespace
}  // namespace kgate
