// A launch extent, as CUDA counts it.
#pragma once

#include <cstdint>

namespace kgate {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
  friend bool operator==(const Dim3&, const Dim3&) = default;
};

}  // namespace kgate
