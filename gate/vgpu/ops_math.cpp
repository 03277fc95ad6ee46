// The hardware's approximations, computed to (nearly) the correctly rounded result: ex2 and lg2 by polynomials in
// double that vectorise, the rest by the host's library in double. A candidate must not pass or fail by the error of
// one chip.
#include "vgpu/float_bits.h"
#include "vgpu/ops_lanes.h"

namespace kgate::vgpu::KGATE_ISA {

namespace {

// 2^x: x = n + r with |r| <= 1/2, Taylor series of e^(r ln 2) to r^10 (error below 1e-13).
inline float exp2_lane(float x) {
  double t = x < -160.0f ? -160.0 : x > 130.0f ? 130.0 : double{x};
  t = x == x ? t : 0.0;
  double shifted = t + 0x1.8p52, n = shifted - 0x1.8p52, r = (t - n) * 0x1.62e42fefa39efp-1;
  double p = 2.7557319223985893e-07;
  p = p * r + 2.7557319223985893e-06;
  p = p * r + 2.4801587301587302e-05;
  p = p * r + 1.9841269841269841e-04;
  p = p * r + 1.3888888888888889e-03;
  p = p * r + 8.3333333333333332e-03;
  p = p * r + 4.1666666666666664e-02;
  p = p * r + 1.6666666666666666e-01;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  uint64_t exponent = (std::bit_cast<uint64_t>(shifted) + 1023) << 52;
  float v = static_cast<float>(p * std::bit_cast<double>(exponent));
  return x == x ? v : bits_f32(0x7fffffff);
}

// log2 x: x = m 2^e with m in [sqrt 1/2, sqrt 2), 2/ln 2 · atanh((m-1)/(m+1)) as a series.
inline float log2_lane(float x) {
  double wide = double{x};
  uint64_t bits = std::bit_cast<uint64_t>(wide);
  uint64_t shifted = bits - 0x3fe6a09e667f3bcd;
  int64_t e = int64_t(shifted) >> 52;
  double m = std::bit_cast<double>(bits - (uint64_t(e) << 52));
  double s = (m - 1.0) / (m + 1.0), q = s * s;
  double p = 1.0 / 19;
  p = p * q + 1.0 / 17;
  p = p * q + 1.0 / 15;
  p = p * q + 1.0 / 13;
  p = p * q + 1.0 / 11;
  p = p * q + 1.0 / 9;
  p = p * q + 1.0 / 7;
  p = p * q + 1.0 / 5;
  p = p * q + 1.0 / 3;
  p = p * q + 1.0;
  double exponent = std::bit_cast<double>(uint64_t(e) + 0x4338000000000000) - 0x1.8p52;
  float v = static_cast<float>(exponent + 2.8853900817779268 * s * p);
  v = x == 0 ? -bits_f32(0x7f800000) : v;
  v = f32_bits(x) == 0x7f800000 ? x : v;
  return x == x && !(x < 0) ? v : bits_f32(0x7fffffff);
}

template <auto F, bool kFtz>
inline float approximated(float a) {
  if constexpr (kFtz) a = flush(a);
  float v = F(a);
  if constexpr (kFtz) v = flush(v);
  return canonical(v);
}

template <auto F>
Handler f32_form(const Form& form) {
  return form.ftz ? unary<float, float, [](float a) { return approximated<F, true>(a); }>
                  : unary<float, float, [](float a) { return approximated<F, false>(a); }>;
}

template <auto F, auto kWiden, auto kNarrow>
constexpr auto narrow = [](uint16_t a) { return kNarrow(F(kWiden(a))); };

template <auto F, auto kWiden, auto kNarrow>
constexpr auto narrow_pair = [](uint32_t a) {
  return uint32_t(kNarrow(F(kWiden(uint16_t(a))))) | uint32_t(kNarrow(F(kWiden(uint16_t(a >> 16))))) << 16;
};

template <auto F>
Handler half_form(Type type) {
  switch (type) {
    case Type::f16:
      return unary<uint16_t, uint16_t, narrow<F, half_to_float, float_to_half>>;
    case Type::bf16:
      return unary<uint16_t, uint16_t, narrow<F, brain_to_float, float_to_brain>>;
    case Type::f16x2:
      return unary<uint32_t, uint32_t, narrow_pair<F, half_to_float, float_to_half>>;
    case Type::bf16x2:
      return unary<uint32_t, uint32_t, narrow_pair<F, brain_to_float, float_to_brain>>;
    default:
      return nullptr;
  }
}

float sin_lane(float a) { return static_cast<float>(std::sin(double{a})); }
float cos_lane(float a) { return static_cast<float>(std::cos(double{a})); }
float tanh_lane(float a) { return static_cast<float>(std::tanh(double{a})); }
float rsqrt_lane(float a) { return static_cast<float>(1.0 / __builtin_sqrt(double{a})); }

double rsqrt_upper(double a) {  // rsqrt.approx.ftz.f64 works on the upper word only
  double upper = std::bit_cast<double>(std::bit_cast<uint64_t>(a) & 0xffffffff00000000);
  upper = __builtin_fabs(upper) < 0x1p-1022 ? __builtin_copysign(0.0, upper) : upper;
  return std::bit_cast<double>(std::bit_cast<uint64_t>(1.0 / __builtin_sqrt(upper)) & 0xffffffff00000000);
}

}  // namespace

Handler select_math(const Form& form) {
  std::string_view op = form.op;
  bool f32 = form.type == Type::f32;
  if (op == "ex2") return f32 ? f32_form<exp2_lane>(form) : half_form<exp2_lane>(form.type);
  if (op == "tanh") return f32 ? f32_form<tanh_lane>(form) : half_form<tanh_lane>(form.type);
  if (op == "lg2") return f32 ? f32_form<log2_lane>(form) : nullptr;
  if (op == "sin") return f32 ? f32_form<sin_lane>(form) : nullptr;
  if (op == "cos") return f32 ? f32_form<cos_lane>(form) : nullptr;
  if (op == "rsqrt") {
    if (form.type == Type::f64) {
      return form.ftz ? unary<double, double, [](double a) { return rsqrt_upper(a); }>
                      : unary<double, double, [](double a) { return 1.0 / __builtin_sqrt(a); }>;
    }
    return f32 ? f32_form<rsqrt_lane>(form) : nullptr;
  }
  return nullptr;
}

}  // namespace kgate::vgpu::KGATE_ISA
