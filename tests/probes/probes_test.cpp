// Real eBPF on this machine's kernel; skipped, with the reason, where the rights or the kernel are not there.
#include "trace/probes.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <thread>

#include "probes/host_event.h"
#include "target.h"

namespace kgate {
namespace {

using trace::ProbeProcess;

TEST(Probes, support_is_measured_or_explained) {
  ProbeSupport support = probe_support();
  EXPECT_FALSE(support.detail.empty());
  EXPECT_TRUE(support.ok ? support.ns_per_hit > 0 : !support.hint.empty()) << support.detail;
  RecordProperty("detail", support.detail);
}

class Modes : public ::testing::TestWithParam<ProbeMode> {};

TEST_P(Modes, every_call_is_hit_once_and_has_a_begin_and_an_end) {
  NEED_EBPF();
  auto symbols = trace::find_probe_symbols(KGATE_FAKE_DRIVER, trace::entry_points());
  ASSERT_TRUE(symbols);
  Target target(KGATE_FAKE_DRIVER, [](void* handle) {
    call(handle, "cuLaunchKernel", 1000);
    call(handle, "cuLaunchKernelEx", 100);
    call(handle, "cuGraphLaunch", 10);      // calls cuLaunchKernel inside
    call(handle, "cuEventSynchronize", 5);  // not probed
    call(handle, "cuStreamSynchronize", 20);
  });
  auto program = watch(target, *symbols, GetParam());
  if (!program) GTEST_SKIP() << program.failure().what;
  target.run();
  std::vector<HostEvent> events;
  (*program)->drain(&events);
  std::map<std::string, uint64_t> seen;
  for (const HostEvent& event : events) {
    if (event.kind != HostEventKind::api) continue;
    EXPECT_LT(event.begin, event.end);
    EXPECT_EQ(event.thread, static_cast<uint32_t>(target.pid()));
    ++seen[symbols->at(event.symbol).name];
    bool sleeps = symbols->at(event.symbol).name == "cuStreamSynchronize";
    EXPECT_GE(event.end - event.begin, sleeps ? 2'000'000u : 0u);
  }
  EXPECT_EQ(seen["cuLaunchKernel"], 1010u);
  EXPECT_EQ(seen["cuLaunchKernelEx"], 100u);
  EXPECT_EQ(seen["cuGraphLaunch"], 10u);
  EXPECT_EQ(seen["cuStreamSynchronize"], 20u);
  EXPECT_EQ(seen["cuEventSynchronize"], 0u);
  for (uint32_t i = 0; i < symbols->size(); ++i)
    EXPECT_EQ((*program)->hits(i), seen[symbols->at(i).name]) << symbols->at(i).name;
  for (uint32_t i = 0; i < KGATE_COUNTERS; ++i) EXPECT_EQ((*program)->counter(i), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    All, Modes, ::testing::Values(ProbeMode::session, ProbeMode::multi, ProbeMode::perf), [](const auto& info) {
      return std::string(std::array{"automatic", "session", "multi", "perf"}[static_cast<size_t>(info.param)]);
    });

TEST(Probes, every_thread_of_the_process_is_seen_and_no_other_process) {
  NEED_EBPF();
  auto work = [](void* handle) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { call(handle, "cuLaunchKernel", 500); });
    for (auto& thread : threads) thread.join();
  };
  Target target(KGATE_FAKE_DRIVER, work), other(KGATE_FAKE_DRIVER, work);
  auto probes = HostProbes::attach(target.pid(), KGATE_FAKE_DRIVER);
  ASSERT_TRUE(probes) << probes.failure().what;
  other.run();
  target.run();
  std::set<uint32_t> threads;
  size_t calls = 0;
  for (const HostEvent& event : (*probes)->take())
    if (event.kind == HostEventKind::api) threads.insert(event.thread), ++calls;
  EXPECT_EQ(calls, 2000u);
  EXPECT_EQ(threads.size(), 4u);
  EXPECT_EQ((*probes)->hits(ProbeSymbol::Use::launch), 2000u);
  EXPECT_EQ((*probes)->hits(ProbeSymbol::Use::sync), 0u);
}

TEST(Probes, events_come_once_and_the_rest_with_the_next_take) {
  NEED_EBPF();
  Target target(KGATE_FAKE_DRIVER, [](void* handle) { call(handle, "cuLaunchKernel", 300); });
  auto probes = HostProbes::attach(target.pid(), KGATE_FAKE_DRIVER);
  ASSERT_TRUE(probes);
  target.run();
  auto count = [&] {
    size_t n = 0;
    for (const HostEvent& event : (*probes)->take()) n += event.kind == HostEventKind::api;
    return n;
  };
  EXPECT_EQ(count(), 300u);
  EXPECT_EQ(count(), 0u);
}

TEST(Probes, what_the_ring_has_no_room_for_is_counted) {
  NEED_EBPF();
  constexpr uint64_t kCalls = 400'000;  // 48 bytes each with the ring's header: more than 16 MiB
  auto symbols = trace::find_probe_symbols(KGATE_FAKE_DRIVER, trace::entry_points());
  Target target(KGATE_FAKE_DRIVER, [](void* handle) { call(handle, "cuLaunchKernel", kCalls); });
  auto program = watch(target, *symbols, ProbeMode::automatic);
  ASSERT_TRUE(program);
  target.run();  // nobody reads meanwhile
  std::vector<HostEvent> events;
  (*program)->drain(&events);
  uint64_t calls = 0;
  for (const HostEvent& event : events) calls += event.kind == HostEventKind::api;
  EXPECT_GT((*program)->counter(0), 0u);
  EXPECT_EQ(calls + (*program)->counter(0), kCalls);
}

TEST(Probes, library_without_entry_points_is_refused) {
  auto probes = HostProbes::attach(getpid(), KGATE_NO_DRIVER);
  ASSERT_FALSE(probes);
  EXPECT_NE(probes.failure().what.find("no launch entry point"), std::string::npos);
}

TEST(Probes, library_that_can_only_be_single_stepped_is_refused) {
  auto probes = HostProbes::attach(getpid(), KGATE_SLOW_DRIVER);
  ASSERT_FALSE(probes);
  EXPECT_NE(probes.failure().what.find("single-steps"), std::string::npos);
}

TEST(Probes, library_is_found_by_its_name_in_the_process_that_loaded_it) {
  Target target(KGATE_FAKE_DRIVER, [](void*) {});
  std::string path = KGATE_FAKE_DRIVER, name = path.substr(path.rfind('/') + 1);
  auto file = trace::library_file(target.pid(), name + ".1");  // a version that is a link to the file
  ASSERT_TRUE(file) << file.failure().what;
  EXPECT_EQ(*file, path);
  EXPECT_FALSE(trace::library_file(target.pid(), "libcuda.so.1"));
  EXPECT_EQ(*trace::library_file(target.pid(), "/a/path.so"), "/a/path.so");
}

TEST(Probes, process_that_is_gone_is_refused) {
  pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(HostProbes::attach(child, KGATE_FAKE_DRIVER));
  EXPECT_FALSE(HostProbes::attach(0, KGATE_FAKE_DRIVER));
  EXPECT_FALSE(HostProbes::attach(-5, KGATE_FAKE_DRIVER));
}

}  // namespace
}  // namespace kgate
