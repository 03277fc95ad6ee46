// Small hand-written PTX, and a Driver on the virtual GPU that each test makes anew.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/driver.h"

namespace kgate {

// c[i] = a[i] + b[i] for i < n
inline constexpr char kVectorAdd[] = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry vector_add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .f32 %f<4>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [c];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra $done;
  mul.wide.u32 %rd4, %r5, 4;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  add.s64 %rd7, %rd3, %rd4;
  ld.global.f32 %f1, [%rd5];
  ld.global.f32 %f2, [%rd6];
  add.f32 %f3, %f1, %f2;
  st.global.f32 [%rd7], %f3;
$done:
  ret;
}
)";

inline constexpr char kMisbehaving[] = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry hang()
{
$again:
  bra $again;
}

.visible .entry trapping()
{
  trap;
  ret;
}

.visible .entry misaligned(.param .u64 a)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [a];
  ld.global.u32 %r1, [%rd1+1];
  st.global.u32 [%rd1], %r1;
  ret;
}

.visible .entry fixed_block() .reqntid 32
{
  ret;
}
)";

inline constexpr char kNotExecuted[] = R"(.version 8.6
.target sm_100a
.address_size 64

.visible .entry not_executed()
{
  tcgen05.fence::before_thread_sync;
  ret;
}
)";

// What nvcc makes of assert(false).
inline constexpr char kAsserting[] = R"(.version 7.0
.target sm_70
.address_size 64

.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 text[2] = {120, 0};

.visible .entry asserting()
{
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  mov.u64 %rd1, text;
  mov.u32 %r1, 7;
  {
    .param .b64 param0;
    st.param.b64 [param0+0], %rd1;
    .param .b64 param1;
    st.param.b64 [param1+0], %rd1;
    .param .b32 param2;
    st.param.b32 [param2+0], %r1;
    .param .b64 param3;
    st.param.b64 [param3+0], %rd1;
    .param .b64 param4;
    st.param.b64 [param4+0], 1;
    call.uni __assertfail, (param0, param1, param2, param3, param4);
  }
  ret;
}
)";

inline std::span<const std::byte> image(std::string_view text) { return std::as_bytes(std::span(text)); }

// Sets an environment variable for one scope.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value, 1);
  }
  ~ScopedEnv() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

#ifdef KGATE_TEST_VGPU
inline std::unique_ptr<gpu::Driver> open_virtual() {
  auto driver = gpu::Driver::open(KGATE_TEST_VGPU);
  if (!driver) throw Error(Exit::internal, driver.failure());
  return std::move(*driver);
}

inline std::unique_ptr<gpu::Driver> start_virtual() {
  auto driver = open_virtual();
  driver->initialise(0);
  return driver;
}
#endif

// The code that `body` throws; 0 when it throws none.
template <typename Body>
int code_of(Body&& body) {
  try {
    body();
  } catch (const gpu::GpuError& error) {
    return error.code;
  }
  return 0;
}

// vector_add's parameters as the entry lays them out.
struct VectorAddParams {
  uint64_t a, b, c;
  uint32_t n;
  std::span<const std::byte> bytes() const { return {reinterpret_cast<const std::byte*>(this), 28}; }
};

// Three vectors of n floats on the device, and the launch that adds them.
struct VectorAdd {
  gpu::Driver& driver;
  uint32_t n;
  gpu::CUmodule module;
  VectorAddParams params;
  gpu::Launch launch;

  explicit VectorAdd(gpu::Driver& driver, uint32_t n = 1000)
      : driver(driver), n(n), module(driver.load_module(image(kVectorAdd))) {
    std::vector<float> a(n), b(n);
    for (uint32_t i = 0; i < n; ++i) {
      a[i] = static_cast<float>(i);
      b[i] = 0.5f;
    }
    size_t bytes = n * sizeof(float);
    params = {driver.allocate(bytes), driver.allocate(bytes), driver.allocate(bytes), n};
    driver.upload(params.a, a.data(), bytes);
    driver.upload(params.b, b.data(), bytes);
    driver.fill(params.c, 0xff, bytes, nullptr);
    launch.function = driver.function(module, "vector_add");
    launch.grid = {(n + 127) / 128, 1, 1};
    launch.block = {128, 1, 1};
  }
  void run() { driver.launch(launch, params.bytes()); }
  std::vector<float> result() {
    std::vector<float> c(n);
    driver.download(c.data(), params.c, n * sizeof(float));
    return c;
  }
  void expect_right() {
    std::vector<float> c = result();
    for (uint32_t i = 0; i < n; ++i) ASSERT_EQ(c[i], static_cast<float>(i) + 0.5f) << i;
  }
};

}  // namespace kgate
