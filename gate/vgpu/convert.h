// How a decoded cvt is packed: flags = width of the source register | width of the result register << 8,
// imm = the bits below | rounding << 16.
#pragma once

#include <cstdint>

namespace kgate::vgpu {

enum ConvertBits : uint32_t { kConvertFtz = 1, kConvertSat = 2, kConvertRelu = 4, kConvertSatfinite = 8 };

}  // namespace kgate::vgpu
