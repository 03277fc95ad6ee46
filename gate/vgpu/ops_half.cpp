// f16, bf16 and their pairs. Sums and products through f32 round once (24 >= 2·11 + 2 bits); fma goes through an exact
// double with rounding to odd, since f32 would round twice.
#include "vgpu/float_bits.h"
#include "vgpu/ops_lanes.h"

namespace kgate::vgpu::KGATE_ISA {

namespace {

struct Half {
  static constexpr uint16_t infinity = 0x7c00, nan = 0x7fff;
  static float widen(uint16_t v) { return half_to_float(v); }
  static uint16_t narrow(float v) { return float_to_half(v); }
};
struct Brain {
  static constexpr uint16_t infinity = 0x7f80, nan = 0x7fff;
  static float widen(uint16_t v) { return brain_to_float(v); }
  static uint16_t narrow(float v) { return float_to_brain(v); }
};

template <class N>
inline bool is_nan(uint16_t v) {
  return (v & 0x7fff) > N::infinity;
}
template <class N>
inline uint16_t flush16(uint16_t v) {
  return (v & N::infinity) == 0 ? v & 0x8000 : v;
}

enum class Op { add, sub, mul, fma, min, max, abs, neg };
enum class After { none, sat, relu };

template <class N, Op kOp, bool kFtz, bool kNan, After kAfter>
inline uint16_t one(uint16_t a, uint16_t b, uint16_t c) {
  if constexpr (kFtz) a = flush16<N>(a), b = flush16<N>(b), c = flush16<N>(c);
  uint16_t v;
  float x = N::widen(a), y = N::widen(b), z = N::widen(c);
  if constexpr (kOp == Op::add)
    v = N::narrow(x + y);
  else if constexpr (kOp == Op::sub)
    v = N::narrow(x - y);
  else if constexpr (kOp == Op::mul)
    v = N::narrow(x * y);
  else if constexpr (kOp == Op::fma)
    v = N::narrow(fused_to_odd(x, y, z));
  else if constexpr (kOp == Op::abs)
    v = a & 0x7fff;
  else if constexpr (kOp == Op::neg)
    v = a ^ 0x8000;
  else {
    constexpr bool max = kOp == Op::max;
    bool first = max ? x > y : x < y;
    v = first ? a : b;
    v = x == y ? (max ? a & b : a | b) : v;
    v = is_nan<N>(a) ? b : v;
    v = is_nan<N>(b) ? a : v;
    bool either = is_nan<N>(a) || is_nan<N>(b), both = is_nan<N>(a) && is_nan<N>(b);
    v = (kNan ? either : both) ? N::nan : v;
  }
  if constexpr (kFtz) v = flush16<N>(v);
  if constexpr (kAfter == After::sat) {
    float w = N::widen(v);
    v = w >= 0 ? (w <= 1 ? uint16_t(v & 0x7fff) : N::narrow(1.0f)) : uint16_t(0);
  }
  if constexpr (kAfter == After::relu) v = is_nan<N>(v) ? N::nan : v & 0x8000 ? uint16_t(0) : v;
  return v;
}

template <class N, Op kOp, bool kFtz, bool kNan, After kAfter>
inline uint32_t two(uint32_t a, uint32_t b, uint32_t c) {
  auto part = [](uint32_t x, uint32_t y, uint32_t z) {
    return uint32_t{one<N, kOp, kFtz, kNan, kAfter>(uint16_t(x), uint16_t(y), uint16_t(z))};
  };
  return part(a, b, c) | part(a >> 16, b >> 16, c >> 16) << 16;
}

template <class T, auto F, Op kOp>
Handler handler() {
  if constexpr (kOp == Op::fma)
    return ternary<T, T, T, T, F>;
  else if constexpr (kOp == Op::abs || kOp == Op::neg)
    return unary<T, T, [](T a) { return F(a, T(0), T(0)); }>;
  else
    return binary<T, T, T, [](T a, T b) { return F(a, b, T(0)); }>;
}

template <class N, Op kOp, bool kFtz, bool kNan, After kAfter>
Handler by_width(bool pair) {
  if (pair) return handler<uint32_t, two<N, kOp, kFtz, kNan, kAfter>, kOp>();
  return handler<uint16_t, one<N, kOp, kFtz, kNan, kAfter>, kOp>();
}

template <class N, Op kOp, bool kFtz>
Handler modified(const Form& form, bool pair) {
  if constexpr (kOp == Op::min || kOp == Op::max) {
    if (form.sat || form.relu) return nullptr;
    return form.nan ? by_width<N, kOp, kFtz, true, After::none>(pair)
                    : by_width<N, kOp, kFtz, false, After::none>(pair);
  } else if constexpr (kOp == Op::abs || kOp == Op::neg) {
    return form.sat || form.relu ? nullptr : by_width<N, kOp, kFtz, false, After::none>(pair);
  } else {
    if (form.sat) return by_width<N, kOp, kFtz, false, After::sat>(pair);
    if (form.relu) return kOp == Op::fma ? by_width<N, kOp, kFtz, false, After::relu>(pair) : nullptr;
    return by_width<N, kOp, kFtz, false, After::none>(pair);
  }
}

template <class N, Op kOp>
Handler flushed(const Form& form, bool pair) {
  if constexpr (std::is_same_v<N, Half>) {
    if (form.ftz) return modified<N, kOp, true>(form, pair);
  }
  return form.ftz ? nullptr : modified<N, kOp, false>(form, pair);
}

template <class N>
Handler select_format(const Form& form, bool pair) {
  std::string_view op = form.op;
  if (op == "add") return flushed<N, Op::add>(form, pair);
  if (op == "sub") return flushed<N, Op::sub>(form, pair);
  if (op == "mul") return flushed<N, Op::mul>(form, pair);
  if (op == "fma") return flushed<N, Op::fma>(form, pair);
  if (op == "min") return flushed<N, Op::min>(form, pair);
  if (op == "max") return flushed<N, Op::max>(form, pair);
  if (op == "abs") return flushed<N, Op::abs>(form, pair);
  if (op == "neg") return flushed<N, Op::neg>(form, pair);
  return nullptr;
}

}  // namespace

Handler select_half(const Form& form) {
  if (form.round != Round::none && form.round != Round::rn) return nullptr;
  switch (form.type) {
    case Type::f16:
      return select_format<Half>(form, false);
    case Type::f16x2:
      return select_format<Half>(form, true);
    case Type::bf16:
      return select_format<Brain>(form, false);
    case Type::bf16x2:
      return select_format<Brain>(form, true);
    default:
      return nullptr;
  }
}

}  // namespace kgate::vgpu::KGATE_ISA
