// Stream arguments as exported calls take them.
#pragma once

#include "vgpu/driver_call.h"

namespace kgate::vgpu {

// Null is the legacy default stream, or the calling thread's own in the _ptsz and _ptds twins.
struct StreamArg {
  CUstream handle = nullptr;
  bool per_thread = false;
};

// The id that activity records carry; CUDA_ERROR_INVALID_HANDLE for a stream that does not exist in this context.
CUresult stream_id(Call& call, StreamArg stream, uint32_t& id);

}  // namespace kgate::vgpu
