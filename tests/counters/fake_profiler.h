// What the fake range profiler is told to do, and what it saw. Resolved with dlsym from the test.
#pragma once

#include <cstdint>

struct FakeProfiler {
  // script
  int fail_with = 0;        // CUptiResult of the call named in fail_call
  char fail_call[64] = {};  // "cuptiRangeProfilerStart"
  int supported = 3;        // CUPTI_PROFILER_CONFIGURATION_SUPPORTED
  uint64_t passes = 1;
  uint64_t dropped = 0;
  uint8_t all_passes_submitted = 1;
  bool lose_last_range = false;
  bool reverse_ranges = false;  // the counter data lists the last range first
  // what was seen
  char calls[8192] = {};  // names, each followed by a space
  uint32_t ranges = 0;
  bool freed_image_was_read = false;
};
