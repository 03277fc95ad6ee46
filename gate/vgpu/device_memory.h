// Inside of DeviceMemory, for the machine only.
#pragma once

#include <map>

#include "vgpu/machine.h"

namespace kgate::vgpu {

struct DeviceMemory::State {
  uint64_t base = 0, reserved = 0, capacity = 0, used = 0, next = 0;
  std::map<uint64_t, uint64_t> live;  // base → size

  uint64_t first_gap(uint64_t from, uint64_t bytes, uint64_t align) const;  // 0: none
};

}  // namespace kgate::vgpu
