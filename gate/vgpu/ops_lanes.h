// Loops over the 32 lanes, shared by the arithmetic handlers. These files are compiled once for any x86-64 or arm64
// host and once for AVX2+FMA, each in a namespace of its own (KGATE_ISA); only templates of that namespace may appear
// in them, so that the linker cannot hand AVX2 code to a host without it.
#pragma once

#include "vgpu/form.h"

#ifndef KGATE_ISA
#error "KGATE_ISA names the namespace of this variant"
#endif

namespace kgate::vgpu::KGATE_ISA {

Handler select_integer(const Form& form);
Handler select_wide_integer(const Form& form);  // mul, mad, div and carries
Handler select_bits(const Form& form);
Handler select_float(const Form& form);
Handler select_math(const Form& form);  // approximations
Handler select_half(const Form& form);
Handler select_convert(const Form& form);
Handler select_compare(const Form& form);  // setp, set, selp, slct, predicates
Handler select_move(const Form& form);

using H = const Insn*;

template <class D, class A, auto F>
H unary(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  D* d = lanes<D>(regs, ip->d);
  const A* a = lanes<A>(regs, ip->a);
  if (mask == ~0u) {
#pragma GCC ivdep
    for (int l = 0; l < 32; ++l) d[l] = F(a[l]);
  } else {
#pragma GCC ivdep
    for (int l = 0; l < 32; ++l) d[l] = mask >> l & 1 ? F(a[l]) : d[l];
  }
  return ip + 1;
}

template <class D, class A, class B, auto F>
H binary(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  D* d = lanes<D>(regs, ip->d);
  const A* a = lanes<A>(regs, ip->a);
  const B* b = lanes<B>(regs, ip->b);
  if (mask == ~0u) {
#pragma GCC ivdep
    for (int l = 0; l < 32; ++l) d[l] = F(a[l], b[l]);
  } else {
#pragma GCC ivdep
    for (int l = 0; l < 32; ++l) d[l] = mask >> l & 1 ? F(a[l], b[l]) : d[l];
  }
  return ip + 1;
}

template <class D, class A, class B, class C, auto F>
H ternary(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  D* d = lanes<D>(regs, ip->d);
  const A* a = lanes<A>(regs, ip->a);
  const B* b = lanes<B>(regs, ip->b);
  const C* c = lanes<C>(regs, ip->c);
  if (mask == ~0u) {
#pragma GCC ivdep
    for (int l = 0; l < 32; ++l) d[l] = F(a[l], b[l], c[l]);
  } else {
#pragma GCC ivdep
    for (int l = 0; l < 32; ++l) d[l] = mask >> l & 1 ? F(a[l], b[l], c[l]) : d[l];
  }
  return ip + 1;
}

// For operations that GCC would hoist out of the mask although they may trap or are slow: lane by lane.
template <class D, class A, class B, auto F>
H binary_scalar(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  D* d = lanes<D>(regs, ip->d);
  const A* a = lanes<A>(regs, ip->a);
  const B* b = lanes<B>(regs, ip->b);
  for (int l = 0; l < 32; ++l) {
    if (mask >> l & 1) d[l] = F(a[l], b[l]);
  }
  return ip + 1;
}

template <class T>
struct Unsigned;
template <>
struct Unsigned<uint16_t> {
  using type = uint32_t;
};  // products of 16 bits fit
template <>
struct Unsigned<int16_t> {
  using type = uint32_t;
};
template <>
struct Unsigned<uint32_t> {
  using type = uint32_t;
};
template <>
struct Unsigned<int32_t> {
  using type = uint32_t;
};
template <>
struct Unsigned<uint64_t> {
  using type = uint64_t;
};
template <>
struct Unsigned<int64_t> {
  using type = uint64_t;
};
template <class T>
using U = typename Unsigned<T>::type;

template <class T>
struct TypeTag {
  using type = T;
};

// Calls f(TypeTag<T>) for the host type of an integer type; null for others. b16…b64 count as unsigned.
template <class F>
Handler with_integer(Type type, F f) {
  switch (type) {
    case Type::u16:
    case Type::b16:
      return f(TypeTag<uint16_t>{});
    case Type::s16:
      return f(TypeTag<int16_t>{});
    case Type::u32:
    case Type::b32:
      return f(TypeTag<uint32_t>{});
    case Type::s32:
      return f(TypeTag<int32_t>{});
    case Type::u64:
    case Type::b64:
      return f(TypeTag<uint64_t>{});
    case Type::s64:
      return f(TypeTag<int64_t>{});
    default:
      return nullptr;
  }
}

}  // namespace kgate::vgpu::KGATE_ISA
