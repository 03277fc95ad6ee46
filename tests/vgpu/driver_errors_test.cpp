// What goes wrong goes wrong as on a GPU: the codes, when they surface, and what can be learnt about them.
#include <algorithm>

#include "samples.h"

namespace kgate {
namespace {

using gpu::GpuError;

GpuError error_of(auto&& body) {
  try {
    body();
  } catch (const GpuError& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return GpuError(0, "", "", "");
}

TEST(VirtualDriverErrors, bad_ptx_gives_a_log_with_the_line) {
  auto driver = start_virtual();
  std::string text = kVectorAdd;
  size_t at = text.find("  add.f32 %f3");
  text.replace(at, 13, "  add.f32 %f3$$,");
  std::string line = "line " + std::to_string(1 + std::count(text.begin(), text.begin() + at, '\n'));
  GpuError error = error_of([&] { driver->load_module(image(text)); });
  EXPECT_EQ(error.code, gpu::CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(error.name, "CUDA_ERROR_INVALID_PTX");
  EXPECT_NE(error.detail.find(line), std::string::npos) << error.detail;
  EXPECT_FALSE(error.sticky());
}

TEST(VirtualDriverErrors, images_that_are_no_ptx_are_refused) {
  auto driver = start_virtual();
  for (std::string_view text : {"", "\x01", "hello", "\x7f", "{{{{", ".version"}) {
    EXPECT_EQ(error_of([&] { driver->load_module(image(text)); }).code, gpu::CUDA_ERROR_INVALID_PTX) << text;
  }
  std::string fatbin("\x50\xed\x55\xba\0\0\0\0", 8);
  EXPECT_EQ(error_of([&] { driver->load_module(image(fatbin)); }).code, gpu::CUDA_ERROR_NO_BINARY_FOR_GPU);
}

TEST(VirtualDriverErrors, ptx_for_a_newer_driver_has_a_code_of_its_own) {
  auto driver = start_virtual();
  std::string version = kVectorAdd;
  version.replace(version.find("7.0"), 3, "99.0");
  EXPECT_EQ(error_of([&] { driver->load_module(image(version)); }).code, gpu::CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
}

TEST(VirtualDriverErrors, an_instruction_that_is_not_executed_is_named_when_it_is_reached) {
  auto driver = start_virtual();
  gpu::Launch launch;
  launch.function = driver->function(driver->load_module(image(kNotExecuted)), "not_executed");
  launch.block = {32, 1, 1};
  driver->launch(launch, {});
  GpuError error = error_of([&] { driver->synchronize(nullptr); });
  EXPECT_EQ(error.code, gpu::CUDA_ERROR_NOT_SUPPORTED);
  auto fault = driver->last_fault();
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, "unsupported");
  EXPECT_EQ(fault->entry, "not_executed");
  EXPECT_GT(fault->line, 0u);
  EXPECT_NE(error.detail.find("tcgen05"), std::string::npos) << error.detail;
}

TEST(VirtualDriverErrors, a_failed_device_assertion_has_its_code) {
  auto driver = start_virtual();
  gpu::Launch launch;
  launch.function = driver->function(driver->load_module(image(kAsserting)), "asserting");
  launch.block = {32, 1, 1};
  driver->launch(launch, {});
  EXPECT_EQ(code_of([&] { driver->synchronize(nullptr); }), gpu::CUDA_ERROR_ASSERT);
}

TEST(VirtualDriverErrors, an_unknown_entry_is_named) {
  auto driver = start_virtual();
  gpu::CUmodule module = driver->load_module(image(kVectorAdd));
  GpuError error = error_of([&] { driver->function(module, "vector_sub"); });
  EXPECT_EQ(error.code, gpu::CUDA_ERROR_NOT_FOUND);
  EXPECT_NE(error.text.find("vector_sub"), std::string::npos);
}

TEST(VirtualDriverErrors, out_of_bounds_surfaces_at_the_next_call_and_stays) {
  {
    auto driver = start_virtual();
    VectorAdd add(*driver);
    add.params.n = add.n + 24;  // 24 floats past the end, inside the last block
    add.run();                  // the launch itself succeeds
    GpuError error = error_of([&] { driver->synchronize(nullptr); });
    EXPECT_EQ(error.code, gpu::CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_TRUE(error.sticky());
    EXPECT_NE(error.detail.find("vector_add"), std::string::npos) << error.detail;
    EXPECT_EQ(code_of([&] { driver->allocate(64); }), gpu::CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(code_of([&] { add.run(); }), gpu::CUDA_ERROR_ILLEGAL_ADDRESS);
    auto fault = driver->last_fault();
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->code, gpu::CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(fault->kind, "out of bounds");
    EXPECT_EQ(fault->entry, "vector_add");
    EXPECT_NE(fault->address, 0u);
    EXPECT_NE(fault->statement.find("ld.global.f32"), std::string::npos) << fault->statement;
  }
  auto fresh = start_virtual();  // the last owner released the context: a new one is whole
  VectorAdd add(*fresh);
  add.run();
  fresh->synchronize(nullptr);
  add.expect_right();
}

int code_at_sync(const char* entry, bool with_pointer) {
  auto driver = start_virtual();
  gpu::Launch launch;
  launch.function = driver->function(driver->load_module(image(kMisbehaving)), entry);
  launch.block = {32, 1, 1};
  uint64_t pointer = driver->allocate(256);
  auto params = std::as_bytes(std::span(&pointer, 1));
  driver->launch(launch, with_pointer ? params : std::span<const std::byte>{});
  return code_of([&] { driver->synchronize(nullptr); });
}

TEST(VirtualDriverErrors, a_hang_ends_as_a_launch_timeout) {
  ScopedEnv env("KGATE_VGPU_BUDGET", "10K");
  EXPECT_EQ(code_at_sync("hang", false), gpu::CUDA_ERROR_LAUNCH_TIMEOUT);
}

TEST(VirtualDriverErrors, a_misaligned_access_and_a_trap_have_their_codes) {
  EXPECT_EQ(code_at_sync("misaligned", true), gpu::CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(code_at_sync("trapping", false), gpu::CUDA_ERROR_LAUNCH_FAILED);
}

TEST(VirtualDriverErrors, invalid_configurations_are_refused_by_the_launch_itself) {
  auto driver = start_virtual();
  VectorAdd add(*driver);
  auto refused = [&](Dim3 grid, Dim3 block, std::span<const std::byte> params) {
    gpu::Launch launch = add.launch;
    launch.grid = grid;
    launch.block = block;
    return code_of([&] { driver->launch(launch, params); });
  };
  auto whole = add.params.bytes();
  EXPECT_EQ(refused({0, 1, 1}, {32, 1, 1}, whole), gpu::CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(refused({1, 65536, 1}, {32, 1, 1}, whole), gpu::CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(refused({1, 1, 1}, {0, 1, 1}, whole), gpu::CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(refused({1, 1, 1}, {2048, 1, 1}, whole), gpu::CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(refused({1, 1, 1}, {1, 1, 65}, whole), gpu::CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(refused({1, 1, 1}, {32, 1, 1}, {}), gpu::CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(refused({1, 1, 1}, {32, 1, 1}, whole.first(27)), gpu::CUDA_ERROR_INVALID_VALUE);
  driver->synchronize(nullptr);  // none of them harmed the context

  gpu::Launch fixed;
  fixed.function = driver->function(driver->load_module(image(kMisbehaving)), "fixed_block");
  fixed.block = {64, 1, 1};
  EXPECT_EQ(code_of([&] { driver->launch(fixed, {}); }), gpu::CUDA_ERROR_INVALID_VALUE);
}

TEST(VirtualDriverErrors, what_is_not_executed_says_so) {
  auto driver = start_virtual();
  VectorAdd add(*driver);
  add.launch.cluster = {2, 1, 1};
  GpuError cluster = error_of([&] { add.run(); });
  EXPECT_EQ(cluster.code, gpu::CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_NE(cluster.detail.find("cluster"), std::string::npos);
  add.launch.cluster = {1, 1, 1};
  add.run();
  EXPECT_EQ(code_of([&] { driver->occupancy_blocks_per_sm(add.launch.function, 128, 0); }),
            gpu::CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(driver->allocate_at((gpu::CUdeviceptr{1} << 40) + 4096, 4096), std::nullopt) << "no multiple of a granule";
}

TEST(VirtualDriverErrors, a_cubin_loads_but_does_not_run) {
  auto driver = start_virtual();
  std::string cubin("\x7f" "ELF\x02\x01\x01\x41\x08", 9);
  cubin.resize(64);
  gpu::Launch launch;
  launch.function = driver->function(driver->load_module(image(cubin)), "anything");
  launch.block = {32, 1, 1};
  GpuError error = error_of([&] { driver->launch(launch, {}); });
  EXPECT_EQ(error.code, gpu::CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_NE(error.detail.find("static only: SASS is not executed"), std::string::npos) << error.detail;
  EXPECT_EQ(code_of([&] { driver->attribute(launch.function, gpu::CU_FUNC_ATTRIBUTE_NUM_REGS); }),
            gpu::CUDA_ERROR_NOT_SUPPORTED);
  driver->synchronize(nullptr);
}

TEST(VirtualDriverErrors, memory_misuse_is_found_out) {
  ScopedEnv env("KGATE_VGPU_MEMORY", "1M");
  auto driver = start_virtual();
  EXPECT_EQ(code_of([&] { driver->allocate(2 << 20); }), gpu::CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(code_of([&] { driver->allocate(SIZE_MAX); }), gpu::CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(code_of([&] { driver->allocate(0); }), gpu::CUDA_ERROR_INVALID_VALUE);
  gpu::CUdeviceptr p = driver->allocate(256);
  char bytes[512] = {};
  EXPECT_EQ(code_of([&] { driver->upload(p, bytes, 257); }), gpu::CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(code_of([&] { driver->download(bytes, p + 200, 57); }), gpu::CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(code_of([&] { driver->fill(p, 0, SIZE_MAX, nullptr); }), gpu::CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(code_of([&] { driver->upload(0, bytes, 1); }), gpu::CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(code_of([&] { driver->free(p + 8); }), gpu::CUDA_ERROR_INVALID_VALUE);
  driver->free(p);
  EXPECT_EQ(code_of([&] { driver->free(p); }), gpu::CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(code_of([&] { driver->download(bytes, p, 1); }), gpu::CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(code_of([&] { driver->free(0); }), 0);  // as cudaFree(0)
}

TEST(VirtualDriverErrors, dead_handles_are_not_followed) {
  auto driver = start_virtual();
  VectorAdd add(*driver);
  auto invented = reinterpret_cast<gpu::CUstream>(uintptr_t{0x1234});
  EXPECT_EQ(code_of([&] { driver->synchronize(invented); }), gpu::CUDA_ERROR_INVALID_HANDLE);
  gpu::CUstream stream = driver->create_stream();
  driver->destroy_stream(stream);
  EXPECT_EQ(code_of([&] { driver->destroy_stream(stream); }), gpu::CUDA_ERROR_INVALID_HANDLE);
  add.launch.stream = stream;
  EXPECT_EQ(code_of([&] { add.run(); }), gpu::CUDA_ERROR_INVALID_HANDLE);
  add.launch.stream = nullptr;
  EXPECT_EQ(code_of([&] { driver->record_event(nullptr, nullptr); }), gpu::CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(code_of([&] { driver->function(nullptr, "vector_add"); }), gpu::CUDA_ERROR_INVALID_HANDLE);
  driver->unload_module(add.module);
  EXPECT_EQ(code_of([&] { add.run(); }), gpu::CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(code_of([&] { driver->unload_module(add.module); }), gpu::CUDA_ERROR_INVALID_HANDLE);
}

TEST(VirtualDriverErrors, bad_settings_end_the_start) {
  for (const char* bad : {"lots", "-1", "0", "2T", "1.5G", "99999999999G", "2 G"}) {
    ScopedEnv env("KGATE_VGPU_MEMORY", bad);
    auto driver = open_virtual();
    try {
      driver->initialise(0);
      ADD_FAILURE() << bad << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::environment);
      EXPECT_NE(error.failure().what.find("KGATE_VGPU_MEMORY"), std::string::npos) << error.what();
      EXPECT_FALSE(error.failure().hint.empty());
    }
  }
}

TEST(VirtualDriverErrors, more_memory_than_addresses_is_a_reason) {
  ScopedEnv env("KGATE_VGPU_MEMORY", "1000000G");
  auto driver = open_virtual();
  GpuError error = error_of([&] { driver->initialise(0); });
  EXPECT_EQ(error.code, gpu::CUDA_ERROR_INVALID_VALUE);
  EXPECT_NE(error.detail.find("reserve"), std::string::npos) << error.text;
}

TEST(VirtualDriverErrors, there_is_one_device) {
  auto driver = open_virtual();
  try {
    driver->initialise(1);
    ADD_FAILURE() << "device 1 was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::environment);
    EXPECT_NE(error.failure().what.find("no device 1"), std::string::npos);
  }
}

TEST(VirtualDriverErrors, calls_before_initialise_fail) {
  auto driver = open_virtual();
  EXPECT_NE(code_of([&] { driver->allocate(64); }), 0);
}

}  // namespace
}  // namespace kgate
