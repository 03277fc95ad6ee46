// f32 and f64 arithmetic that IEEE defines: add, sub, mul, fma, div, rcp, sqrt in all four roundings, min, max, abs,
// neg, copysign, testp. One handler a combination of .ftz and .sat; the directed roundings go lane by lane under the
// host's mode.
#include "vgpu/float_bits.h"
#include "vgpu/ops_lanes.h"

namespace kgate::vgpu::KGATE_ISA {

namespace {

enum class Arith { add, sub, mul, fma, div, rcp, sqrt };

template <class T, Arith kOp>
inline T compute(T a, T b, T c) {
  if constexpr (kOp == Arith::add)
    return a + b;
  else if constexpr (kOp == Arith::sub)
    return a - b;
  else if constexpr (kOp == Arith::mul)
    return a * b;
  else if constexpr (kOp == Arith::fma)
    return std::is_same_v<T, float> ? T(__builtin_fmaf(float(a), float(b), float(c))) : T(__builtin_fma(a, b, c));
  else if constexpr (kOp == Arith::div)
    return a / b;
  else if constexpr (kOp == Arith::rcp)
    return T(1) / a;
  else
    return std::is_same_v<T, float> ? T(__builtin_sqrtf(float(a))) : T(__builtin_sqrt(a));
}

template <class T, Arith kOp, bool kFtz, bool kSat>
inline T finished(T a, T b, T c) {
  if constexpr (kFtz) a = flush(a), b = flush(b), c = flush(c);
  T v = compute<T, kOp>(a, b, c);
  if constexpr (kFtz) v = flush(v);
  v = canonical(v);
  if constexpr (kSat) v = saturate(v);
  return v;
}

template <class T, Arith kOp, bool kFtz, bool kSat, Round kRound>
H directed(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  volatile T a[32], b[32], c[32], out[32];  // volatile: nothing may move across the change of mode
  constexpr bool two = kOp != Arith::rcp && kOp != Arith::sqrt, three = kOp == Arith::fma;
  for (int l = 0; l < 32; ++l) {
    a[l] = lanes<T>(regs, ip->a)[l];
    b[l] = two ? lanes<T>(regs, ip->b)[l] : T(0);
    c[l] = three ? lanes<T>(regs, ip->c)[l] : T(0);
  }
  {
    HostRounding mode(kRound);
    for (int l = 0; l < 32; ++l) {
      T x = a[l], y = b[l], z = c[l];
      if constexpr (kFtz) x = flush(x), y = flush(y), z = flush(z);
      T v = compute<T, kOp>(x, y, z);
      out[l] = v;
    }
  }
  for (int l = 0; l < 32; ++l) {
    T v = out[l];
    if constexpr (kFtz) v = flush(v);
    v = canonical(v);
    if constexpr (kSat) v = saturate(v);
    if (mask >> l & 1) lanes<T>(regs, ip->d)[l] = v;
  }
  return ip + 1;
}

template <class T, Arith kOp, bool kFtz, bool kSat>
Handler rounded(Round round) {
  switch (round) {
    case Round::rz:
      return directed<T, kOp, kFtz, kSat, Round::rz>;
    case Round::rm:
      return directed<T, kOp, kFtz, kSat, Round::rm>;
    case Round::rp:
      return directed<T, kOp, kFtz, kSat, Round::rp>;
    case Round::none:
    case Round::rn:
      break;
    default:
      return nullptr;
  }
  if constexpr (kOp == Arith::fma) {
    return ternary<T, T, T, T, [](T a, T b, T c) { return finished<T, kOp, kFtz, kSat>(a, b, c); }>;
  } else if constexpr (kOp == Arith::rcp || kOp == Arith::sqrt) {
    return unary<T, T, [](T a) { return finished<T, kOp, kFtz, kSat>(a, T(0), T(0)); }>;
  } else {
    return binary<T, T, T, [](T a, T b) { return finished<T, kOp, kFtz, kSat>(a, b, T(0)); }>;
  }
}

template <class T, Arith kOp>
Handler arithmetic(const Form& form) {
  if constexpr (std::is_same_v<T, double>) {
    return form.ftz || form.sat ? nullptr : rounded<T, kOp, false, false>(form.round);
  } else {
    if (form.ftz) return form.sat ? rounded<T, kOp, true, true>(form.round) : rounded<T, kOp, true, false>(form.round);
    return form.sat ? rounded<T, kOp, false, true>(form.round) : rounded<T, kOp, false, false>(form.round);
  }
}

// One NaN gives the other operand, .NaN gives NaN; -0 is below +0.
template <class T, bool kMax, bool kFtz, bool kNan>
inline T extreme(T a, T b) {
  using I = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  if constexpr (kFtz) a = flush(a), b = flush(b);
  I x = std::bit_cast<I>(a), y = std::bit_cast<I>(b);
  T zeros = std::bit_cast<T>(kMax ? x & y : x | y);  // of two equal values only the sign of zero can differ
  T v = kMax ? (a > b ? a : b) : (a < b ? a : b);
  v = a == b ? zeros : v;
  v = a != a ? b : v;
  v = b != b ? a : v;
  if constexpr (kNan) v = a != a || b != b ? a + b : v;
  return canonical(v);
}

template <class T, bool kMax>
Handler extremes(const Form& form) {
  if constexpr (std::is_same_v<T, double>) {
    return form.ftz || form.nan ? nullptr
                                : binary<T, T, T, [](T a, T b) { return extreme<T, kMax, false, false>(a, b); }>;
  } else {
    if (form.ftz) {
      return form.nan ? binary<T, T, T, [](T a, T b) { return extreme<T, kMax, true, true>(a, b); }>
                      : binary<T, T, T, [](T a, T b) { return extreme<T, kMax, true, false>(a, b); }>;
    }
    return form.nan ? binary<T, T, T, [](T a, T b) { return extreme<T, kMax, false, true>(a, b); }>
                    : binary<T, T, T, [](T a, T b) { return extreme<T, kMax, false, false>(a, b); }>;
  }
}

template <class T>
Handler signs(const Form& form) {
  using I = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  static constexpr I top = I(1) << (sizeof(T) * 8 - 1);
  if (form.op == "abs") {
    if (form.ftz) return unary<T, T, [](T a) { return std::bit_cast<T>(std::bit_cast<I>(flush(a)) & ~top); }>;
    return unary<T, T, [](T a) { return std::bit_cast<T>(std::bit_cast<I>(a) & ~top); }>;
  }
  if (form.op == "neg") {
    if (form.ftz) return unary<T, T, [](T a) { return std::bit_cast<T>(std::bit_cast<I>(flush(a)) ^ top); }>;
    return unary<T, T, [](T a) { return std::bit_cast<T>(std::bit_cast<I>(a) ^ top); }>;
  }
  if (form.op == "copysign") {  // the sign of a on the magnitude of b
    return binary<T, T, T, [](T a, T b) {
      return std::bit_cast<T>((std::bit_cast<I>(a) & top) | (std::bit_cast<I>(b) & ~top));
    }>;
  }
  return nullptr;
}

template <class T>
Handler select_type(const Form& form) {
  std::string_view op = form.op;
  if (op == "add") return arithmetic<T, Arith::add>(form);
  if (op == "sub") return arithmetic<T, Arith::sub>(form);
  if (op == "mul") return arithmetic<T, Arith::mul>(form);
  if (op == "fma" || op == "mad") return arithmetic<T, Arith::fma>(form);
  if (op == "min") return extremes<T, false>(form);
  if (op == "max") return extremes<T, true>(form);
  // Approximations are computed correctly rounded.
  if (op == "div") return arithmetic<T, Arith::div>(form);
  if (op == "rcp") return arithmetic<T, Arith::rcp>(form);
  if (op == "sqrt") return arithmetic<T, Arith::sqrt>(form);
  return signs<T>(form);
}

}  // namespace

Handler select_float(const Form& form) {
  if (form.type == Type::f32) return select_type<float>(form);
  if (form.type == Type::f64) {
    // rcp.approx.ftz.f64 works on the upper word only.
    if (form.op == "rcp" && form.approx) {
      return form.ftz ? unary<double, double,
                              [](double a) {
                                double upper = std::bit_cast<double>(std::bit_cast<uint64_t>(a) & 0xffffffff00000000);
                                upper = __builtin_fabs(upper) < 0x1p-1022 ? __builtin_copysign(0.0, upper) : upper;
                                double v = 1 / upper;
                                v = __builtin_fabs(v) < 0x1p-1022 ? __builtin_copysign(0.0, v) : v;
                                return std::bit_cast<double>(std::bit_cast<uint64_t>(v) & 0xffffffff00000000);
                              }>
                      : nullptr;
    }
    return select_type<double>(form);
  }
  return nullptr;
}

}  // namespace kgate::vgpu::KGATE_ISA
