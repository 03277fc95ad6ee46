// Runs one PTX statement on many values: lane i computes with a[i], b[i], c[i]. In the statement $d, $a, $b, $c stand
// for registers, $p for a predicate that is true in odd lanes. The last warp is partly empty, so both the whole-warp
// and the masked path of a handler are used.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "bench_gpu.h"

namespace kgate::vgpu {

template <class T>
std::string suffix() {  // of a register of that width
  return ".b" + std::to_string(sizeof(T) * 8);
}

inline std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

inline std::string wrap_kernel(const std::string& body, const std::string& params = ".param .u64 d") {
  return ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k(" + params + ") {\n" + body + "\nret;\n}\n";
}

template <class D, class A, class B = A, class C = A>
std::vector<D> run_one(const std::string& statement, const std::vector<A>& a, std::vector<B> b = {},
                       std::vector<C> c = {}) {
  b.resize(a.size());
  c.resize(a.size());
  std::string body = ".reg .pred $p, $q; .reg .b32 t, u; .reg .b64 p<4>, off;\n.reg " + suffix<D>() + " rd; .reg " +
                     suffix<A>() + " ra; .reg " + suffix<B>() + " rb; .reg " + suffix<C>() +
                     " rc;\n"
                     "mov.u32 t, %tid.x; and.b32 u, t, 1; setp.ne.u32 $p, u, 0;\n";
  const size_t sizes[] = {sizeof(D), sizeof(A), sizeof(B), sizeof(C)};
  for (int i = 0; i < 4; ++i) {
    std::string n = std::to_string(i);
    body += "ld.param.u64 p" + n + ", [q" + n + "]; mul.wide.u32 off, t, " + std::to_string(sizes[i]) + "; add.u64 p" +
            n + ", p" + n + ", off;\n";
  }
  const char* names[] = {"rd", "ra", "rb", "rc"};
  for (int i = 0; i < 4; ++i) {
    body += "ld.global.b" + std::to_string(sizes[i] * 8) + " " + names[i] + ", [p" + std::to_string(i) + "];\n";
  }
  body += statement + "\nst.global.b" + std::to_string(sizeof(D) * 8) + " [p0], rd;";
  for (const char* name : {"d", "a", "b", "c"}) body = replaced(body, std::string("$") + name, std::string("r") + name);
  body = replaced(replaced(body, "$p", "pp"), "$q", "qq");
  BenchGpu gpu(wrap_kernel(body, ".param .u64 q0, .param .u64 q1, .param .u64 q2, .param .u64 q3"));
  if (!gpu.program) return std::vector<D>(a.size());
  uint64_t da = gpu.upload(a), db = gpu.upload(b), dc = gpu.upload(c), dd = gpu.upload(std::vector<D>(a.size()));
  expect_clean(gpu.launch("k", {1}, {static_cast<uint32_t>(a.size())}, 0, dd, da, db, dc));
  return gpu.download<D>(dd, a.size());
}

// Interesting values of an integer type, then a spread; 45 in all.
template <class T>
std::vector<T> integers(uint64_t salt = 0) {
  using L = std::numeric_limits<T>;
  std::vector<T> out{0, 1, T(-1), L::max(), L::min(), 2, T(L::max() - 1), T(L::min() + 1), 7, T(-7), 31, 32, 33, 64};
  uint64_t x = 0x9e3779b97f4a7c15 * (salt + 1);
  while (out.size() < 45) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    out.push_back(static_cast<T>(x >> (x & 31)));
  }
  if (salt) std::rotate(out.begin(), out.begin() + static_cast<long>(salt % 13), out.end());
  return out;
}

template <class T>
std::vector<T> floats(uint64_t salt = 0) {
  using L = std::numeric_limits<T>;
  std::vector<T> out{0,
                     T(-0.0),
                     1,
                     -1,
                     L::infinity(),
                     -L::infinity(),
                     L::quiet_NaN(),
                     L::min(),
                     -L::min(),
                     L::denorm_min(),
                     L::max(),
                     -L::max(),
                     T(0.5),
                     T(1.5),
                     T(2.5),
                     T(-2.5),
                     L::min() / 4,
                     -L::min() / 2,
                     T(3e9),
                     T(-3e9),
                     T(1e20)};
  uint64_t x = 0x9e3779b97f4a7c15 * (salt + 1);
  while (out.size() < 45) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    double magnitude =
        std::ldexp(1.0 + static_cast<double>(x & 0xffffff) / (1 << 24), static_cast<int>(x >> 40 & 31) - 16);
    out.push_back(static_cast<T>(x >> 60 & 1 ? -magnitude : magnitude));
  }
  if (salt) std::rotate(out.begin(), out.begin() + static_cast<long>(salt % 19), out.end());
  return out;
}

// Bit for bit, any NaN being as good as another.
template <class T>
::testing::AssertionResult same(T got, T expected) {
  bool equal = std::memcmp(&got, &expected, sizeof(T)) == 0;
  if constexpr (std::is_floating_point_v<T>) equal |= got != got && expected != expected;
  if (equal) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "got " << +got << ", expected " << +expected;
}

template <class D, class A, class F>
void expect_unary(const std::string& statement, const std::vector<A>& a, F f) {
  auto got = run_one<D, A>(statement, a);
  for (size_t i = 0; i < a.size(); ++i) ASSERT_TRUE(same<D>(got[i], f(a[i]))) << statement << " of " << +a[i];
}

template <class D, class A, class B, class F>
void expect_binary(const std::string& statement, const std::vector<A>& a, const std::vector<B>& b, F f) {
  auto got = run_one<D, A, B>(statement, a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_TRUE(same<D>(got[i], f(a[i], b[i]))) << statement << " of " << +a[i] << " and " << +b[i];
  }
}

template <class D, class A, class B, class C, class F>
void expect_ternary(const std::string& statement, const std::vector<A>& a, const std::vector<B>& b,
                    const std::vector<C>& c, F f) {
  auto got = run_one<D, A, B, C>(statement, a, b, c);
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_TRUE(same<D>(got[i], f(a[i], b[i], c[i]))) << statement << " of " << +a[i] << ", " << +b[i] << ", " << +c[i];
  }
}

}  // namespace kgate::vgpu
