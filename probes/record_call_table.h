// Which driver calls are watched, and what sort each is.
#pragma once

#include <array>
#include <string_view>

#include "gpu/cupti_driver_cbids.h"

// clang-format off
#define KGATE_RECORD_LAUNCHES(X) \
  X(cuLaunchKernel) X(cuLaunchKernel_ptsz) X(cuLaunchKernelEx) X(cuLaunchKernelEx_ptsz) \
  X(cuLaunchCooperativeKernel) X(cuLaunchCooperativeKernel_ptsz)
#define KGATE_RECORD_COPIES(X) \
  X(cuMemcpyHtoD_v2) X(cuMemcpyHtoD_v2_ptds) X(cuMemcpyDtoH_v2) X(cuMemcpyDtoH_v2_ptds) X(cuMemcpyDtoD_v2) \
  X(cuMemcpyDtoD_v2_ptds) X(cuMemcpy) X(cuMemcpy_ptds) X(cuMemcpyHtoDAsync_v2) X(cuMemcpyHtoDAsync_v2_ptsz) \
  X(cuMemcpyDtoHAsync_v2) X(cuMemcpyDtoHAsync_v2_ptsz) X(cuMemcpyDtoDAsync_v2) X(cuMemcpyDtoDAsync_v2_ptsz) \
  X(cuMemcpyAsync) X(cuMemcpyAsync_ptsz) X(cuMemcpyPeer) X(cuMemcpyPeer_ptds) X(cuMemcpyPeerAsync) \
  X(cuMemcpyPeerAsync_ptsz) X(cuMemcpy2D_v2) X(cuMemcpy2D_v2_ptds) X(cuMemcpy2DUnaligned_v2) \
  X(cuMemcpy2DUnaligned_v2_ptds) X(cuMemcpy2DAsync_v2) X(cuMemcpy2DAsync_v2_ptsz) X(cuMemcpy3D_v2) \
  X(cuMemcpy3D_v2_ptds) X(cuMemcpy3DAsync_v2) X(cuMemcpy3DAsync_v2_ptsz)
#define KGATE_RECORD_FILLS(X) \
  X(cuMemsetD8_v2) X(cuMemsetD8_v2_ptds) X(cuMemsetD16_v2) X(cuMemsetD16_v2_ptds) X(cuMemsetD32_v2) \
  X(cuMemsetD32_v2_ptds) X(cuMemsetD2D8_v2) X(cuMemsetD2D8_v2_ptds) X(cuMemsetD2D16_v2) X(cuMemsetD2D16_v2_ptds) \
  X(cuMemsetD2D32_v2) X(cuMemsetD2D32_v2_ptds) X(cuMemsetD8Async) X(cuMemsetD8Async_ptsz) X(cuMemsetD16Async) \
  X(cuMemsetD16Async_ptsz) X(cuMemsetD32Async) X(cuMemsetD32Async_ptsz) X(cuMemsetD2D8Async) \
  X(cuMemsetD2D8Async_ptsz) X(cuMemsetD2D16Async) X(cuMemsetD2D16Async_ptsz) X(cuMemsetD2D32Async) \
  X(cuMemsetD2D32Async_ptsz)
#define KGATE_RECORD_OTHER_WORK(X) \
  X(cuGraphLaunch) X(cuGraphLaunch_ptsz) X(cuLaunchHostFunc) X(cuLaunchHostFunc_ptsz) X(cuStreamAddCallback) \
  X(cuStreamAddCallback_ptsz)
#define KGATE_RECORD_WAITS(X) \
  X(cuStreamSynchronize) X(cuStreamSynchronize_ptsz) X(cuEventSynchronize) X(cuCtxSynchronize) X(cuCtxSynchronize_v2)
#define KGATE_RECORD_STREAMS(X) \
  X(cuStreamCreate) X(cuStreamCreateWithPriority) X(cuStreamDestroy_v2) X(cuStreamQuery) X(cuStreamQuery_ptsz) \
  X(cuStreamWaitEvent) X(cuStreamWaitEvent_ptsz) X(cuEventRecord) X(cuEventRecord_ptsz) X(cuEventRecordWithFlags) \
  X(cuEventRecordWithFlags_ptsz) X(cuEventQuery) X(cuEventDestroy_v2) X(cuStreamBeginCapture_v2) \
  X(cuStreamBeginCapture_v2_ptsz) X(cuStreamBeginCaptureToGraph) X(cuStreamBeginCaptureToGraph_ptsz) \
  X(cuStreamEndCapture) X(cuStreamEndCapture_ptsz)
#define KGATE_RECORD_GRAPHS(X) \
  X(cuGraphInstantiate) X(cuGraphInstantiate_v2) X(cuGraphInstantiateWithFlags) X(cuGraphInstantiateWithParams) \
  X(cuGraphInstantiateWithParams_ptsz) X(cuGraphExecDestroy) X(cuGraphExecUpdate) \
  X(cuGraphExecUpdate_v2) \
  X(cuGraphExecKernelNodeSetParams_v2) X(cuGraphNodeSetEnabled)
// Those change an executable graph; `exec` is their first parameter.
#define KGATE_RECORD_GRAPH_CHANGES(X) \
  X(cuGraphExecKernelNodeSetParams) X(cuGraphExecMemcpyNodeSetParams) \
  X(cuGraphExecMemsetNodeSetParams) X(cuGraphExecHostNodeSetParams) X(cuGraphExecChildGraphNodeSetParams) \
  X(cuGraphExecEventRecordNodeSetEvent) X(cuGraphExecEventWaitNodeSetEvent) X(cuGraphExecBatchMemOpNodeSetParams) \
  X(cuGraphExecExternalSemaphoresSignalNodeSetParams) X(cuGraphExecExternalSemaphoresWaitNodeSetParams) \
  X(cuGraphExecNodeSetParams)
#define KGATE_RECORD_FREES(X) \
  X(cuMemFree_v2) X(cuMemFreeAsync) X(cuMemFreeAsync_ptsz) X(cuMemFreeHost) X(cuMemHostUnregister) X(cuMemUnmap) \
  X(cuIpcCloseMemHandle)
#define KGATE_RECORD_ALLOCATIONS(X) \
  X(cuMemAlloc_v2) X(cuMemAllocPitch_v2) X(cuMemAllocAsync) X(cuMemAllocAsync_ptsz) X(cuMemAllocFromPoolAsync) \
  X(cuMemAllocFromPoolAsync_ptsz) X(cuMemAllocManaged) X(cuMemAllocHost_v2) X(cuMemHostAlloc) \
  X(cuMemHostRegister_v2) X(cuMemMap) X(cuMemSetAccess) X(cuIpcOpenMemHandle_v2) X(cuExternalMemoryGetMappedBuffer)
#define KGATE_RECORD_LOADS(X) \
  X(cuModuleLoad) X(cuModuleLoadData) X(cuModuleLoadDataEx) X(cuModuleLoadFatBinary) X(cuLibraryLoadData) \
  X(cuLibraryLoadFromFile)
#define KGATE_RECORD_CODE(X) \
  X(cuModuleUnload) X(cuLibraryUnload) X(cuLibraryGetKernel) X(cuModuleGetGlobal_v2) X(cuLibraryGetGlobal) \
  X(cuLibraryGetManaged)
#define KGATE_RECORD_CONTEXTS(X) \
  X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease_v2) X(cuDevicePrimaryCtxReset_v2) X(cuCtxDestroy_v2)
// Those change how fast something is, or nothing.
#define KGATE_RECORD_NOTED(X) \
  X(cuStreamSetAttribute) X(cuStreamSetAttribute_ptsz) X(cuStreamCopyAttributes) X(cuStreamCopyAttributes_ptsz) \
  X(cuStreamAttachMemAsync) X(cuStreamAttachMemAsync_ptsz)
// X(name, what it is called): a slice with such a call cannot be replayed.
#define KGATE_RECORD_REFUSED(X) \
  X(cuLaunchCooperativeKernelMultiDevice, "a cooperative launch on several devices") \
  X(cuStreamWaitValue32, "a wait for a value in memory") X(cuStreamWaitValue32_ptsz, "a wait for a value in memory") \
  X(cuStreamWaitValue64, "a wait for a value in memory") X(cuStreamWaitValue64_ptsz, "a wait for a value in memory") \
  X(cuStreamWaitValue32_v2, "a wait for a value in memory") \
  X(cuStreamWaitValue32_v2_ptsz, "a wait for a value in memory") \
  X(cuStreamWaitValue64_v2, "a wait for a value in memory") \
  X(cuStreamWaitValue64_v2_ptsz, "a wait for a value in memory") \
  X(cuStreamWriteValue32, "a stream's write to memory") X(cuStreamWriteValue32_ptsz, "a stream's write to memory") \
  X(cuStreamWriteValue64, "a stream's write to memory") X(cuStreamWriteValue64_ptsz, "a stream's write to memory") \
  X(cuStreamWriteValue32_v2, "a stream's write to memory") \
  X(cuStreamWriteValue32_v2_ptsz, "a stream's write to memory") \
  X(cuStreamWriteValue64_v2, "a stream's write to memory") \
  X(cuStreamWriteValue64_v2_ptsz, "a stream's write to memory") X(cuStreamBatchMemOp, "a batch of memory operations") \
  X(cuStreamBatchMemOp_ptsz, "a batch of memory operations") X(cuStreamBatchMemOp_v2, "a batch of memory operations") \
  X(cuStreamBatchMemOp_v2_ptsz, "a batch of memory operations") X(cuMemcpy3DPeer, "a copy of a box between devices") \
  X(cuMemcpy3DPeer_ptds, "a copy of a box between devices") \
  X(cuMemcpy3DPeerAsync, "a copy of a box between devices") \
  X(cuMemcpy3DPeerAsync_ptsz, "a copy of a box between devices") X(cuMemcpyBatchAsync, "a batch of copies") \
  X(cuMemcpyBatchAsync_ptsz, "a batch of copies") X(cuMemcpyBatchAsync_v2, "a batch of copies") \
  X(cuMemcpyBatchAsync_v2_ptsz, "a batch of copies") X(cuMemcpy3DBatchAsync, "a batch of copies") \
  X(cuMemcpy3DBatchAsync_ptsz, "a batch of copies") X(cuMemcpy3DBatchAsync_v2, "a batch of copies") \
  X(cuMemcpy3DBatchAsync_v2_ptsz, "a batch of copies") X(cuMemcpyHtoA_v2, "a copy to an array") \
  X(cuMemcpyHtoA_v2_ptds, "a copy to an array") X(cuMemcpyAtoH_v2, "a copy from an array") \
  X(cuMemcpyAtoH_v2_ptds, "a copy from an array") X(cuMemcpyDtoA_v2, "a copy to an array") \
  X(cuMemcpyDtoA_v2_ptds, "a copy to an array") X(cuMemcpyAtoD_v2, "a copy from an array") \
  X(cuMemcpyAtoD_v2_ptds, "a copy from an array") X(cuMemcpyAtoA_v2, "a copy from an array") \
  X(cuMemcpyAtoA_v2_ptds, "a copy from an array") X(cuMemcpyHtoAAsync_v2, "a copy to an array") \
  X(cuMemcpyHtoAAsync_v2_ptsz, "a copy to an array") X(cuMemcpyAtoHAsync_v2, "a copy from an array") \
  X(cuMemcpyAtoHAsync_v2_ptsz, "a copy from an array") X(cuMemMapArrayAsync, "a mapping of a sparse array") \
  X(cuMemMapArrayAsync_ptsz, "a mapping of a sparse array") X(cuSignalExternalSemaphoresAsync, "a signal to another API") \
  X(cuSignalExternalSemaphoresAsync_ptsz, "a signal to another API") \
  X(cuWaitExternalSemaphoresAsync, "a wait for another API") \
  X(cuWaitExternalSemaphoresAsync_ptsz, "a wait for another API")
// Those leave something behind: also when they came before the slice.
#define KGATE_RECORD_REFUSED_OBJECTS(X) \
  X(cuTexObjectCreate, "a texture object") X(cuSurfObjectCreate, "a surface object") \
  X(cuMulticastCreate, "memory that several devices share") X(cuGraphicsMapResources, "memory of a graphics API") \
  X(cuGraphicsMapResources_ptsz, "memory of a graphics API") X(cuIpcOpenEventHandle, "an event of another process")
// clang-format on

namespace kgate::record {

enum class Sort : uint8_t {
  none,
  launch,
  copy,
  fill,
  other_work,
  wait,
  stream,
  graph,
  graph_change,
  free,
  allocation,
  load,
  code,
  context,
  noted,
  refused,
  refused_object
};

struct WatchedCall {
  Sort sort = Sort::none;
  bool per_thread = false;        // null names the calling thread's own stream
  const char* refusal = nullptr;  // what a refused call is called

  constexpr bool is_work() const {
    return sort == Sort::launch || sort == Sort::copy || sort == Sort::fill || sort == Sort::other_work;
  }
};

constexpr auto kWatchedCalls = [] {
  std::array<WatchedCall, gpu::kDriverCbidLimit> calls{};
  const auto add = [&](uint32_t cbid, std::string_view name, Sort sort, const char* refusal = nullptr) {
    calls[cbid] = {sort, name.ends_with("_ptsz") || name.ends_with("_ptds"), refusal};
  };
#define KGATE_WATCH_AS(name, sort) add(gpu::CUPTI_DRIVER_TRACE_CBID_##name, #name, sort);
#define KGATE_WATCH(name) KGATE_WATCH_AS(name, Sort::launch)
  KGATE_RECORD_LAUNCHES(KGATE_WATCH)
#undef KGATE_WATCH
#define KGATE_WATCH(name) KGATE_WATCH_AS(name, Sort::copy)
  KGATE_RECORD_COPIES(KGATE_WATCH)
#undef KGATE_WATCH
#define KGATE_WATCH(name) KGATE_WATCH_AS(name, Sort::fill)
  KGATE_RECORD_FILLS(KGATE_WATCH)
#undef KGATE_WATCH
#define KGATE_WATCH(name) KGATE_WATCH_AS(name, Sort::other_work)
  KGATE_RECORD_OTHER_WORK(KGATE_WATCH)
#undef KGATE_WATCH
#define KGATE_WATCH(name) KGATE_WATCH_AS(name, Sort::wait)
  KGATE_RECORD_WAITS(KGATE_WATCH)
#undef KGATE_WATCH
#define KGATE_WATCH(name) KGATE_WATCH_AS(name, Sort::stream)
  KGATE_RECORD_STREAMS(KGATE_WATCH)
#undef KGATE_WATCH
#define KGATE_WATCH(name) KGATE_WATCH_AS(name, Sort::graph)
  KGATE_RECORD_GRAPHS(KGATE_WATCH)
#undef KGATE_WATCH
#define KGATE_WATCH(name) KGATE_WATCH_AS(name, Sort::graph_change)
  KGATE_RECORD_GRAPH_CHANGES(KGATE_WATCH)
#undef KGATE_WATCH
#define KGATE_WATCH(name) KGATE_WATCH_AS(name, Sort::free)
  KGATE_RECORD_FREES(KGATE_WATCH)
#undef KGATE_WATCH
#define KGATE_WATCH(name) KGATE_WATCH_AS(name, Sort::allocation)
  KGATE_RECORD_ALLOCATIONS(KGATE_WATCH)
#undef KGATE_WATCH
#define KGATE_WATCH(name) KGATE_WATCH_AS(name, Sort::load)
  KGATE_RECORD_LOADS(KGATE_WATCH)
#undef KGATE_WATCH
#define KGATE_WATCH(name) KGATE_WATCH_AS(name, Sort::code)
  KGATE_RECORD_CODE(KGATE_WATCH)
#undef KGATE_WATCH
#define KGATE_WATCH(name) KGATE_WATCH_AS(name, Sort::context)
  KGATE_RECORD_CONTEXTS(KGATE_WATCH)
#undef KGATE_WATCH
#define KGATE_WATCH(name) KGATE_WATCH_AS(name, Sort::noted)
  KGATE_RECORD_NOTED(KGATE_WATCH)
#undef KGATE_WATCH
#undef KGATE_WATCH_AS
#define KGATE_WATCH(name, refusal) add(gpu::CUPTI_DRIVER_TRACE_CBID_##name, #name, Sort::refused, refusal);
  KGATE_RECORD_REFUSED(KGATE_WATCH)
#undef KGATE_WATCH
#define KGATE_WATCH(name, refusal) add(gpu::CUPTI_DRIVER_TRACE_CBID_##name, #name, Sort::refused_object, refusal);
  KGATE_RECORD_REFUSED_OBJECTS(KGATE_WATCH)
#undef KGATE_WATCH
  return calls;
}();

}  // namespace kgate::record
