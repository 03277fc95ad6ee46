#include "support/float_formats.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kgate {

namespace {

// A format with `kExponent` exponent bits and `kMantissa` mantissa bits. Works on doubles: every narrow value is exact
// there, and rounding to a subnormal or normal grid is one scaled nearbyint (the default mode is nearest-even).
template <int kExponent, int kMantissa>
struct Format {
  static constexpr int bias = (1 << (kExponent - 1)) - 1;
  static constexpr int min_exponent = 1 - bias;
  static constexpr uint32_t exponent_mask = (1u << kExponent) - 1;
  static constexpr uint32_t mantissa_mask = (1u << kMantissa) - 1;

  static double decode(uint32_t bits) {
    uint32_t exponent = (bits >> kMantissa) & exponent_mask, mantissa = bits & mantissa_mask;
    double sign = (bits >> (kExponent + kMantissa)) & 1 ? -1.0 : 1.0;
    if (exponent == 0) return sign * std::ldexp(double(mantissa), min_exponent - kMantissa);
    return sign * std::ldexp(double(mantissa | (1u << kMantissa)), int(exponent) - bias - kMantissa);
  }

  // Magnitude bits of a finite |value|; may come out as the first encoding past the largest exponent.
  static uint32_t encode_magnitude(double value) {
    int exponent = value == 0 ? min_exponent : std::max(std::ilogb(value), min_exponent);
    double steps = std::nearbyint(std::ldexp(value, kMantissa - exponent));  // in units of the last place
    uint32_t units = static_cast<uint32_t>(steps);
    // units >= 2^kMantissa means a normal number; the carry into the exponent is the addition itself.
    return (uint32_t(exponent - min_exponent) << kMantissa) + units;
  }
};

using Half = Format<5, 10>;
using Brain = Format<8, 7>;
using E4m3 = Format<4, 3>;
using E5m2 = Format<5, 2>;

template <typename F>
uint32_t encode_ieee(double value, int bits) {
  uint32_t sign = std::signbit(value) ? 1u << (bits - 1) : 0;
  uint32_t infinity = (F::exponent_mask) * (F::mantissa_mask + 1);
  if (std::isnan(value)) return sign | infinity | F::mantissa_mask;
  if (std::isinf(value)) return sign | infinity;
  double magnitude = std::fabs(value);
  if (magnitude > 1e300) return sign | infinity;
  uint32_t encoded = F::encode_magnitude(magnitude);
  return sign | (encoded > infinity ? infinity : encoded);
}

template <typename F>
double decode_ieee(uint32_t bits) {
  uint32_t infinity = F::exponent_mask * (F::mantissa_mask + 1);
  uint32_t magnitude = bits & (infinity | F::mantissa_mask);
  bool negative = bits & ((infinity | F::mantissa_mask) + 1);
  if (magnitude > infinity) return std::numeric_limits<double>::quiet_NaN();
  if (magnitude == infinity) return negative ? -INFINITY : INFINITY;
  return F::decode(bits);
}

}  // namespace

float f16_to_float(uint16_t bits) { return static_cast<float>(decode_ieee<Half>(bits)); }
uint16_t double_to_f16(double value) { return static_cast<uint16_t>(encode_ieee<Half>(value, 16)); }
uint16_t float_to_f16(float value) { return double_to_f16(value); }

uint16_t double_to_bf16(double value) { return static_cast<uint16_t>(encode_ieee<Brain>(value, 16)); }
uint16_t float_to_bf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float e4m3_to_float(uint8_t bits) {
  if ((bits & 0x7f) == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  return static_cast<float>(E4m3::decode(bits));
}

uint8_t float_to_e4m3(float value) {
  uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return sign | 0x7f;
  double magnitude = std::fabs(double(value));
  if (magnitude >= 448) return sign | 0x7e;
  uint32_t encoded = E4m3::encode_magnitude(magnitude);
  return sign | static_cast<uint8_t>(encoded > 0x7e ? 0x7e : encoded);
}

float e5m2_to_float(uint8_t bits) { return static_cast<float>(decode_ieee<E5m2>(bits)); }
uint8_t float_to_e5m2(float value) { return static_cast<uint8_t>(encode_ieee<E5m2>(value, 8)); }

}  // namespace kgate
