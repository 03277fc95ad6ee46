// One floating-point instruction at a time: roundings, flushing, NaN and zero rules, narrow formats, conversions.
#include <cfenv>
#include <cmath>

#include "one_instruction.h"
#include "support/float_formats.h"

namespace kgate::vgpu {
namespace {

template <class F>
auto under(int mode, F f) {
  int saved = std::fegetround();
  std::fesetround(mode);
  auto out = f();
  std::fesetround(saved);
  return out;
}

float flush(float v) { return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v; }

// volatile: the host compiler must not fold or move these across a change of rounding mode.
template <class T>
T sum(T a, T b) {
  volatile T x = a, y = b;
  volatile T r = x + y;
  return r;
}
template <class T>
T product(T a, T b) {
  volatile T x = a, y = b;
  volatile T r = x * y;
  return r;
}
template <class T>
T quotient(T a, T b) {
  volatile T x = a, y = b;
  volatile T r = x / y;
  return r;
}

const std::pair<const char*, int> kModes[] = {
    {".rn", FE_TONEAREST}, {".rz", FE_TOWARDZERO}, {".rm", FE_DOWNWARD}, {".rp", FE_UPWARD}};

TEST(FloatInstructions, every_rounding_of_sums_products_and_quotients) {
  auto a = floats<float>(), b = floats<float>(5), c = floats<float>(9);
  auto p = floats<double>(), q = floats<double>(5), r = floats<double>(9);
  for (auto [suffix, mode] : kModes) {
    std::string s = suffix;
    expect_binary<float>("add" + s + ".f32 $d, $a, $b;", a, b,
                         [m = mode](float x, float y) { return under(m, [&] { return sum(x, y); }); });
    expect_binary<float>("sub" + s + ".f32 $d, $a, $b;", a, b,
                         [m = mode](float x, float y) { return under(m, [&] { return sum(x, -y); }); });
    expect_binary<float>("mul" + s + ".f32 $d, $a, $b;", a, b,
                         [m = mode](float x, float y) { return under(m, [&] { return product(x, y); }); });
    expect_binary<float>("div" + s + ".f32 $d, $a, $b;", a, b,
                         [m = mode](float x, float y) { return under(m, [&] { return quotient(x, y); }); });
    expect_unary<float>("sqrt" + s + ".f32 $d, $a;", a, [m = mode](float x) {
      return under(m, [&] {
        volatile float v = x;
        volatile float o = std::sqrt(v);
        return float(o);
      });
    });
    expect_unary<float>("rcp" + s + ".f32 $d, $a;", a,
                        [m = mode](float x) { return under(m, [&] { return quotient(1.0f, x); }); });
    expect_ternary<float>("fma" + s + ".f32 $d, $a, $b, $c;", a, b, c, [m = mode](float x, float y, float z) {
      return under(m, [&] {
        volatile float o = std::fma(x, y, z);
        return float(o);
      });
    });
    expect_binary<double>("add" + s + ".f64 $d, $a, $b;", p, q,
                          [m = mode](double x, double y) { return under(m, [&] { return sum(x, y); }); });
    expect_binary<double>("div" + s + ".f64 $d, $a, $b;", p, q,
                          [m = mode](double x, double y) { return under(m, [&] { return quotient(x, y); }); });
    expect_ternary<double>("fma" + s + ".f64 $d, $a, $b, $c;", p, q, r, [m = mode](double x, double y, double z) {
      return under(m, [&] {
        volatile double o = std::fma(x, y, z);
        return double(o);
      });
    });
  }
}

TEST(FloatInstructions, ftz_flushes_inputs_and_results_of_that_instruction_only) {
  auto a = floats<float>(), b = floats<float>(5);
  std::vector<float> tiny(a.size(), std::numeric_limits<float>::min());
  expect_binary<float>("add.ftz.f32 $d, $a, $b;", a, b, [](float x, float y) { return flush(flush(x) + flush(y)); });
  expect_binary<float>("mul.ftz.f32 $d, $a, $b;", a, tiny, [](float x, float y) { return flush(flush(x) * flush(y)); });
  expect_binary<float>("mul.f32 $d, $a, $b;", a, tiny, [](float x, float y) { return x * y; });
  expect_unary<float>("abs.ftz.f32 $d, $a;", a, [](float x) { return std::fabs(flush(x)); });
}

TEST(FloatInstructions, saturation_maps_nan_and_negatives_to_zero) {
  auto a = floats<float>(), b = floats<float>(5);
  expect_binary<float>("add.sat.f32 $d, $a, $b;", a, b, [](float x, float y) {
    float v = x + y;
    return v >= 0 ? std::min(v + 0.0f, 1.0f) : 0.0f;
  });
}

TEST(FloatInstructions, minimum_and_maximum_know_nan_and_signed_zero) {
  float nan = NAN, inf = INFINITY;
  std::vector<float> a{nan, 1, nan, 0.0f, -0.0f, inf, 2}, b{1, nan, nan, -0.0f, 0.0f, -inf, 3};
  auto low = run_one<float, float, float>("min.f32 $d, $a, $b;", a, b),
       high = run_one<float, float, float>("max.f32 $d, $a, $b;", a, b);
  EXPECT_EQ(low[0], 1);
  EXPECT_EQ(low[1], 1);
  EXPECT_EQ(std::bit_cast<uint32_t>(low[2]), 0x7fffffffu);
  EXPECT_TRUE(std::signbit(low[3]) && std::signbit(low[4]));
  EXPECT_FALSE(std::signbit(high[3]) || std::signbit(high[4]));
  EXPECT_EQ(low[5], -inf);
  EXPECT_EQ(high[6], 3);
  auto strict = run_one<float, float, float>("max.NaN.f32 $d, $a, $b;", a, b);
  EXPECT_TRUE(std::isnan(strict[0]) && std::isnan(strict[1]) && std::isnan(strict[2]));
  EXPECT_EQ(strict[6], 3);
  auto half =
      run_one<uint16_t, uint16_t, uint16_t>("min.f16 $d, $a, $b;", {0x7e00, 0x0000, 0x3c00}, {0x3c00, 0x8000, 0x4000});
  EXPECT_EQ(half, (std::vector<uint16_t>{0x3c00, 0x8000, 0x3c00}));
}

TEST(FloatInstructions, a_nan_result_is_the_hardware_s_canonical_one) {
  auto got = run_one<uint32_t, float, float>("add.f32 $d, $a, $b;", {INFINITY, 1}, {-INFINITY, NAN});
  EXPECT_EQ(got[0], 0x7fffffffu);
  EXPECT_EQ(got[1], 0x7fffffffu);
}

TEST(FloatInstructions, signs) {
  auto a = floats<float>(), b = floats<float>(3);
  expect_unary<float>("neg.f32 $d, $a;", a, [](float x) { return -x; });
  expect_unary<float>("abs.f32 $d, $a;", a, [](float x) { return std::fabs(x); });
  expect_binary<float>("copysign.f32 $d, $a, $b;", a, b, [](float x, float y) { return std::copysign(y, x); });
  expect_unary<double>("neg.f64 $d, $a;", floats<double>(), [](double x) { return -x; });
}

TEST(FloatInstructions, approximations_are_within_an_ulp_of_the_truth) {
  std::vector<float> x;
  for (int i = 0; i < 300; ++i)
    x.push_back(std::ldexp(1.0f + static_cast<float>(i % 97) / 97, i % 60 - 30) * (i % 3 ? 1.0f : -1.0f));
  for (float special :
       {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 127.9f, 128.0f, -126.5f, -140.0f, -149.5f, -151.0f, 1e-40f, 1.0f})
    x.push_back(special);
  auto near = [&](const std::string& op, auto f) {
    auto got = run_one<float, float>(op + " $d, $a;", x);
    for (size_t i = 0; i < x.size(); ++i) {
      float expected = static_cast<float>(f(double{x[i]}));
      bool close = std::isnan(expected) ? std::isnan(got[i])
                                        : got[i] == expected || std::nextafter(got[i], expected) == expected;
      EXPECT_TRUE(close) << op << " " << x[i] << ": " << got[i] << ", not " << expected;
    }
  };
  near("ex2.approx.f32", [](double v) { return std::exp2(v); });
  near("lg2.approx.f32", [](double v) { return std::log2(v); });
  near("sin.approx.f32", [](double v) { return std::sin(v); });
  near("cos.approx.f32", [](double v) { return std::cos(v); });
  near("tanh.approx.f32", [](double v) { return std::tanh(v); });
  near("rsqrt.approx.f32", [](double v) { return 1 / std::sqrt(v); });
  near("rcp.approx.f32", [](double v) { return 1 / v; });
  near("sqrt.approx.f32", [](double v) { return std::sqrt(v); });
  auto ftz = run_one<float, float>("ex2.approx.ftz.f32 $d, $a;", {-130.0f, 1e-40f, -126.0f});
  EXPECT_EQ(ftz, (std::vector<float>{0.0f, 1.0f, std::ldexp(1.0f, -126)}));
}

TEST(FloatInstructions, comparisons_with_nan) {
  auto a = floats<float>(), b = floats<float>(5);
  std::copy(a.begin(), a.begin() + 8, b.begin());
  auto check = [&](const std::string& name, auto f) {
    expect_binary<uint32_t>("setp." + name + ".f32 $q, $a, $b; selp.u32 $d, 1, 0, $q;", a, b,
                            [f](float x, float y) { return uint32_t(f(x, y)); });
  };
  auto unordered = [](float x, float y) { return std::isnan(x) || std::isnan(y); };
  check("eq", [](float x, float y) { return x == y; });
  check("ne", [&](float x, float y) { return !unordered(x, y) && x != y; });
  check("lt", [](float x, float y) { return x < y; });
  check("ge", [](float x, float y) { return x >= y; });
  check("ltu", [&](float x, float y) { return unordered(x, y) || x < y; });
  check("geu", [&](float x, float y) { return unordered(x, y) || x >= y; });
  check("neu", [](float x, float y) { return x != y; });
  check("equ", [&](float x, float y) { return unordered(x, y) || x == y; });
  check("num", [&](float x, float y) { return !unordered(x, y); });
  check("nan", unordered);
}

// ---- 16-bit formats, against exact sums in double and one rounding

std::vector<uint16_t> halves(uint32_t salt) {
  std::vector<uint16_t> out{0, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 1, 0x8001, 0x3ff, 0x400, 0x7bff, 0xfbff};
  uint32_t x = 12345 + salt;
  while (out.size() < 500) x = x * 1664525 + 1013904223, out.push_back(static_cast<uint16_t>(x >> 16));
  std::rotate(out.begin(), out.begin() + salt % 29, out.end());
  return out;
}

bool same16(uint16_t got, uint16_t expected, bool half) {
  uint16_t infinity = half ? 0x7c00 : 0x7f80;
  return got == expected || ((got & 0x7fff) > infinity && (expected & 0x7fff) > infinity);
}

TEST(FloatInstructions, half_and_bfloat_arithmetic_rounds_once) {
  auto a = halves(0), b = halves(7), c = halves(13);
  for (bool half : {true, false}) {
    std::string t = half ? ".f16" : ".bf16";
    auto widen = [half](uint16_t v) { return double{half ? f16_to_float(v) : bf16_to_float(v)}; };
    auto narrow = [half](double v) { return half ? double_to_f16(v) : double_to_bf16(v); };
    auto check = [&](const std::string& op, auto f) {
      for (bool pair : {false, true}) {
        std::vector<uint16_t> got;
        if (!pair) {
          got = run_one<uint16_t>(op + t + " $d, $a, $b" + (op.starts_with("fma") ? ", $c;" : ";"), a, b, c);
        } else {
          auto two = [](const std::vector<uint16_t>& v) {
            std::vector<uint32_t> out;
            for (size_t i = 0; i + 1 < v.size(); i += 2) out.push_back(v[i] | uint32_t{v[i + 1]} << 16);
            return out;
          };
          for (uint32_t v : run_one<uint32_t>(op + t + "x2 $d, $a, $b" + (op.starts_with("fma") ? ", $c;" : ";"),
                                              two(a), two(b), two(c))) {
            got.push_back(static_cast<uint16_t>(v)), got.push_back(static_cast<uint16_t>(v >> 16));
          }
        }
        for (size_t i = 0; i < a.size(); ++i) {
          ASSERT_TRUE(same16(got[i], f(a[i], b[i], c[i]), half))
              << op << t << " " << widen(a[i]) << " " << widen(b[i]) << " " << widen(c[i]) << ": " << widen(got[i])
              << " not " << widen(f(a[i], b[i], c[i]));
        }
      }
    };
    check("add", [&](uint16_t x, uint16_t y, uint16_t) { return narrow(widen(x) + widen(y)); });
    check("sub", [&](uint16_t x, uint16_t y, uint16_t) { return narrow(widen(x) - widen(y)); });
    check("mul", [&](uint16_t x, uint16_t y, uint16_t) { return narrow(widen(x) * widen(y)); });
    // long double holds the product and, over f16's range, the sum exactly.
    if (half)
      check("fma.rn", [&](uint16_t x, uint16_t y, uint16_t z) {
        long double exact = static_cast<long double>(widen(x)) * widen(y) + widen(z);
        double near = static_cast<double>(exact);
        if (static_cast<long double>(near) != exact && std::isfinite(near)) {  // round to odd
          uint64_t bits = std::bit_cast<uint64_t>(near);
          if ((bits & 1) == 0) near = std::bit_cast<double>((exact > near) == (near > 0) ? bits + 1 : bits - 1);
        }
        return narrow(near);
      });
  }
}

TEST(FloatInstructions, half_fma_does_not_round_twice) {
  // 1.0009765625^2 = 1.00195407867431640625; adding 2^-24 must not first round to a tie.
  auto got = run_one<uint16_t, uint16_t>("fma.rn.f16 $d, $a, $b, $c;", {0x3c01}, std::vector<uint16_t>{0x3c01},
                                         std::vector<uint16_t>{0x0001});
  EXPECT_EQ(got[0], double_to_f16(1.0009765625 * 1.0009765625 + std::ldexp(1.0, -24)));
  // bf16: 2^100 + tiny is inexact in double; the tie must break upward.
  auto brain = run_one<uint16_t, uint16_t>("fma.rn.bf16 $d, $a, $b, $c;", {float_to_bf16(1.0078125f)},
                                           std::vector<uint16_t>{float_to_bf16(1.5f)},
                                           std::vector<uint16_t>{float_to_bf16(1e-30f)});
  EXPECT_EQ(brain[0], float_to_bf16(std::nextafter(1.0078125f * 1.5f, 2.0f)));
}

TEST(FloatInstructions, float_to_integer_saturates_and_rounds) {
  auto a = floats<float>();
  auto d = floats<double>(3);
  auto check = [&]<class D>(D, const std::string& t) {
    auto clamp = [](double v, double (*round)(double)) -> D {
      if (std::isnan(v)) return 0;
      v = round(v);
      if (v <= static_cast<double>(std::numeric_limits<D>::min())) return std::numeric_limits<D>::min();
      if (v >= static_cast<double>(std::numeric_limits<D>::max())) return std::numeric_limits<D>::max();
      return static_cast<D>(v);
    };
    std::pair<const char*, double (*)(double)> roundings[] = {
        {"rzi", std::trunc}, {"rni", std::nearbyint}, {"rmi", std::floor}, {"rpi", std::ceil}};
    for (auto [name, round] : roundings) {
      expect_unary<D>("cvt." + std::string(name) + t + ".f32 $d, $a;", a,
                      [&, r = round](float v) { return clamp(v, r); });
      expect_unary<D>("cvt." + std::string(name) + t + ".f64 $d, $a;", d,
                      [&, r = round](double v) { return clamp(v, r); });
    }
  };
  check(int32_t{}, ".s32");
  check(uint32_t{}, ".u32");
  check(int64_t{}, ".s64");
  check(uint64_t{}, ".u64");
  check(int16_t{}, ".s16");
  auto byte = run_one<uint32_t, float>("cvt.rzi.s8.f32 $d, $a;", {-200.0f, 200.0f, -5.5f});
  EXPECT_EQ(byte, (std::vector<uint32_t>{0xffffff80, 0x7f, 0xfffffffb}));  // extended into the wider register
}

TEST(FloatInstructions, integer_to_float_in_every_rounding) {
  auto a = integers<int64_t>();
  auto u = integers<uint64_t>(4);
  for (auto [suffix, mode] : kModes) {
    std::string s = suffix;
    expect_unary<float>("cvt" + s + ".f32.s64 $d, $a;", a, [m = mode](int64_t v) {
      return under(m, [&] {
        volatile int64_t x = v;
        volatile float o = static_cast<float>(x);
        return float(o);
      });
    });
    expect_unary<double>("cvt" + s + ".f64.u64 $d, $a;", u, [m = mode](uint64_t v) {
      return under(m, [&] {
        volatile uint64_t x = v;
        volatile double o = static_cast<double>(x);
        return double(o);
      });
    });
  }
  expect_unary<float>("cvt.rn.f32.s32 $d, $a;", integers<int32_t>(), [](int32_t v) { return static_cast<float>(v); });
  expect_unary<uint16_t>("cvt.rn.f16.s32 $d, $a;", integers<int32_t>(), [](int32_t v) { return double_to_f16(v); });
}

TEST(FloatInstructions, between_float_formats) {
  auto a = floats<float>();
  auto d = floats<double>(3);
  auto h = halves(3);
  expect_unary<double>("cvt.f64.f32 $d, $a;", a, [](float v) { return double{v}; });
  for (auto [suffix, mode] : kModes) {
    expect_unary<float>("cvt" + std::string(suffix) + ".f32.f64 $d, $a;", d, [m = mode](double v) {
      return under(m, [&] {
        volatile double x = v;
        volatile float o = static_cast<float>(x);
        return float(o);
      });
    });
  }
  auto narrowed = run_one<uint16_t>("cvt.rn.f16.f32 $d, $a;", a);
  auto brains = run_one<uint16_t>("cvt.rn.bf16.f32 $d, $a;", a);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(same16(narrowed[i], float_to_f16(a[i]), true)) << a[i];
    EXPECT_TRUE(same16(brains[i], float_to_bf16(a[i]), false)) << a[i];
  }
  expect_unary<float>("cvt.f32.f16 $d, $a;", h, [](uint16_t v) { return f16_to_float(v); });
  expect_unary<float>("cvt.f32.bf16 $d, $a;", h, [](uint16_t v) { return bf16_to_float(v); });
  auto toward_zero =
      run_one<uint16_t>("cvt.rz.f16.f32 $d, $a;", std::vector<float>{1.0009f, -1.0009f, 70000.0f, 1e-9f});
  EXPECT_EQ(toward_zero, (std::vector<uint16_t>{0x3c00, 0xbc00, 0x7bff, 0x0000}));
  auto up = run_one<uint16_t>("cvt.rp.f16.f32 $d, $a;", std::vector<float>{1.0001f, -1.0009f, 1e-9f, -1e-9f});
  EXPECT_EQ(up, (std::vector<uint16_t>{0x3c01, 0xbc00, 0x0001, 0x8000}));
  auto saturated = run_one<float, float>("cvt.sat.f32.f32 $d, $a;", {2.0f, -1.0f, NAN, 0.25f});
  EXPECT_EQ(saturated, (std::vector<float>{1, 0, 0, 0.25f}));
  auto integral = run_one<float, float>("cvt.rni.f32.f32 $d, $a;", {2.5f, -0.25f, 3.5f, 1e20f});
  EXPECT_EQ(integral, (std::vector<float>{2, -0.0f, 4, 1e20f}));
  EXPECT_TRUE(std::signbit(integral[1]));
}

TEST(FloatInstructions, packed_conversions_put_the_first_source_above) {
  std::vector<float> a{1.5f, -2, 1e6f}, b{0.5f, 3, -1};
  auto pair = run_one<uint32_t, float, float>("cvt.rn.f16x2.f32 $d, $a, $b;", a, b);
  auto brain = run_one<uint32_t, float, float>("cvt.rn.bf16x2.f32 $d, $a, $b;", a, b);
  auto relu = run_one<uint32_t, float, float>("cvt.rn.relu.f16x2.f32 $d, $a, $b;", a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(pair[i], uint32_t{float_to_f16(a[i])} << 16 | float_to_f16(b[i]));
    EXPECT_EQ(brain[i], uint32_t{float_to_bf16(a[i])} << 16 | float_to_bf16(b[i]));
    EXPECT_EQ(relu[i], uint32_t{float_to_f16(std::max(a[i], 0.0f))} << 16 | float_to_f16(std::max(b[i], 0.0f)));
  }
  auto tf32 = run_one<uint32_t, float>("cvt.rna.tf32.f32 $d, $a;",
                                       {std::bit_cast<float>(0x3f801000u), std::bit_cast<float>(0x3f800fffu)});
  EXPECT_EQ(tf32, (std::vector<uint32_t>{0x3f802000, 0x3f800000}));
}

TEST(FloatInstructions, eight_bit_floats_round_trip_and_saturate) {
  std::vector<float> a, b;
  for (int i = 0; i < 256; ++i)
    a.push_back(e4m3_to_float(static_cast<uint8_t>(i))), b.push_back(e5m2_to_float(static_cast<uint8_t>(i)));
  auto e4 = run_one<uint16_t, float, float>("cvt.rn.satfinite.e4m3x2.f32 $d, $a, $b;", a, floats<float>(1));
  auto e5 = run_one<uint16_t, float, float>("cvt.rn.satfinite.e5m2x2.f32 $d, $a, $b;", b, floats<float>(1));
  for (int i = 0; i < 256; ++i) {
    EXPECT_TRUE(std::isnan(a[i]) || e4[i] >> 8 == i) << i;
    EXPECT_TRUE(!std::isfinite(b[i]) || e5[i] >> 8 == i) << i;
  }
  std::vector<float> odd{1000.0f, -1e9f, 0.9f * 0x1p-9f, 17.0f, 0x1p-10f, INFINITY};
  auto bytes = run_one<uint16_t, float, float>("cvt.rn.satfinite.e4m3x2.f32 $d, $a, $b;", odd, odd);
  for (size_t i = 0; i < odd.size(); ++i)
    EXPECT_EQ(bytes[i] & 0xff, std::isinf(odd[i]) ? 0x7e : float_to_e4m3(odd[i])) << odd[i];
  std::vector<uint16_t> codes;
  for (int i = 0; i < 256; ++i) codes.push_back(static_cast<uint16_t>(i | (255 - i) << 8));
  auto halves4 = run_one<uint32_t, uint16_t>("cvt.rn.f16x2.e4m3x2 $d, $a;", codes);
  for (int i = 0; i < 256; ++i) {
    EXPECT_TRUE(same16(static_cast<uint16_t>(halves4[i]), float_to_f16(e4m3_to_float(static_cast<uint8_t>(i))), true))
        << i;
  }
}

TEST(FloatInstructions, the_host_s_flush_to_zero_does_not_reach_the_kernel) {
#if defined(__SSE2__)
  unsigned saved = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(saved | 0x8040);
  auto got = run_one<float, float, float>("mul.f32 $d, $a, $b;", {std::numeric_limits<float>::min()}, {0.5f});
  unsigned after = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(saved);
  EXPECT_EQ(std::bit_cast<uint32_t>(got[0]), 0x00400000u);
  EXPECT_EQ(after & 0x8040, 0x8040u);
#endif
}

}  // namespace
}  // namespace kgate::vgpu
