// Numbers and quantities as kgate's files write them: decimal, finite, one way to write each, a unit where one is
// needed. A bare "5" for a margin has been read as a fraction by one tool and as percent by the next; here it is
// refused.
#pragma once

#include <cstdint>
#include <string_view>

#include "support/error.h"

namespace kgate {

// Each takes the whole text; the failure's `what` quotes it and `hint` says what to write instead.
Result<int64_t> parse_integer(std::string_view text);     // -?(0|[1-9][0-9]*), within int64
Result<double> parse_number(std::string_view text);       // as JSON writes numbers; finite
Result<double> parse_percent(std::string_view text);      // "5%" -> 0.05, not negative
Result<double> parse_duration_ns(std::string_view text);  // ns us ms s; "0"
Result<double> parse_bytes(std::string_view text);        // B KiB MiB GiB, whole; "0"
Result<double> parse_rate(std::string_view text);         // "2000/s", above 0

}  // namespace kgate
