// mov within one width; packing and unpacking of vectors.
#include "vgpu/ops_lanes.h"

namespace kgate::vgpu::KGATE_ISA {

namespace {

struct B128 {
  uint64_t lo, hi;
};

H move_predicate(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  set_predicate(regs, ip->d, mask, predicate(regs, ip->a));
  return ip + 1;
}

// flags: bytes of an element; extra: the elements' registers.
H pack(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  uint32_t element = ip->flags, count = uint32_t(ip->extra->regs.size());
  for (uint32_t l = 0; l < 32; ++l) {
    if (!(mask >> l & 1)) continue;
    std::byte out[16];
    for (uint32_t i = 0; i < count; ++i) {
      std::memcpy(out + i * element, regs + ip->extra->regs[i] + size_t{ip->extra->widths[i]} * l, element);
    }
    std::memcpy(regs + ip->d + size_t{element} * count * l, out, size_t{element} * count);
  }
  return ip + 1;
}

H unpack(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  uint32_t element = ip->flags, count = uint32_t(ip->extra->regs.size());
  for (uint32_t l = 0; l < 32; ++l) {
    if (!(mask >> l & 1)) continue;
    std::byte in[16];
    std::memcpy(in, regs + ip->a + size_t{element} * count * l, size_t{element} * count);
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t width = ip->extra->widths[i];
      if (width == 0) continue;
      std::byte* to = regs + ip->extra->regs[i] + size_t{width} * l;
      std::memset(to, 0, width);
      std::memcpy(to, in + i * element, element);
    }
  }
  return ip + 1;
}

}  // namespace

Handler select_move(const Form& form) {
  if (form.op == "pack") return pack;
  if (form.op == "unpack") return unpack;
  if (form.op != "mov") return nullptr;
  switch (ptx::type_size(form.type)) {
    case 1:
      return form.type == Type::pred ? move_predicate : nullptr;
    case 2:
      return unary<uint16_t, uint16_t, [](uint16_t a) { return a; }>;
    case 4:
      return unary<uint32_t, uint32_t, [](uint32_t a) { return a; }>;
    case 8:
      return unary<uint64_t, uint64_t, [](uint64_t a) { return a; }>;
    case 16:
      return unary<B128, B128, [](B128 a) { return a; }>;
    default:
      return nullptr;
  }
}

}  // namespace kgate::vgpu::KGATE_ISA
