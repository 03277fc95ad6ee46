// Bit fields and permutations: popc, clz, brev, bfind, bfe, bfi, prmt, lop3, shf, bmsk, szext.
#include "vgpu/ops_lanes.h"

namespace kgate::vgpu::KGATE_ISA {

namespace {

template <class T>
T reverse(T v) {
  T out = 0;
  for (unsigned i = 0; i < sizeof(T) * 8; ++i) out = T(out << 1 | (v >> i & 1));
  return out;
}

// Position and length are taken modulo 256; bits beyond the most significant one are filled with the sign.
template <class T>
T extract(T a, uint32_t pos, uint32_t len) {
  constexpr uint32_t bits = sizeof(T) * 8;
  constexpr bool is_signed = T(-1) < T(0);
  using W = U<T>;
  pos &= 0xff;
  len &= 0xff;
  W v = W(a);
  bool sign = false;
  if (is_signed && len != 0) {
    uint32_t last = pos + len - 1;
    sign = v >> (last < bits - 1 ? last : bits - 1) & 1;
  }
  W field = pos >= bits ? 0 : v >> pos;
  uint32_t have = pos >= bits ? 0 : bits - pos;
  uint32_t keep = len < have ? len : have;
  W mask = keep >= bits ? ~W(0) : (W(1) << keep) - 1;
  return T((field & mask) | (sign ? ~mask : W(0)));
}

template <class T>
T insert(T a, T b, uint32_t pos, uint32_t len) {
  constexpr uint32_t bits = sizeof(T) * 8;
  pos &= 0xff;
  len &= 0xff;
  if (pos >= bits || len == 0) return b;
  T mask = len >= bits ? ~T(0) : (T(1) << len) - 1;
  mask <<= pos;
  return (b & ~mask) | ((a << pos) & mask);
}

template <class T>
H insert_handler(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  T* d = lanes<T>(regs, ip->d);
  const T *a = lanes<T>(regs, ip->a), *b = lanes<T>(regs, ip->b);
  const uint32_t *pos = lanes<uint32_t>(regs, ip->c), *len = lanes<uint32_t>(regs, static_cast<uint32_t>(ip->imm));
  for (int l = 0; l < 32; ++l) {
    if (mask >> l & 1) d[l] = insert(a[l], b[l], pos[l], len[l]);
  }
  return ip + 1;
}

// The most significant bit that differs from the sign, or all ones.
template <class T>
uint32_t find_top(T a) {
  U<T> v = U<T>(a);
  if (T(-1) < T(0) && a < T(0)) v = ~v;
  if (v == 0) return ~0u;
  if constexpr (sizeof(T) == 8)
    return 63u - unsigned(__builtin_clzll(v));
  else
    return 31u - unsigned(__builtin_clz(v));
}

template <class T>
uint32_t shift_to_top(T a) {
  uint32_t top = find_top(a);
  return top == ~0u ? ~0u : uint32_t(sizeof(T) * 8 - 1) - top;
}

uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
  uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t out = 0;
  for (int i = 0; i < 4; ++i) {
    uint32_t pick = selector >> (4 * i) & 0xf;
    uint32_t byte = uint32_t(bytes >> (8 * (pick & 7))) & 0xff;
    if (pick & 8) byte = byte & 0x80 ? 0xff : 0;
    out |= byte << (8 * i);
  }
  return out;
}

// Named modes of prmt, as selectors for the four values of c's low bits.
template <int kMode>
constexpr auto permute_mode = [](uint32_t a, uint32_t b, uint32_t c) {
  constexpr uint32_t selectors[6][4] = {
      {0x3210, 0x4321, 0x5432, 0x6543},  // f4e
      {0x5670, 0x6701, 0x7012, 0x0123},  // b4e
      {0x0000, 0x1111, 0x2222, 0x3333},  // rc8
      {0x3210, 0x3211, 0x3222, 0x3333},  // ecl
      {0x0000, 0x1110, 0x2210, 0x3210},  // ecr
      {0x1010, 0x3232, 0x1010, 0x3232},  // rc16
  };
  return permute(a, b, selectors[kMode][c & 3]);
};

Handler permutation(std::string_view mode) {
  using P = uint32_t;
  if (mode.empty()) return ternary<P, P, P, P, [](P a, P b, P c) { return permute(a, b, c); }>;
  if (mode == "f4e") return ternary<P, P, P, P, permute_mode<0>>;
  if (mode == "b4e") return ternary<P, P, P, P, permute_mode<1>>;
  if (mode == "rc8") return ternary<P, P, P, P, permute_mode<2>>;
  if (mode == "ecl") return ternary<P, P, P, P, permute_mode<3>>;
  if (mode == "ecr") return ternary<P, P, P, P, permute_mode<4>>;
  if (mode == "rc16") return ternary<P, P, P, P, permute_mode<5>>;
  return nullptr;
}

H logic3(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  uint32_t* d = lanes<uint32_t>(regs, ip->d);
  const uint32_t *a = lanes<uint32_t>(regs, ip->a), *b = lanes<uint32_t>(regs, ip->b),
                 *c = lanes<uint32_t>(regs, ip->c);
  uint32_t table = static_cast<uint32_t>(ip->imm);
#pragma GCC ivdep
  for (int l = 0; l < 32; ++l) {
    uint32_t out = 0;
    for (int row = 0; row < 8; ++row) {
      uint32_t term = (row & 4 ? a[l] : ~a[l]) & (row & 2 ? b[l] : ~b[l]) & (row & 1 ? c[l] : ~c[l]);
      out |= table >> row & 1 ? term : 0;
    }
    d[l] = mask >> l & 1 ? out : d[l];
  }
  return ip + 1;
}

Handler funnel(const Form& form) {
  using P = uint32_t;
  static constexpr auto left = [](P lo, P hi, P n) { return P((uint64_t{hi} << 32 | lo) << n >> 32); };
  static constexpr auto right = [](P lo, P hi, P n) { return P((uint64_t{hi} << 32 | lo) >> n); };
  if (form.mode == "l" && form.wrap) return ternary<P, P, P, P, [](P a, P b, P c) { return left(a, b, c & 31); }>;
  if (form.mode == "r" && form.wrap) return ternary<P, P, P, P, [](P a, P b, P c) { return right(a, b, c & 31); }>;
  if (form.mode == "l" && form.clamp)
    return ternary<P, P, P, P, [](P a, P b, P c) { return left(a, b, c < 32 ? c : 32); }>;
  if (form.mode == "r" && form.clamp)
    return ternary<P, P, P, P, [](P a, P b, P c) { return right(a, b, c < 32 ? c : 32); }>;
  return nullptr;
}

}  // namespace

Handler select_bits(const Form& form) {
  std::string_view op = form.op;
  bool wide = ptx::type_size(form.type) == 8;
  if (op == "popc") {
    return wide ? unary<uint32_t, uint64_t, [](uint64_t a) { return uint32_t(__builtin_popcountll(a)); }>
                : unary<uint32_t, uint32_t, [](uint32_t a) { return uint32_t(__builtin_popcount(a)); }>;
  }
  if (op == "clz") {
    return wide ? unary<uint32_t, uint64_t, [](uint64_t a) { return a ? uint32_t(__builtin_clzll(a)) : 64u; }>
                : unary<uint32_t, uint32_t, [](uint32_t a) { return a ? uint32_t(__builtin_clz(a)) : 32u; }>;
  }
  if (op == "brev") {
    return wide ? unary<uint64_t, uint64_t, [](uint64_t a) { return reverse(a); }>
                : unary<uint32_t, uint32_t, [](uint32_t a) { return reverse(a); }>;
  }
  if (op == "bfi") return wide ? insert_handler<uint64_t> : insert_handler<uint32_t>;
  if (op == "prmt") return permutation(form.mode);
  if (op == "lop3") return logic3;
  if (op == "shf") return funnel(form);
  if (op == "bfe") {
    return with_integer(form.type, []<class T>(TypeTag<T>) -> Handler {
      if constexpr (sizeof(T) < 4)
        return nullptr;
      else
        return ternary<T, T, uint32_t, uint32_t, [](T a, uint32_t p, uint32_t n) { return extract(a, p, n); }>;
    });
  }
  if (op == "bfind") {
    bool amount = form.mode == "shiftamt";
    return with_integer(form.type, [&]<class T>(TypeTag<T>) -> Handler {
      if constexpr (sizeof(T) < 4)
        return nullptr;
      else if (amount)
        return unary<uint32_t, T, [](T a) { return shift_to_top(a); }>;
      else
        return unary<uint32_t, T, [](T a) { return find_top(a); }>;
    });
  }
  return nullptr;
}

}  // namespace kgate::vgpu::KGATE_ISA
