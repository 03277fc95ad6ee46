// Text that people read and write: quantities with units, did-you-mean, globs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kgate {

// The nearest of `names` by edit distance, if it is near enough to be a slip of the hand.
std::optional<std::string> did_you_mean(std::string_view name, const std::vector<std::string>& names);

bool glob_match(std::string_view pattern, std::string_view text);  // '*' and '?'

// One formatter for all outputs: "812 ns", "3.20 us", "1.50 ms", "2.00 s".
std::string format_ns(double ns);
std::string format_bytes(double bytes);    // "512 B", "1.50 KiB", ...
std::string format_count(double count);    // "812", "12.3 k", "4.56 M"
std::string format_percent(double fraction);  // 0.0312 -> "+3.12 %"

std::vector<std::string_view> split_lines(std::string_view text);
std::string_view trim(std::string_view text);

// Printable, one line, at most `max` bytes: untrusted text (kernel names, compiler logs) in messages.
std::string sanitize(std::string_view text, size_t max = 400);

}  // namespace kgate
