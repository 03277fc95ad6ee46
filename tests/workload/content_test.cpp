#include "workload/content.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "support/float_formats.h"
#include "workload/element.h"

namespace kgate {
namespace {

template <typename T>
std::vector<T> made(const Content& content, size_t count) {
  std::vector<T> values(count);
  materialise(content, std::as_writable_bytes(std::span(values)));
  return values;
}

TEST(Content, same_seed_same_bytes_and_another_seed_others) {
  const auto a = made<float>(ContentRandom{"f32", -1, 1, 7}, 1000);
  EXPECT_EQ(a, made<float>(ContentRandom{"f32", -1, 1, 7}, 1000));
  EXPECT_NE(a, made<float>(ContentRandom{"f32", -1, 1, 8}, 1000));
}

TEST(Content, an_element_does_not_depend_on_the_buffer_size) {
  const auto small = made<float>(ContentRandom{"f32", -1, 1, 7}, 10),
             large = made<float>(ContentRandom{"f32", -1, 1, 7}, 5000);
  EXPECT_TRUE(std::equal(small.begin(), small.end(), large.begin()));
}

// The values are part of the format: a change here changes every stored baseline.
TEST(Content, known_values_stay) {
  EXPECT_EQ(made<uint32_t>(ContentRandom{"u32", 0, 4294967295.0, 1}, 3),
            (std::vector<uint32_t>{3220144176u, 1599417572u, 1882415043u}));
}

TEST(Content, floats_fill_their_range_evenly) {
  const auto values = made<float>(ContentRandom{"f32", -2, 6, 3}, 100'000);
  double sum = 0, squares = 0;
  for (float v : values) {
    ASSERT_GE(v, -2);
    ASSERT_LE(v, 6);
    sum += v, squares += double{v} * v;
  }
  const double mean = sum / 1e5;
  EXPECT_NEAR(mean, 2, 0.03);
  EXPECT_NEAR(squares / 1e5 - mean * mean, 64.0 / 12, 0.05);
}

TEST(Content, every_dtype_stays_in_range_and_varies) {
  for (const std::string& name : element_names()) {
    const Element* element = element_named(name);
    ASSERT_NE(element, nullptr);
    const double low = element->lowest < 0 ? -1 : 0;
    std::vector<std::byte> bytes(1024 * element->bytes);
    materialise(ContentRandom{name, low, 1, 5}, bytes);
    std::vector<std::byte> other(bytes.begin() + element->bytes, bytes.end());
    other.resize(bytes.size(), bytes[0]);
    EXPECT_NE(bytes, other) << name;
    for (size_t i = 0; i < bytes.size() && element->bytes == 1 && name[0] != 'e'; ++i)
      ASSERT_TRUE(static_cast<int8_t>(bytes[i]) >= low && static_cast<int8_t>(bytes[i]) <= 1) << name;
  }
}

TEST(Content, narrow_floats_hold_values_of_their_format) {
  for (uint16_t bits : made<uint16_t>(ContentRandom{"f16", 1, 2, 5}, 1000)) {
    ASSERT_GE(f16_to_float(bits), 1);
    ASSERT_LE(f16_to_float(bits), 2);
  }
  for (uint8_t bits : made<uint8_t>(ContentRandom{"e4m3", -448, 448, 5}, 1000))
    ASSERT_TRUE(std::isfinite(e4m3_to_float(bits)));
  for (uint32_t bits : made<uint32_t>(ContentRandom{"tf32", -3, 3, 5}, 1000)) ASSERT_EQ(bits & 0x1fff, 0u);
}

// The fast path of narrow formats rounds as the reference conversions do, over normal, subnormal and overflowing
// values.
TEST(Content, narrow_floats_are_rounded_as_everywhere_else) {
  for (double top : {1e-7, 1e-3, 1.0, 300.0, 448.0, 57344.0, 65504.0}) {
    const auto reals = made<double>(ContentRandom{"f64", -top, top, 9}, 20'000);
    const auto f16 = made<uint16_t>(ContentRandom{"f16", -top, top, 9}, 20'000);
    const auto bf16 = made<uint16_t>(ContentRandom{"bf16", -top, top, 9}, 20'000);
    const auto e4m3 = made<uint8_t>(ContentRandom{"e4m3", -top, top, 9}, 20'000);
    const auto e5m2 = made<uint8_t>(ContentRandom{"e5m2", -top, top, 9}, 20'000);
    for (size_t i = 0; i < reals.size(); ++i) {
      ASSERT_EQ(f16[i], double_to_f16(reals[i])) << reals[i];
      ASSERT_EQ(bf16[i], double_to_bf16(reals[i])) << reals[i];
      ASSERT_EQ(e4m3[i], float_to_e4m3(static_cast<float>(reals[i]))) << reals[i];
      ASSERT_EQ(e5m2[i], float_to_e5m2(static_cast<float>(reals[i]))) << reals[i];
    }
  }
}

TEST(Content, integers_reach_both_ends) {
  bool low = false, high = false;
  for (int8_t v : made<int8_t>(ContentRandom{"i8", -3, 3, 1}, 1000)) {
    ASSERT_TRUE(v >= -3 && v <= 3);
    low |= v == -3, high |= v == 3;
  }
  EXPECT_TRUE(low && high);
  for (int64_t v : made<int64_t>(ContentRandom{"i64", -9223372036854775808.0, -9223372036854775808.0, 1}, 3))
    EXPECT_EQ(v, INT64_MIN);
  bool top = false;
  for (uint64_t v : made<uint64_t>(ContentRandom{"u64", 0, 18446744073709549568.0, 1}, 64)) top |= v >> 63;
  EXPECT_TRUE(top);
}

TEST(Content, bytes_are_followed_by_zeros_and_poison_fills) {
  EXPECT_EQ(made<uint8_t>(ContentBytes{"ab"}, 4), (std::vector<uint8_t>{'a', 'b', 0, 0}));
  EXPECT_EQ(made<uint8_t>(ContentPoison{0xc5}, 2), (std::vector<uint8_t>{0xc5, 0xc5}));
  EXPECT_EQ(made<uint8_t>(ContentZeros{}, 2), (std::vector<uint8_t>{0, 0}));
  EXPECT_THROW(made<uint8_t>(ContentBytes{"abc"}, 2), Error);
}

}  // namespace
}  // namespace kgate
