// Where the lanes of one memory instruction point: bounds, alignment, sectors and bank conflicts.
#pragma once

#include <cstdint>

#include "vgpu/warp.h"

namespace kgate::vgpu {

enum class AccessSpace : uint8_t { global, constant, shared, local, param, generic };

// Insn::flags of memory instructions.
inline constexpr uint32_t kElements = 0xf;       // vector length
inline constexpr uint32_t kAddress32 = 1u << 4;  // the base register has 32 bits
inline constexpr uint32_t kSignExtend = 1u << 5;
inline constexpr uint32_t kSpaceShift = 8;   // AccessSpace
inline constexpr uint32_t kWidthShift = 16;  // bytes of the data register when there is one element
inline AccessSpace access_space(const Insn* ip) { return static_cast<AccessSpace>(ip->flags >> kSpaceShift & 0xff); }

enum class AccessKind : uint8_t { load, store, atomic };

struct Access {
  std::byte* at[32];        // per active lane
  bool contiguous = false;  // all 32 lanes, one after the other from at[0]
  bool uniform = false;     // all active lanes at the same address
};

// False after a fault. `bytes`: of one lane, a power of two, which is also the alignment.
bool locate(Warp& warp, const Insn* ip, uint32_t mask, uint32_t bytes, AccessKind kind, Access& out);
// The same with the address operands of `shape`, for instructions that have two; faults name `ip`.
bool locate_as(Warp& warp, const Insn* ip, const Insn& shape, uint32_t mask, uint32_t bytes, AccessKind kind,
               Access& out);

}  // namespace kgate::vgpu
