// Exports: memory. Device addresses are host addresses, so a copy is a memcpy after its device ends were found inside a
// live allocation; an end that is not is CUDA_ERROR_INVALID_VALUE before a byte moves.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "vgpu/driver_call.h"
#include "vgpu/driver_stream.h"

namespace kgate::vgpu {

namespace {

enum class End { host, device, any };  // any: cuMemcpy, which tells by the address

struct Copy {
  CUdeviceptr to, from;
  size_t bytes;
  End to_end, from_end;
  bool asynchronous = false;
  StreamArg stream{};
};

CUdeviceptr address(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

// Where an address of unknown kind points; nullopt for device memory that is not (or no longer) allocated.
std::optional<End> resolve(const State& s, CUdeviceptr p, size_t bytes, End end) {
  bool in_device = s.memory->contains(p, bytes);
  if (end == End::device) return in_device ? std::optional(End::device) : std::nullopt;
  if (end == End::any && in_device) return End::device;
  if (p == 0 || (end == End::any && p >= s.lowest && p < s.highest)) return std::nullopt;
  return End::host;
}

uint8_t memory_kind(const State& s, CUdeviceptr p, End end) {
  if (end == End::device) return CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  for (const auto& [start, size] : s.pinned) {
    if (p - address(start) < size) return CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
  }
  return CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
}

uint8_t copy_kind(End to, End from) {
  if (to == End::device) return from == End::device ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOD : CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  return from == End::device ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOH : CUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
}

CUresult copy(Call& call, const Copy& c) {
  State& s = call.state;
  uint32_t stream = 0;
  if (CUresult code = stream_id(call, c.stream, stream); code != CUDA_SUCCESS) return code;
  if (c.bytes == 0) return CUDA_SUCCESS;
  std::optional<End> to = resolve(s, c.to, c.bytes, c.to_end), from = resolve(s, c.from, c.bytes, c.from_end);
  if (!to || !from) return CUDA_ERROR_INVALID_VALUE;
  bool recorded = cupti::enabled(CUPTI_ACTIVITY_KIND_MEMCPY);
  uint64_t start = recorded ? cupti::now() : 0;
  std::memmove(reinterpret_cast<void*>(c.to), reinterpret_cast<const void*>(c.from), c.bytes);
  if (!recorded) return CUDA_SUCCESS;
  CUpti_ActivityMemcpy6 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  r.copyKind = copy_kind(*to, *from);
  r.srcKind = memory_kind(s, c.from, *from);
  r.dstKind = memory_kind(s, c.to, *to);
  r.flags = c.asynchronous ? uint8_t{CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC} : uint8_t{0};
  r.bytes = c.bytes;
  r.start = start;
  r.end = cupti::now();
  r.contextId = call.context.id;
  r.streamId = stream;
  r.correlationId = call.correlation;
  r.copyCount = 1;
  call.record.value = r;
  return CUDA_SUCCESS;
}

// Fills `count` elements of 1, 2 or 4 bytes.
CUresult fill(Call& call, CUdeviceptr to, uint32_t value, size_t width, size_t count, bool asynchronous, StreamArg on) {
  uint32_t stream = 0;
  if (CUresult code = stream_id(call, on, stream); code != CUDA_SUCCESS) return code;
  if (count == 0) return CUDA_SUCCESS;
  if (count > SIZE_MAX / width || to % width != 0 || !call.state.memory->contains(to, count * width)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  bool recorded = cupti::enabled(CUPTI_ACTIVITY_KIND_MEMSET);
  uint64_t start = recorded ? cupti::now() : 0;
  if (width == 1) {
    std::memset(reinterpret_cast<void*>(to), static_cast<int>(value), count);
  } else if (width == 2) {
    std::fill_n(reinterpret_cast<uint16_t*>(to), count, static_cast<uint16_t>(value));
  } else {
    std::fill_n(reinterpret_cast<uint32_t*>(to), count, value);
  }
  if (!recorded) return CUDA_SUCCESS;
  CUpti_ActivityMemset4 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  r.value = value;
  r.bytes = count * width;
  r.start = start;
  r.end = cupti::now();
  r.contextId = call.context.id;
  r.streamId = stream;
  r.correlationId = call.correlation;
  r.flags = asynchronous ? uint16_t{CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC} : uint16_t{0};
  r.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  call.record.value = r;
  return CUDA_SUCCESS;
}

CUresult allocate_pinned(const cupti::Api& api, void** out, size_t bytes) {
  return context_call(api, [&](Call& call) {
    if (out == nullptr || bytes == 0 || bytes > SIZE_MAX / 2) return CUDA_ERROR_INVALID_VALUE;
    constexpr size_t kPage = 4096;
    void* p = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
    if (p == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    call.state.pinned[p] = bytes;
    *out = p;
    return CUDA_SUCCESS;
  });
}

}  // namespace

KGATE_EXPORT CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  return context_call(KGATE_API_ID(cuMemGetInfo_v2), [&](Call& call) {
    const DeviceMemory& memory = *call.state.memory;
    if (free != nullptr) *free = memory.capacity() - memory.used();
    if (total != nullptr) *total = memory.capacity();
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
  return context_call(KGATE_API(cuMemAlloc_v2, out, bytes), [&](Call& call) {
    if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    State& s = call.state;
    CUdeviceptr p = s.memory->allocate(bytes);
    if (p == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    s.allocations[p] = call.context.id;
    s.lowest = std::min(s.lowest, p);
    s.highest = std::max(s.highest, p + bytes);
    *out = p;
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuMemFree_v2(CUdeviceptr p) {
  return context_call(KGATE_API(cuMemFree_v2, p), [&](Call& call) {
    if (p == 0) return CUDA_SUCCESS;
    if (call.state.allocations.erase(p) == 0) return CUDA_ERROR_INVALID_VALUE;
    call.state.memory->free(p);
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr p) {
  return context_call(KGATE_API_ID(cuMemGetAddressRange_v2), [&](Call& call) {
    auto range = call.state.memory->find(p);
    if (!range) return CUDA_ERROR_NOT_FOUND;
    if (base != nullptr) *base = range->base;
    if (size != nullptr) *size = range->size;
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuMemAllocHost_v2(void** out, size_t bytes) {
  return allocate_pinned(KGATE_API(cuMemAllocHost_v2, out, bytes), out, bytes);
}
KGATE_EXPORT CUresult cuMemHostAlloc(void** out, size_t bytes, unsigned flags) {
  return allocate_pinned(KGATE_API(cuMemHostAlloc, out, bytes, flags), out, bytes);
}

KGATE_EXPORT CUresult cuMemFreeHost(void* p) {
  return context_call(KGATE_API(cuMemFreeHost, p), [&](Call& call) {
    if (call.state.pinned.erase(p) == 0) return CUDA_ERROR_INVALID_VALUE;
    std::free(p);
    return CUDA_SUCCESS;
  });
}

// X(exported name, parameters, arguments, Copy)
#define KGATE_COPIES(X)                                                                                      \
  X(cuMemcpyHtoD_v2, (CUdeviceptr to, const void* from, size_t n), (to, from, n),                            \
    (Copy{to, address(from), n, End::device, End::host}))                                                    \
  X(cuMemcpyHtoD_v2_ptds, (CUdeviceptr to, const void* from, size_t n), (to, from, n),                       \
    (Copy{to, address(from), n, End::device, End::host, false, {nullptr, true}}))                            \
  X(cuMemcpyDtoH_v2, (void* to, CUdeviceptr from, size_t n), (to, from, n),                                  \
    (Copy{address(to), from, n, End::host, End::device}))                                                    \
  X(cuMemcpyDtoH_v2_ptds, (void* to, CUdeviceptr from, size_t n), (to, from, n),                             \
    (Copy{address(to), from, n, End::host, End::device, false, {nullptr, true}}))                            \
  X(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t n), (to, from, n),                            \
    (Copy{to, from, n, End::device, End::device}))                                                           \
  X(cuMemcpyDtoD_v2_ptds, (CUdeviceptr to, CUdeviceptr from, size_t n), (to, from, n),                       \
    (Copy{to, from, n, End::device, End::device, false, {nullptr, true}}))                                   \
  X(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t n), (to, from, n), (Copy{to, from, n, End::any, End::any}))         \
  X(cuMemcpy_ptds, (CUdeviceptr to, CUdeviceptr from, size_t n), (to, from, n),                              \
    (Copy{to, from, n, End::any, End::any, false, {nullptr, true}}))                                         \
  X(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void* from, size_t n, CUstream on), (to, from, n, on),      \
    (Copy{to, address(from), n, End::device, End::host, true, {on, false}}))                                 \
  X(cuMemcpyHtoDAsync_v2_ptsz, (CUdeviceptr to, const void* from, size_t n, CUstream on), (to, from, n, on), \
    (Copy{to, address(from), n, End::device, End::host, true, {on, true}}))                                  \
  X(cuMemcpyDtoHAsync_v2, (void* to, CUdeviceptr from, size_t n, CUstream on), (to, from, n, on),            \
    (Copy{address(to), from, n, End::host, End::device, true, {on, false}}))                                 \
  X(cuMemcpyDtoHAsync_v2_ptsz, (void* to, CUdeviceptr from, size_t n, CUstream on), (to, from, n, on),       \
    (Copy{address(to), from, n, End::host, End::device, true, {on, true}}))                                  \
  X(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream on), (to, from, n, on),      \
    (Copy{to, from, n, End::device, End::device, true, {on, false}}))                                        \
  X(cuMemcpyDtoDAsync_v2_ptsz, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream on), (to, from, n, on), \
    (Copy{to, from, n, End::device, End::device, true, {on, true}}))                                         \
  X(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream on), (to, from, n, on),             \
    (Copy{to, from, n, End::any, End::any, true, {on, false}}))                                              \
  X(cuMemcpyAsync_ptsz, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream on), (to, from, n, on),        \
    (Copy{to, from, n, End::any, End::any, true, {on, true}}))

#define KGATE_LIST(...) __VA_ARGS__
#define KGATE_DEFINE(name, params, args, what)                                                           \
  KGATE_EXPORT CUresult name params {                                                                    \
    return context_call(KGATE_API(name, KGATE_LIST args), [&](Call& call) { return copy(call, what); }); \
  }
KGATE_COPIES(KGATE_DEFINE)
#undef KGATE_DEFINE
#undef KGATE_LIST

#define KGATE_FILL(name, type, width, per_thread)                           \
  KGATE_EXPORT CUresult name(CUdeviceptr to, type value, size_t n) {        \
    return context_call(KGATE_API(name, to, value, n), [&](Call& call) {    \
      return fill(call, to, value, width, n, false, {nullptr, per_thread}); \
    });                                                                     \
  }
#define KGATE_FILL_ASYNC(name, type, width, per_thread)                           \
  KGATE_EXPORT CUresult name(CUdeviceptr to, type value, size_t n, CUstream on) { \
    return context_call(KGATE_API(name, to, value, n, on), [&](Call& call) {      \
      return fill(call, to, value, width, n, true, {on, per_thread});             \
    });                                                                           \
  }
KGATE_FILL(cuMemsetD8_v2, unsigned char, 1, false)
KGATE_FILL(cuMemsetD8_v2_ptds, unsigned char, 1, true)
KGATE_FILL(cuMemsetD16_v2, unsigned short, 2, false)
KGATE_FILL(cuMemsetD16_v2_ptds, unsigned short, 2, true)
KGATE_FILL(cuMemsetD32_v2, unsigned, 4, false)
KGATE_FILL(cuMemsetD32_v2_ptds, unsigned, 4, true)
KGATE_FILL_ASYNC(cuMemsetD8Async, unsigned char, 1, false)
KGATE_FILL_ASYNC(cuMemsetD8Async_ptsz, unsigned char, 1, true)
KGATE_FILL_ASYNC(cuMemsetD16Async, unsigned short, 2, false)
KGATE_FILL_ASYNC(cuMemsetD16Async_ptsz, unsigned short, 2, true)
KGATE_FILL_ASYNC(cuMemsetD32Async, unsigned, 4, false)
KGATE_FILL_ASYNC(cuMemsetD32Async_ptsz, unsigned, 4, true)
#undef KGATE_FILL
#undef KGATE_FILL_ASYNC

}  // namespace kgate::vgpu
