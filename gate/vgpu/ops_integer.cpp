// add, sub, neg, abs, min, max, sad, bitwise logic, shifts on integers.
#include "vgpu/ops_lanes.h"

namespace kgate::vgpu::KGATE_ISA {

namespace {

template <class T>
Handler plain(const Form& form) {
  using W = U<T>;
  constexpr bool is_signed = T(-1) < T(0);
  constexpr int bits = int(sizeof(T) * 8);
  std::string_view op = form.op;
  if (form.sat) {
    if constexpr (std::is_same_v<T, int32_t>) {
      static constexpr auto clamp = [](int64_t v) {
        return int32_t(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
      };
      if (op == "add") return binary<T, T, T, [](T a, T b) { return clamp(int64_t{a} + b); }>;
      if (op == "sub") return binary<T, T, T, [](T a, T b) { return clamp(int64_t{a} - b); }>;
    }
    return nullptr;
  }
  if (form.relu) {
    if constexpr (std::is_same_v<T, int32_t>) {
      if (op == "min")
        return binary<T, T, T, [](T a, T b) {
          T v = a < b ? a : b;
          return v < 0 ? 0 : v;
        }>;
      if (op == "max")
        return binary<T, T, T, [](T a, T b) {
          T v = b < a ? a : b;
          return v < 0 ? 0 : v;
        }>;
    }
    return nullptr;
  }
  if (op == "add") return binary<T, T, T, [](T a, T b) { return T(W(a) + W(b)); }>;
  if (op == "sub") return binary<T, T, T, [](T a, T b) { return T(W(a) - W(b)); }>;
  if (op == "neg") return unary<T, T, [](T a) { return T(W(0) - W(a)); }>;
  if (op == "abs" && is_signed) return unary<T, T, [](T a) { return a < T(0) ? T(W(0) - W(a)) : a; }>;
  if (op == "min") return binary<T, T, T, [](T a, T b) { return a < b ? a : b; }>;
  if (op == "max") return binary<T, T, T, [](T a, T b) { return b < a ? a : b; }>;
  if (op == "sad") {
    return ternary<T, T, T, T, [](T a, T b, T c) { return T(W(c) + (a < b ? W(b) - W(a) : W(a) - W(b))); }>;
  }
  if (op == "shl")
    return binary<T, T, uint32_t, [](T a, uint32_t n) { return n >= uint32_t(bits) ? T(0) : T(W(a) << n); }>;
  if (op == "shr") {
    return binary<T, T, uint32_t, [](T a, uint32_t n) {
      if constexpr (is_signed)
        return T(a >> (n >= uint32_t(bits) ? uint32_t(bits - 1) : n));
      else
        return n >= uint32_t(bits) ? T(0) : T(a >> n);
    }>;
  }
  return nullptr;
}

template <class T>
Handler logic(std::string_view op) {
  if (op == "and") return binary<T, T, T, [](T a, T b) { return T(a & b); }>;
  if (op == "or") return binary<T, T, T, [](T a, T b) { return T(a | b); }>;
  if (op == "xor") return binary<T, T, T, [](T a, T b) { return T(a ^ b); }>;
  if (op == "not") return unary<T, T, [](T a) { return T(~a); }>;
  if (op == "cnot") return unary<T, T, [](T a) { return T(a == 0); }>;
  return nullptr;
}

// Packed 16-bit pairs.
template <class T, auto F>
constexpr auto packed = [](uint32_t a, uint32_t b) {
  auto one = [](uint32_t x, uint32_t y) { return uint32_t(uint16_t(F(T(x), T(y)))); };
  return one(a & 0xffff, b & 0xffff) | one(a >> 16, b >> 16) << 16;
};

template <class T>
Handler pairs(std::string_view op) {
  using P = uint32_t;
  if (op == "add") return binary<P, P, P, packed<T, [](T a, T b) { return T(uint32_t(a) + uint32_t(b)); }>>;
  if (op == "min") return binary<P, P, P, packed<T, [](T a, T b) { return a < b ? a : b; }>>;
  if (op == "max") return binary<P, P, P, packed<T, [](T a, T b) { return b < a ? a : b; }>>;
  return nullptr;
}

}  // namespace

Handler select_integer(const Form& form) {
  if (form.type == Type::u16x2) return pairs<uint16_t>(form.op);
  if (form.type == Type::s16x2) return pairs<int16_t>(form.op);
  bool untyped = form.type == Type::b16 || form.type == Type::b32 || form.type == Type::b64;
  if (untyped && form.op != "shl" && form.op != "shr") {
    switch (form.type) {
      case Type::b16:
        return logic<uint16_t>(form.op);
      case Type::b32:
        return logic<uint32_t>(form.op);
      default:
        return logic<uint64_t>(form.op);
    }
  }
  return with_integer(form.type, [&]<class T>(TypeTag<T>) { return plain<T>(form); });
}

}  // namespace kgate::vgpu::KGATE_ISA
