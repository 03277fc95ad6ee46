// KGATE_VGPU_INJECT: see the header.
#include "vgpu/cupti_inject.h"

#include <charconv>
#include <cstdlib>
#include <string>

#include "support/text.h"

namespace kgate::vgpu::cupti {

namespace {

struct Word {
  std::string_view name;
  uint64_t Injection::*count;
  std::optional<uint64_t> fallback;  // without =N; none: N is required
};

constexpr Word kWords[] = {
    {"drop_records", &Injection::drop_records, std::nullopt},
    {"lose_records", &Injection::lose_records, std::nullopt},
    {"zero_times", &Injection::zero_times, UINT64_MAX},
    {"end_before_start", &Injection::end_before_start, UINT64_MAX},
    {"kernel_without_launch", &Injection::kernel_without_launch, 1},
};

bool apply(std::string_view item, Injection& injection) {
  if (item == "other_subscriber") {
    injection.other_subscriber = true;
    return true;
  }
  std::string_view name = item.substr(0, item.find('='));
  for (const Word& word : kWords) {
    if (word.name != name) continue;
    uint64_t count = 0;
    if (name.size() == item.size()) {
      if (!word.fallback) return false;
      count = *word.fallback;
    } else {
      std::string_view digits = item.substr(name.size() + 1);
      auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
      if (error != std::errc{} || end != digits.data() + digits.size()) return false;
    }
    injection.*word.count = count;
    return true;
  }
  return false;
}

}  // namespace

Result<Injection> parse_injection(std::string_view text) {
  Injection injection;
  while (!text.empty()) {
    std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    if (!apply(trim(item), injection)) {
      return Failure{"cannot inject '" + sanitize(item, 60) + "'", "KGATE_VGPU_INJECT",
                     "drop_records=N, lose_records=N, zero_times, end_before_start, kernel_without_launch"};
    }
  }
  return injection;
}

Result<Injection> read_injection() {
  const char* text = std::getenv("KGATE_VGPU_INJECT");
  return parse_injection(text != nullptr ? text : "");
}

}  // namespace kgate::vgpu::cupti
