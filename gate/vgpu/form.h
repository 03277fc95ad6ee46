// An instruction's form: opcode, types and the modifiers that change what it computes. The tables of handlers are asked
// for a form; one that they do not know is `unsupported`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "candidate/ptx.h"
#include "vgpu/warp.h"

namespace kgate::vgpu {

using ptx::Type;

enum class Round : uint8_t { none, rn, rz, rm, rp, rna, rni, rzi, rmi, rpi };
enum class Compare : uint8_t { none, eq, ne, lt, le, gt, ge, lo, ls, hi, hs, equ, neu, ltu, leu, gtu, geu, num, nan };
enum class Bool : uint8_t { none, and_, or_, xor_ };
enum class Part : uint8_t { none, lo, hi, wide };

struct Form {
  std::string_view op;
  Type type = Type::none;  // the first type named: of the result
  Type from = Type::none;  // the last type named: of the source; equal to `type` when only one is named
  Round round = Round::none;
  Compare compare = Compare::none;
  Bool combine = Bool::none;
  Part part = Part::none;
  bool ftz = false, sat = false, satfinite = false, relu = false, nan = false, approx = false, full = false, cc = false;
  bool clamp = false, wrap = false;  // shf
  bool exact = false;                // cvt: both registers are as wide as their types
  std::string_view mode;             // prmt: "f4e"…; shf: "l", "r"; bfind: "shiftamt"; lop3
};

// Handlers of one instruction set of the host. `select` gives null for a form that is not executed.
struct OpTable {
  const char* name;
  Handler (*select)(const Form& form);
};
const OpTable& op_table();  // the best that this machine runs; KGATE_VGPU_ISA=portable forces the plain one

}  // namespace kgate::vgpu
