// CUPTI's driver callbacks: the recorder (probes/) takes an application's driver calls from them, and the virtual GPU
// delivers them. `data` of a CUpti_CallbackFunc in CUPTI_CB_DOMAIN_DRIVER_API is a CUpti_CallbackData, valid only
// inside the callback. The same rules as for gpu/cuda_abi.h.
//
// A callback may call the driver; those calls have callbacks too, so a subscriber guards itself.
#pragma once

#include "gpu/cupti_driver_cbids.h"
#include "gpu/cupti_params_abi.h"

// X(exported name, parameter struct): the calls whose parameters are declared here. More have an id alone.
// clang-format off
#define KGATE_CUPTI_DRIVER_PARAMS(X) \
  X(cuLaunchKernel, CuLaunchKernelParams) X(cuLaunchKernel_ptsz, CuLaunchKernelParams) \
  X(cuLaunchKernelEx, CuLaunchKernelExParams) X(cuLaunchKernelEx_ptsz, CuLaunchKernelExParams) \
  X(cuLaunchCooperativeKernel, CuLaunchCooperativeKernelParams) \
  X(cuLaunchCooperativeKernel_ptsz, CuLaunchCooperativeKernelParams) \
  X(cuLaunchCooperativeKernelMultiDevice, CuLaunchCooperativeKernelMultiDeviceParams) \
  X(cuLaunchHostFunc, CuLaunchHostFuncParams) X(cuLaunchHostFunc_ptsz, CuLaunchHostFuncParams) \
  X(cuStreamAddCallback, CuStreamAddCallbackParams) X(cuStreamAddCallback_ptsz, CuStreamAddCallbackParams) \
  X(cuMemAlloc_v2, CuMemAllocParams) X(cuMemAllocPitch_v2, CuMemAllocPitchParams) \
  X(cuMemAllocAsync, CuMemAllocAsyncParams) X(cuMemAllocAsync_ptsz, CuMemAllocAsyncParams) \
  X(cuMemAllocFromPoolAsync, CuMemAllocFromPoolAsyncParams) \
  X(cuMemAllocFromPoolAsync_ptsz, CuMemAllocFromPoolAsyncParams) X(cuMemAllocManaged, CuMemAllocManagedParams) \
  X(cuMemFree_v2, CuMemFreeParams) X(cuMemFreeAsync, CuMemFreeAsyncParams) \
  X(cuMemFreeAsync_ptsz, CuMemFreeAsyncParams) X(cuMemAllocHost_v2, CuMemAllocHostParams) \
  X(cuMemHostAlloc, CuMemHostAllocParams) X(cuMemFreeHost, CuMemFreeHostParams) \
  X(cuMemHostRegister_v2, CuMemHostRegisterParams) X(cuMemHostUnregister, CuMemHostUnregisterParams) \
  X(cuMemHostGetDevicePointer_v2, CuMemHostGetDevicePointerParams) X(cuMemAddressReserve, CuMemAddressReserveParams) \
  X(cuMemAddressFree, CuMemAddressFreeParams) X(cuMemCreate, CuMemCreateParams) X(cuMemRelease, CuMemReleaseParams) \
  X(cuMemMap, CuMemMapParams) X(cuMemUnmap, CuMemUnmapParams) X(cuMemSetAccess, CuMemSetAccessParams) \
  X(cuMemcpyHtoD_v2, CuMemcpyHtoDParams) X(cuMemcpyHtoD_v2_ptds, CuMemcpyHtoDParams) \
  X(cuMemcpyDtoH_v2, CuMemcpyDtoHParams) X(cuMemcpyDtoH_v2_ptds, CuMemcpyDtoHParams) \
  X(cuMemcpyDtoD_v2, CuMemcpyDtoDParams) X(cuMemcpyDtoD_v2_ptds, CuMemcpyDtoDParams) X(cuMemcpy, CuMemcpyParams) \
  X(cuMemcpy_ptds, CuMemcpyParams) X(cuMemcpyHtoDAsync_v2, CuMemcpyHtoDAsyncParams) \
  X(cuMemcpyHtoDAsync_v2_ptsz, CuMemcpyHtoDAsyncParams) X(cuMemcpyDtoHAsync_v2, CuMemcpyDtoHAsyncParams) \
  X(cuMemcpyDtoHAsync_v2_ptsz, CuMemcpyDtoHAsyncParams) X(cuMemcpyDtoDAsync_v2, CuMemcpyDtoDAsyncParams) \
  X(cuMemcpyDtoDAsync_v2_ptsz, CuMemcpyDtoDAsyncParams) X(cuMemcpyAsync, CuMemcpyAsyncParams) \
  X(cuMemcpyAsync_ptsz, CuMemcpyAsyncParams) X(cuMemcpyPeer, CuMemcpyPeerParams) \
  X(cuMemcpyPeer_ptds, CuMemcpyPeerParams) X(cuMemcpyPeerAsync, CuMemcpyPeerAsyncParams) \
  X(cuMemcpyPeerAsync_ptsz, CuMemcpyPeerAsyncParams) X(cuMemcpy2D_v2, CuMemcpy2DParams) \
  X(cuMemcpy2D_v2_ptds, CuMemcpy2DParams) X(cuMemcpy2DUnaligned_v2, CuMemcpy2DUnalignedParams) \
  X(cuMemcpy2DUnaligned_v2_ptds, CuMemcpy2DUnalignedParams) X(cuMemcpy2DAsync_v2, CuMemcpy2DAsyncParams) \
  X(cuMemcpy2DAsync_v2_ptsz, CuMemcpy2DAsyncParams) X(cuMemcpy3D_v2, CuMemcpy3DParams) \
  X(cuMemcpy3D_v2_ptds, CuMemcpy3DParams) X(cuMemcpy3DAsync_v2, CuMemcpy3DAsyncParams) \
  X(cuMemcpy3DAsync_v2_ptsz, CuMemcpy3DAsyncParams) X(cuMemsetD8_v2, CuMemsetD8Params) \
  X(cuMemsetD8_v2_ptds, CuMemsetD8Params) X(cuMemsetD16_v2, CuMemsetD16Params) \
  X(cuMemsetD16_v2_ptds, CuMemsetD16Params) X(cuMemsetD32_v2, CuMemsetD32Params) \
  X(cuMemsetD32_v2_ptds, CuMemsetD32Params) X(cuMemsetD2D8_v2, CuMemsetD2D8Params) \
  X(cuMemsetD2D8_v2_ptds, CuMemsetD2D8Params) X(cuMemsetD2D16_v2, CuMemsetD2D16Params) \
  X(cuMemsetD2D16_v2_ptds, CuMemsetD2D16Params) X(cuMemsetD2D32_v2, CuMemsetD2D32Params) \
  X(cuMemsetD2D32_v2_ptds, CuMemsetD2D32Params) X(cuMemsetD8Async, CuMemsetD8AsyncParams) \
  X(cuMemsetD8Async_ptsz, CuMemsetD8AsyncParams) X(cuMemsetD16Async, CuMemsetD16AsyncParams) \
  X(cuMemsetD16Async_ptsz, CuMemsetD16AsyncParams) X(cuMemsetD32Async, CuMemsetD32AsyncParams) \
  X(cuMemsetD32Async_ptsz, CuMemsetD32AsyncParams) X(cuMemsetD2D8Async, CuMemsetD2D8AsyncParams) \
  X(cuMemsetD2D8Async_ptsz, CuMemsetD2D8AsyncParams) X(cuMemsetD2D16Async, CuMemsetD2D16AsyncParams) \
  X(cuMemsetD2D16Async_ptsz, CuMemsetD2D16AsyncParams) X(cuMemsetD2D32Async, CuMemsetD2D32AsyncParams) \
  X(cuMemsetD2D32Async_ptsz, CuMemsetD2D32AsyncParams) X(cuMemPrefetchAsync, CuMemPrefetchAsyncParams) \
  X(cuMemPrefetchAsync_ptsz, CuMemPrefetchAsyncParams) X(cuMemPrefetchAsync_v2, CuMemPrefetchAsyncV2Params) \
  X(cuMemPrefetchAsync_v2_ptsz, CuMemPrefetchAsyncV2Params) X(cuStreamCreate, CuStreamCreateParams) \
  X(cuStreamCreateWithPriority, CuStreamCreateWithPriorityParams) X(cuStreamDestroy_v2, CuStreamDestroyParams) \
  X(cuStreamSynchronize, CuStreamSynchronizeParams) X(cuStreamSynchronize_ptsz, CuStreamSynchronizeParams) \
  X(cuStreamQuery, CuStreamQueryParams) X(cuStreamQuery_ptsz, CuStreamQueryParams) \
  X(cuStreamWaitEvent, CuStreamWaitEventParams) X(cuStreamWaitEvent_ptsz, CuStreamWaitEventParams) \
  X(cuStreamBeginCapture_v2, CuStreamBeginCaptureParams) X(cuStreamBeginCapture_v2_ptsz, CuStreamBeginCaptureParams) \
  X(cuStreamEndCapture, CuStreamEndCaptureParams) X(cuStreamEndCapture_ptsz, CuStreamEndCaptureParams) \
  X(cuStreamBeginCaptureToGraph, CuStreamBeginCaptureToGraphParams) \
  X(cuStreamBeginCaptureToGraph_ptsz, CuStreamBeginCaptureToGraphParams) \
  X(cuStreamWaitValue32_v2, CuStreamWaitValue32Params) X(cuStreamWaitValue32_v2_ptsz, CuStreamWaitValue32Params) \
  X(cuStreamWaitValue64_v2, CuStreamWaitValue64Params) X(cuStreamWaitValue64_v2_ptsz, CuStreamWaitValue64Params) \
  X(cuStreamWriteValue32_v2, CuStreamWriteValue32Params) X(cuStreamWriteValue32_v2_ptsz, CuStreamWriteValue32Params) \
  X(cuStreamWriteValue64_v2, CuStreamWriteValue64Params) X(cuStreamWriteValue64_v2_ptsz, CuStreamWriteValue64Params) \
  X(cuStreamBatchMemOp_v2, CuStreamBatchMemOpParams) X(cuStreamBatchMemOp_v2_ptsz, CuStreamBatchMemOpParams) \
  X(cuEventCreate, CuEventCreateParams) X(cuEventDestroy_v2, CuEventDestroyParams) \
  X(cuEventRecord, CuEventRecordParams) X(cuEventRecord_ptsz, CuEventRecordParams) \
  X(cuEventRecordWithFlags, CuEventRecordWithFlagsParams) \
  X(cuEventRecordWithFlags_ptsz, CuEventRecordWithFlagsParams) X(cuEventSynchronize, CuEventSynchronizeParams) \
  X(cuEventQuery, CuEventQueryParams) X(cuEventElapsedTime_v2, CuEventElapsedTimeParams) \
  X(cuCtxSynchronize_v2, CuCtxSynchronizeParams) X(cuGraphInstantiate_v2, CuGraphInstantiateParams) \
  X(cuGraphInstantiateWithFlags, CuGraphInstantiateWithFlagsParams) \
  X(cuGraphInstantiateWithParams, CuGraphInstantiateWithParamsParams) \
  X(cuGraphInstantiateWithParams_ptsz, CuGraphInstantiateWithParamsParams) X(cuGraphLaunch, CuGraphLaunchParams) \
  X(cuGraphLaunch_ptsz, CuGraphLaunchParams) X(cuGraphUpload, CuGraphUploadParams) \
  X(cuGraphUpload_ptsz, CuGraphUploadParams) X(cuGraphDestroy, CuGraphDestroyParams) \
  X(cuGraphExecDestroy, CuGraphExecDestroyParams) X(cuGraphExecUpdate_v2, CuGraphExecUpdateParams) \
  X(cuGraphExecKernelNodeSetParams_v2, CuGraphExecKernelNodeSetParamsParams) \
  X(cuGraphNodeSetEnabled, CuGraphNodeSetEnabledParams) X(cuModuleLoad, CuModuleLoadParams) \
  X(cuModuleLoadData, CuModuleLoadDataParams) X(cuModuleLoadDataEx, CuModuleLoadDataExParams) \
  X(cuModuleLoadFatBinary, CuModuleLoadFatBinaryParams) X(cuModuleUnload, CuModuleUnloadParams) \
  X(cuModuleGetFunction, CuModuleGetFunctionParams) X(cuModuleGetGlobal_v2, CuModuleGetGlobalParams) \
  X(cuLibraryLoadData, CuLibraryLoadDataParams) X(cuLibraryLoadFromFile, CuLibraryLoadFromFileParams) \
  X(cuLibraryUnload, CuLibraryUnloadParams) X(cuLibraryGetKernel, CuLibraryGetKernelParams) \
  X(cuLibraryGetModule, CuLibraryGetModuleParams) X(cuLibraryGetGlobal, CuLibraryGetGlobalParams) \
  X(cuLibraryGetManaged, CuLibraryGetManagedParams) X(cuKernelGetFunction, CuKernelGetFunctionParams) \
  X(cuIpcOpenMemHandle_v2, CuIpcOpenMemHandleParams) X(cuIpcGetMemHandle, CuIpcGetMemHandleParams) \
  X(cuImportExternalMemory, CuImportExternalMemoryParams) \
  X(cuExternalMemoryGetMappedBuffer, CuExternalMemoryGetMappedBufferParams) X(cuCtxCreate_v2, CuCtxCreateV2Params) \
  X(cuCtxCreate_v4, CuCtxCreateV4Params) X(cuCtxDestroy_v2, CuCtxDestroyParams) \
  X(cuDevicePrimaryCtxRetain, CuDevicePrimaryCtxRetainParams) \
  X(cuDevicePrimaryCtxRelease_v2, CuDevicePrimaryCtxReleaseParams) \
  X(cuDevicePrimaryCtxReset_v2, CuDevicePrimaryCtxResetParams)
// clang-format on

namespace kgate::gpu {

struct CUpti_CallbackData {
  unsigned callbackSite;       // CUPTI_API_ENTER or CUPTI_API_EXIT
  const char* functionName;    // as exported
  const void* functionParams;  // by cbid, see the table; null where the call has none
  void* functionReturnValue;   // a CUresult; only at exit
  const char* symbolName;      // of the kernel that a launch names, mangled; else null
  CUcontext context;           // current in this thread; null: none
  uint32_t contextUid;
  uint64_t* correlationData;  // a word that keeps its value from enter to exit
  uint32_t correlationId;     // as in activity records
};

// The parameter struct of a call: DriverParams<CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2>::type.
template <uint32_t cbid>
struct DriverParams;
#define KGATE_PARAMS(name, params)                      \
  template <>                                           \
  struct DriverParams<CUPTI_DRIVER_TRACE_CBID_##name> { \
    using type = params;                                \
  };
KGATE_CUPTI_DRIVER_PARAMS(KGATE_PARAMS)
#undef KGATE_PARAMS

// `functionParams` of the call `cbid`, whose type the id names.
template <uint32_t cbid>
const typename DriverParams<cbid>::type& params_of(const CUpti_CallbackData& data) {
  return *static_cast<const typename DriverParams<cbid>::type*>(data.functionParams);
}

}  // namespace kgate::gpu
