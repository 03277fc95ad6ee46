// Faults planted in the record stream, so that a collector's health checks can be tested end to end. KGATE_VGPU_INJECT
// is a comma list, read when the first activity kind of a session is enabled; a word that is not known fails that call.
//
//   drop_records=N         the first N kernel records are lost and counted as dropped
//   lose_records=N         the first N kernel records are lost without being counted
//   zero_times[=N]         the first N (default: all) kernel records have start = end = 0
//   end_before_start[=N]   ... have end < start
//   kernel_without_launch[=N]   N (default 1) kernel records more, with a correlation id that no call has
//   other_subscriber       cuptiSubscribe finds another tool in its place
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "support/error.h"

namespace kgate::vgpu::cupti {

struct Injection {
  uint64_t drop_records = 0, lose_records = 0, zero_times = 0, end_before_start = 0, kernel_without_launch = 0;
  bool other_subscriber = false;
};

Result<Injection> parse_injection(std::string_view text);
Result<Injection> read_injection();  // of the environment

}  // namespace kgate::vgpu::cupti
