// One instruction at a time: integers, bits, comparisons, moves, against plain C++.
#include <algorithm>
#include <bit>
#include <cmath>

#include "one_instruction.h"

namespace kgate::vgpu {
namespace {

template <class T>
std::string type() {
  return std::string(std::is_signed_v<T> ? ".s" : ".u") + std::to_string(sizeof(T) * 8);
}

template <class T>
class IntegerInstructions : public ::testing::Test {};
using IntegerTypes = ::testing::Types<uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t>;
TYPED_TEST_SUITE(IntegerInstructions, IntegerTypes);

template <class T>
using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;

TYPED_TEST(IntegerInstructions, sums_products_and_orders) {
  using T = TypeParam;
  auto a = integers<T>(), b = integers<T>(5), c = integers<T>(8);
  std::string t = type<T>();
  expect_binary<T>("add" + t + " $d, $a, $b;", a, b, [](T x, T y) { return T(Wide<T>(x) + y); });
  expect_binary<T>("sub" + t + " $d, $a, $b;", a, b, [](T x, T y) { return T(Wide<T>(x) - y); });
  expect_binary<T>("mul.lo" + t + " $d, $a, $b;", a, b, [](T x, T y) { return T(Wide<T>(x) * y); });
  expect_binary<T>("mul.hi" + t + " $d, $a, $b;", a, b,
                   [](T x, T y) { return T((Wide<T>(x) * y) >> (sizeof(T) * 8)); });
  expect_ternary<T>("mad.lo" + t + " $d, $a, $b, $c;", a, b, c, [](T x, T y, T z) { return T(Wide<T>(x) * y + z); });
  expect_ternary<T>("mad.hi" + t + " $d, $a, $b, $c;", a, b, c,
                    [](T x, T y, T z) { return T(((Wide<T>(x) * y) >> (sizeof(T) * 8)) + z); });
  expect_binary<T>("min" + t + " $d, $a, $b;", a, b, [](T x, T y) { return std::min(x, y); });
  expect_binary<T>("max" + t + " $d, $a, $b;", a, b, [](T x, T y) { return std::max(x, y); });
  expect_ternary<T>("sad" + t + " $d, $a, $b, $c;", a, b, c,
                    [](T x, T y, T z) { return T(z + (x < y ? Wide<T>(y) - x : Wide<T>(x) - y)); });
  expect_binary<T>("add" + t + " $d, $a, 5;", a, b, [](T x, T) { return T(Wide<T>(x) + 5); });
  if (std::is_signed_v<T>) {
    expect_unary<T>("neg" + t + " $d, $a;", a, [](T x) { return T(-Wide<T>(x)); });
    expect_unary<T>("abs" + t + " $d, $a;", a, [](T x) { return T(x < 0 ? -Wide<T>(x) : Wide<T>(x)); });
  }
}

TYPED_TEST(IntegerInstructions, division_never_traps) {
  using T = TypeParam;
  auto a = integers<T>(), b = integers<T>(3);
  std::string t = type<T>();
  expect_binary<T>("div" + t + " $d, $a, $b;", a, b, [](T x, T y) { return y == 0 ? T(-1) : T(Wide<T>(x) / y); });
  expect_binary<T>("rem" + t + " $d, $a, $b;", a, b, [](T x, T y) { return y == 0 ? x : T(Wide<T>(x) % y); });
  std::vector<T> lowest(33, std::numeric_limits<T>::min()), minus_one(33, T(-1));
  expect_binary<T>("div" + t + " $d, $a, $b;", lowest, minus_one, [](T x, T y) { return T(Wide<T>(x) / y); });
}

TYPED_TEST(IntegerInstructions, shifts_clamp_their_amount) {
  using T = TypeParam;
  using U = std::make_unsigned_t<T>;
  auto a = integers<T>();
  std::vector<uint32_t> n;
  for (size_t i = 0; i < a.size(); ++i)
    n.push_back(i < 40 ? static_cast<uint32_t>(i * 2) : 0xffffffff - static_cast<uint32_t>(i));
  constexpr uint32_t bits = sizeof(T) * 8;
  expect_binary<T>("shl.b" + std::to_string(bits) + " $d, $a, $b;", a, n,
                   [](T x, uint32_t s) { return s >= bits ? T(0) : T(U(x) << s); });
  expect_binary<T>("shr" + type<T>() + " $d, $a, $b;", a, n,
                   [](T x, uint32_t s) { return s >= bits ? T(std::is_signed_v<T> && x < 0 ? -1 : 0) : T(x >> s); });
}

TYPED_TEST(IntegerInstructions, bitwise_logic) {
  using T = TypeParam;
  auto a = integers<T>(), b = integers<T>(7);
  std::string t = ".b" + std::to_string(sizeof(T) * 8);
  expect_binary<T>("and" + t + " $d, $a, $b;", a, b, [](T x, T y) { return T(x & y); });
  expect_binary<T>("or" + t + " $d, $a, $b;", a, b, [](T x, T y) { return T(x | y); });
  expect_binary<T>("xor" + t + " $d, $a, $b;", a, b, [](T x, T y) { return T(x ^ y); });
  expect_unary<T>("not" + t + " $d, $a;", a, [](T x) { return T(~x); });
  expect_unary<T>("cnot" + t + " $d, $a;", a, [](T x) { return T(x == 0); });
}

TYPED_TEST(IntegerInstructions, comparisons_select) {
  using T = TypeParam;
  auto a = integers<T>(), b = integers<T>(2);
  std::copy(a.begin(), a.begin() + 10, b.begin());
  std::string t = type<T>(), w = std::to_string(sizeof(T) * 8);
  auto check = [&](const std::string& name, auto f) {
    expect_binary<uint32_t>("setp." + name + t + " $q, $a, $b; selp.u32 $d, 1, 0, $q;", a, b,
                            [f](T x, T y) { return uint32_t(f(x, y)); });
    expect_binary<uint32_t>("set." + name + ".u32" + t + " $d, $a, $b;", a, b,
                            [f](T x, T y) { return f(x, y) ? ~0u : 0u; });
  };
  check("eq", [](T x, T y) { return x == y; });
  check("ne", [](T x, T y) { return x != y; });
  check("lt", [](T x, T y) { return x < y; });
  check("le", [](T x, T y) { return x <= y; });
  check("gt", [](T x, T y) { return x > y; });
  check("ge", [](T x, T y) { return x >= y; });
  if (std::is_unsigned_v<T>) {
    check("lo", [](T x, T y) { return x < y; });
    check("hs", [](T x, T y) { return x >= y; });
  }
  std::vector<T> lane(a.size());
  for (size_t i = 0; i < lane.size(); ++i) lane[i] = T(i & 1);
  auto got = run_one<T, T, T>("selp.b" + w + " $d, $a, $b, $p;", a, b);
  for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(got[i], lane[i] ? a[i] : b[i]);
  got = run_one<T, T, T>("selp.b" + w + " $d, $a, $b, !$p;", a, b);
  for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(got[i], lane[i] ? b[i] : a[i]);
}

TEST(Instructions, saturating_integer_sums) {
  auto a = integers<int32_t>(), b = integers<int32_t>(4);
  auto clamp = [](int64_t v) { return static_cast<int32_t>(std::clamp<int64_t>(v, INT32_MIN, INT32_MAX)); };
  expect_binary<int32_t>("add.sat.s32 $d, $a, $b;", a, b, [&](int32_t x, int32_t y) { return clamp(int64_t{x} + y); });
  expect_binary<int32_t>("sub.sat.s32 $d, $a, $b;", a, b, [&](int32_t x, int32_t y) { return clamp(int64_t{x} - y); });
}

TEST(Instructions, wide_products) {
  auto a = integers<int32_t>(), b = integers<int32_t>(6);
  auto u = integers<uint32_t>(1), v = integers<uint32_t>(9);
  auto s = integers<int16_t>(1), t = integers<int16_t>(9);
  auto c = integers<int64_t>(3);
  expect_binary<int64_t>("mul.wide.s32 $d, $a, $b;", a, b, [](int64_t x, int64_t y) { return x * y; });
  expect_binary<uint64_t>("mul.wide.u32 $d, $a, $b;", u, v, [](uint64_t x, uint64_t y) { return x * y; });
  expect_binary<int32_t>("mul.wide.s16 $d, $a, $b;", s, t, [](int32_t x, int32_t y) { return x * y; });
  expect_ternary<int64_t>("mad.wide.s32 $d, $a, $b, $c;", a, b, c, [](int64_t x, int64_t y, int64_t z) {
    return static_cast<int64_t>(static_cast<uint64_t>(x * y) + static_cast<uint64_t>(z));
  });
  expect_binary<int32_t>("mul24.lo.s32 $d, $a, $b;", a, b, [](int32_t x, int32_t y) {
    auto low = [](int32_t q) { return int64_t{static_cast<int32_t>(static_cast<uint32_t>(q) << 8) >> 8}; };
    return static_cast<int32_t>(low(x) * low(y));
  });
}

TEST(Instructions, carry_chains_make_128_bit_arithmetic) {
  auto a = integers<uint64_t>(), b = integers<uint64_t>(5), c = integers<uint64_t>(8);
  expect_ternary<uint64_t>("add.cc.u64 $d, $a, $b; addc.u64 $d, $c, 0;", a, b, c,
                           [](uint64_t x, uint64_t y, uint64_t z) { return z + (x + y < x); });
  expect_ternary<uint64_t>("sub.cc.u64 $d, $a, $b; subc.u64 $d, $c, 0;", a, b, c,
                           [](uint64_t x, uint64_t y, uint64_t z) { return z - (x < y); });
  auto u = integers<uint32_t>(), v = integers<uint32_t>(5), w = integers<uint32_t>(8);
  expect_ternary<uint32_t>(
      "mad.lo.cc.u32 $d, $a, $b, $c; madc.hi.u32 $d, $a, $b, 0;", u, v, w,
      [](uint32_t x, uint32_t y, uint32_t z) { return static_cast<uint32_t>((uint64_t{x} * y + z) >> 32); });
}

TEST(Instructions, counting_and_finding_bits) {
  auto a = integers<uint32_t>();
  auto w = integers<uint64_t>();
  expect_unary<uint32_t>("popc.b32 $d, $a;", a, [](uint32_t x) { return uint32_t(std::popcount(x)); });
  expect_unary<uint32_t>("popc.b64 $d, $a;", w, [](uint64_t x) { return uint32_t(std::popcount(x)); });
  expect_unary<uint32_t>("clz.b32 $d, $a;", a, [](uint32_t x) { return uint32_t(std::countl_zero(x)); });
  expect_unary<uint32_t>("clz.b64 $d, $a;", w, [](uint64_t x) { return uint32_t(std::countl_zero(x)); });
  expect_unary<uint32_t>("bfind.u32 $d, $a;", a,
                         [](uint32_t x) { return x ? 31u - uint32_t(std::countl_zero(x)) : ~0u; });
  expect_unary<uint32_t>("bfind.shiftamt.u32 $d, $a;", a,
                         [](uint32_t x) { return x ? uint32_t(std::countl_zero(x)) : ~0u; });
  auto s = integers<int32_t>();
  expect_unary<uint32_t>("bfind.s32 $d, $a;", s, [](int32_t x) {
    uint32_t v = x < 0 ? ~uint32_t(x) : uint32_t(x);
    return v ? 31u - uint32_t(std::countl_zero(v)) : ~0u;
  });
  expect_unary<uint32_t>("brev.b32 $d, $a;", a, [](uint32_t x) {
    uint32_t out = 0;
    for (int i = 0; i < 32; ++i) out |= (x >> i & 1) << (31 - i);
    return out;
  });
  auto brev64 = run_one<uint64_t, uint64_t>("brev.b64 $d, $a;", {1, 0x8000000000000000});
  EXPECT_EQ(brev64[0], 0x8000000000000000);
  EXPECT_EQ(brev64[1], 1u);
}

TEST(Instructions, bit_fields_mask_position_and_length_and_extend_the_sign) {
  auto one = [](const std::string& op, auto a, uint32_t pos, uint32_t len) {
    using T = decltype(a);
    return run_one<T, T, uint32_t, uint32_t>(op + " $d, $a, $b, $c;", {a}, {pos}, {len})[0];
  };
  EXPECT_EQ(one("bfe.u32", uint32_t{0xabcd1234}, 8, 12), 0xd12u);
  EXPECT_EQ(one("bfe.s32", int32_t(0xabcd1234), 8, 16), int32_t(0xffffcd12));
  EXPECT_EQ(one("bfe.s32", int32_t(0x00000800), 8, 4), -8);
  EXPECT_EQ(one("bfe.s32", int32_t(0x80000000), 28, 100), -8);  // past the top: filled with the sign
  EXPECT_EQ(one("bfe.s32", int32_t(0x80000000), 40, 3), -1);
  EXPECT_EQ(one("bfe.u32", uint32_t{0xffffffff}, 40, 3), 0u);
  EXPECT_EQ(one("bfe.u32", uint32_t{0xffffffff}, 0, 0), 0u);
  EXPECT_EQ(one("bfe.u32", uint32_t{0xffffffff}, 256 + 4, 256 + 4), 0xfu);  // modulo 256
  EXPECT_EQ(one("bfe.u64", uint64_t{0x123456789abcdef0}, 4, 40), 0x6789abcdefu);
  EXPECT_EQ(one("bfe.s64", int64_t(0xf000000000000000), 60, 4), -1);
  auto insert = [](uint32_t a, uint32_t b, uint32_t pos, uint32_t len) {
    return run_one<uint32_t, uint32_t, uint32_t>(
        "bfi.b32 $d, $a, $b, " + std::to_string(pos) + ", " + std::to_string(len) + ";", {a}, {b})[0];
  };
  EXPECT_EQ(insert(0xff, 0, 8, 4), 0xf00u);
  EXPECT_EQ(insert(0x12, 0xffffffff, 28, 8), 0x2fffffffu);
  EXPECT_EQ(insert(0x12, 0xabcdef01, 0, 0), 0xabcdef01u);
  EXPECT_EQ(insert(0x12, 0xabcdef01, 32, 8), 0xabcdef01u);
  EXPECT_EQ(insert(0x12345678, 0xffffffff, 0, 32), 0x12345678u);
}

TEST(Instructions, permutations_and_three_input_logic) {
  auto prmt = [](const std::string& op, uint32_t a, uint32_t b, uint32_t c) {
    return run_one<uint32_t, uint32_t>(op + " $d, $a, $b, $c;", {a}, std::vector<uint32_t>{b},
                                       std::vector<uint32_t>{c})[0];
  };
  EXPECT_EQ(prmt("prmt.b32", 0x44332211, 0x88776655, 0x7531), 0x88664422u);
  EXPECT_EQ(prmt("prmt.b32", 0x44332211, 0x88776655, 0x00f8), 0x1111ff00u);  // bit 3 replicates the sign
  EXPECT_EQ(prmt("prmt.b32.f4e", 0x44332211, 0x88776655, 1), 0x55443322u);
  EXPECT_EQ(prmt("prmt.b32.b4e", 0x44332211, 0x88776655, 1), 0x77881122u);
  EXPECT_EQ(prmt("prmt.b32.rc16", 0x44332211, 0, 1), 0x44334433u);
  auto a = integers<uint32_t>(), b = integers<uint32_t>(3), c = integers<uint32_t>(7);
  for (uint32_t table : {0x80u, 0xfeu, 0x96u, 0xe8u, 0x1bu}) {
    expect_ternary<uint32_t>("lop3.b32 $d, $a, $b, $c, " + std::to_string(table) + ";", a, b, c,
                             [table](uint32_t x, uint32_t y, uint32_t z) {
                               uint32_t out = 0;
                               for (int i = 0; i < 32; ++i)
                                 out |= (table >> ((x >> i & 1) * 4 + (y >> i & 1) * 2 + (z >> i & 1)) & 1) << i;
                               return out;
                             });
  }
}

TEST(Instructions, funnel_shifts_wrap_or_clamp) {
  auto lo = integers<uint32_t>(), hi = integers<uint32_t>(3);
  std::vector<uint32_t> n;
  for (size_t i = 0; i < lo.size(); ++i) n.push_back(static_cast<uint32_t>(i * 3));
  auto both = [](uint32_t l, uint32_t h) { return uint64_t{h} << 32 | l; };
  expect_ternary<uint32_t>("shf.l.wrap.b32 $d, $a, $b, $c;", lo, hi, n,
                           [&](uint32_t l, uint32_t h, uint32_t s) { return uint32_t(both(l, h) << (s & 31) >> 32); });
  expect_ternary<uint32_t>("shf.r.wrap.b32 $d, $a, $b, $c;", lo, hi, n,
                           [&](uint32_t l, uint32_t h, uint32_t s) { return uint32_t(both(l, h) >> (s & 31)); });
  expect_ternary<uint32_t>("shf.l.clamp.b32 $d, $a, $b, $c;", lo, hi, n, [&](uint32_t l, uint32_t h, uint32_t s) {
    return uint32_t(both(l, h) << std::min(s, 32u) >> 32);
  });
  expect_ternary<uint32_t>("shf.r.clamp.b32 $d, $a, $b, $c;", lo, hi, n, [&](uint32_t l, uint32_t h, uint32_t s) {
    return uint32_t(both(l, h) >> std::min(s, 32u));
  });
}

TEST(Instructions, byte_dot_products) {
  auto a = integers<uint32_t>(1), b = integers<uint32_t>(3), c = integers<uint32_t>(7);
  expect_ternary<uint32_t>("dp4a.s32.u32 $d, $a, $b, $c;", a, b, c, [](uint32_t x, uint32_t y, uint32_t z) {
    for (int i = 0; i < 4; ++i) z += uint32_t(int32_t(int8_t(x >> 8 * i)) * int32_t(uint8_t(y >> 8 * i)));
    return z;
  });
  expect_ternary<uint32_t>("dp2a.hi.u32.u32 $d, $a, $b, $c;", a, b, c, [](uint32_t x, uint32_t y, uint32_t z) {
    for (int i = 0; i < 2; ++i) z += (x >> 16 * i & 0xffff) * (y >> (16 + 8 * i) & 0xff);
    return z;
  });
}

TEST(Instructions, predicates_combine_and_setp_has_two_results) {
  std::vector<uint32_t> a{1, 2, 3, 4, 5, 6, 7, 8}, b{4, 4, 4, 4, 4, 4, 4, 4};
  auto odd = [](uint32_t lane) { return lane & 1; };
  auto run = [&](const std::string& text) { return run_one<uint32_t, uint32_t>(text, a, b); };
  auto both =
      run("{ .reg .pred r, s; setp.lt.and.u32 r|s, $a, $b, $p; selp.u32 $d, 1, 0, r; selp.u32 t, 2, 0, s; or.b32 $d, "
          "$d, t; }");
  for (uint32_t i = 0; i < 8; ++i)
    EXPECT_EQ(both[i], (a[i] < 4 && odd(i) ? 1u : 0u) | (a[i] >= 4 && odd(i) ? 2u : 0u)) << i;
  auto inverse = run("{ .reg .pred r; setp.lt.or.u32 r, $a, $b, !$p; selp.u32 $d, 1, 0, r; }");
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(inverse[i], a[i] < 4 || !odd(i)) << i;
  auto sink = run("{ .reg .pred r; setp.lt.u32 _|r, $a, $b; selp.u32 $d, 1, 0, r; }");
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(sink[i], a[i] >= 4) << i;
  auto logic =
      run("{ .reg .pred r, s; setp.lt.u32 r, $a, $b; xor.pred s, r, $p; not.pred s, s; mov.pred r, s; selp.u32 $d, 1, "
          "0, r; }");
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(logic[i], (a[i] < 4) == bool(odd(i))) << i;
}

TEST(Instructions, guards_leave_other_lanes_alone) {
  auto a = integers<uint32_t>();
  auto got = run_one<uint32_t, uint32_t>("mov.b32 $d, 7; @$p add.u32 $d, $a, 1; @!$p sub.u32 $d, $d, 2;", a);
  for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(got[i], i & 1 ? a[i] + 1 : 5u) << i;
}

TEST(Instructions, moves_pack_and_unpack) {
  std::vector<uint64_t> a{0x1122334455667788, 0xffeeddccbbaa9988};
  auto swap32 = run_one<uint64_t, uint64_t>("{ .reg .b32 l, h; mov.b64 {l, h}, $a; mov.b64 $d, {h, l}; }", a);
  EXPECT_EQ(swap32[0], 0x5566778811223344u);
  auto high = run_one<uint32_t, uint64_t>("mov.b64 {_, $d}, $a;", a);
  EXPECT_EQ(high[1], 0xffeeddccu);
  auto quarter = run_one<uint16_t, uint64_t>("{ .reg .b16 w, x, y; mov.b64 {w, x, $d, y}, $a; }", a);
  EXPECT_EQ(quarter[0], 0x3344u);
  auto bits = run_one<uint32_t, uint32_t>("mov.b32 $d, 0f3F800000;", {0});
  EXPECT_EQ(bits[0], 0x3f800000u);
  auto wide = run_one<uint64_t, uint32_t>("mov.f64 $d, 0d3FF0000000000000;", {0});
  EXPECT_EQ(wide[0], 0x3ff0000000000000u);
}

TEST(Instructions, special_registers) {
  auto lanes = run_one<uint32_t, uint32_t>("mov.u32 $d, %laneid;", std::vector<uint32_t>(70));
  auto warps = run_one<uint32_t, uint32_t>("mov.u32 $d, %warpid;", std::vector<uint32_t>(70));
  auto below = run_one<uint32_t, uint32_t>("mov.u32 $d, %lanemask_lt;", std::vector<uint32_t>(70));
  auto size = run_one<uint32_t, uint32_t>("mov.u32 $d, %ntid.x;", std::vector<uint32_t>(70));
  for (uint32_t i = 0; i < 70; ++i) {
    EXPECT_EQ(lanes[i], i % 32);
    EXPECT_EQ(warps[i], i / 32);
    EXPECT_EQ(below[i], (1u << i % 32) - 1);
    EXPECT_EQ(size[i], 70u);
  }
  auto clock = run_one<uint64_t, uint32_t>(
      "{ .reg .b64 s; mov.u64 s, %clock64; mov.u32 t, 1; mov.u64 $d, %clock64; sub.u64 $d, $d, s; }", {0});
  EXPECT_EQ(clock[0], 2u);  // a count of instructions, not a time
}

TEST(Instructions, sign_selection) {
  std::vector<uint32_t> a{1, 1, 1}, b{2, 2, 2};
  std::vector<float> c{0.5f, -0.5f, -0.0f};
  auto got = run_one<uint32_t, uint32_t, uint32_t, float>("slct.b32.f32 $d, $a, $b, $c;", a, b, c);
  EXPECT_EQ(got, (std::vector<uint32_t>{1, 2, 1}));
}

}  // namespace
}  // namespace kgate::vgpu
