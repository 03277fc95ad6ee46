// mul, mad, div, rem on integers, the carry chains, and dot products of bytes. Division by zero must not trap the host:
// it gives all ones (the remainder: the dividend), as the hardware does; INT_MIN / -1 is INT_MIN.
#include "vgpu/ops_lanes.h"

namespace kgate::vgpu::KGATE_ISA {

namespace {

template <class T>
struct Double;
template <>
struct Double<uint16_t> {
  using type = uint32_t;
};
template <>
struct Double<int16_t> {
  using type = int32_t;
};
template <>
struct Double<uint32_t> {
  using type = uint64_t;
};
template <>
struct Double<int32_t> {
  using type = int64_t;
};
template <>
struct Double<uint64_t> {
  using type = unsigned __int128;
};
template <>
struct Double<int64_t> {
  using type = __int128;
};

template <class T>
Handler products(const Form& form) {
  using W = U<T>;
  using D = typename Double<T>::type;
  constexpr int bits = int(sizeof(T) * 8);
  bool mul = form.op == "mul", mad = form.op == "mad";
  if (form.op == "mul24" || form.op == "mad24") {
    if constexpr (sizeof(T) == 4) {
      static constexpr auto low24 = [](T v) { return int64_t(T(W(v) << 8) >> 8); };
      bool high = form.part == Part::hi;
      if (form.op == "mul24" && high) return binary<T, T, T, [](T a, T b) { return T((low24(a) * low24(b)) >> 16); }>;
      if (form.op == "mul24") return binary<T, T, T, [](T a, T b) { return T(low24(a) * low24(b)); }>;
      if (high) return ternary<T, T, T, T, [](T a, T b, T c) { return T(W((low24(a) * low24(b)) >> 16) + W(c)); }>;
      return ternary<T, T, T, T, [](T a, T b, T c) { return T(W(low24(a) * low24(b)) + W(c)); }>;
    }
    return nullptr;
  }
  if (form.part == Part::lo) {
    if (mul) return binary<T, T, T, [](T a, T b) { return T(W(a) * W(b)); }>;
    if (mad && !form.cc && !form.sat) return ternary<T, T, T, T, [](T a, T b, T c) { return T(W(a) * W(b) + W(c)); }>;
  }
  if (form.part == Part::hi) {
    if (mul) return binary<T, T, T, [](T a, T b) { return T((D(a) * D(b)) >> bits); }>;
    if (mad && form.sat) {
      if constexpr (std::is_same_v<T, int32_t>) {
        return ternary<T, T, T, T, [](T a, T b, T c) {
          int64_t v = ((int64_t{a} * b) >> 32) + c;
          return T(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
        }>;
      }
      return nullptr;
    }
    if (mad && !form.cc) return ternary<T, T, T, T, [](T a, T b, T c) { return T(W((D(a) * D(b)) >> bits) + W(c)); }>;
  }
  if constexpr (sizeof(T) <= 4) {
    if (form.part == Part::wide && mul) return binary<D, T, T, [](T a, T b) { return D(a) * D(b); }>;
    if (form.part == Part::wide && mad) {
      return ternary<D, T, T, D, [](T a, T b, D c) { return D(U<D>(D(a) * D(b)) + U<D>(c)); }>;
    }
  }
  return nullptr;
}

template <class T>
Handler quotients(std::string_view op) {
  constexpr bool is_signed = T(-1) < T(0);
  if (op == "div") {
    return binary_scalar<T, T, T, [](T a, T b) {
      if (b == 0) return T(-1);
      if (is_signed && b == T(-1)) return T(U<T>(0) - U<T>(a));
      return T(a / b);
    }>;
  }
  if (op == "rem") {
    return binary_scalar<T, T, T, [](T a, T b) {
      if (b == 0) return a;
      if (is_signed && b == T(-1)) return T(0);
      return T(a % b);
    }>;
  }
  return nullptr;
}

// Carry chains. flags: bit 0 the carry goes in, bit 1 it comes out, bit 2 subtract; bits 3-4 multiply first (1 lo, 2
// hi).
template <class T>
H carried(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  using D = typename Double<T>::type;
  T* d = lanes<T>(regs, ip->d);
  const T *a = lanes<T>(regs, ip->a), *b = lanes<T>(regs, ip->b), *c = lanes<T>(regs, ip->c);
  uint32_t carry = predicate(regs, kCarry), out = 0;
  uint32_t product = ip->flags >> 3 & 3;
  for (int l = 0; l < 32; ++l) {
    if (!(mask >> l & 1)) continue;
    D full = D(a[l]) * D(b[l]);
    T x = product == 1 ? T(full) : product == 2 ? T(full >> (sizeof(T) * 8)) : a[l];
    T y = product ? c[l] : b[l];
    T in = ip->flags & 1 ? T(carry >> l & 1) : T(0);
    T sum;
    bool over;
    if (ip->flags & 4) {
      T first;
      bool over_a = __builtin_sub_overflow(x, y, &first), over_b = __builtin_sub_overflow(first, in, &sum);
      over = over_a || over_b;
    } else {
      T first;
      bool over_a = __builtin_add_overflow(x, y, &first), over_b = __builtin_add_overflow(first, in, &sum);
      over = over_a || over_b;
    }
    d[l] = sum;
    out |= uint32_t(over) << l;
  }
  if (ip->flags & 2) set_predicate(regs, kCarry, mask, out);
  return ip + 1;
}

template <bool kSignedA, bool kSignedB>
constexpr auto dot4 = [](uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 32; i += 8) {
    int32_t x = kSignedA ? int32_t(int8_t(a >> i)) : int32_t(uint8_t(a >> i));
    int32_t y = kSignedB ? int32_t(int8_t(b >> i)) : int32_t(uint8_t(b >> i));
    c += uint32_t(x * y);
  }
  return c;
};

template <bool kSignedA, bool kSignedB, int kByte>
constexpr auto dot2 = [](uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 2; ++i) {
    int32_t x = kSignedA ? int32_t(int16_t(a >> (16 * i))) : int32_t(uint16_t(a >> (16 * i)));
    uint32_t byte = b >> (8 * i + 16 * kByte);
    int32_t y = kSignedB ? int32_t(int8_t(byte)) : int32_t(uint8_t(byte));
    c += uint32_t(x) * uint32_t(y);
  }
  return c;
};

template <bool kSignedA, bool kSignedB>
Handler dots(const Form& form) {
  using P = uint32_t;
  if (form.op == "dp4a") return ternary<P, P, P, P, dot4<kSignedA, kSignedB>>;
  if (form.part == Part::lo) return ternary<P, P, P, P, dot2<kSignedA, kSignedB, 0>>;
  if (form.part == Part::hi) return ternary<P, P, P, P, dot2<kSignedA, kSignedB, 1>>;
  return nullptr;
}

}  // namespace

Handler select_wide_integer(const Form& form) {
  if (form.op == "dp4a" || form.op == "dp2a") {
    bool a = form.type == Type::s32, b = form.from == Type::s32;
    return a   ? b ? dots<true, true>(form) : dots<true, false>(form)
             : b ? dots<false, true>(form)
               : dots<false, false>(form);
  }
  bool chain = form.cc || form.op == "addc" || form.op == "subc" || form.op == "madc";
  if (chain) {
    // hi products of signed operands differ from those of unsigned ones; sums do not.
    switch (form.type) {
      case Type::s32:
        if (form.part == Part::hi) return nullptr;
        [[fallthrough]];
      case Type::u32:
      case Type::b32:
        return carried<uint32_t>;
      case Type::s64:
        if (form.part == Part::hi) return nullptr;
        [[fallthrough]];
      case Type::u64:
      case Type::b64:
        return carried<uint64_t>;
      default:
        return nullptr;
    }
  }
  if (form.op == "div" || form.op == "rem") {
    return with_integer(form.type, [&]<class T>(TypeTag<T>) { return quotients<T>(form.op); });
  }
  return with_integer(form.type, [&]<class T>(TypeTag<T>) { return products<T>(form); });
}

}  // namespace kgate::vgpu::KGATE_ISA
