// What a Driver holds, shared by the files that implement it. Internal to gate/gpu.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "gpu/driver.h"
#include "gpu/driver_calls.h"
#include "gpu/vgpu_abi.h"

namespace kgate::gpu {

struct Driver::State {
  Library library;
  DriverCalls calls;                              // a copy of library.calls: one indirection less on the hot path
  kgate_vgpu_last_fault_fn read_fault = nullptr;  // both null on a real GPU
  kgate_vgpu_last_counters_fn read_counters = nullptr;
  bool is_virtual = false;
  DeviceProperties properties;
  CUdevice device = 0;
  CUcontext context = nullptr;
  std::mutex mapped_mutex;
  std::map<CUdeviceptr, size_t> mapped;  // allocate_at: what free() must unmap

  void check(CUresult code, const char* call) const {
    if (code != CUDA_SUCCESS) [[unlikely]]
      fail(code, call);
  }
  // Throws GpuError; an empty `detail` is filled with the virtual GPU's fault when that is what the code came from.
  [[noreturn]] void fail(CUresult code, const char* call, std::string detail = {}) const;
  std::optional<VirtualFault> last_fault() const;
};

// A call that an older driver or the virtual GPU may lack; then "not supported", by its name.
#define KGATE_OPTIONAL_CALL(state, name, ...)                             \
  do {                                                                    \
    const Driver::State& s = (state);                                     \
    if (s.calls.name == nullptr) s.fail(CUDA_ERROR_NOT_SUPPORTED, #name); \
    s.check(s.calls.name(__VA_ARGS__), #name);                            \
  } while (false)

inline void empty_host_function(void*) {}

// The attributes of a launch beyond grid, block and shared memory; returns how many there are.
constexpr unsigned kMaxLaunchAttributes = 3;
unsigned launch_attributes(const Launch& launch, CUlaunchAttribute* out);

}  // namespace kgate::gpu
