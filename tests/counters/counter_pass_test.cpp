// The counters pass end to end in a worker: the virtual GPU executes, the fake profiler counts.
#include "replay/counter_pass.h"

#include <gtest/gtest.h>

#include "tests/replay/sample.h"

namespace kgate {
namespace {

using namespace sample;

// Two launch classes: `add` twice a request for two requests, `sub` once.
struct Sampled {
  Builder builder;
  uint32_t add, sub;
  Sampled() : add(builder.launch("add")), sub(builder.launch("sub")) {
    builder.request();
    builder.launch_and_sync(add);
    builder.launch_and_sync(add);
    builder.request();
    builder.launch_and_sync(add);
    builder.launch_and_sync(sub);
  }
};

std::unique_ptr<Replay> counters_run(const Sampled& sampled) {
  auto run = std::make_unique<Replay>(sampled.builder.w);
  run->plan.mode = ReplayMode::counters;
  run->plan.trace = false;
  run->plan.arms = {arm("baseline", sampled.builder), arm("candidate", sampled.builder, "sub")};
  run->plan.counter_launches = {sampled.add, sampled.sub};
  run->plan.counter_repeats = 2;
  run->plan.rounds.clear();
  for (uint32_t pair = 0; pair < trace::kCounterSets * 2; ++pair)
    for (uint32_t a = 0; a < 2; ++a) run->plan.rounds.push_back({a, pair, pair * 2 + a});
  run->options.attach_probes = false;
  run->options.cupti = KGATE_FAKE_PROFILER;
  return run;
}

TEST(CounterPass, every_round_holds_the_first_of_each_sampled_launch) {
  auto run = counters_run(Sampled());
  auto outcome = (*run)();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  auto rows = records<wire::HardwareCountersRecord>(outcome, wire::Kind::hardware_counters);
  ASSERT_EQ(rows.size(), run->plan.rounds.size() * 2);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].head.round, i / 2);
    EXPECT_EQ(rows[i].launch, i % 2);
    EXPECT_EQ(rows[i].set, rows[i].head.round / 4);
    EXPECT_EQ(rows[i].count, trace::counter_set(rows[i].set).size());
  }
  EXPECT_FALSE(outcome.collector) << "no activity records in a process that counts";
}

TEST(CounterPass, a_profiler_that_cannot_be_opened_is_a_fault_with_its_reason) {
  auto run = counters_run(Sampled());
  run->options.cupti.clear();  // the virtual GPU's own library, which has no profiler
  auto outcome = (*run)();
  ASSERT_EQ(outcome.end, WorkerEnd::fault);
  EXPECT_EQ(outcome.fault->name, "no counters");
  EXPECT_NE(outcome.fault->detail.find("range profiler"), std::string::npos) << outcome.fault->detail;
}

TEST(CounterPass, a_plan_without_launches_to_sample_is_refused) {
  auto run = counters_run(Sampled());
  run->plan.counter_launches.clear();
  EXPECT_FALSE(validate_plan(run->plan, run->workload));
  run->plan.counter_launches = {99};
  EXPECT_FALSE(validate_plan(run->plan, run->workload));
}

TEST(CounterPass, the_plan_survives_its_files) {
  auto run = counters_run(Sampled());
  TempDir folder;
  write_plan(run->plan, folder.path());
  auto back = read_plan(folder.path());
  ASSERT_TRUE(back) << back.failure().what;
  EXPECT_EQ(back->mode, ReplayMode::counters);
  EXPECT_EQ(back->counter_launches, run->plan.counter_launches);
  EXPECT_EQ(back->counter_repeats, 2u);
}

TEST(CounterPass, samples_one_launch_of_each_class_the_most_frequent_first) {
  Sampled sampled;
  uint32_t twin = sampled.builder.launch("sub");  // of the same class as `sub`, and never called
  EXPECT_EQ(counter_launches(sampled.builder.w, {sampled.sub, sampled.add, twin}),
            (std::vector<uint32_t>{sampled.add, sampled.sub}));
  EXPECT_TRUE(counter_launches(sampled.builder.w, {}).empty());
}

TEST(CounterPass, the_virtual_gpu_says_that_it_has_no_counters) {
  Sampled sampled;
  Comparison comparison;
  comparison.judged = {sampled.add};
  gpu::DeviceChoice device;
  device.kind = gpu::DeviceKind::virtual_gpu;
  CounterPass pass = run_counter_pass(comparison, sampled.builder.w, "unused.kgw", device);
  EXPECT_TRUE(pass.launches.empty());
  EXPECT_NE(pass.failure.find("virtual GPU has no hardware counters"), std::string::npos);
}

}  // namespace
}  // namespace kgate
