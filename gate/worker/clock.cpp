#include "worker/clock.h"

#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace kgate::worker {

namespace {
constexpr uint64_t kSpin = 200'000;        // ns before the moment that are spent awake: a virtual CPU wakes 100 us late
constexpr uint64_t kLongest = 20'000'000;  // ns of one sleep: how late `stop` may be noticed
}  // namespace

uint64_t now_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint32_t os_thread_id() { return static_cast<uint32_t>(::gettid()); }

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void wait_until(uint64_t due, const std::atomic<bool>& stop) {
  for (uint64_t now = now_ns(); now < due; now = now_ns()) {
    if (stop.load(std::memory_order_relaxed)) return;
    if (due - now <= kSpin) {
      relax();
      continue;
    }
    uint64_t until = std::min(due - kSpin, now + kLongest);
    timespec moment{static_cast<time_t>(until / 1'000'000'000), static_cast<long>(until % 1'000'000'000)};
    ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, nullptr);
  }
}

void sharpen_sleeps() { ::prctl(PR_SET_TIMERSLACK, 1); }

}  // namespace kgate::worker
