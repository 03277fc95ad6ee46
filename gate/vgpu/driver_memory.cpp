// Exports: memory, copies and fills.
#include <algorithm>
#include <cstdlib>
#include <type_traits>

#include "vgpu/driver_capture.h"
#include "vgpu/driver_work.h"

namespace kgate::vgpu {

namespace {

CUdeviceptr address(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

// One row between ends of these types (CU_MEMORYTYPE_*).
CopyWork row(CUmemorytype to_type, CUdeviceptr to, CUmemorytype from_type, CUdeviceptr from, size_t bytes) {
  CopyWork c{};
  c.dstMemoryType = to_type;
  c.srcMemoryType = from_type;
  if (to_type == CU_MEMORYTYPE_HOST)
    c.dstHost = reinterpret_cast<void*>(to);
  else
    c.dstDevice = to;
  if (from_type == CU_MEMORYTYPE_HOST)
    c.srcHost = reinterpret_cast<const void*>(from);
  else
    c.srcDevice = from;
  c.srcPitch = c.dstPitch = c.WidthInBytes = bytes;
  c.srcHeight = c.dstHeight = c.Height = c.Depth = 1;
  return c;
}
CopyWork up(CUdeviceptr to, const void* from, size_t n) {
  return row(CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_HOST, address(from), n);
}
CopyWork down(void* to, CUdeviceptr from, size_t n) {
  return row(CU_MEMORYTYPE_HOST, address(to), CU_MEMORYTYPE_DEVICE, from, n);
}
CopyWork across(CUdeviceptr to, CUdeviceptr from, size_t n) {
  return row(CU_MEMORYTYPE_DEVICE, to, CU_MEMORYTYPE_DEVICE, from, n);
}
CopyWork any(CUdeviceptr to, CUdeviceptr from, size_t n) {
  return row(CU_MEMORYTYPE_UNIFIED, to, CU_MEMORYTYPE_UNIFIED, from, n);
}

CopyWork box(const CUDA_MEMCPY2D& c) {
  CopyWork out{};
  out.srcXInBytes = c.srcXInBytes, out.srcY = c.srcY, out.srcMemoryType = c.srcMemoryType;
  out.srcHost = c.srcHost, out.srcDevice = c.srcDevice, out.srcPitch = c.srcPitch;
  out.dstXInBytes = c.dstXInBytes, out.dstY = c.dstY, out.dstMemoryType = c.dstMemoryType;
  out.dstHost = c.dstHost, out.dstDevice = c.dstDevice, out.dstPitch = c.dstPitch;
  out.WidthInBytes = c.WidthInBytes, out.Height = c.Height, out.Depth = 1;
  out.srcHeight = out.dstHeight = c.Height;
  return out;
}

template <typename Given>
CUresult copy_given(const cupti::Api& api, const Given* given, StreamArg stream, bool asynchronous) {
  return context_call(api, [&](Call& call) {
    if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if constexpr (std::is_same_v<Given, CopyWork>)
      return submit(call, stream, *given, asynchronous);
    else
      return submit(call, stream, box(*given), asynchronous);
  });
}

CUresult give_memory(Call& call, CUdeviceptr* out, size_t bytes) {
  if (out == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  State& s = call.state;
  CUdeviceptr p = s.memory->allocate(bytes);
  if (p == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  s.allocations[p] = call.context.id;
  s.lowest = std::min(s.lowest, p);
  s.highest = std::max(s.highest, p + bytes);
  *out = p;
  return CUDA_SUCCESS;
}

CUresult take_memory(Call& call, CUdeviceptr p) {
  if (p == 0) return CUDA_SUCCESS;
  if (call.state.allocations.erase(p) == 0) return CUDA_ERROR_INVALID_VALUE;
  call.state.memory->free(p);
  return CUDA_SUCCESS;
}

// Work runs when it is issued, so that memory of a stream's order is memory.
CUresult allocate_async(const cupti::Api& api, CUdeviceptr* out, size_t bytes, StreamArg stream) {
  return context_call(api, [&](Call& call) {
    if (CUresult code = not_capturing(call, stream, "memory of a graph"); code != CUDA_SUCCESS) return code;
    return give_memory(call, out, bytes);
  });
}

CUresult free_async(const cupti::Api& api, CUdeviceptr p, StreamArg stream) {
  return context_call(api, [&](Call& call) {
    if (CUresult code = not_capturing(call, stream, "memory of a graph"); code != CUDA_SUCCESS) return code;
    return take_memory(call, p);
  });
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
    CUresult code = forbidden_while_capturing(call);
    return code == CUDA_SUCCESS ? give_memory(call, out, bytes) : code;
  });
}

KGATE_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width, size_t height,
                                         unsigned element_bytes) {
  return context_call(KGATE_API(cuMemAllocPitch_v2, out, pitch, width, height, element_bytes), [&](Call& call) {
    constexpr size_t kRow = 512;
    if (pitch == nullptr || width == 0 || height == 0 || width > SIZE_MAX / 2) return CUDA_ERROR_INVALID_VALUE;
    if (element_bytes != 4 && element_bytes != 8 && element_bytes != 16) return CUDA_ERROR_INVALID_VALUE;
    size_t row = (width + kRow - 1) / kRow * kRow;
    if (height > SIZE_MAX / row) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult code = give_memory(call, out, row * height);
    if (code == CUDA_SUCCESS) *pitch = row;
    return code;
  });
}

KGATE_EXPORT CUresult cuMemAllocManaged(CUdeviceptr* out, size_t bytes, unsigned flags) {
  return context_call(KGATE_API(cuMemAllocManaged, out, bytes, flags),
                      [&](Call& call) { return unsupported(call, "managed memory"); });
}

KGATE_EXPORT CUresult cuMemFree_v2(CUdeviceptr p) {
  return context_call(KGATE_API(cuMemFree_v2, p), [&](Call& call) {
    CUresult code = forbidden_while_capturing(call);
    return code == CUDA_SUCCESS ? take_memory(call, p) : code;
  });
}

KGATE_EXPORT CUresult cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream on) {
  return allocate_async(KGATE_API(cuMemAllocAsync, out, bytes, on), out, bytes, {on, false});
}
KGATE_EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr* out, size_t bytes, CUstream on) {
  return allocate_async(KGATE_API(cuMemAllocAsync_ptsz, out, bytes, on), out, bytes, {on, true});
}
KGATE_EXPORT CUresult cuMemFreeAsync(CUdeviceptr p, CUstream on) {
  return free_async(KGATE_API(cuMemFreeAsync, p, on), p, {on, false});
}
KGATE_EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr p, CUstream on) {
  return free_async(KGATE_API(cuMemFreeAsync_ptsz, p, on), p, {on, true});
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

// X(exported name, parameters, arguments, how it copies, stream, asynchronous)
#define KGATE_COPIES(X)                                                                                                \
  X(cuMemcpyHtoD_v2, (CUdeviceptr to, const void* from, size_t n), (to, from, n), up, (StreamArg{nullptr, false}),     \
    false)                                                                                                             \
  X(cuMemcpyHtoD_v2_ptds, (CUdeviceptr to, const void* from, size_t n), (to, from, n), up, (StreamArg{nullptr, true}), \
    false)                                                                                                             \
  X(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void* from, size_t n, CUstream on), (to, from, n, on), up,            \
    (StreamArg{on, false}), true)                                                                                      \
  X(cuMemcpyHtoDAsync_v2_ptsz, (CUdeviceptr to, const void* from, size_t n, CUstream on), (to, from, n, on), up,       \
    (StreamArg{on, true}), true)                                                                                       \
  X(cuMemcpyDtoH_v2, (void* to, CUdeviceptr from, size_t n), (to, from, n), down, (StreamArg{nullptr, false}), false)  \
  X(cuMemcpyDtoH_v2_ptds, (void* to, CUdeviceptr from, size_t n), (to, from, n), down, (StreamArg{nullptr, true}),     \
    false)                                                                                                             \
  X(cuMemcpyDtoHAsync_v2, (void* to, CUdeviceptr from, size_t n, CUstream on), (to, from, n, on), down,                \
    (StreamArg{on, false}), true)                                                                                      \
  X(cuMemcpyDtoHAsync_v2_ptsz, (void* to, CUdeviceptr from, size_t n, CUstream on), (to, from, n, on), down,           \
    (StreamArg{on, true}), true)                                                                                       \
  X(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t n), (to, from, n), across, (StreamArg{nullptr, false}), \
    false)                                                                                                             \
  X(cuMemcpyDtoD_v2_ptds, (CUdeviceptr to, CUdeviceptr from, size_t n), (to, from, n), across,                         \
    (StreamArg{nullptr, true}), false)                                                                                 \
  X(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream on), (to, from, n, on), across,        \
    (StreamArg{on, false}), true)                                                                                      \
  X(cuMemcpyDtoDAsync_v2_ptsz, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream on), (to, from, n, on), across,   \
    (StreamArg{on, true}), true)                                                                                       \
  X(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t n), (to, from, n), any, (StreamArg{nullptr, false}), false)    \
  X(cuMemcpy_ptds, (CUdeviceptr to, CUdeviceptr from, size_t n), (to, from, n), any, (StreamArg{nullptr, true}),       \
    false)                                                                                                             \
  X(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream on), (to, from, n, on), any,                  \
    (StreamArg{on, false}), true)                                                                                      \
  X(cuMemcpyAsync_ptsz, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream on), (to, from, n, on), any,             \
    (StreamArg{on, true}), true)

#define KGATE_LIST(...) __VA_ARGS__
#define KGATE_DEFINE(name, params, args, how, stream, asynchronous)                                        \
  KGATE_EXPORT CUresult name params {                                                                      \
    return context_call(KGATE_API(name, KGATE_LIST args),                                                  \
                        [&](Call& call) { return submit(call, stream, how(to, from, n), asynchronous); }); \
  }
KGATE_COPIES(KGATE_DEFINE)
#undef KGATE_DEFINE

// Boxes of memory, two- and three-dimensional.
#define KGATE_BOX(name, type, per_thread)                                         \
  KGATE_EXPORT CUresult name(const type* copy) {                                  \
    return copy_given(KGATE_API(name, copy), copy, {nullptr, per_thread}, false); \
  }
#define KGATE_BOX_ASYNC(name, type, per_thread)                                 \
  KGATE_EXPORT CUresult name(const type* copy, CUstream on) {                   \
    return copy_given(KGATE_API(name, copy, on), copy, {on, per_thread}, true); \
  }
KGATE_BOX(cuMemcpy2D_v2, CUDA_MEMCPY2D, false)
KGATE_BOX(cuMemcpy2D_v2_ptds, CUDA_MEMCPY2D, true)
KGATE_BOX(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D, false)
KGATE_BOX(cuMemcpy2DUnaligned_v2_ptds, CUDA_MEMCPY2D, true)
KGATE_BOX_ASYNC(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, false)
KGATE_BOX_ASYNC(cuMemcpy2DAsync_v2_ptsz, CUDA_MEMCPY2D, true)
KGATE_BOX(cuMemcpy3D_v2, CUDA_MEMCPY3D, false)
KGATE_BOX(cuMemcpy3D_v2_ptds, CUDA_MEMCPY3D, true)
KGATE_BOX_ASYNC(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, false)
KGATE_BOX_ASYNC(cuMemcpy3DAsync_v2_ptsz, CUDA_MEMCPY3D, true)
#undef KGATE_BOX
#undef KGATE_BOX_ASYNC

// Fills of elements of 1, 2 and 4 bytes, in one row or several.
#define KGATE_FILL(name, params, args, pitch, rows, bytes, stream, asynchronous)             \
  KGATE_EXPORT CUresult name params {                                                        \
    return context_call(KGATE_API(name, KGATE_LIST args), [&](Call& call) {                  \
      return submit(call, stream, FillWork{to, pitch, value, bytes, n, rows}, asynchronous); \
    });                                                                                      \
  }
#define KGATE_FILLS(width, type, bytes)                                                                                \
  KGATE_FILL(cuMemsetD##width##_v2, (CUdeviceptr to, type value, size_t n), (to, value, n), 0, 1, bytes,               \
             (StreamArg{nullptr, false}), false)                                                                       \
  KGATE_FILL(cuMemsetD##width##_v2_ptds, (CUdeviceptr to, type value, size_t n), (to, value, n), 0, 1, bytes,          \
             (StreamArg{nullptr, true}), false)                                                                        \
  KGATE_FILL(cuMemsetD##width##Async, (CUdeviceptr to, type value, size_t n, CUstream on), (to, value, n, on), 0, 1,   \
             bytes, (StreamArg{on, false}), true)                                                                      \
  KGATE_FILL(cuMemsetD##width##Async_ptsz, (CUdeviceptr to, type value, size_t n, CUstream on), (to, value, n, on), 0, \
             1, bytes, (StreamArg{on, true}), true)                                                                    \
  KGATE_FILL(cuMemsetD2D##width##_v2, (CUdeviceptr to, size_t pitch, type value, size_t n, size_t rows),               \
             (to, pitch, value, n, rows), pitch, rows, bytes, (StreamArg{nullptr, false}), false)                      \
  KGATE_FILL(cuMemsetD2D##width##_v2_ptds, (CUdeviceptr to, size_t pitch, type value, size_t n, size_t rows),          \
             (to, pitch, value, n, rows), pitch, rows, bytes, (StreamArg{nullptr, true}), false)                       \
  KGATE_FILL(cuMemsetD2D##width##Async,                                                                                \
             (CUdeviceptr to, size_t pitch, type value, size_t n, size_t rows, CUstream on),                           \
             (to, pitch, value, n, rows, on), pitch, rows, bytes, (StreamArg{on, false}), true)                        \
  KGATE_FILL(cuMemsetD2D##width##Async_ptsz,                                                                           \
             (CUdeviceptr to, size_t pitch, type value, size_t n, size_t rows, CUstream on),                           \
             (to, pitch, value, n, rows, on), pitch, rows, bytes, (StreamArg{on, true}), true)
KGATE_FILLS(8, unsigned char, 1)
KGATE_FILLS(16, unsigned short, 2)
KGATE_FILLS(32, unsigned, 4)
#undef KGATE_FILLS
#undef KGATE_FILL
#undef KGATE_LIST

}  // namespace kgate::vgpu
