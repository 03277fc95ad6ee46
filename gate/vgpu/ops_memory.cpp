// ld, st, cp.async (performed when issued), prefetch, cvta, isspacep.
#include <algorithm>
#include <type_traits>

#include "vgpu/access.h"
#include "vgpu/handlers.h"

namespace kgate::vgpu {

namespace {

template <class T>
void load_element(std::byte* regs, uint32_t offset, uint32_t width, bool sign, uint32_t mask, const Access& access,
                  uint32_t at) {
  for (uint32_t l = 0; l < 32; ++l) {
    if (!(mask >> l & 1)) continue;
    T value;
    std::memcpy(&value, access.at[l] + at, sizeof value);
    int64_t wide = sign ? static_cast<int64_t>(static_cast<std::make_signed_t<T>>(value)) : static_cast<int64_t>(value);
    std::memcpy(regs + offset + size_t{width} * l, &wide, width);
  }
}

void spread(Access& access, uint32_t bytes) {
  for (uint32_t l = 1; l < 32; ++l) access.at[l] = access.at[0] + size_t{l} * bytes;
}

template <class T>
const Insn* load(std::byte* regs, const Insn* ip, uint32_t mask, Warp& warp) {
  uint32_t count = ip->flags & kElements, bytes = count * sizeof(T), width = ip->flags >> kWidthShift;
  bool sign = ip->flags & kSignExtend;
  Access access;
  if (!locate(warp, ip, mask, bytes, AccessKind::load, access)) return kYield;
  bool whole =
      access.contiguous && (access_space(ip) == AccessSpace::global || access_space(ip) == AccessSpace::generic ||
                            access_space(ip) == AccessSpace::constant);
  if (count == 1) {
    if (access.contiguous && width == sizeof(T)) {
      std::memcpy(regs + ip->d, access.at[0], 32 * sizeof(T));
      return ip + 1;
    }
    if (whole) spread(access, bytes);
    load_element<T>(regs, ip->d, width, sign, mask, access, 0);
    return ip + 1;
  }
  if (whole) spread(access, bytes);
  for (uint32_t i = 0; i < count; ++i) {
    if (ip->extra->widths[i] == 0) continue;
    load_element<T>(regs, ip->extra->regs[i], ip->extra->widths[i], sign, mask, access, i * uint32_t(sizeof(T)));
  }
  return ip + 1;
}

template <class T>
const Insn* store(std::byte* regs, const Insn* ip, uint32_t mask, Warp& warp) {
  uint32_t count = ip->flags & kElements, bytes = count * sizeof(T), width = ip->flags >> kWidthShift;
  Access access;
  ++warp.effects;
  ++warp.launch->changes;
  if (!locate(warp, ip, mask, bytes, AccessKind::store, access)) return kYield;
  if (count == 1 && access.contiguous && width == sizeof(T)) {
    std::memcpy(access.at[0], regs + ip->d, 32 * sizeof(T));
    return ip + 1;
  }
  bool whole =
      access.contiguous && (access_space(ip) == AccessSpace::global || access_space(ip) == AccessSpace::generic);
  if (whole) spread(access, bytes);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t offset = count == 1 ? ip->d : ip->extra->regs[i];
    uint32_t stride = count == 1 ? width : ip->extra->widths[i];
    for (uint32_t l = 0; l < 32; ++l) {
      if (mask >> l & 1) std::memcpy(access.at[l] + i * sizeof(T), regs + offset + size_t{stride} * l, sizeof(T));
    }
  }
  return ip + 1;
}

// ld.param at a place that is known when decoding: imm = offset, the same value for all lanes.
template <class T>
const Insn* load_param(std::byte* regs, const Insn* ip, uint32_t mask, Warp& warp) {
  uint32_t count = ip->flags & kElements;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t offset = count == 1 ? ip->d : ip->extra->regs[i];
    uint32_t width = count == 1 ? ip->flags >> kWidthShift : ip->extra->widths[i];
    if (width == 0) continue;
    T value;
    std::memcpy(&value, warp.launch->params + ip->imm + i * sizeof(T), sizeof(T));
    int64_t wide = ip->flags & kSignExtend ? static_cast<int64_t>(static_cast<std::make_signed_t<T>>(value))
                                           : static_cast<int64_t>(value);
    for (uint32_t l = 0; l < 32; ++l) {
      if (mask >> l & 1) std::memcpy(regs + offset + size_t{width} * l, &wide, width);
    }
  }
  return ip + 1;
}

// cp.async: a = shared destination; extra->regs[0] = global source, imm = its displacement; c = bytes to copy (the rest
// is zero filled), extra->regs[1] = predicate that ignores the source or 0. extra->hidden: bytes; d: displacement of a.
const Insn* copy_async(std::byte* regs, const Insn* ip, uint32_t mask, Warp& warp) {
  uint32_t bytes = ip->extra->hidden, ignored = ip->extra->regs[1] ? predicate(regs, ip->extra->regs[1]) : 0;
  Insn source = *ip, target = *ip;
  source.a = ip->extra->regs[0];
  source.flags = uint32_t(AccessSpace::global) << kSpaceShift;
  target.imm = ip->d;
  uint32_t reading = 0;
  for (uint32_t l = 0; l < 32; ++l) {
    bool reads = lanes<uint32_t>(regs, ip->c)[l] != 0 && !(ignored >> l & 1);
    reading |= (mask >> l & 1) && reads ? 1u << l : 0;
  }
  Access from, to;
  ++warp.effects;
  ++warp.launch->changes;
  if (!locate_as(warp, ip, target, mask, bytes, AccessKind::store, to)) return kYield;
  if (reading != 0 && !locate_as(warp, ip, source, reading, bytes, AccessKind::load, from)) return kYield;
  if (from.contiguous) spread(from, bytes);
  for (uint32_t l = 0; l < 32; ++l) {
    if (!(mask >> l & 1)) continue;
    uint32_t size = reading >> l & 1 ? std::min(lanes<uint32_t>(regs, ip->c)[l], bytes) : 0;
    if (size != 0) std::memcpy(to.at[l], from.at[l], size);
    std::memset(to.at[l] + size, 0, bytes - size);
  }
  return ip + 1;
}

const Insn* nothing(std::byte*, const Insn* ip, uint32_t, Warp&) { return ip + 1; }

// cvta between the generic space and the window imm. flags: kAddress32 of the source, bit 0: .to.
template <bool kTo>
const Insn* convert_address(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  uint64_t window = static_cast<uint64_t>(ip->imm);
  for (uint32_t l = 0; l < 32; ++l) {
    if (!(mask >> l & 1)) continue;
    uint64_t value = ip->flags & kAddress32 ? lanes<uint32_t>(regs, ip->a)[l] : lanes<uint64_t>(regs, ip->a)[l];
    value = kTo ? (window == kParamWindow ? value : value & ~window) : value | window;
    if (ip->flags >> kWidthShift == 4)
      lanes<uint32_t>(regs, ip->d)[l] = static_cast<uint32_t>(value);
    else
      lanes<uint64_t>(regs, ip->d)[l] = value;
  }
  return ip + 1;
}

const Insn* is_space(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  uint32_t out = 0;
  for (uint32_t l = 0; l < 32; ++l) {
    uint64_t window = lanes<uint64_t>(regs, ip->a)[l] & kWindowMask;
    out |= uint32_t(window == static_cast<uint64_t>(ip->imm)) << l;
  }
  set_predicate(regs, ip->d, mask, out);
  return ip + 1;
}

}  // namespace

Handler load_handler(uint32_t size) {
  return size == 1   ? load<uint8_t>
         : size == 2 ? load<uint16_t>
         : size == 4 ? load<uint32_t>
         : size == 8 ? load<uint64_t>
                     : nullptr;
}
Handler store_handler(uint32_t size) {
  return size == 1   ? store<uint8_t>
         : size == 2 ? store<uint16_t>
         : size == 4 ? store<uint32_t>
         : size == 8 ? store<uint64_t>
                     : nullptr;
}
Handler load_param_handler(uint32_t size) {
  return size == 1   ? load_param<uint8_t>
         : size == 2 ? load_param<uint16_t>
         : size == 4 ? load_param<uint32_t>
         : size == 8 ? load_param<uint64_t>
                     : nullptr;
}
Handler copy_async_handler() { return copy_async; }
Handler nothing_handler() { return nothing; }
Handler convert_address_handler(bool to) { return to ? convert_address<true> : convert_address<false>; }
Handler is_space_handler() { return is_space; }

}  // namespace kgate::vgpu
