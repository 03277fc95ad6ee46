// cvt between integers, f16, bf16, f32 and f64; packed conversions from pairs of f32. PTX ISA: float to integer clamps
// to the range and turns NaN into 0; .sat on a float clamps to [0, 1]; of cvt.*x2 d, a, b the first source fills the
// upper half.
#include <limits>

#include "vgpu/convert.h"
#include "vgpu/float_bits.h"
#include "vgpu/ops_lanes.h"

namespace kgate::vgpu::KGATE_ISA {

namespace {

struct Mods {
  uint32_t bits;
  Round round;
  bool has(ConvertBits bit) const { return bits & bit; }
};

struct F16 {
  uint16_t v;
};
struct B16 {
  uint16_t v;
};
template <class T>
constexpr bool is_float = std::is_same_v<T, F16> || std::is_same_v<T, B16> || std::is_floating_point_v<T>;

// ---- widening to double, which holds every value but 64-bit integers
template <class S>
double widen(S v) {
  if constexpr (std::is_same_v<S, F16>)
    return half_to_float(v.v);
  else if constexpr (std::is_same_v<S, B16>)
    return brain_to_float(v.v);
  else
    return static_cast<double>(v);
}

double to_integral(double v, Round round) {
  switch (round) {
    case Round::rni:
    case Round::rn:
      return __builtin_nearbyint(v);
    case Round::rmi:
    case Round::rm:
      return __builtin_floor(v);
    case Round::rpi:
    case Round::rp:
      return __builtin_ceil(v);
    case Round::rzi:
    case Round::rz:
    default:
      return __builtin_trunc(v);
  }
}

template <class D>
D to_integer(double v, Round round) {
  if (v != v) return D(0);
  v = to_integral(v, round);
  constexpr double low = double(std::numeric_limits<D>::min());
  constexpr double past =
      sizeof(D) == 8 ? (std::is_signed_v<D> ? 0x1p63 : 0x1p64) : double(std::numeric_limits<D>::max()) + 1.0;
  if (v <= low) return std::numeric_limits<D>::min();
  if (v >= past) return std::numeric_limits<D>::max();
  return static_cast<D>(v);
}

// One step of a 16-bit format toward the directed rounding, after rounding to nearest.
template <class Widen>
uint16_t direct(uint16_t nearest, double exact, Round round, Widen widen_bits) {
  if (exact != exact || round == Round::rn || round == Round::none || exact - exact != 0) return nearest;
  double got = widen_bits(nearest);
  bool negative = nearest & 0x8000 || (nearest == 0 && exact < 0);
  bool too_high = got > exact, too_low = got < exact;
  bool want_low = round == Round::rm || (round == Round::rz && exact > 0),
       want_high = round == Round::rp || (round == Round::rz && exact < 0);
  uint16_t magnitude = nearest & 0x7fff;
  if (want_low && too_high)
    return negative && magnitude ? uint16_t(nearest + 1) : magnitude ? uint16_t(nearest - 1) : uint16_t(0x8001);
  if (want_high && too_low) return negative && magnitude ? uint16_t(nearest - 1) : uint16_t(magnitude + 1);
  return nearest;
}

template <class D, class S>
D to_float(S v, double wide, Mods mods) {
  if constexpr (std::is_same_v<D, double>) {
    if constexpr (std::is_integral_v<S> && sizeof(S) == 8) {
      volatile S in = v;
      HostRounding mode(mods.round);
      volatile double out = static_cast<double>(in);
      return out;
    }
    return wide;
  } else if constexpr (std::is_same_v<D, float>) {
    if (mods.round == Round::none || mods.round == Round::rn) {
      if constexpr (std::is_integral_v<S>)
        return static_cast<float>(v);
      else
        return canonical(static_cast<float>(wide));
    }
    if constexpr (std::is_integral_v<S>) {
      volatile S in = v;
      HostRounding mode(mods.round);
      volatile float out = static_cast<float>(in);
      return out;
    } else {
      volatile double in = wide;
      volatile float out = 0;
      {
        HostRounding mode(mods.round);
        out = static_cast<float>(in);
      }
      float result = out;
      return canonical(result);
    }
  } else if constexpr (std::is_same_v<D, F16>) {
    return F16{direct(float_to_half(round_to_odd(wide)), wide, mods.round, half_to_float)};
  } else {
    return B16{direct(float_to_brain(round_to_odd(wide)), wide, mods.round, brain_to_float)};
  }
}

template <class D, class S>
D integer_to_integer(S v, bool sat) {
  if (!sat) return static_cast<D>(v);
  __int128 wide = v;
  constexpr __int128 low = std::numeric_limits<D>::min(), high = std::numeric_limits<D>::max();
  return static_cast<D>(wide < low ? low : wide > high ? high : wide);
}

template <class D, class S>
D convert_value(S v, Mods mods) {
  if constexpr (!is_float<D> && !is_float<S>) {
    return integer_to_integer<D>(v, mods.has(kConvertSat));
  } else if constexpr (!is_float<D>) {
    if constexpr (std::is_same_v<S, float>) {
      if (mods.has(kConvertFtz)) v = flush(v);
    }
    return to_integer<D>(widen(v), mods.round);
  } else {
    if constexpr (std::is_same_v<S, float>) {
      if (mods.has(kConvertFtz)) v = flush(v);
    }
    double wide = widen(v);
    if (is_float<S> && mods.round >= Round::rni) {
      wide = __builtin_copysign(to_integral(wide, mods.round), wide);
      mods.round = Round::rn;
    }
    if (mods.has(kConvertSat)) wide = saturate(wide);
    if (mods.has(kConvertRelu)) wide = wide > 0 ? wide : wide != wide ? wide : 0.0;
    bool touched = is_float<S> && (mods.bits & (kConvertSat | kConvertRelu));
    D out = touched || is_float<S> ? to_float<D>(wide, wide, mods) : to_float<D>(v, wide, mods);
    if constexpr (std::is_same_v<D, float>) {
      if (mods.has(kConvertFtz)) out = flush(out);
    }
    return out;
  }
}

template <class S>
S load_lane(const std::byte* at) {
  S out;
  std::memcpy(&out, at, sizeof out);
  return out;
}

// An integer narrower than its register is extended by its own sign.
template <class D>
void store_lane(std::byte* at, uint32_t width, D v) {
  if constexpr (std::is_integral_v<D>) {
    int64_t wide = static_cast<int64_t>(v);
    std::memcpy(at, &wide, width < 8 ? width : 8);
  } else {
    std::memset(at, 0, width);
    std::memcpy(at, &v, sizeof v);
  }
}

template <class D, class S>
H convert(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  Mods mods{uint32_t(ip->imm) & 0xffff, static_cast<Round>(ip->imm >> 16)};
  uint32_t from = ip->flags & 0xff, to = ip->flags >> 8;
  for (uint32_t l = 0; l < 32; ++l) {
    if (!(mask >> l & 1)) continue;
    store_lane<D>(regs + ip->d + size_t{to} * l, to,
                  convert_value<D, S>(load_lane<S>(regs + ip->a + size_t{from} * l), mods));
  }
  return ip + 1;
}

template <class F>
Handler with_type(Type type, F f) {
  switch (type) {
    case Type::u8:
    case Type::b8:
      return f(TypeTag<uint8_t>{});
    case Type::s8:
      return f(TypeTag<int8_t>{});
    case Type::f16:
      return f(TypeTag<F16>{});
    case Type::bf16:
      return f(TypeTag<B16>{});
    case Type::f32:
      return f(TypeTag<float>{});
    case Type::f64:
      return f(TypeTag<double>{});
    default:
      return with_integer(type, f);
  }
}

// ---- the hot ones, without modifiers and with registers as wide as the types
Handler quick(const Form& form) {
  bool plain = form.exact && !form.ftz && !form.sat && !form.relu && !form.satfinite;
  if (!plain) return nullptr;
  Type to = form.type, from = form.from;
  if (form.round == Round::none) {
    if (to == Type::f32 && from == Type::f16)
      return unary<float, uint16_t, [](uint16_t a) { return canonical(half_to_float(a)); }>;
    if (to == Type::f32 && from == Type::bf16)
      return unary<float, uint16_t, [](uint16_t a) { return canonical(brain_to_float(a)); }>;
    if (to == Type::s64 && from == Type::s32) return unary<int64_t, int32_t, [](int32_t a) { return int64_t{a}; }>;
    if ((to == Type::u64 || to == Type::s64) && from == Type::u32)
      return unary<uint64_t, uint32_t, [](uint32_t a) { return uint64_t{a}; }>;
    if ((to == Type::u32 || to == Type::s32) && (from == Type::u64 || from == Type::s64)) {
      return unary<uint32_t, uint64_t, [](uint64_t a) { return uint32_t(a); }>;
    }
    if ((to == Type::u32 || to == Type::s32) && from == Type::u16)
      return unary<uint32_t, uint16_t, [](uint16_t a) { return uint32_t{a}; }>;
    if ((to == Type::u32 || to == Type::s32) && from == Type::s16)
      return unary<int32_t, int16_t, [](int16_t a) { return int32_t{a}; }>;
    if ((to == Type::u16 || to == Type::s16) && (from == Type::u32 || from == Type::s32)) {
      return unary<uint16_t, uint32_t, [](uint32_t a) { return uint16_t(a); }>;
    }
  }
  if (form.round == Round::rn) {
    if (to == Type::f16 && from == Type::f32) return unary<uint16_t, float, [](float a) { return float_to_half(a); }>;
    if (to == Type::bf16 && from == Type::f32) return unary<uint16_t, float, [](float a) { return float_to_brain(a); }>;
    if (to == Type::f32 && from == Type::s32) return unary<float, int32_t, [](int32_t a) { return float(a); }>;
    if (to == Type::f32 && from == Type::u32) return unary<float, uint32_t, [](uint32_t a) { return float(a); }>;
  }
  return nullptr;
}

// ---- packed: d(upper) from a, d(lower) from b
template <class D>
uint16_t narrow16(float v, Mods mods) {
  if (mods.has(kConvertRelu)) v = v > 0 ? v : v != v ? v : 0.0f;
  uint16_t out = to_float<D>(double{v}, double{v}, mods).v;
  constexpr bool half = std::is_same_v<D, F16>;
  constexpr uint16_t infinity = half ? 0x7c00 : 0x7f80;
  if (mods.has(kConvertSatfinite) && (out & 0x7fff) == infinity) out = uint16_t(out - 1);
  return out;
}

template <class D>
H pair_from_f32(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  Mods mods{uint32_t(ip->imm) & 0xffff, static_cast<Round>(ip->imm >> 16)};
  const float *a = lanes<float>(regs, ip->a), *b = lanes<float>(regs, ip->b);
  uint32_t* d = lanes<uint32_t>(regs, ip->d);
  for (uint32_t l = 0; l < 32; ++l) {
    if (mask >> l & 1) d[l] = uint32_t{narrow16<D>(b[l], mods)} | uint32_t{narrow16<D>(a[l], mods)} << 16;
  }
  return ip + 1;
}

template <auto F>
H quick_pair(std::byte* regs, const Insn* ip, uint32_t mask, Warp& warp) {
  return binary<uint32_t, float, float, [](float a, float b) { return uint32_t{F(b)} | uint32_t{F(a)} << 16; }>(
      regs, ip, mask, warp);
}

Handler packed16(const Form& form) {
  bool half = form.type == Type::f16x2;
  if (form.from != Type::f32 || form.ftz || form.sat) return nullptr;
  if (form.round == Round::rn && !form.relu && !form.satfinite)
    return half ? quick_pair<float_to_half> : quick_pair<float_to_brain>;
  if (form.round != Round::rn && form.round != Round::rz) return nullptr;
  return half ? pair_from_f32<F16> : pair_from_f32<B16>;
}

// ---- 8-bit floats (OCP): e4m3 without infinities, always .satfinite
template <int kMantissa, int kBias, uint32_t kMost>
uint8_t narrow8(float v, bool relu) {
  uint32_t bits = f32_bits(v), sign = bits >> 24 & 0x80;
  if (v != v) return 0x7f;
  if (relu && sign) return 0;
  float a = bits_f32(bits & 0x7fffffff);
  float smallest = bits_f32(uint32_t(127 + 1 - kBias) << 23);  // normal
  uint32_t out;
  if (a < smallest) {
    float steps = a * bits_f32(uint32_t(127 + kMantissa - 1 + kBias) << 23);
    out = uint32_t(__builtin_nearbyintf(steps));
  } else {
    uint32_t ab = f32_bits(a), shift = 23 - kMantissa;
    ab += (uint32_t{1} << (shift - 1)) - 1 + (ab >> shift & 1);
    out = (ab >> shift) - (uint32_t(127 - kBias) << kMantissa);
  }
  return uint8_t((out > kMost ? kMost : out) | sign);
}

template <int kMantissa, int kBias>
float widen8(uint8_t v) {
  uint32_t magnitude = v & 0x7f;
  if constexpr (kMantissa == 3) {
    if (magnitude == 0x7f) return bits_f32(0x7fffffff);
  } else {
    if (magnitude >= 0x7c)
      return magnitude > 0x7c ? bits_f32(0x7fffffff) : bits_f32(0x7f800000 | uint32_t(v & 0x80) << 24);
  }
  uint32_t exponent = magnitude >> kMantissa, fraction = magnitude & ((1u << kMantissa) - 1);
  float unit = bits_f32(uint32_t(127 + 1 - kBias - kMantissa) << 23);
  float out =
      exponent == 0 ? float(fraction) * unit : bits_f32((exponent + 127 - kBias) << 23 | fraction << (23 - kMantissa));
  return v & 0x80 ? -out : out;
}

template <bool kE4m3>
uint8_t to_byte(float v, bool relu) {
  if constexpr (kE4m3)
    return narrow8<3, 7, 0x7e>(v, relu);
  else
    return narrow8<2, 15, 0x7b>(v, relu);
}

// flags bit 16: the source is one f16x2 register.
template <bool kE4m3, bool kFromHalf>
H bytes_from(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  bool relu = ip->imm & kConvertRelu;
  for (uint32_t l = 0; l < 32; ++l) {
    if (!(mask >> l & 1)) continue;
    float low, high;
    if constexpr (kFromHalf) {
      uint32_t v = lanes<uint32_t>(regs, ip->a)[l];
      low = half_to_float(uint16_t(v)), high = half_to_float(uint16_t(v >> 16));
    } else {
      high = lanes<float>(regs, ip->a)[l], low = lanes<float>(regs, ip->b)[l];
    }
    uint16_t out = uint16_t(to_byte<kE4m3>(low, relu) | to_byte<kE4m3>(high, relu) << 8);
    lanes<uint16_t>(regs, ip->d)[l] = out;
  }
  return ip + 1;
}

template <bool kE4m3>
H half_pair_from_bytes(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  bool relu = ip->imm & kConvertRelu;
  auto one = [relu](uint8_t v) {
    float f = kE4m3 ? widen8<3, 7>(v) : widen8<2, 15>(v);
    return uint32_t{float_to_half(relu && f < 0 ? 0.0f : f)};
  };
  for (uint32_t l = 0; l < 32; ++l) {
    uint16_t v = lanes<uint16_t>(regs, ip->a)[l];
    if (mask >> l & 1) lanes<uint32_t>(regs, ip->d)[l] = one(uint8_t(v)) | one(uint8_t(v >> 8)) << 16;
  }
  return ip + 1;
}

Handler bytes(const Form& form) {
  if (form.round != Round::rn) return nullptr;
  bool from_half = form.from == Type::f16x2, from_f32 = form.from == Type::f32;
  if (form.type == Type::e4m3x2 || form.type == Type::e5m2x2) {
    if (!form.satfinite || (!from_half && !from_f32)) return nullptr;
    if (form.type == Type::e4m3x2) return from_half ? bytes_from<true, true> : bytes_from<true, false>;
    return from_half ? bytes_from<false, true> : bytes_from<false, false>;
  }
  if (form.type == Type::f16x2 && form.from == Type::e4m3x2) return half_pair_from_bytes<true>;
  if (form.type == Type::f16x2 && form.from == Type::e5m2x2) return half_pair_from_bytes<false>;
  return nullptr;
}

// tf32: 10 bits of mantissa in an f32 pattern; rna rounds ties away from zero.
template <bool kEven>
uint32_t to_tf32(uint32_t a) {
  if ((a & 0x7fffffff) > 0x7f800000) return 0x7fffffff;
  if ((a & 0x7f800000) == 0x7f800000) return a;
  return (a + (kEven ? 0xfff + (a >> 13 & 1) : 0x1000)) & 0xffffe000;
}

Handler tf32(const Form& form) {
  if (form.from != Type::f32 || form.relu || form.satfinite) return nullptr;
  if (form.round == Round::rna) return unary<uint32_t, uint32_t, to_tf32<false>>;
  if (form.round == Round::rn) return unary<uint32_t, uint32_t, to_tf32<true>>;
  return nullptr;
}

bool integer(Type type) {
  switch (type) {
    case Type::f16:
    case Type::bf16:
    case Type::f32:
    case Type::f64:
      return false;
    default:
      return true;
  }
}

}  // namespace

Handler select_convert(const Form& form) {
  if (form.op != "cvt") return nullptr;
  if (Handler handler = quick(form)) return handler;
  if (form.type == Type::tf32) return tf32(form);
  if (Handler handler = bytes(form)) return handler;
  if (form.type == Type::f16x2 || form.type == Type::bf16x2) return packed16(form);
  if (form.satfinite) return nullptr;
  if (form.relu && (integer(form.type) || integer(form.from))) return nullptr;
  bool to_int = integer(form.type), from_int = integer(form.from);
  if (to_int && !from_int && form.round < Round::rni) return nullptr;  // the rounding is not optional
  if (!to_int && from_int && (form.round == Round::none || form.round >= Round::rna)) return nullptr;
  return with_type(form.type, [&]<class D>(TypeTag<D>) {
    return with_type(form.from, []<class S>(TypeTag<S>) -> Handler { return convert<D, S>; });
  });
}

}  // namespace kgate::vgpu::KGATE_ISA
