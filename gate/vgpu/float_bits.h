// Bits of floating-point values, for handlers: flushing, canonical NaN, narrow formats, directed rounding. All
// branch-free where a lane loop should vectorise. Included inside the namespace of each handler variant; templates and
// inline functions here must not leak out of it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

#include "vgpu/form.h"

namespace kgate::vgpu::KGATE_ISA {

inline float bits_f32(uint32_t v) { return std::bit_cast<float>(v); }
inline uint32_t f32_bits(float v) { return std::bit_cast<uint32_t>(v); }

// Subnormals become zero of the same sign.
inline float flush(float v) {
  uint32_t bits = f32_bits(v);
  return (bits & 0x7f800000) == 0 ? bits_f32(bits & 0x80000000) : v;
}
inline double flush(double v) { return v; }  // .ftz does not exist for f64

// Any NaN that f32 arithmetic yields is 0x7fffffff on the hardware.
inline float canonical(float v) { return v == v ? v : bits_f32(0x7fffffff); }
inline double canonical(double v) { return v; }

template <class T>
inline T saturate(T v) {
  return v >= T(0) ? (v <= T(1) ? v + T(0) : T(1)) : T(0);
}  // NaN → 0, -0 → +0

inline float half_to_float(uint16_t h) {
  uint32_t magnitude = uint32_t(h & 0x7fff) << 13;
  float scaled = bits_f32(magnitude) * bits_f32(0x77800000);  // × 2^112: normal and subnormal alike
  uint32_t bits = (h & 0x7c00) == 0x7c00 ? magnitude | 0x7f800000 : f32_bits(scaled);
  return bits_f32(bits | uint32_t(h & 0x8000) << 16);
}

inline uint16_t float_to_half(float v) {
  uint32_t bits = f32_bits(v), sign = bits >> 16 & 0x8000, a = bits & 0x7fffffff;
  uint32_t normal = (a + 0xfff + (a >> 13 & 1) - 0x38000000) >> 13;
  uint32_t tiny = f32_bits(bits_f32(a < 0x38800000 ? a : 0) + 0.5f) - 0x3f000000;
  uint32_t out = a < 0x38800000 ? tiny : normal;
  out = a >= 0x477ff000 ? 0x7c00 : out;  // rounds past the largest
  out = a > 0x7f800000 ? 0x7fff : out | sign;
  return uint16_t(out);
}

inline float brain_to_float(uint16_t b) { return bits_f32(uint32_t{b} << 16); }
inline uint16_t float_to_brain(float v) {
  uint32_t bits = f32_bits(v);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return uint16_t((bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded);
}

// A double as the float that a later rounding to half the precision cannot tell from it (rounding to odd).
inline float round_to_odd(double v) {
  float f = static_cast<float>(v);
  double error = v - static_cast<double>(f);
  uint32_t bits = f32_bits(f);
  bool inexact = error != 0 && (bits & 1) == 0 && (bits & 0x7f800000) != 0x7f800000;
  bool outward = (error > 0) == ((bits >> 31) == 0);
  bool from_zero = (bits & 0x7fffffff) == 0;
  uint32_t moved = outward || from_zero ? bits + 1 : bits - 1;
  if (from_zero && error < 0) moved |= 0x80000000;
  // A float that overflowed was finite as a double: the largest float rounds on to infinity all the same.
  return bits_f32(inexact ? moved : bits);
}

// a·b + c of values with at most 12 significant bits, exact until the caller rounds.
inline float fused_to_odd(float a, float b, float c) {
  double p = double{a} * double{b}, x = double{c}, s = p + x;
  double bb = s - p, error = (p - (s - bb)) + (x - bb);
  uint64_t bits = std::bit_cast<uint64_t>(s);
  bool finite = (bits & 0x7ff0000000000000) != 0x7ff0000000000000;
  bool inexact = error != 0 && error == error && (bits & 1) == 0 && finite && (bits << 1) != 0;
  bool outward = (error > 0) == ((bits >> 63) == 0);
  return round_to_odd(std::bit_cast<double>(inexact ? (outward ? bits + 1 : bits - 1) : bits));
}

// Directed rounding by the host's mode, for the handlers that ask for it.
class HostRounding {
 public:
#if defined(__SSE2__)
  explicit HostRounding(Round mode) : saved_(_mm_getcsr()) {
    unsigned bits = mode == Round::rz ? 0x6000 : mode == Round::rm ? 0x2000 : mode == Round::rp ? 0x4000 : 0;
    _mm_setcsr((saved_ & ~0x6000u) | bits);
  }
  ~HostRounding() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
#else
  explicit HostRounding(Round mode) : saved_(std::fegetround()) {
    std::fesetround(mode == Round::rz   ? FE_TOWARDZERO
                    : mode == Round::rm ? FE_DOWNWARD
                    : mode == Round::rp ? FE_UPWARD
                                        : FE_TONEAREST);
  }
  ~HostRounding() { std::fesetround(saved_); }

 private:
  int saved_;
#endif
};

}  // namespace kgate::vgpu::KGATE_ISA
