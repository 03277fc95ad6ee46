#include "contract/quantity.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <span>

#include "support/text.h"

namespace kgate {

namespace {

struct Unit {
  const char* name;
  double factor;
};
constexpr Unit kPercent[] = {{"%", 1}};
constexpr Unit kTimes[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
constexpr Unit kSizes[] = {{"B", 1}, {"KiB", 1024}, {"MiB", 1024.0 * 1024}, {"GiB", 1024.0 * 1024 * 1024}};
constexpr Unit kRates[] = {{"/s", 1}};

std::string quoted(std::string_view text) { return fmt::format("\"{}\"", sanitize(text, 60)); }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

size_t digits(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  return end - at;
}

// Length of the JSON number that `text` starts with; 0 if it starts with none.
size_t number_length(std::string_view text) {
  size_t at = text.starts_with('-') ? 1 : 0;
  size_t whole = digits(text, at);
  if (whole == 0 || (whole > 1 && text[at] == '0')) return 0;
  at += whole;
  if (at < text.size() && text[at] == '.') {
    size_t fraction = digits(text, at + 1);
    if (fraction == 0) return 0;
    at += 1 + fraction;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    size_t sign = at + 1 < text.size() && (text[at + 1] == '+' || text[at + 1] == '-') ? 1 : 0;
    size_t exponent = digits(text, at + 1 + sign);
    if (exponent > 0) at += 1 + sign + exponent;
  }
  return at;
}

// What another reader would take for a number, by the way it is written; nullopt for anything else.
std::optional<Failure> surprising_number(std::string_view text) {
  std::string_view body = text.substr(text.starts_with('-') || text.starts_with('+') ? 1 : 0);
  std::string lower;
  for (char c : body) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (lower == ".nan" || lower == "nan" || lower == ".inf" || lower == "inf" || lower == "infinity")
    return Failure{quoted(text) + " is not finite", {}, "write a finite number"};
  if (body.empty() || !(is_digit(body[0]) || (body[0] == '.' && body.size() > 1 && is_digit(body[1]))))
    return std::nullopt;
  if (text[0] == '+') return Failure{quoted(text) + " has a plus sign", {}, "write it without"};
  if (body[0] == '.')
    return Failure{quoted(text) + " has no digit before the point", {}, fmt::format("write 0{}", body)};
  if (lower.starts_with("0x") || lower.starts_with("0o") || lower.starts_with("0b"))
    return Failure{quoted(text) + " is not decimal", {}, "write the number in decimal"};
  if (body.size() > 1 && body[0] == '0' && is_digit(body[1])) {
    size_t zeros = std::min(body.find_first_not_of('0'), body.size() - 1);
    return Failure{quoted(text) + " starts with 0, which some readers take for octal",
                   {},
                   fmt::format("write {}", body.substr(zeros))};
  }
  if (body.find('_') != std::string_view::npos)
    return Failure{quoted(text) + " has an underscore", {}, "write the digits without"};
  return std::nullopt;
}

struct Split {
  double number = 0;
  std::string_view unit;
};

Result<Split> split_quantity(std::string_view text, const char* kind) {
  size_t length = number_length(text);
  if (length == 0) {
    if (auto surprise = surprising_number(text)) return *surprise;
    return Failure{fmt::format("{} is not a {}", quoted(text), kind), {}, {}};
  }
  Result<double> number = parse_number(text.substr(0, length));
  if (!number) return number.failure();
  std::string_view unit = text.substr(length);
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  return Split{*number, unit};
}

Result<double> parse_quantity(std::string_view text, const char* kind, std::span<const Unit> units, bool bare_zero) {
  Result<Split> split = split_quantity(text, kind);
  if (!split) {
    Failure failure = split.failure();
    if (failure.hint.empty()) failure.hint = fmt::format("write for example 5{}", units.front().name);
    return failure;
  }
  if (std::signbit(split->number)) return Failure{quoted(text) + " is negative", {}, "write 0 or more"};
  std::string all;
  for (const Unit& unit : units) {
    if (split->unit == unit.name) return split->number * unit.factor;
    all += fmt::format("{}{}", all.empty() ? "" : ", ", unit.name);
  }
  if (split->unit.empty()) {
    if (bare_zero && split->number == 0) return 0.0;
    std::string hint;
    for (const Unit& unit : units)
      if (hint.size() < 40) hint += fmt::format("{}{}{}", hint.empty() ? "write " : " or ", text, unit.name);
    return Failure{quoted(text) + " has no unit", {}, hint};
  }
  return Failure{fmt::format("{}: unknown unit \"{}\"", quoted(text), sanitize(split->unit, 20)),
                 {},
                 fmt::format("a {} ends in {}", kind, all)};
}

}  // namespace

Result<int64_t> parse_integer(std::string_view text) {
  if (auto surprise = surprising_number(text)) return *surprise;
  size_t sign = text.starts_with('-') ? 1 : 0;
  if (text.size() == sign || digits(text, sign) != text.size() - sign)
    return Failure{quoted(text) + " is not an integer", {}, {}};
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return Failure{quoted(text) + " does not fit 64 bits", {}, {}};
  return value;
}

Result<double> parse_number(std::string_view text) {
  if (auto surprise = surprising_number(text)) return *surprise;
  if (text.empty() || number_length(text) != text.size()) return Failure{quoted(text) + " is not a number", {}, {}};
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool zero = text.find_first_of("123456789") >= std::min(text.find_first_of("eE"), text.size());
  if (error != std::errc{} || !std::isfinite(value) || (value == 0 && !zero))
    return Failure{quoted(text) + " does not fit a double", {}, "write a finite number"};
  return value;
}

Result<double> parse_percent(std::string_view text) {
  Result<double> percent = parse_quantity(text, "percentage", kPercent, false);
  if (!percent) return percent;
  return *percent / 100;  // not times 0.01: 7% is the double nearest to 0.07
}
Result<double> parse_duration_ns(std::string_view text) { return parse_quantity(text, "duration", kTimes, true); }

Result<double> parse_bytes(std::string_view text) {
  Result<double> bytes = parse_quantity(text, "size", kSizes, true);
  if (bytes && *bytes != std::floor(*bytes)) return Failure{quoted(text) + " is not a whole number of bytes", {}, {}};
  return bytes;
}

Result<double> parse_rate(std::string_view text) {
  Result<double> rate = parse_quantity(text, "rate", kRates, false);
  if (rate && *rate <= 0) return Failure{quoted(text) + " is not above 0", {}, {}};
  return rate;
}

}  // namespace kgate
