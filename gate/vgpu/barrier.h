// Flags of decoded barrier instructions: a = id, b = thread count, c = predicate (imm its flip), d = result of bar.red.
#pragma once

#include <cstdint>
#include <string>

namespace kgate::vgpu {

struct Insn;
struct Warp;

enum BarrierFlags : uint32_t {
  kBarrierAligned = 1,  // all threads of the warp must come here
  kBarrierCount = 2,    // b holds a thread count
  kBarrierArrive = 4,   // does not wait
  kBarrierRed = 8,
  kBarrierAnd = 16,  // of red; neither: popc
  kBarrierOr = 32,
};

std::string statement_line(const Warp& warp, const Insn* ip);

}  // namespace kgate::vgpu
