// The .nv.info records of a cubin: a list of {format, attribute, value or payload}, each 4-aligned.
// Global records (section .nv.info) name a symbol in their payload; those of a kernel stand in .nv.info.<kernel>.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "support/error.h"

namespace kgate {

enum class InfoAttribute : uint8_t {
  max_threads = 0x05,      // 3 x u32
  param_cbank = 0x0a,      // symbol u32, base u16, size u16
  reqntid = 0x10,          // 3 x u32
  frame_size = 0x11,       // global: symbol u32, bytes u32 (spills included)
  kparam_info = 0x17,      // index u32, ordinal u16, offset u16, word u32: size in the top 14 bits, log2 alignment in the low byte
  cbank_param_size = 0x19, // u16 in the value
  regcount = 0x2f,         // global: symbol u32, registers u32
  cta_per_cluster = 0x3d,  // 3 x u32
  kparam_info_v2 = 0x45,   // as kparam_info, but the last word is the size
  num_barriers = 0x4c,     // u8 in the value
};

struct InfoRecord {
  InfoAttribute attribute{};
  uint16_t value = 0;          // formats 2 (u8) and 3 (u16)
  std::string_view payload;    // format 4
};

Result<std::vector<InfoRecord>> read_info_records(std::string_view section);

}  // namespace kgate
