// Driver: what a recorded program asks for beside launches and plain copies. Calls that an older driver or the virtual
// GPU lacks end as "not supported", by name.
#include "gpu/driver_state.h"

namespace kgate::gpu {

CUdeviceptr Driver::allocate_async(size_t bytes, CUstream stream) {
  CUdeviceptr address = 0;
  KGATE_OPTIONAL_CALL(*state_, cuMemAllocAsync, &address, bytes, stream);
  return address;
}

void Driver::free_async(CUdeviceptr p, CUstream stream) { KGATE_OPTIONAL_CALL(*state_, cuMemFreeAsync, p, stream); }

void* Driver::allocate_host(size_t bytes) {
  void* address = nullptr;
  KGATE_OPTIONAL_CALL(*state_, cuMemHostAlloc, &address, bytes, 0);
  return address;
}

void Driver::free_host(void* p) { KGATE_OPTIONAL_CALL(*state_, cuMemFreeHost, p); }

void Driver::upload_async(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  KGATE_OPTIONAL_CALL(*state_, cuMemcpyHtoDAsync_v2, to, from, bytes, stream);
}

void Driver::download_async(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  KGATE_OPTIONAL_CALL(*state_, cuMemcpyDtoHAsync_v2, to, from, bytes, stream);
}

void Driver::copy(const Rectangle& r, std::optional<CUstream> stream) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = r.from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  copy.srcHost = r.from_host;
  copy.srcDevice = r.from_host ? 0 : r.from;
  copy.srcPitch = r.rows > 1 ? r.from_pitch : r.bytes;
  copy.dstMemoryType = r.to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  copy.dstHost = r.to_host;
  copy.dstDevice = r.to_host ? 0 : r.to;
  copy.dstPitch = r.rows > 1 ? r.to_pitch : r.bytes;
  copy.WidthInBytes = r.bytes;
  copy.Height = r.rows;
  if (stream)
    KGATE_OPTIONAL_CALL(*state_, cuMemcpy2DAsync_v2, &copy, *stream);
  else
    KGATE_OPTIONAL_CALL(*state_, cuMemcpy2D_v2, &copy);
}

void Driver::fill(const Fill& f, CUstream stream) {
  if (f.rows > 1) {
    if (f.unit == 1)
      KGATE_OPTIONAL_CALL(*state_, cuMemsetD2D8Async, f.to, f.pitch, static_cast<unsigned char>(f.value), f.count,
                          f.rows, stream);
    else if (f.unit == 2)
      KGATE_OPTIONAL_CALL(*state_, cuMemsetD2D16Async, f.to, f.pitch, static_cast<unsigned short>(f.value), f.count,
                          f.rows, stream);
    else
      KGATE_OPTIONAL_CALL(*state_, cuMemsetD2D32Async, f.to, f.pitch, f.value, f.count, f.rows, stream);
    return;
  }
  if (f.unit == 1)
    fill(f.to, static_cast<uint8_t>(f.value), f.count, stream);
  else if (f.unit == 2)
    KGATE_OPTIONAL_CALL(*state_, cuMemsetD16Async, f.to, static_cast<unsigned short>(f.value), f.count, stream);
  else
    KGATE_OPTIONAL_CALL(*state_, cuMemsetD32Async, f.to, f.value, f.count, stream);
}

CUstream Driver::create_stream(bool non_blocking, int priority) {
  CUstream stream = nullptr;
  KGATE_OPTIONAL_CALL(*state_, cuStreamCreateWithPriority, &stream,
                      non_blocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT, priority);
  return stream;
}

void Driver::host_function(CUstream stream) {
  KGATE_OPTIONAL_CALL(*state_, cuLaunchHostFunc, stream, &empty_host_function, nullptr);
}

}  // namespace kgate::gpu
