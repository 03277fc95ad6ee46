// Caps of a workload. They bound what a hostile file can make kgate allocate; none is near what a real program needs.
// Device limits (CUDA programming guide, "Technical Specifications per Compute Capability", and the driver API's
// parameter block).
#pragma once

#include <cstddef>
#include <cstdint>

namespace kgate::cap {

constexpr size_t kMaxName = 4096;  // bytes of any name; mangled entries are long
constexpr uint32_t kMaxThreads = 256, kMaxStreams = 4096, kMaxEvents = 1 << 20;
constexpr int32_t kMaxPriority = 64;  // either way; CUDA has 6 levels
constexpr size_t kMaxModules = 1 << 12, kMaxKernels = 1 << 16, kMaxBuffers = 1 << 18;
constexpr size_t kMaxLaunches = 1 << 21, kMaxCalls = 1 << 21;
constexpr size_t kMaxAfter = kMaxThreads;  // edges of one call
constexpr size_t kMaxAllAfter = size_t{1} << 22;
constexpr size_t kMaxGraphs = 1 << 14;
constexpr size_t kMaxAllNodes = size_t{1} << 20;  // of all graphs together
constexpr size_t kMaxNodeAfter = 1 << 14, kMaxAllNodeAfter = size_t{1} << 22;
constexpr size_t kMaxPayloads = 1 << 20;
constexpr size_t kMaxKernelParams = 4096, kMaxAllKernelParams = 1 << 20;
constexpr uint32_t kMaxParamBytes = 32764;             // CUDA 12.1 and later
constexpr size_t kMaxAllParamBytes = size_t{1} << 30;  // of all launches together
constexpr size_t kMaxAllRelocations = size_t{1} << 23;
constexpr uint64_t kMaxBufferBytes = uint64_t{1} << 40;
constexpr uint64_t kMaxAllBufferBytes = uint64_t{1} << 44;
constexpr uint64_t kMaxAddress = uint64_t{1} << 57;
constexpr uint32_t kMaxAlign = 1 << 21;                     // a large device page
constexpr uint64_t kMaxBlobBytes = uint64_t{512} << 20;     // one image or content that is read as a whole
constexpr uint64_t kMaxAllBlobBytes = uint64_t{8} << 30;    // all of them, counted once a use
constexpr uint64_t kMaxAllChunkBytes = uint64_t{64} << 30;  // of contents in chunks, counted once a use
constexpr size_t kMaxAllEndHashes = size_t{1} << 26;        // 256 GiB of memory
constexpr uint64_t kMaxTime = uint64_t{1} << 52;  // ns: 52 days
constexpr uint32_t kMaxSharedBytes = 1 << 20;
constexpr uint32_t kMaxClusterBlocks = 16;
constexpr size_t kMaxNotes = 256, kMaxFidelity = 64;
constexpr uint64_t kMaxFileBytes = uint64_t{64} << 30;

// What a file unpacks to, images and parameters, is limited by its own size too.
constexpr uint64_t kUnpackedBase = uint64_t{1} << 30, kUnpackedPerByte = 1024;

}  // namespace kgate::cap
