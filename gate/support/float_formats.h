// Conversions between the GPU's narrow floating-point formats and float/double, with IEEE round-to-nearest-even.
// Encodings: f16 IEEE binary16; bf16 upper half of binary32; e4m3/e5m2 as in the OCP 8-bit FP specification (e4m3 has no
// infinity: overflow saturates to 448; e5m2 follows IEEE).
#pragma once

#include <bit>
#include <cstdint>

namespace kgate {

float f16_to_float(uint16_t bits);
uint16_t float_to_f16(float value);
uint16_t double_to_f16(double value);  // one rounding, not through float

inline float bf16_to_float(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
uint16_t float_to_bf16(float value);
uint16_t double_to_bf16(double value);

float e4m3_to_float(uint8_t bits);
uint8_t float_to_e4m3(float value);
float e5m2_to_float(uint8_t bits);
uint8_t float_to_e5m2(float value);

}  // namespace kgate
