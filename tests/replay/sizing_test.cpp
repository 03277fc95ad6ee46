#include "replay/sizing.h"

#include <gtest/gtest.h>

#include "sample.h"
#include "trace/wire.h"

namespace kgate {
namespace {

using namespace sample;

// Two threads; thread 0 has requests 0 and 2.
struct Case {
  Builder b;
  ReplayPlan plan;
  Case() {
    uint32_t launch = b.launch("add");
    for (uint32_t thread : {0u, 1u, 0u}) {
      b.request(thread);
      b.launch_and_sync(launch);
    }
    plan.mode = ReplayMode::timing;
    plan.arms = {arm("baseline", b)};
    plan.rounds = {{0, 0, 0}};
    plan.warmup_requests = 2;
    plan.measured_requests = 6;  // 0 1 2 0 1 2 0 1
    plan.trace = false;
  }
};

constexpr uint64_t kOne = sizeof(wire::RequestRecord) + sizeof(wire::LaunchRecord);

TEST(Sizing, a_thread_stages_its_own_requests_only) {
  Case c;
  EXPECT_EQ(stage_bytes(c.plan, c.b.w, 0, false), 5 * kOne);
  EXPECT_EQ(stage_bytes(c.plan, c.b.w, 1, false), 3 * kOne);
  EXPECT_EQ(stage_bytes(c.plan, c.b.w, 1, true), 3 * (kOne + sizeof(wire::VirtualCountersRecord)));
}

TEST(Sizing, the_arm_that_launches_more_decides) {
  Case c;
  c.plan.arms.push_back(arm("candidate", c.b, "add"));
  auto& items = c.plan.arms[1].replace[0];
  items = {items[0], items[0], items[0]};
  EXPECT_EQ(stage_bytes(c.plan, c.b.w, 1, false), 3 * (kOne + 2 * sizeof(wire::LaunchRecord)));
}

TEST(Sizing, records_grow_with_rounds_and_with_tracing) {
  Case c;
  uint64_t one = record_bytes(c.plan, c.b.w, false);
  c.plan.rounds.push_back({0, 1, 1});
  EXPECT_EQ(record_bytes(c.plan, c.b.w, false) - one, sizeof(wire::RoundRecord) + 8 * kOne);
  uint64_t untraced = record_bytes(c.plan, c.b.w, false);
  c.plan.trace = true;
  EXPECT_GT(record_bytes(c.plan, c.b.w, false), untraced + 2 * 8 * sizeof(wire::KernelRecord));
}

TEST(Sizing, a_round_is_planned_to_last_as_long_as_its_arrivals_and_gaps) {
  Case c;
  EXPECT_EQ(planned_round_ns(c.plan, c.b.w), 0u);
  c.b.w.calls[0].host_gap_ns = 1000;  // of request 0: replayed three times
  EXPECT_EQ(planned_round_ns(c.plan, c.b.w), 3000u);
  c.b.w.arrivals = Arrivals::external;
  c.b.w.requests[2].arrival_ns = 500;
  c.b.w.period_ns = 10'000;
  EXPECT_EQ(planned_round_ns(c.plan, c.b.w), 3000u + 500 + 2 * 10'000);
  c.plan.honour_arrivals = false;
  EXPECT_EQ(planned_round_ns(c.plan, c.b.w), 0u);
}

}  // namespace
}  // namespace kgate
