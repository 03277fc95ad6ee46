// The virtual GPU's settings from the environment.
#pragma once

#include <cstdint>

#include "support/error.h"

namespace kgate::vgpu {

struct Settings {
  uint64_t memory = uint64_t{2} << 30;  // KGATE_VGPU_MEMORY: device memory in bytes; K, M, G are powers of 1024
  uint64_t budget = 0;                  // KGATE_VGPU_BUDGET: warp instructions a launch; 0: the machine's default
};

// The failure names the variable. Read by cuInit and again whenever the first context is created.
Result<Settings> read_settings();

}  // namespace kgate::vgpu
