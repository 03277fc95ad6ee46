// Narrow floating-point formats: every encoding survives, rounding is to nearest even, in one step.

#include "support/float_formats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kgate {
namespace {

TEST(FloatFormats, every_encoding_of_sixteen_bits_survives_a_round_trip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    float half = f16_to_float(static_cast<uint16_t>(bits)), brain = bf16_to_float(static_cast<uint16_t>(bits));
    if (!std::isnan(half)) {
      EXPECT_EQ(float_to_f16(half), bits);
    }
    if (!std::isnan(brain)) {
      EXPECT_EQ(float_to_bf16(brain), bits);
    }
    if (!std::isnan(brain)) {
      EXPECT_EQ(double_to_bf16(brain), bits);
    }
  }
}

TEST(FloatFormats, every_encoding_of_eight_bits_survives_a_round_trip) {
  for (uint32_t bits = 0; bits < 256; ++bits) {
    float e4m3 = e4m3_to_float(static_cast<uint8_t>(bits)), e5m2 = e5m2_to_float(static_cast<uint8_t>(bits));
    if (!std::isnan(e4m3)) {
      EXPECT_EQ(float_to_e4m3(e4m3), bits);
    }
    if (!std::isnan(e5m2)) {
      EXPECT_EQ(float_to_e5m2(e5m2), bits);
    }
  }
}

TEST(FloatFormats, known_values) {  // IEEE 754 binary16; OCP 8-bit floating point
  EXPECT_EQ(float_to_f16(1.0f), 0x3c00);
  EXPECT_EQ(float_to_f16(-2.0f), 0xc000);
  EXPECT_EQ(float_to_f16(65504.0f), 0x7bff);
  EXPECT_EQ(float_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_f16(5.9604645e-8f), 0x0001);
  EXPECT_EQ(float_to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(e4m3_to_float(0x7e), 448.0f);
  EXPECT_EQ(float_to_e4m3(1e6f), 0x7e);
  EXPECT_EQ(e5m2_to_float(0x7b), 57344.0f);
  EXPECT_TRUE(std::isinf(e5m2_to_float(0x7c)));
}

TEST(FloatFormats, ties_go_to_even_and_doubles_are_rounded_once) {
  EXPECT_EQ(float_to_f16(2049.0f), float_to_f16(2048.0f));
  EXPECT_EQ(float_to_f16(2051.0f), float_to_f16(2052.0f));
  // Just above a tie: through float it would become the tie itself and fall to even.
  double above = 1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40);
  EXPECT_EQ(double_to_f16(above), 0x3c01);
  EXPECT_EQ(float_to_f16(static_cast<float>(above)), 0x3c00);
}

TEST(FloatFormats, nan_stays_nan_and_infinity_keeps_its_sign) {
  float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(f16_to_float(float_to_f16(nan))));
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(nan))));
  EXPECT_TRUE(std::isnan(e4m3_to_float(float_to_e4m3(nan))));
  EXPECT_EQ(f16_to_float(float_to_f16(-inf)), -inf);
  EXPECT_EQ(bf16_to_float(float_to_bf16(inf)), inf);
}

}  // namespace
}  // namespace kgate
