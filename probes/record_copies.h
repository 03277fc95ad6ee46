// What some forty calls say about a copy or a fill, in one form each.
#pragma once

#include <cstdint>

#include "gpu/cupti_callback_abi.h"

namespace kgate::record {

struct Copy {
  uint64_t dst = 0, src = 0, bytes = 0, rows = 1, dst_pitch = 0, src_pitch = 0;
  unsigned dst_kind = gpu::CU_MEMORYTYPE_DEVICE, src_kind = gpu::CU_MEMORYTYPE_DEVICE;  // CU_MEMORYTYPE_*
  uint64_t stream = 0;
  bool async = false;
  bool peers = false;   // between two contexts
  bool planes = false;  // several that lie apart

  static Copy flat(uint64_t dst, unsigned dst_kind, uint64_t src, unsigned src_kind, size_t bytes) {
    Copy copy;
    copy.dst = dst, copy.src = src, copy.bytes = bytes, copy.dst_kind = dst_kind, copy.src_kind = src_kind;
    return copy;
  }
  // One of two sides of a box.
  static uint64_t corner(unsigned kind, const void* host, gpu::CUdeviceptr device, uint64_t x, uint64_t y, uint64_t z,
                         uint64_t pitch, uint64_t height) {
    return (kind == gpu::CU_MEMORYTYPE_HOST ? reinterpret_cast<uint64_t>(host) : device) + x + (y + z * height) * pitch;
  }
  void is_rectangle(uint64_t height, uint64_t dst_row, uint64_t src_row) {
    rows = height;
    dst_pitch = rows > 1 ? dst_row : 0, src_pitch = rows > 1 ? src_row : 0;
  }
  static Copy of(const gpu::CUDA_MEMCPY2D& p) {
    Copy copy;
    copy.bytes = p.WidthInBytes, copy.dst_kind = p.dstMemoryType, copy.src_kind = p.srcMemoryType;
    copy.dst = corner(p.dstMemoryType, p.dstHost, p.dstDevice, p.dstXInBytes, p.dstY, 0, p.dstPitch, 0);
    copy.src = corner(p.srcMemoryType, p.srcHost, p.srcDevice, p.srcXInBytes, p.srcY, 0, p.srcPitch, 0);
    copy.is_rectangle(p.Height, p.dstPitch, p.srcPitch);
    return copy;
  }
  // Planes without a gap between them are one rectangle.
  static Copy of(const gpu::CUDA_MEMCPY3D& p) {
    Copy copy;
    copy.bytes = p.WidthInBytes, copy.dst_kind = p.dstMemoryType, copy.src_kind = p.srcMemoryType;
    copy.dst = corner(p.dstMemoryType, p.dstHost, p.dstDevice, p.dstXInBytes, p.dstY, p.dstZ, p.dstPitch, p.dstHeight);
    copy.src = corner(p.srcMemoryType, p.srcHost, p.srcDevice, p.srcXInBytes, p.srcY, p.srcZ, p.srcPitch, p.srcHeight);
    copy.planes = p.Depth > 1 && (p.dstHeight != p.Height || p.srcHeight != p.Height);
    copy.is_rectangle(p.Height * p.Depth, p.dstPitch, p.srcPitch);
    return copy;
  }
};

struct Fill {
  uint64_t dst = 0, count = 0, rows = 1, pitch = 0;
  uint32_t value = 0, unit = 1;
  uint64_t stream = 0;
  bool async = false;
};

// Of a call of the kind; false: it is none, or says nothing.
bool describe(uint32_t cbid, const gpu::CUpti_CallbackData& data, Copy& copy);
bool describe(uint32_t cbid, const gpu::CUpti_CallbackData& data, Fill& fill);

}  // namespace kgate::record
