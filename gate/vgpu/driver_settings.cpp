// KGATE_VGPU_* read strictly: a value that cannot be meant fails cuInit rather than being replaced by a default.
#include "vgpu/driver_settings.h"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "support/text.h"

namespace kgate::vgpu {

namespace {

std::optional<uint64_t> parse_quantity(std::string_view text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  unsigned shift = unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : 0;
  if (shift == 0 && !unit.empty()) return std::nullopt;
  if (value > (UINT64_MAX >> shift)) return std::nullopt;
  return value << shift;
}

Result<uint64_t> read_quantity(const char* name, uint64_t fallback, uint64_t minimum) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return fallback;
  std::optional<uint64_t> value = parse_quantity(text);
  if (!value || *value < minimum) {
    return Failure{"'" + sanitize(text, 40) + "' is no positive count", name, "give digits, optionally with K, M or G"};
  }
  return *value;
}

}  // namespace

Result<Settings> read_settings() {
  Settings settings;
  auto memory = read_quantity("KGATE_VGPU_MEMORY", settings.memory, 1);
  if (!memory) return memory.failure();
  auto budget = read_quantity("KGATE_VGPU_BUDGET", settings.budget, 1);
  if (!budget) return budget.failure();
  settings.memory = *memory;
  settings.budget = *budget;
  return settings;
}

}  // namespace kgate::vgpu
