#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "sample.h"

namespace kgate {
namespace {

using namespace sample;
using wire::Kind;
using wire::LaunchRecord;
using wire::Phase;
using wire::RequestRecord;
using wire::RoundRecord;

// Three requests of one or two launches and a sync each.
Builder three_requests() {
  Builder b;
  uint32_t add = b.launch("add"), step = b.launch("step");
  b.request();
  b.launch_and_sync(add);
  b.request();
  b.call(CallKind::launch).launch = step;
  b.launch_and_sync(add);
  b.request();
  b.launch_and_sync(step);
  return b;
}

Replay timing(const Builder& b, uint32_t pairs) {
  Replay run(b.w);
  run.plan.mode = ReplayMode::timing;
  run.plan.arms = {arm("baseline", b), arm("candidate", b, "sub")};
  run.plan.rounds = abba_rounds(0, pairs, 10, 1);
  run.plan.warmup_requests = 4;
  run.plan.measured_requests = 7;
  return run;
}

TEST(TimingRun, leaves_exactly_the_planned_records) {
  Builder b = three_requests();
  Replay run = timing(b, 2);
  uint32_t last_progress = 0;
  run.options.on_progress = [&](uint32_t done) { EXPECT_EQ(done, ++last_progress); };
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  EXPECT_EQ(last_progress, 4u);
  EXPECT_EQ(lost_records(outcome), 0u);

  auto rounds = records<RoundRecord>(outcome, Kind::round);
  ASSERT_EQ(rounds.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(rounds[i].head.round, run.plan.rounds[i].round);
    EXPECT_EQ(rounds[i].arm, run.plan.rounds[i].arm);
    EXPECT_EQ(rounds[i].pair, run.plan.rounds[i].pair);
    EXPECT_LT(rounds[i].begin, rounds[i].end);
    if (i > 0) {
      EXPECT_GT(rounds[i].begin, rounds[i - 1].end);
    }
  }

  // 11 requests a round: 0 1 2 0 | 1 2 0 1 2 0 1, of 1, 2 and 1 launches.
  auto requests = records<RequestRecord>(outcome, Kind::request);
  ASSERT_EQ(requests.size(), 44u);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(requests[i].sequence, i % 11);
    EXPECT_EQ(requests[i].request, i % 11 % 3);
    EXPECT_EQ(requests[i].phase, i % 11 < 4 ? Phase::warmup : Phase::measured);
    EXPECT_EQ(requests[i].head.round, run.plan.rounds[i / 11].round);
    EXPECT_EQ(requests[i].arrival, 0u);
    EXPECT_LE(requests[i].due, requests[i].issue);
    EXPECT_LT(requests[i].issue, requests[i].end);
    EXPECT_GE(requests[i].lag, requests[i].issue - requests[i].due);
    EXPECT_GE(requests[i].issue, rounds[i / 11].begin);
    EXPECT_LE(requests[i].end, rounds[i / 11].end);
  }
  auto launches = records<LaunchRecord>(outcome, Kind::launch);
  EXPECT_EQ(launches.size(), 4u * (4 * 1 + 4 * 2 + 3 * 1));
  auto counters = records<wire::VirtualCountersRecord>(outcome, Kind::virtual_counters);
  ASSERT_EQ(counters.size(), launches.size());
  for (size_t i = 0; i < launches.size(); ++i) {
    const LaunchRecord& l = launches[i];
    EXPECT_EQ(counters[i].launch_begin, l.begin);
    EXPECT_EQ(counters[i].thread, l.thread);
    EXPECT_GT(counters[i].warp_instructions, 0u);
    EXPECT_EQ(l.launch, b.w.calls[l.call].launch);
    uint32_t arm = run.plan.rounds[l.head.round - 10].arm;
    EXPECT_EQ(l.replaced, arm == 1 && l.launch == 0) << i;
  }
}

TEST(TimingRun, a_single_round_begins_with_the_buffers_content_too) {
  Builder b = three_requests();
  b.w.buffers[0].content = ContentBytes{bytes_of({1, 2, 3})};  // no constant byte: restoring it needs a copy
  Replay run = timing(b, 1);
  run.plan.rounds.resize(1);
  auto outcome = run();
  EXPECT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
}

TEST(TimingRun, counts_of_equal_launches_are_equal_in_every_round) {
  Builder b = three_requests();
  Replay run = timing(b, 1);
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  auto launches = records<LaunchRecord>(outcome, Kind::launch);
  auto counters = records<wire::VirtualCountersRecord>(outcome, Kind::virtual_counters);
  ASSERT_EQ(counters.size(), launches.size());
  std::map<std::pair<uint32_t, int>, uint64_t> seen;
  for (size_t i = 0; i < launches.size(); ++i) {
    auto [at, fresh] = seen.try_emplace({launches[i].launch, launches[i].replaced}, counters[i].warp_instructions);
    EXPECT_EQ(at->second, counters[i].warp_instructions);
  }
  EXPECT_EQ(seen.size(), 3u);
}

TEST(TimingRun, requests_keep_their_external_arrivals) {
  Builder b;
  uint32_t add = b.launch("add");
  for (uint64_t arrival : {0, 3'000'000, 4'000'000}) {
    b.request(0, arrival);
    b.launch_and_sync(add);
  }
  b.w.arrivals = Arrivals::external;
  b.w.period_ns = 10'000'000;
  Replay run = timing(b, 1);
  run.plan.honour_arrivals = true;
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  auto requests = records<RequestRecord>(outcome, Kind::request);
  ASSERT_EQ(requests.size(), 22u);
  const uint64_t arrivals[] = {0, 3'000'000, 4'000'000};
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto& first = requests[i / 11 * 11];
    EXPECT_EQ(requests[i].arrival, first.arrival + arrivals[i % 11 % 3] + i % 11 / 3 * 10'000'000);
    EXPECT_GE(requests[i].due, requests[i].arrival);
    EXPECT_GE(requests[i].issue, requests[i].due);
  }
}

TEST(TimingRun, host_gaps_are_kept_and_pass_over_a_launch_that_is_left_out) {
  Builder b;
  uint32_t add = b.launch("add"), step = b.launch("step");
  b.request();
  Call& first = b.call(CallKind::launch);
  first.launch = add, first.host_gap_ns = 2'000'000;
  Call& second = b.call(CallKind::launch);
  second.launch = step, second.host_gap_ns = 3'000'000;
  Replay run = timing(b, 1);
  run.plan.arms[1].replace[0].clear();
  run.plan.honour_arrivals = true;
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  auto requests = records<RequestRecord>(outcome, Kind::request);
  ASSERT_EQ(requests.size(), 22u);
  for (size_t i = 1; i < requests.size(); ++i) {
    if (i == 11) continue;
    bool without = run.plan.rounds[i / 11].arm == 1;
    EXPECT_EQ(requests[i].due, requests[i - 1].end + (without ? 5'000'000 : 2'000'000)) << i;
  }
}

// Thread 1 waits for the launch of thread 0 in each pass over the workload; thread 0 for nobody.
TEST(TimingRun, a_call_follows_the_calls_of_other_threads_that_it_comes_after) {
  Builder b;
  uint32_t add = b.launch("add"), step = b.launch("step");
  b.request(0);
  b.call(CallKind::launch).launch = add;
  b.request(1);
  b.call(CallKind::launch).launch = step;
  b.w.calls[1].after = {0};
  b.w.calls[1].stream = 0;
  b.request(0);
  b.call(CallKind::context_sync);
  Replay run = timing(b, 3);
  run.plan.warmup_requests = 50;
  run.plan.measured_requests = 101;  // the last pass is cut: request 0 is replayed once more than request 1
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  std::map<std::pair<uint32_t, uint32_t>, LaunchRecord> by_sequence;
  for (const auto& l : records<LaunchRecord>(outcome, Kind::launch)) by_sequence[{l.head.round, l.sequence}] = l;
  EXPECT_EQ(by_sequence.size(), 6u * (51 + 50));
  size_t followed = 0;
  for (const auto& [key, record] : by_sequence) {
    if (record.request != 1) continue;
    const auto& before = by_sequence.at({key.first, key.second - 1});
    EXPECT_GE(record.begin, before.end);
    EXPECT_NE(record.thread, before.thread);
    ++followed;
  }
  EXPECT_EQ(followed, 6u * 50);
}

TEST(TimingRun, a_wait_whose_other_side_is_cut_off_by_the_end_of_the_round_does_not_hang) {
  Builder b;
  uint32_t add = b.launch("add");
  b.request(0);
  b.call(CallKind::launch).launch = add;
  b.request(1);
  b.call(CallKind::launch).launch = add;
  b.w.calls[1].after = {0};
  for (uint32_t measured : {1u, 2u, 3u, 4u}) {
    Replay run = timing(b, 1);
    run.plan.warmup_requests = 0;
    run.plan.measured_requests = measured;
    auto outcome = run();
    ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
    EXPECT_EQ(records<RequestRecord>(outcome, Kind::request).size(), 2 * measured);
  }
}

TEST(TimingRun, a_fault_in_one_thread_ends_the_others) {
  Builder b;
  uint32_t add = b.launch("add");
  uint32_t far = b.launch("far");
  b.request(0);
  b.call(CallKind::launch).launch = add;
  b.request(1);
  b.call(CallKind::launch).launch = far;
  b.request(0);
  b.call(CallKind::launch).launch = add;
  b.w.calls[2].after = {1};
  Replay run = timing(b, 1);
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::fault) << outcome.detail;
  EXPECT_EQ(outcome.fault->request, 1u);
  EXPECT_EQ(outcome.fault->launch, far);
  EXPECT_EQ(outcome.fault->kind, "out of bounds");
}

TEST(TimingRun, a_worker_that_is_killed_is_a_crash_and_its_records_are_kept) {
  Builder b = three_requests();
  Replay run = timing(b, 6);
  auto pid_file = run.folder.path() / "pid", script = run.folder.path() / "worker.sh";
  std::ofstream(script) << "#!/bin/sh\necho $$ > " << pid_file.string() << "\nexec " << KGATE_BINARY_DIR
                        << "/bin/kgate-worker\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  ::setenv("KGATE_WORKER", script.c_str(), 1);
  run.options.on_progress = [&](uint32_t done) {
    if (done != 2) return;
    pid_t pid = 0;
    std::ifstream(pid_file) >> pid;
    ASSERT_GT(pid, 1);
    ::kill(pid, SIGKILL);
  };
  run.plan.measured_requests = 2000;
  auto outcome = run();
  ::unsetenv("KGATE_WORKER");
  ASSERT_EQ(outcome.end, WorkerEnd::crashed) << outcome.detail;
  EXPECT_NE(outcome.detail.find("SIGKILL"), std::string::npos) << outcome.detail;
  EXPECT_GE(records<RoundRecord>(outcome, Kind::round).size(), 2u);
  EXPECT_LT(records<RoundRecord>(outcome, Kind::round).size(), 12u);
}

TEST(TimingRun, a_plan_of_too_many_records_is_refused_with_a_hint) {
  Builder b = three_requests();
  Replay run = timing(b, 100);
  run.plan.measured_requests = 1'000'000;
  try {
    run();
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_FALSE(error.failure().hint.empty());
  }
}

TEST(TimingRun, the_collector_sees_every_kernel_of_every_round) {
  Builder b = three_requests();
  Replay run = timing(b, 1);
  run.plan.trace = true;
  run.options.collect_cupti = true;
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  ASSERT_TRUE(outcome.collector);
  EXPECT_EQ(outcome.collector->dropped, 0u);
  std::map<uint32_t, size_t> kernels;
  for (const auto& k : records<wire::KernelRecord>(outcome, Kind::kernel)) ++kernels[k.head.round];
  EXPECT_EQ(kernels[wire::kNoRound], 1u) << "the canary";
  EXPECT_EQ(kernels[10], 15u);
  EXPECT_EQ(kernels[11], 15u);
  EXPECT_EQ(lost_records(outcome), 0u);
}

TEST(TimingRun, probes_see_the_canary_and_every_launch) {
  if (!probe_support().ok) GTEST_SKIP() << probe_support().detail;
  Builder b = three_requests();
  Replay run = timing(b, 1);
  run.plan.trace = true;
  run.options.attach_probes = true;
  auto outcome = run();
  ASSERT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  ASSERT_EQ(outcome.probe_failure, "");
  EXPECT_TRUE(outcome.canary_ok);
  ASSERT_TRUE(outcome.probes);
  EXPECT_EQ(outcome.probes->lost_api, 0u);
  auto is_launch = [&](const HostEvent& e) {
    return e.kind == HostEventKind::api && outcome.symbols.at(e.symbol).use == ProbeSymbol::Use::launch;
  };
  EXPECT_EQ(std::count_if(outcome.host_events.begin(), outcome.host_events.end(), is_launch), 1 + 2 * 15);
}

}  // namespace
}  // namespace kgate
