// setp (with a second result and a combined predicate), set, selp, slct and logic on predicates.
//
// setp: d, d2 = flags >> 8 (0: none); c = the combined predicate, imm = its flip.  selp: c = predicate, imm = its flip.
#include "vgpu/float_bits.h"
#include "vgpu/ops_lanes.h"

namespace kgate::vgpu::KGATE_ISA {

namespace {

template <Compare kCompare, class T>
inline bool holds(T a, T b) {
  bool ordered = a == a && b == b;
  switch (kCompare) {
    case Compare::eq:
      return a == b;
    case Compare::ne:
      return ordered && a != b;
    case Compare::lt:
    case Compare::lo:
      return a < b;
    case Compare::le:
    case Compare::ls:
      return a <= b;
    case Compare::gt:
    case Compare::hi:
      return a > b;
    case Compare::ge:
    case Compare::hs:
      return a >= b;
    case Compare::equ:
      return !ordered || a == b;
    case Compare::neu:
      return !(a == b);
    case Compare::ltu:
      return !(a >= b);
    case Compare::leu:
      return !(a > b);
    case Compare::gtu:
      return !(a <= b);
    case Compare::geu:
      return !(a < b);
    case Compare::num:
      return ordered;
    case Compare::nan:
      return !ordered;
    case Compare::none:
      return false;
  }
  return false;
}

struct Plain {
  template <class T>
  static T of(T v) {
    return v;
  }
};
struct Flushed {
  static float of(float v) { return flush(v); }
};
struct FromHalf {
  static float of(uint16_t v) { return half_to_float(v); }
};
struct FromBrain {
  static float of(uint16_t v) { return brain_to_float(v); }
};

template <class T, class Widen, Compare kCompare>
inline uint32_t compare_lanes(const T* a, const T* b) {
  uint32_t flags[32], out = 0;
#pragma GCC ivdep
  for (int l = 0; l < 32; ++l) flags[l] = holds<kCompare>(Widen::of(a[l]), Widen::of(b[l])) ? 1u << l : 0u;
  for (int l = 0; l < 32; ++l) out |= flags[l];
  return out;
}

inline uint32_t combine(uint32_t mode, uint32_t value, uint32_t other) {
  switch (static_cast<Bool>(mode)) {
    case Bool::and_:
      return value & other;
    case Bool::or_:
      return value | other;
    case Bool::xor_:
      return value ^ other;
    case Bool::none:
      break;
  }
  return value;
}

template <class T, class Widen, Compare kCompare>
H setp(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  uint32_t value = compare_lanes<T, Widen, kCompare>(lanes<T>(regs, ip->a), lanes<T>(regs, ip->b));
  uint32_t mode = ip->flags & 0xff, second = ip->flags >> 8;
  uint32_t other = mode ? predicate(regs, ip->c) ^ uint32_t(ip->imm) : 0;
  set_predicate(regs, ip->d, mask, combine(mode, value, other));
  if (second) set_predicate(regs, second, mask, combine(mode, ~value, other));
  return ip + 1;
}

// set: the answer as an integer (all ones) or as 1.0. flags >> 8: bits of "true".
template <class T, class Widen, Compare kCompare>
H set(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  uint32_t value = compare_lanes<T, Widen, kCompare>(lanes<T>(regs, ip->a), lanes<T>(regs, ip->b));
  uint32_t mode = ip->flags & 0xff;
  if (mode) value = combine(mode, value, predicate(regs, ip->c) ^ uint32_t(ip->imm));
  uint32_t yes = ip->flags >> 8 & 1 ? 0x3f800000 : ~0u;
  for (int l = 0; l < 32; ++l) {
    if (mask >> l & 1) lanes<uint32_t>(regs, ip->d)[l] = value >> l & 1 ? yes : 0;
  }
  return ip + 1;
}

template <class T, class Widen, Compare kCompare>
Handler pick(bool is_set) {
  return is_set ? set<T, Widen, kCompare> : setp<T, Widen, kCompare>;
}

template <class T, class Widen>
Handler by_compare(Compare compare, bool is_set) {
  constexpr bool integer = std::is_same_v<Widen, Plain> && !std::is_floating_point_v<T>;
  switch (compare) {
    case Compare::eq:
      return pick<T, Widen, Compare::eq>(is_set);
    case Compare::ne:
      return pick<T, Widen, Compare::ne>(is_set);
    case Compare::lt:
    case Compare::lo:
      return pick<T, Widen, Compare::lt>(is_set);
    case Compare::le:
    case Compare::ls:
      return pick<T, Widen, Compare::le>(is_set);
    case Compare::gt:
    case Compare::hi:
      return pick<T, Widen, Compare::gt>(is_set);
    case Compare::ge:
    case Compare::hs:
      return pick<T, Widen, Compare::ge>(is_set);
    default:
      break;
  }
  if constexpr (!integer) {
    switch (compare) {
      case Compare::equ:
        return pick<T, Widen, Compare::equ>(is_set);
      case Compare::neu:
        return pick<T, Widen, Compare::neu>(is_set);
      case Compare::ltu:
        return pick<T, Widen, Compare::ltu>(is_set);
      case Compare::leu:
        return pick<T, Widen, Compare::leu>(is_set);
      case Compare::gtu:
        return pick<T, Widen, Compare::gtu>(is_set);
      case Compare::geu:
        return pick<T, Widen, Compare::geu>(is_set);
      case Compare::num:
        return pick<T, Widen, Compare::num>(is_set);
      case Compare::nan:
        return pick<T, Widen, Compare::nan>(is_set);
      default:
        break;
    }
  }
  return nullptr;
}

Handler comparison(const Form& form) {
  bool is_set = form.op == "set";
  switch (form.from) {
    case Type::f32:
      return form.ftz ? by_compare<float, Flushed>(form.compare, is_set)
                      : by_compare<float, Plain>(form.compare, is_set);
    case Type::f64:
      return by_compare<double, Plain>(form.compare, is_set);
    case Type::f16:
      return by_compare<uint16_t, FromHalf>(form.compare, is_set);
    case Type::bf16:
      return by_compare<uint16_t, FromBrain>(form.compare, is_set);
    default:
      return with_integer(form.from, [&]<class T>(TypeTag<T>) { return by_compare<T, Plain>(form.compare, is_set); });
  }
}

// Pairs: d answers for the lower halves, the second result for the upper ones. flags as for setp; hint: the comparison.
template <class Widen>
H setp_pair(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  auto compare = static_cast<Compare>(ip->hint);
  uint32_t low = 0, high = 0;
  auto test = [&](float a, float b) {
    switch (compare) {
      case Compare::eq:
        return holds<Compare::eq>(a, b);
      case Compare::ne:
        return holds<Compare::ne>(a, b);
      case Compare::lt:
        return holds<Compare::lt>(a, b);
      case Compare::le:
        return holds<Compare::le>(a, b);
      case Compare::gt:
        return holds<Compare::gt>(a, b);
      case Compare::ge:
        return holds<Compare::ge>(a, b);
      case Compare::equ:
        return holds<Compare::equ>(a, b);
      case Compare::neu:
        return holds<Compare::neu>(a, b);
      case Compare::ltu:
        return holds<Compare::ltu>(a, b);
      case Compare::leu:
        return holds<Compare::leu>(a, b);
      case Compare::gtu:
        return holds<Compare::gtu>(a, b);
      case Compare::geu:
        return holds<Compare::geu>(a, b);
      case Compare::num:
        return holds<Compare::num>(a, b);
      default:
        return holds<Compare::nan>(a, b);
    }
  };
  for (int l = 0; l < 32; ++l) {
    uint32_t a = lanes<uint32_t>(regs, ip->a)[l], b = lanes<uint32_t>(regs, ip->b)[l];
    low |= uint32_t(test(Widen::of(uint16_t(a)), Widen::of(uint16_t(b)))) << l;
    high |= uint32_t(test(Widen::of(uint16_t(a >> 16)), Widen::of(uint16_t(b >> 16)))) << l;
  }
  uint32_t mode = ip->flags & 0xff, second = ip->flags >> 8;
  uint32_t other = mode ? predicate(regs, ip->c) ^ uint32_t(ip->imm) : 0;
  set_predicate(regs, ip->d, mask, combine(mode, low, other));
  if (second) set_predicate(regs, second, mask, combine(mode, high, other));
  return ip + 1;
}

template <class T>
H selp(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  T* d = lanes<T>(regs, ip->d);
  const T *a = lanes<T>(regs, ip->a), *b = lanes<T>(regs, ip->b);
  uint32_t p = predicate(regs, ip->c) ^ uint32_t(ip->imm);
#pragma GCC ivdep
  for (int l = 0; l < 32; ++l) {
    T v = p >> l & 1 ? a[l] : b[l];
    d[l] = mask >> l & 1 ? v : d[l];
  }
  return ip + 1;
}

template <class T>
Handler select_by_sign(const Form& form) {
  if (form.from == Type::f32) {
    return form.ftz ? ternary<T, T, T, float, [](T a, T b, float c) { return flush(c) >= 0 ? a : b; }>
                    : ternary<T, T, T, float, [](T a, T b, float c) { return c >= 0 ? a : b; }>;
  }
  return form.from == Type::s32 ? ternary<T, T, T, int32_t, [](T a, T b, int32_t c) { return c >= 0 ? a : b; }>
                                : nullptr;
}

// flags: bit 0 flips a, bit 1 flips b.
template <Bool kBool>
H predicate_logic(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  uint32_t a = predicate(regs, ip->a) ^ (ip->flags & 1 ? ~0u : 0),
           b = predicate(regs, ip->b) ^ (ip->flags & 2 ? ~0u : 0);
  set_predicate(regs, ip->d, mask, combine(static_cast<uint32_t>(kBool), a, b));
  return ip + 1;
}

H predicate_not(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  set_predicate(regs, ip->d, mask, ~(predicate(regs, ip->a) ^ (ip->flags & 1 ? ~0u : 0)));
  return ip + 1;
}

}  // namespace

Handler select_compare(const Form& form) {
  std::string_view op = form.op;
  if (op == "setp" && form.from == Type::f16x2) return setp_pair<FromHalf>;
  if (op == "setp" && form.from == Type::bf16x2) return setp_pair<FromBrain>;
  if (op == "setp" || op == "set") return comparison(form);
  uint32_t size = ptx::type_size(form.type);
  if (op == "selp")
    return size == 2 ? selp<uint16_t> : size == 4 ? selp<uint32_t> : size == 8 ? selp<uint64_t> : nullptr;
  if (op == "slct") {
    return size == 2   ? select_by_sign<uint16_t>(form)
           : size == 4 ? select_by_sign<uint32_t>(form)
           : size == 8 ? select_by_sign<uint64_t>(form)
                       : nullptr;
  }
  if (form.type != Type::pred) return nullptr;
  if (op == "and") return predicate_logic<Bool::and_>;
  if (op == "or") return predicate_logic<Bool::or_>;
  if (op == "xor") return predicate_logic<Bool::xor_>;
  if (op == "not") return predicate_not;
  return nullptr;
}

}  // namespace kgate::vgpu::KGATE_ISA
