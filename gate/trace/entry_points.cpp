#include "trace/entry_points.h"

#include <algorithm>
#include <array>

namespace kgate::trace {

namespace {

using Use = ProbeSymbol::Use;

// Kernels. cuLaunch, cuLaunchGrid and cuLaunchGridAsync are of CUDA 3; libraries still export them.
constexpr const char* kLaunch[] = {"cuLaunch",
                                   "cuLaunchCooperativeKernel",
                                   "cuLaunchCooperativeKernelMultiDevice",
                                   "cuLaunchCooperativeKernel_ptsz",
                                   "cuLaunchGrid",
                                   "cuLaunchGridAsync",
                                   "cuLaunchKernel",
                                   "cuLaunchKernelEx",
                                   "cuLaunchKernelEx_ptsz",
                                   "cuLaunchKernel_ptsz"};

// Any number of kernels in one call.
constexpr const char* kGraphLaunch[] = {"cuGraphLaunch", "cuGraphLaunch_ptsz"};

// The host waits. Blocking copies wait too, but are copies.
constexpr const char* kSync[] = {"cuCtxSynchronize", "cuCtxSynchronize_v2", "cuEventSynchronize", "cuStreamSynchronize",
                                 "cuStreamSynchronize_ptsz"};

// Order between streams and with the host. A host function is here and not with the launches: no kernel runs.
constexpr const char* kEvent[] = {"cuCtxRecordEvent",
                                  "cuCtxWaitEvent",
                                  "cuEventQuery",
                                  "cuEventRecord",
                                  "cuEventRecordWithFlags",
                                  "cuEventRecordWithFlags_ptsz",
                                  "cuEventRecord_ptsz",
                                  "cuGreenCtxRecordEvent",
                                  "cuGreenCtxWaitEvent",
                                  "cuLaunchHostFunc",
                                  "cuLaunchHostFunc_ptsz",
                                  "cuSignalExternalSemaphoresAsync",
                                  "cuSignalExternalSemaphoresAsync_ptsz",
                                  "cuStreamAddCallback",
                                  "cuStreamAddCallback_ptsz",
                                  "cuStreamBatchMemOp",
                                  "cuStreamBatchMemOp_ptsz",
                                  "cuStreamBatchMemOp_v2",
                                  "cuStreamBatchMemOp_v2_ptsz",
                                  "cuStreamQuery",
                                  "cuStreamQuery_ptsz",
                                  "cuStreamWaitEvent",
                                  "cuStreamWaitEvent_ptsz",
                                  "cuStreamWaitValue32",
                                  "cuStreamWaitValue32_ptsz",
                                  "cuStreamWaitValue32_v2",
                                  "cuStreamWaitValue32_v2_ptsz",
                                  "cuStreamWaitValue64",
                                  "cuStreamWaitValue64_ptsz",
                                  "cuStreamWaitValue64_v2",
                                  "cuStreamWaitValue64_v2_ptsz",
                                  "cuStreamWriteValue32",
                                  "cuStreamWriteValue32_ptsz",
                                  "cuStreamWriteValue32_v2",
                                  "cuStreamWriteValue32_v2_ptsz",
                                  "cuStreamWriteValue64",
                                  "cuStreamWriteValue64_ptsz",
                                  "cuStreamWriteValue64_v2",
                                  "cuStreamWriteValue64_v2_ptsz",
                                  "cuWaitExternalSemaphoresAsync",
                                  "cuWaitExternalSemaphoresAsync_ptsz"};

// Bytes that move: copies, migration of managed memory, decompression.
constexpr const char* kCopy[] = {"cuMemBatchDecompressAsync",
                                 "cuMemBatchDecompressAsync_ptsz",
                                 "cuMemDiscardAndPrefetchBatchAsync",
                                 "cuMemDiscardAndPrefetchBatchAsync_ptsz",
                                 "cuMemPrefetchAsync",
                                 "cuMemPrefetchAsync_ptsz",
                                 "cuMemPrefetchAsync_v2",
                                 "cuMemPrefetchAsync_v2_ptsz",
                                 "cuMemPrefetchBatchAsync",
                                 "cuMemPrefetchBatchAsync_ptsz",
                                 "cuMemcpy",
                                 "cuMemcpy2D",
                                 "cuMemcpy2DAsync",
                                 "cuMemcpy2DAsync_v2",
                                 "cuMemcpy2DAsync_v2_ptsz",
                                 "cuMemcpy2DUnaligned",
                                 "cuMemcpy2DUnaligned_v2",
                                 "cuMemcpy2DUnaligned_v2_ptds",
                                 "cuMemcpy2D_v2",
                                 "cuMemcpy2D_v2_ptds",
                                 "cuMemcpy3D",
                                 "cuMemcpy3DAsync",
                                 "cuMemcpy3DAsync_v2",
                                 "cuMemcpy3DAsync_v2_ptsz",
                                 "cuMemcpy3DBatchAsync",
                                 "cuMemcpy3DBatchAsync_ptsz",
                                 "cuMemcpy3DBatchAsync_v2",
                                 "cuMemcpy3DBatchAsync_v2_ptsz",
                                 "cuMemcpy3DPeer",
                                 "cuMemcpy3DPeerAsync",
                                 "cuMemcpy3DPeerAsync_ptsz",
                                 "cuMemcpy3DPeer_ptds",
                                 "cuMemcpy3D_v2",
                                 "cuMemcpy3D_v2_ptds",
                                 "cuMemcpyAsync",
                                 "cuMemcpyAsync_ptsz",
                                 "cuMemcpyAtoA",
                                 "cuMemcpyAtoA_v2",
                                 "cuMemcpyAtoA_v2_ptds",
                                 "cuMemcpyAtoD",
                                 "cuMemcpyAtoD_v2",
                                 "cuMemcpyAtoD_v2_ptds",
                                 "cuMemcpyAtoH",
                                 "cuMemcpyAtoHAsync",
                                 "cuMemcpyAtoHAsync_v2",
                                 "cuMemcpyAtoHAsync_v2_ptsz",
                                 "cuMemcpyAtoH_v2",
                                 "cuMemcpyAtoH_v2_ptds",
                                 "cuMemcpyBatchAsync",
                                 "cuMemcpyBatchAsync_ptsz",
                                 "cuMemcpyBatchAsync_v2",
                                 "cuMemcpyBatchAsync_v2_ptsz",
                                 "cuMemcpyDtoA",
                                 "cuMemcpyDtoA_v2",
                                 "cuMemcpyDtoA_v2_ptds",
                                 "cuMemcpyDtoD",
                                 "cuMemcpyDtoDAsync",
                                 "cuMemcpyDtoDAsync_v2",
                                 "cuMemcpyDtoDAsync_v2_ptsz",
                                 "cuMemcpyDtoD_v2",
                                 "cuMemcpyDtoD_v2_ptds",
                                 "cuMemcpyDtoH",
                                 "cuMemcpyDtoHAsync",
                                 "cuMemcpyDtoHAsync_v2",
                                 "cuMemcpyDtoHAsync_v2_ptsz",
                                 "cuMemcpyDtoH_v2",
                                 "cuMemcpyDtoH_v2_ptds",
                                 "cuMemcpyHtoA",
                                 "cuMemcpyHtoAAsync",
                                 "cuMemcpyHtoAAsync_v2",
                                 "cuMemcpyHtoAAsync_v2_ptsz",
                                 "cuMemcpyHtoA_v2",
                                 "cuMemcpyHtoA_v2_ptds",
                                 "cuMemcpyHtoD",
                                 "cuMemcpyHtoDAsync",
                                 "cuMemcpyHtoDAsync_v2",
                                 "cuMemcpyHtoDAsync_v2_ptsz",
                                 "cuMemcpyHtoD_v2",
                                 "cuMemcpyHtoD_v2_ptds",
                                 "cuMemcpyPeer",
                                 "cuMemcpyPeerAsync",
                                 "cuMemcpyPeerAsync_ptsz",
                                 "cuMemcpyPeer_ptds",
                                 "cuMemcpy_ptds"};

constexpr const char* kMemset[] = {
    "cuMemsetD16",   "cuMemsetD16Async",   "cuMemsetD16Async_ptsz",   "cuMemsetD16_v2",   "cuMemsetD16_v2_ptds",
    "cuMemsetD2D16", "cuMemsetD2D16Async", "cuMemsetD2D16Async_ptsz", "cuMemsetD2D16_v2", "cuMemsetD2D16_v2_ptds",
    "cuMemsetD2D32", "cuMemsetD2D32Async", "cuMemsetD2D32Async_ptsz", "cuMemsetD2D32_v2", "cuMemsetD2D32_v2_ptds",
    "cuMemsetD2D8",  "cuMemsetD2D8Async",  "cuMemsetD2D8Async_ptsz",  "cuMemsetD2D8_v2",  "cuMemsetD2D8_v2_ptds",
    "cuMemsetD32",   "cuMemsetD32Async",   "cuMemsetD32Async_ptsz",   "cuMemsetD32_v2",   "cuMemsetD32_v2_ptds",
    "cuMemsetD8",    "cuMemsetD8Async",    "cuMemsetD8Async_ptsz",    "cuMemsetD8_v2",    "cuMemsetD8_v2_ptds"};

// Memory that comes into being or into reach.
constexpr const char* kAlloc[] = {"cuArray3DCreate",
                                  "cuArray3DCreate_v2",
                                  "cuArrayCreate",
                                  "cuArrayCreate_v2",
                                  "cuExternalMemoryGetMappedBuffer",
                                  "cuExternalMemoryGetMappedMipmappedArray",
                                  "cuImportExternalMemory",
                                  "cuIpcOpenMemHandle",
                                  "cuIpcOpenMemHandle_v2",
                                  "cuMemAddressReserve",
                                  "cuMemAlloc",
                                  "cuMemAllocAsync",
                                  "cuMemAllocAsync_ptsz",
                                  "cuMemAllocFromPoolAsync",
                                  "cuMemAllocFromPoolAsync_ptsz",
                                  "cuMemAllocHost",
                                  "cuMemAllocHost_v2",
                                  "cuMemAllocManaged",
                                  "cuMemAllocPitch",
                                  "cuMemAllocPitch_v2",
                                  "cuMemAlloc_v2",
                                  "cuMemCreate",
                                  "cuMemHostAlloc",
                                  "cuMemHostRegister",
                                  "cuMemHostRegister_v2",
                                  "cuMemImportFromShareableHandle",
                                  "cuMemMap",
                                  "cuMemMapArrayAsync",
                                  "cuMemMapArrayAsync_ptsz",
                                  "cuMemPoolCreate",
                                  "cuMemPoolImportFromShareableHandle",
                                  "cuMemPoolImportPointer",
                                  "cuMipmappedArrayCreate",
                                  "cuMulticastBindAddr",
                                  "cuMulticastBindMem",
                                  "cuMulticastCreate"};

// Memory that goes. Discarding keeps the addresses and gives the content up.
constexpr const char* kFree[] = {"cuArrayDestroy",
                                 "cuDestroyExternalMemory",
                                 "cuIpcCloseMemHandle",
                                 "cuMemAddressFree",
                                 "cuMemDiscardBatchAsync",
                                 "cuMemDiscardBatchAsync_ptsz",
                                 "cuMemFree",
                                 "cuMemFreeAsync",
                                 "cuMemFreeAsync_ptsz",
                                 "cuMemFreeHost",
                                 "cuMemFree_v2",
                                 "cuMemHostUnregister",
                                 "cuMemPoolDestroy",
                                 "cuMemPoolTrimTo",
                                 "cuMemRelease",
                                 "cuMemUnmap",
                                 "cuMipmappedArrayDestroy"};

// Code that is loaded and unloaded. cuFuncLoad: what lazy loading had left out.
constexpr const char* kModule[] = {"cuFuncLoad",         "cuLibraryLoadData",     "cuLibraryLoadFromFile",
                                   "cuLibraryUnload",    "cuModuleLoad",          "cuModuleLoadData",
                                   "cuModuleLoadDataEx", "cuModuleLoadFatBinary", "cuModuleUnload"};

constexpr auto make_table() {
  std::array<EntryPoint, std::size(kLaunch) + std::size(kGraphLaunch) + std::size(kSync) + std::size(kEvent) +
                             std::size(kCopy) + std::size(kMemset) + std::size(kAlloc) + std::size(kFree) +
                             std::size(kModule)>
      table{};
  size_t at = 0;
  auto add = [&](const auto& names, Use use) {
    for (const char* name : names) table[at++] = {name, use};
  };
  add(kLaunch, Use::launch);
  add(kGraphLaunch, Use::graph_launch);
  add(kSync, Use::sync);
  add(kEvent, Use::event);
  add(kCopy, Use::copy);
  add(kMemset, Use::memset);
  add(kAlloc, Use::alloc);
  add(kFree, Use::free);
  add(kModule, Use::module);
  return table;
}
constexpr auto kTable = make_table();

}  // namespace

std::span<const EntryPoint> entry_points() { return kTable; }

const EntryPoint* find_entry_point(std::string_view name) {
  auto at = std::find_if(kTable.begin(), kTable.end(), [&](const EntryPoint& e) { return name == e.name; });
  return at == kTable.end() ? nullptr : &*at;
}

}  // namespace kgate::trace
