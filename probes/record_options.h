// What is to be recorded, as `kgate record` tells it to the recorder inside the application.
#pragma once

#include <cstdint>
#include <string>

#include "support/error.h"

namespace kgate::record {

inline constexpr const char* kRecordDir = "KGATE_RECORD_DIR";
inline constexpr const char* kRecordOptions = "KGATE_RECORD_OPTIONS";

struct Options {
  uint64_t from_ns = 0;       // after the first launch; 0: from the first call that touches the device on
  uint64_t for_ns = 0;        // 0: to the end
  uint64_t requests = 0;      // 0: any number
  std::string request_range;  // NVTX range that is a request; empty: a request ends at a host sync after a launch
  std::string kernel;         // of no meaning here: the whole slice is recorded
  uint64_t max_bytes = uint64_t{4} << 30;
};

// One line of JSON; empty text: the defaults. Failure: not JSON, an unknown key, a value of another type.
Result<Options> parse_options(const std::string& text);

}  // namespace kgate::record
