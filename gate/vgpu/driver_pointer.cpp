// Exports: what an address is, and host memory that the application registers.
#include <algorithm>
#include <cstring>

#include "vgpu/driver_call.h"

namespace kgate::vgpu {

namespace {

constexpr unsigned kTypeHost = 1, kTypeDevice = 2;  // CU_MEMORYTYPE_*

struct Pointer {
  unsigned type = 0;  // 0: not known to the driver
  uint64_t base = 0, size = 0;
  uint32_t context = 0;
};

Pointer look_at(const State& s, CUdeviceptr address) {
  auto host = [&](uint64_t base, size_t size) { return address >= base && address - base < size; };
  if (auto range = s.memory->find(address)) {
    auto owner = s.allocations.find(range->base);
    return {kTypeDevice, range->base, range->size, owner == s.allocations.end() ? 0 : owner->second};
  }
  for (const auto& [start, size] : s.pinned)
    if (uint64_t base = reinterpret_cast<uint64_t>(start); host(base, size)) return {kTypeHost, base, size, 0};
  for (const auto& [start, size] : s.registered)
    if (host(start, size)) return {kTypeHost, start, size, 0};
  return {};
}

template <typename T>
CUresult give(void* out, T value) {
  std::memcpy(out, &value, sizeof value);
  return CUDA_SUCCESS;
}

// `known` false: what cuPointerGetAttributes gives for an address that the driver does not know.
CUresult read(Call& call, void* out, int attribute, CUdeviceptr address, const Pointer& p) {
  bool known = p.type != 0;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return give<CUcontext>(out, known ? current_handle() : nullptr);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return give<unsigned>(out, p.type);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return give<CUdeviceptr>(out, known ? address : 0);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (p.type == kTypeDevice) return give<uint64_t>(out, 0), CUDA_ERROR_INVALID_VALUE;
      return give<uint64_t>(out, known ? address : 0);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return give<int>(out, 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return give<uint64_t>(out, p.base);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return give<int>(out, 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return give<int>(out, known ? 0 : -2);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return give<CUdeviceptr>(out, p.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return give<size_t>(out, p.size);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return give<int>(out, known);
    default:
      record_fault(call.state, CUDA_ERROR_NOT_SUPPORTED, "unsupported",
                   "pointer attribute " + std::to_string(attribute));
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace

KGATE_EXPORT CUresult cuPointerGetAttribute(void* out, int attribute, CUdeviceptr address) {
  return context_call(KGATE_API_ID(cuPointerGetAttribute), [&](Call& call) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Pointer p = look_at(call.state, address);
    return p.type == 0 ? CUDA_ERROR_INVALID_VALUE : read(call, out, attribute, address, p);
  });
}

// Unlike the call for one, it takes any address.
KGATE_EXPORT CUresult cuPointerGetAttributes(unsigned count, int* attributes, void** out, CUdeviceptr address) {
  return context_call(KGATE_API_ID(cuPointerGetAttributes), [&](Call& call) {
    if (count == 0 || attributes == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Pointer p = look_at(call.state, address);
    for (unsigned i = 0; i < count; ++i) {
      if (out[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      CUresult code = read(call, out[i], attributes[i], address, p);
      if (code == CUDA_ERROR_NOT_SUPPORTED) return code;
    }
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuMemHostRegister_v2(void* p, size_t bytes, unsigned flags) {
  return context_call(KGATE_API(cuMemHostRegister_v2, p, bytes, flags), [&](Call& call) {
    State& s = call.state;
    constexpr unsigned kKnown = kMemHostRegisterPortable | kMemHostRegisterDeviceMap | kMemHostRegisterReadOnly;
    if (p == nullptr || bytes == 0 || bytes > SIZE_MAX / 2 || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
    uintptr_t start = reinterpret_cast<uintptr_t>(p);
    if (look_at(s, start).type == kTypeDevice) return CUDA_ERROR_INVALID_VALUE;
    auto next = s.registered.upper_bound(start);
    bool overlaps = next != s.registered.end() && next->first - start < bytes;
    if (next != s.registered.begin()) overlaps |= start - std::prev(next)->first < std::prev(next)->second;
    if (overlaps || look_at(s, start).type != 0) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    s.registered[start] = bytes;
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuMemHostUnregister(void* p) {
  return context_call(KGATE_API(cuMemHostUnregister, p), [&](Call& call) {
    bool known = call.state.registered.erase(reinterpret_cast<uintptr_t>(p)) != 0;
    return known ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  });
}

}  // namespace kgate::vgpu
