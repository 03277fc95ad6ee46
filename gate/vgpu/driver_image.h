// What cuModuleLoadData is given: told apart by its first bytes, as the driver does. PTX carries no length, so its
// header is looked for with care; cubins are not looked into (SASS is not executed).
#pragma once

#include <string_view>

#include "gpu/cuda_abi.h"
#include "support/error.h"

namespace kgate::vgpu {

enum class ImageKind { ptx, cubin, fatbin };
ImageKind image_kind(const void* image);

int target_of(std::string_view ptx);  // ".target sm_90a" -> 90; 0: none

// The driver's code for PTX that does not load. A newer .target than the device's is no reason by itself: what this
// machine cannot execute faults by name when it is reached.
gpu::CUresult load_error(const Failure& failure);

// "line 12" -> 12; 0: no line.
uint32_t line_of(std::string_view where);

}  // namespace kgate::vgpu
