// Copies and fills. Device addresses are host addresses, so a copy is a memcpy a row after its device ends were found
// inside live memory; an end that is not is CUDA_ERROR_INVALID_VALUE before a byte moves.
#include <algorithm>
#include <cstring>

#include "vgpu/driver_work.h"

namespace kgate::vgpu {

namespace {

// One end of a copy, resolved.
struct End {
  uint64_t start = 0, pitch = 0, layer = 0;  // bytes from row to row, and from layer to layer
  bool device = false;
};

struct Shape {
  uint64_t bytes, rows, layers;
};

// Arithmetic on sizes that a caller chose.
bool add(uint64_t& sum, uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(sum, product, &sum);
}

bool in_device(const State& s, const End& end, const Shape& shape) {
  if (shape.rows == 1 && shape.layers == 1) return s.memory->contains(end.start, shape.bytes);
  for (uint64_t layer = 0; layer < shape.layers; ++layer) {
    for (uint64_t row = 0; row < shape.rows; ++row)
      if (!s.memory->contains(end.start + layer * end.layer + row * end.pitch, shape.bytes)) return false;
  }
  return true;
}

struct Side {
  CUmemorytype type;
  uint64_t host, device;
  size_t x, y, z, pitch, height;
};

CUresult resolve(Call& call, const Side& side, const Shape& shape, End& end) {
  if (side.type == CU_MEMORYTYPE_ARRAY) return unsupported(call, "a copy from or to an array");
  if (side.type < CU_MEMORYTYPE_HOST || side.type > CU_MEMORYTYPE_UNIFIED) return CUDA_ERROR_INVALID_VALUE;
  const State& s = call.state;
  end.pitch = side.pitch;
  end.start = side.type == CU_MEMORYTYPE_HOST ? side.host : side.device;
  uint64_t width = 0, last = 0;
  if (!add(width, side.x, 1) || !add(width, shape.bytes, 1)) return CUDA_ERROR_INVALID_VALUE;
  bool one_row = shape.rows == 1 && side.y == 0 && shape.layers == 1 && side.z == 0;
  if (!one_row && end.pitch < width) return CUDA_ERROR_INVALID_VALUE;
  if (shape.layers > 1 || side.z != 0) {
    if (side.height < shape.rows + side.y || !add(end.layer, side.height, end.pitch)) return CUDA_ERROR_INVALID_VALUE;
  }
  if (end.start == 0 || !add(end.start, side.x, 1) || !add(end.start, side.y, end.pitch) ||
      !add(end.start, side.z, end.layer))
    return CUDA_ERROR_INVALID_VALUE;
  last = end.start;
  if (!add(last, shape.rows - 1, end.pitch) || !add(last, shape.layers - 1, end.layer) || !add(last, shape.bytes, 1))
    return CUDA_ERROR_INVALID_VALUE;
  bool device = side.type != CU_MEMORYTYPE_HOST && in_device(s, end, shape);
  if (side.type == CU_MEMORYTYPE_DEVICE && !device) return CUDA_ERROR_INVALID_VALUE;
  if (side.type == CU_MEMORYTYPE_UNIFIED && !device && end.start >= s.lowest && end.start < s.highest)
    return CUDA_ERROR_INVALID_VALUE;  // device memory that is not, or no longer, allocated
  end.device = device;
  return CUDA_SUCCESS;
}

Side source(const CopyWork& c) {
  return {
      c.srcMemoryType, reinterpret_cast<uint64_t>(c.srcHost), c.srcDevice, c.srcXInBytes, c.srcY, c.srcZ, c.srcPitch,
      c.srcHeight};
}
Side target(const CopyWork& c) {
  return {
      c.dstMemoryType, reinterpret_cast<uint64_t>(c.dstHost), c.dstDevice, c.dstXInBytes, c.dstY, c.dstZ, c.dstPitch,
      c.dstHeight};
}

CUresult resolve(Call& call, const CopyWork& c, Shape& shape, End& to, End& from) {
  shape = {c.WidthInBytes, c.Height, c.Depth};
  if (c.srcLOD != 0 || c.dstLOD != 0) return CUDA_ERROR_INVALID_VALUE;
  if (shape.bytes == 0 || shape.rows == 0 || shape.layers == 0) return CUDA_SUCCESS;
  CUresult code = resolve(call, target(c), shape, to);
  return code == CUDA_SUCCESS ? resolve(call, source(c), shape, from) : code;
}

uint8_t memory_kind(const State& s, const End& end) {
  if (end.device) return CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  for (const auto& [start, size] : s.pinned) {
    if (end.start - reinterpret_cast<uint64_t>(start) < size) return CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
  }
  for (const auto& [start, size] : s.registered)
    if (end.start - start < size) return CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
  return CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
}

uint8_t copy_kind(bool to_device, bool from_device) {
  if (to_device) return from_device ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOD : CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  return from_device ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOH : CUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
}

template <typename T>
void fill_rows(const FillWork& f) {
  for (uint64_t row = 0; row < f.height; ++row)
    std::fill_n(reinterpret_cast<T*>(f.dst + row * f.pitch), f.width, static_cast<T>(f.value));
}

}  // namespace

CUresult check(Call& call, const CopyWork& copy) {
  Shape shape{};
  End to, from;
  return resolve(call, copy, shape, to, from);
}

CUresult run(Call& call, const CopyWork& copy, const Place& place) {
  State& s = call.state;
  Shape shape{};
  End to, from;
  if (CUresult code = resolve(call, copy, shape, to, from); code != CUDA_SUCCESS) return code;
  if (to.start == 0) return CUDA_SUCCESS;  // nothing to copy
  bool recorded = cupti::enabled(CUPTI_ACTIVITY_KIND_MEMCPY);
  uint64_t start = recorded ? cupti::now() : 0;
  for (uint64_t layer = 0; layer < shape.layers; ++layer) {
    for (uint64_t row = 0; row < shape.rows; ++row) {
      std::memmove(reinterpret_cast<void*>(to.start + layer * to.layer + row * to.pitch),
                   reinterpret_cast<const void*>(from.start + layer * from.layer + row * from.pitch), shape.bytes);
    }
  }
  if (!recorded) return CUDA_SUCCESS;
  CUpti_ActivityMemcpy6 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  r.copyKind = copy_kind(to.device, from.device);
  r.srcKind = memory_kind(s, from);
  r.dstKind = memory_kind(s, to);
  r.flags = place.asynchronous ? uint8_t{CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC} : uint8_t{0};
  r.bytes = shape.bytes * shape.rows * shape.layers;
  r.start = start;
  r.end = cupti::now();
  r.contextId = call.context.id;
  r.streamId = place.stream;
  r.correlationId = call.correlation;
  r.graphNodeId = place.node;
  r.graphId = place.graph;
  r.copyCount = 1;
  call.records.push_back({r});
  return CUDA_SUCCESS;
}

CUresult check(Call& call, const FillWork& f) {
  if (f.elementSize != 1 && f.elementSize != 2 && f.elementSize != 4) return CUDA_ERROR_INVALID_VALUE;
  if (f.width == 0 || f.height == 0) return CUDA_SUCCESS;
  uint64_t row = 0, last = f.dst;
  if (!add(row, f.width, f.elementSize) || f.dst % f.elementSize != 0) return CUDA_ERROR_INVALID_VALUE;
  if (f.height > 1 && (f.pitch < row || f.pitch % f.elementSize != 0)) return CUDA_ERROR_INVALID_VALUE;
  if (!add(last, f.height - 1, f.pitch) || !add(last, row, 1)) return CUDA_ERROR_INVALID_VALUE;
  End end{f.dst, f.pitch, 0, true};
  return in_device(call.state, end, {row, f.height, 1}) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult run(Call& call, const FillWork& f, const Place& place) {
  if (CUresult code = check(call, f); code != CUDA_SUCCESS) return code;
  if (f.width == 0 || f.height == 0) return CUDA_SUCCESS;
  bool recorded = cupti::enabled(CUPTI_ACTIVITY_KIND_MEMSET);
  uint64_t start = recorded ? cupti::now() : 0;
  if (f.elementSize == 1)
    fill_rows<uint8_t>(f);
  else if (f.elementSize == 2)
    fill_rows<uint16_t>(f);
  else
    fill_rows<uint32_t>(f);
  if (!recorded) return CUDA_SUCCESS;
  CUpti_ActivityMemset4 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  r.value = f.value;
  r.bytes = f.width * f.elementSize * f.height;
  r.start = start;
  r.end = cupti::now();
  r.contextId = call.context.id;
  r.streamId = place.stream;
  r.correlationId = call.correlation;
  r.flags = place.asynchronous ? uint16_t{CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC} : uint16_t{0};
  r.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  r.graphNodeId = place.node;
  r.graphId = place.graph;
  call.records.push_back({r});
  return CUDA_SUCCESS;
}

}  // namespace kgate::vgpu
