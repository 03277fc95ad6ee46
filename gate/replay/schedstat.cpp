// schedstat holds three numbers: ns on a CPU, ns runnable but waiting, time slices
// (Documentation/scheduler/sched-stats.rst).

#include "replay/schedstat.h"

#include <charconv>
#include <ctime>
#include <filesystem>
#include <fstream>

namespace kgate {

namespace {
uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}
}  // namespace

std::vector<HostEvent> SchedStat::sample() {
  std::vector<HostEvent> events;
  uint64_t now = monotonic_ns();
  std::error_code error;
  std::filesystem::path folder = "/proc/" + std::to_string(pid_) + "/task";
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    uint32_t thread = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), thread).ec != std::errc{}) continue;
    uint64_t ran = 0, waited = 0;
    if (!(std::ifstream(entry.path() / "schedstat") >> ran >> waited)) continue;
    auto [known, is_new] = waited_.try_emplace(thread, waited);
    if (last_time_ != 0 && waited >= known->second) {
      HostEvent event{};
      event.kind = HostEventKind::off_cpu;
      event.thread = thread;
      event.begin = last_time_;
      event.end = now;
      event.state = kUnknownState;
      event.run_queue_ns = is_new ? 0 : waited - known->second;
      events.push_back(event);
    }
    known->second = waited;
  }
  last_time_ = now;
  return events;
}

}  // namespace kgate
