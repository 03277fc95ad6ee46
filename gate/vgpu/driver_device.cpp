// Exports: initialisation, the one device, and its attributes. Where hardware would have a number that this machine has
// none for (clocks, buses, caches), the attribute is 0.
#include <algorithm>
#include <cstring>

#include "vgpu/driver_call.h"
#include "vgpu/driver_injection.h"

namespace kgate::vgpu {

namespace {

constexpr char kName[] = "kgate virtual GPU";
constexpr char kUuid[17] = "kgate-virtual-00";

// Nominal: one CPU thread executes the grid, but kernels that size their grid by the number of SMs should get several
// blocks, or nothing between blocks would ever be exercised.
constexpr int kMultiprocessors = 4;

int attribute_value(CUdevice_attribute attribute) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return kMaxThreads;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X: return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: return 0x7fffffff;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y: return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return kSharedDefault;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return kSharedOptIn;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: return 228 << 10;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK: return 1 << 10;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY: return 64 << 10;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH: return 0x7fffffff;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK: return 65536;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: return 65536;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return kMultiprocessors;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: return 2048;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: return 32;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return 9;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return 0;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING: return 1;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS: return 1;
    case CU_DEVICE_ATTRIBUTE_INTEGRATED: return 1;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: return 1;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: return 1;
    default: return 0;
  }
}

CUresult check_device(CUdevice device) { return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE; }

// body() for device 0 after cuInit.
template <typename Body>
CUresult device_call(CUdevice device, const void* out, Body&& body) noexcept {
  return global_call([&](State& s) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUresult code = check_device(device);
    return code == CUDA_SUCCESS ? body(s) : code;
  });
}

}  // namespace

KGATE_EXPORT CUresult cuInit(unsigned flags) {
  return guarded([&] {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    run_injection();
    State& s = state();
    std::lock_guard lock(s.mutex);
    auto settings = read_settings();
    if (!settings) {
      record_fault(s, CUDA_ERROR_INVALID_VALUE, "settings", settings.failure().where + ": " + settings.failure().what);
      return CUDA_ERROR_INVALID_VALUE;
    }
    s.settings = *settings;
    s.initialised = true;
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = kDriverVersion;
  return CUDA_SUCCESS;
}

KGATE_EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return device_call(ordinal, device, [&](State&) {
    *device = 0;
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuDeviceGetCount(int* count) {
  return device_call(0, count, [&](State&) {
    *count = 1;
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  return device_call(device, name, [&](State&) {
    if (size <= 0) return CUDA_ERROR_INVALID_VALUE;
    size_t length = std::min(sizeof kName - 1, static_cast<size_t>(size) - 1);
    std::memcpy(name, kName, length);
    name[length] = '\0';
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return device_call(device, uuid, [&](State&) {
    std::memcpy(uuid->bytes, kUuid, sizeof uuid->bytes);
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return device_call(device, uuid, [&](State&) {
    std::memcpy(uuid->bytes, kUuid, sizeof uuid->bytes);
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return device_call(device, bytes, [&](State& s) {
    *bytes = s.memory ? s.memory->capacity() : s.settings.memory;
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return device_call(device, value, [&](State&) {
    constexpr int kLast = 147;  // of CUDA 13.0
    if (attribute < 1 || attribute > kLast) return CUDA_ERROR_INVALID_VALUE;
    *value = attribute_value(attribute);
    return CUDA_SUCCESS;
  });
}

}  // namespace kgate::vgpu
