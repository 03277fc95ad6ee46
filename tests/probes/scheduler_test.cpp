// Time off the CPU and forks, as the probes tell them.
#include <sched.h>
#include <sys/prctl.h>

#include <chrono>
#include <set>
#include <thread>

#include "probes/host_event.h"
#include "target.h"

namespace kgate {
namespace {

std::vector<HostEvent> of(HostProbes& probes, HostEventKind kind) {
  std::vector<HostEvent> events;
  for (const HostEvent& event : probes.take())
    if (event.kind == kind) events.push_back(event);
  return events;
}

// On the first CPU that it may use, as its rival is.
void stay_on_one_cpu() {
  cpu_set_t allowed, one;
  CPU_ZERO(&one);
  sched_getaffinity(0, sizeof allowed, &allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
}

void spin(std::chrono::milliseconds time) {
  for (auto end = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < end;) {
  }
}

TEST(Scheduler, sleep_is_time_off_the_cpu) {
  NEED_EBPF();
  Target target(KGATE_FAKE_DRIVER, [](void*) { usleep(20'000); });
  auto probes = HostProbes::attach(target.pid(), KGATE_FAKE_DRIVER);
  ASSERT_TRUE(probes) << probes.failure().what;
  target.run();
  bool slept = false;
  for (const HostEvent& event : of(**probes, HostEventKind::off_cpu)) {
    if (event.thread != static_cast<uint32_t>(target.pid())) continue;
    EXPECT_LE(event.run_queue_ns, event.end - event.begin);
    slept |= event.state == 1 && event.end - event.begin >= 20'000'000;
  }
  EXPECT_TRUE(slept);
}

TEST(Scheduler, preempted_thread_was_runnable_all_the_time_it_was_away) {
  NEED_EBPF();
  Target target(KGATE_FAKE_DRIVER, [](void*) { stay_on_one_cpu(), spin(std::chrono::milliseconds(100)); });
  Target rival(KGATE_FAKE_DRIVER, [](void*) { stay_on_one_cpu(), spin(std::chrono::milliseconds(100)); });
  auto probes = HostProbes::attach(target.pid(), KGATE_FAKE_DRIVER);
  ASSERT_TRUE(probes) << probes.failure().what;
  std::thread other([&] { rival.run(); });
  target.run();
  other.join();
  uint64_t preempted = 0;
  for (const HostEvent& event : of(**probes, HostEventKind::off_cpu)) {
    if (event.state != 0) continue;
    ++preempted;
    EXPECT_EQ(event.run_queue_ns, event.end - event.begin);
  }
  EXPECT_GT(preempted, 0u);
}

// Batch scheduling does not preempt who runs, so the sleeper is woken long before its turn comes.
TEST(Scheduler, wait_for_the_cpu_after_the_wake_up_is_told_from_the_sleep) {
  NEED_EBPF();
  Target target(KGATE_FAKE_DRIVER, [](void*) {
    stay_on_one_cpu();
    sched_param none{};
    sched_setscheduler(0, SCHED_BATCH, &none);
    for (int i = 0; i < 20; ++i) usleep(2'000);
  });
  Target rival(KGATE_FAKE_DRIVER, [](void*) { stay_on_one_cpu(), spin(std::chrono::milliseconds(150)); });
  auto probes = HostProbes::attach(target.pid(), KGATE_FAKE_DRIVER);
  ASSERT_TRUE(probes) << probes.failure().what;
  std::thread other([&] { rival.run(); });
  target.run();
  other.join();
  uint64_t longest = 0;
  for (const HostEvent& event : of(**probes, HostEventKind::off_cpu)) {
    if (event.state != 1) continue;
    EXPECT_LE(event.run_queue_ns, event.end - event.begin);
    longest = std::max(longest, event.run_queue_ns);
  }
  EXPECT_GT(longest, 0u);
}

TEST(Scheduler, events_off_the_cpu_are_left_out_on_request) {
  NEED_EBPF();
  Target target(KGATE_FAKE_DRIVER, [](void* handle) { usleep(2'000), call(handle, "cuLaunchKernel", 1); });
  ProbeOptions options;
  options.scheduler = false;
  auto probes = HostProbes::attach(target.pid(), KGATE_FAKE_DRIVER, options);
  ASSERT_TRUE(probes) << probes.failure().what;
  target.run();
  auto events = (*probes)->take();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, HostEventKind::api);
}

TEST(Scheduler, forked_process_is_an_event_with_its_id_and_a_thread_is_none) {
  NEED_EBPF();
  int ids[2];
  ASSERT_EQ(pipe(ids), 0);
  Target target(KGATE_FAKE_DRIVER, [&](void*) {
    std::thread([] {}).join();
    for (int i = 0; i < 3; ++i) {
      pid_t child = i == 2 ? vfork() : fork();
      if (child == 0) _exit(0);
      (void)!write(ids[1], &child, sizeof child);
      waitpid(child, nullptr, 0);
    }
  });
  auto probes = HostProbes::attach(target.pid(), KGATE_FAKE_DRIVER);
  ASSERT_TRUE(probes) << probes.failure().what;
  target.run();
  auto forks = of(**probes, HostEventKind::fork);
  ASSERT_EQ(forks.size(), 3u);
  for (const HostEvent& event : forks) {
    pid_t child = 0;
    ASSERT_EQ(read(ids[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
    EXPECT_EQ(event.state, static_cast<uint32_t>(child));
    EXPECT_EQ(event.thread, static_cast<uint32_t>(target.pid()));
    EXPECT_EQ(event.begin, event.end);
    EXPECT_GT(event.begin, 0u);
  }
  close(ids[0]), close(ids[1]);
}

TEST(Scheduler, forks_and_spans_that_the_ring_has_no_room_for_are_counted_as_such) {
  NEED_EBPF();
  constexpr int kCalls = 400'000, kForks = 5, kSleeps = 7;
  auto symbols = trace::find_probe_symbols(KGATE_FAKE_DRIVER, trace::entry_points());
  ASSERT_TRUE(symbols);
  Target target(KGATE_FAKE_DRIVER, [](void* handle) {
    call(handle, "cuLaunchKernel", kCalls);
    for (int i = 0; i < kForks; ++i) {
      pid_t child = fork();
      if (child == 0) _exit(0);
      waitpid(child, nullptr, 0);
    }
    for (int i = 0; i < kSleeps; ++i) usleep(1000);
  });
  auto probes = watch(target, *symbols, ProbeMode::automatic);
  ASSERT_TRUE(probes) << probes.failure().what;
  target.run();  // nobody reads meanwhile
  std::vector<HostEvent> events;
  (*probes)->drain(&events);
  uint64_t calls = 0, forks = 0;
  for (const HostEvent& event : events) {
    calls += event.kind == HostEventKind::api;
    forks += event.kind == HostEventKind::fork;
  }
  EXPECT_EQ(calls + (*probes)->counter(KGATE_LOST_API), static_cast<uint64_t>(kCalls));
  EXPECT_EQ(forks, 0u);
  EXPECT_EQ((*probes)->counter(KGATE_LOST_FORK), static_cast<uint64_t>(kForks));
  EXPECT_GE((*probes)->counter(KGATE_LOST_SCHED), static_cast<uint64_t>(kSleeps));
}

}  // namespace
}  // namespace kgate
