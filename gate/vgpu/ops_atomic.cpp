// atom and red: lane after lane in lane order, so that one launch always gives the same result.
#include "vgpu/access.h"
#include "vgpu/handlers.h"
#define KGATE_ISA scalar
#include "vgpu/float_bits.h"

namespace kgate::vgpu {

namespace {

using namespace scalar;

template <class T, auto F>
const Insn* atomic(std::byte* regs, const Insn* ip, uint32_t mask, Warp& warp) {
  Access access;
  ++warp.effects;
  if (!locate(warp, ip, mask, sizeof(T), AccessKind::atomic, access)) return kYield;
  bool global = access.contiguous && access_space(ip) != AccessSpace::shared;
  for (uint32_t l = 0; l < 32; ++l) {
    if (!(mask >> l & 1)) continue;
    std::byte* at = global ? access.at[0] + sizeof(T) * l : access.at[l];
    T old;
    std::memcpy(&old, at, sizeof(T));
    T value = F(old, lanes<T>(regs, ip->b)[l], ip->c ? lanes<T>(regs, ip->c)[l] : T());
    warp.launch->changes += std::memcmp(&old, &value, sizeof(T)) != 0;
    std::memcpy(at, &value, sizeof(T));
    if (ip->d) lanes<T>(regs, ip->d)[l] = old;
  }
  warp.launch->counters.atomics += static_cast<uint64_t>(std::popcount(mask));
  return ip + 1;
}

uint16_t half_add(uint16_t a, uint16_t b) { return float_to_half(half_to_float(a) + half_to_float(b)); }
uint16_t brain_add(uint16_t a, uint16_t b) { return float_to_brain(brain_to_float(a) + brain_to_float(b)); }
uint32_t half_pair_add(uint32_t a, uint32_t b, uint32_t) {
  return half_add(uint16_t(a), uint16_t(b)) | uint32_t{half_add(uint16_t(a >> 16), uint16_t(b >> 16))} << 16;
}
uint32_t brain_pair_add(uint32_t a, uint32_t b, uint32_t) {
  return brain_add(uint16_t(a), uint16_t(b)) | uint32_t{brain_add(uint16_t(a >> 16), uint16_t(b >> 16))} << 16;
}

template <class T>
Handler integer(std::string_view name) {
  using W = std::make_unsigned_t<T>;
  if (name == "add") return atomic<T, [](T a, T b, T) { return T(W(a) + W(b)); }>;
  if (name == "min") return atomic<T, [](T a, T b, T) { return b < a ? b : a; }>;
  if (name == "max") return atomic<T, [](T a, T b, T) { return a < b ? b : a; }>;
  if constexpr (std::is_same_v<T, uint32_t>) {
    if (name == "inc") return atomic<T, [](T a, T b, T) { return a < b ? a + 1 : T(0); }>;
    if (name == "dec") return atomic<T, [](T a, T b, T) { return a == 0 || b < a ? b : a - 1; }>;
  }
  return nullptr;
}

template <class T>
Handler bits(std::string_view name) {
  if (name == "and") return atomic<T, [](T a, T b, T) { return T(a & b); }>;
  if (name == "or") return atomic<T, [](T a, T b, T) { return T(a | b); }>;
  if (name == "xor") return atomic<T, [](T a, T b, T) { return T(a ^ b); }>;
  if (name == "exch") return atomic<T, [](T, T b, T) { return b; }>;
  if (name == "cas") return atomic<T, [](T a, T b, T c) { return a == b ? c : a; }>;
  return nullptr;
}

}  // namespace

Handler atomic_handler(std::string_view name, ptx::Type type, bool noftz) {
  switch (type) {
    case Type::u32:
      return integer<uint32_t>(name);
    case Type::s32:
      return integer<int32_t>(name);
    case Type::u64:
      return integer<uint64_t>(name);
    case Type::s64:
      return integer<int64_t>(name);
    case Type::b16:
      return name == "cas" || name == "exch" ? bits<uint16_t>(name) : nullptr;
    case Type::b32:
      return bits<uint32_t>(name);
    case Type::b64:
      return bits<uint64_t>(name);
    default:
      break;
  }
  if (name != "add") return nullptr;
  bool narrow = type == Type::f16 || type == Type::f16x2 || type == Type::bf16 || type == Type::bf16x2;
  if (narrow && !noftz) return nullptr;
  switch (type) {
    case Type::f32:
      return atomic<float, [](float a, float b, float) { return canonical(a + b); }>;
    case Type::f64:
      return atomic<double, [](double a, double b, double) { return a + b; }>;
    case Type::f16:
      return atomic<uint16_t, [](uint16_t a, uint16_t b, uint16_t) { return half_add(a, b); }>;
    case Type::bf16:
      return atomic<uint16_t, [](uint16_t a, uint16_t b, uint16_t) { return brain_add(a, b); }>;
    case Type::f16x2:
      return atomic<uint32_t, half_pair_add>;
    case Type::bf16x2:
      return atomic<uint32_t, brain_pair_add>;
    default:
      return nullptr;
  }
}

}  // namespace kgate::vgpu
