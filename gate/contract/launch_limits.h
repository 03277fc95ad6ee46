// What a launch can have at most, on any GPU so far (CUDA C++ Programming Guide, "Technical Specifications per Compute
// Capability"). A device may allow less; that is checked where the device is known.
#pragma once

#include <cstdint>

namespace kgate {

constexpr int64_t kMaxGrid[3] = {2147483647, 65535, 65535};
constexpr int64_t kMaxBlock[3] = {1024, 1024, 64};
constexpr int64_t kMaxThreads = 1024;         // a block
constexpr int64_t kMaxClusterBlocks = 16;     // non-portable; 8 everywhere since sm_90
constexpr int64_t kMaxSharedBytes = 1 << 24;  // a bound on nonsense; the device's own is about 227 KiB
constexpr uint32_t kMaxParamBytes = 32764;    // since CUDA 12.1 on sm_70 and later, 4096 before

}  // namespace kgate
