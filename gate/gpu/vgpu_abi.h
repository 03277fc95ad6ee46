// What libkgate_vgpu.so exports beyond CUDA's own names: how a caller learns that the library is the virtual GPU, what
// went wrong in a launch and what the last one counted. Plain C structs with fixed sizes, so that they can be read
// from a process that runs untrusted kernels. The same rules as for gpu/cuda_abi.h.
//
//   int kgate_vgpu_version(void);                            kVgpuAbiVersion
//   int kgate_vgpu_last_fault(kgate_vgpu_fault*, size_t);    1: filled; 0: no fault so far; -1: wrong size
//   int kgate_vgpu_last_counters(kgate_vgpu_counters*, size_t);  the same; counters of the last launch that ran
//
// Environment, read once by cuInit: KGATE_VGPU_MEMORY (bytes, or with K, M or G; default 2G), KGATE_VGPU_BUDGET (warp
// instructions a launch; default the machine's own). Bad values fail cuInit. KGATE_VGPU_INJECT: vgpu/cupti_inject.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kgate::gpu {

inline constexpr int kVgpuAbiVersion = 1;

// The first fault of the last failed call. Texts are NUL terminated and cut to fit.
struct kgate_vgpu_fault {
  int32_t code;          // the CUresult that it became
  uint32_t line;         // 1-based line of the PTX source; 0: unknown
  uint64_t address;      // 0: none
  uint32_t block[3], thread[3];
  char kind[32];         // "out of bounds", "unsupported", ...
  char entry[256];
  char message[512];
  char statement[256];   // the PTX statement of that line
};

struct kgate_vgpu_counters {
  uint64_t launches;     // launches that this process has run so far, the counted one included
  uint64_t warp_instructions, thread_instructions;
  uint64_t global_load_sectors, global_store_sectors, global_requests;
  uint64_t bank_conflicts, divergent_branches, barriers, atomics;
};

using kgate_vgpu_version_fn = int (*)();
using kgate_vgpu_last_fault_fn = int (*)(kgate_vgpu_fault* fault, size_t size);
using kgate_vgpu_last_counters_fn = int (*)(kgate_vgpu_counters* counters, size_t size);

}  // namespace kgate::gpu
