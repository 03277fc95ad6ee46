// The one clock of a run, and waiting for a moment on it.
#pragma once

#include <atomic>
#include <cstdint>

namespace kgate::worker {

uint64_t now_ns();  // CLOCK_MONOTONIC
uint32_t os_thread_id();

// Sleeps until shortly before `due`, then spins: a sleep alone wakes up to tens of microseconds late. Returns at once
// when `due` has passed, and early when `stop` is set.
void wait_until(uint64_t due, const std::atomic<bool>& stop);

// Asks the kernel for precise sleeps in this thread (the default rounds them up by 50 us).
void sharpen_sleeps();

void relax();  // one turn of a spinning loop

}  // namespace kgate::worker
