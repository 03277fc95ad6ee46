// Parameters of the driver's calls as CUPTI's driver callbacks show them (CUpti_CallbackData::functionParams): the
// call's parameters in order, under CUDA's names. A twin that takes the thread's own stream (_ptsz, _ptds) has the same
// struct, and a name carries a version only where two versions differ. Compared with the toolkit's
// generated_cuda_meta.h where that is installed (cupti_callback_abi_check.cpp). What kgate never looks into is a void*.
#pragma once

#include "gpu/cupti_abi.h"
#include "gpu/graph_abi.h"

namespace kgate::gpu {

using CUlibrary = struct CUlib_st*;
using CUkernel = struct CUkern_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUstreamCallback = void (*)(CUstream stream, CUresult status, void* user_data);

struct CUipcMemHandle {
  char reserved[64];
};

// clang-format off
// Launches and host functions.
struct CuLaunchKernelParams {
  CUfunction f; unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  CUstream hStream; void** kernelParams; void** extra;
};
struct CuLaunchKernelExParams { const CUlaunchConfig* config; CUfunction f; void** kernelParams; void** extra; };
struct CuLaunchCooperativeKernelParams {
  CUfunction f; unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  CUstream hStream; void** kernelParams;
};
struct CuLaunchCooperativeKernelMultiDeviceParams { void* launchParamsList; unsigned numDevices, flags; };
struct CuLaunchHostFuncParams { CUstream hStream; CUhostFn fn; void* userData; };
struct CuStreamAddCallbackParams { CUstream hStream; CUstreamCallback callback; void* userData; unsigned flags; };

// Memory. Pools are named by their handle.
struct CuMemAllocParams { CUdeviceptr* dptr; size_t bytesize; };
struct CuMemAllocPitchParams {
  CUdeviceptr* dptr; size_t* pPitch; size_t WidthInBytes, Height; unsigned ElementSizeBytes;
};
struct CuMemAllocAsyncParams { CUdeviceptr* dptr; size_t bytesize; CUstream hStream; };
struct CuMemAllocFromPoolAsyncParams { CUdeviceptr* dptr; size_t bytesize; CUmemoryPool pool; CUstream hStream; };
struct CuMemAllocManagedParams { CUdeviceptr* dptr; size_t bytesize; unsigned flags; };
struct CuMemFreeParams { CUdeviceptr dptr; };
struct CuMemFreeAsyncParams { CUdeviceptr dptr; CUstream hStream; };
struct CuMemAllocHostParams { void** pp; size_t bytesize; };
struct CuMemHostAllocParams { void** pp; size_t bytesize; unsigned Flags; };
struct CuMemFreeHostParams { void* p; };
struct CuMemHostRegisterParams { void* p; size_t bytesize; unsigned Flags; };
struct CuMemHostUnregisterParams { void* p; };
struct CuMemHostGetDevicePointerParams { CUdeviceptr* pdptr; void* p; unsigned Flags; };
struct CuMemAddressReserveParams { CUdeviceptr* ptr; size_t size, alignment; CUdeviceptr addr; uint64_t flags; };
struct CuMemAddressFreeParams { CUdeviceptr ptr; size_t size; };
struct CuMemCreateParams {
  CUmemGenericAllocationHandle* handle; size_t size; const CUmemAllocationProp* prop; uint64_t flags;
};
struct CuMemReleaseParams { CUmemGenericAllocationHandle handle; };
struct CuMemMapParams { CUdeviceptr ptr; size_t size, offset; CUmemGenericAllocationHandle handle; uint64_t flags; };
struct CuMemUnmapParams { CUdeviceptr ptr; size_t size; };
struct CuMemSetAccessParams { CUdeviceptr ptr; size_t size; const CUmemAccessDesc* desc; size_t count; };

// Copies.
struct CuMemcpyHtoDParams { CUdeviceptr dstDevice; const void* srcHost; size_t ByteCount; };
struct CuMemcpyDtoHParams { void* dstHost; CUdeviceptr srcDevice; size_t ByteCount; };
struct CuMemcpyDtoDParams { CUdeviceptr dstDevice, srcDevice; size_t ByteCount; };
struct CuMemcpyParams { CUdeviceptr dst, src; size_t ByteCount; };
struct CuMemcpyHtoDAsyncParams { CUdeviceptr dstDevice; const void* srcHost; size_t ByteCount; CUstream hStream; };
struct CuMemcpyDtoHAsyncParams { void* dstHost; CUdeviceptr srcDevice; size_t ByteCount; CUstream hStream; };
struct CuMemcpyDtoDAsyncParams { CUdeviceptr dstDevice, srcDevice; size_t ByteCount; CUstream hStream; };
struct CuMemcpyAsyncParams { CUdeviceptr dst, src; size_t ByteCount; CUstream hStream; };
struct CuMemcpyPeerParams {
  CUdeviceptr dstDevice; CUcontext dstContext; CUdeviceptr srcDevice; CUcontext srcContext; size_t ByteCount;
};
struct CuMemcpyPeerAsyncParams {
  CUdeviceptr dstDevice; CUcontext dstContext; CUdeviceptr srcDevice; CUcontext srcContext; size_t ByteCount;
  CUstream hStream;
};
struct CuMemcpy2DParams { const CUDA_MEMCPY2D* pCopy; };
struct CuMemcpy2DUnalignedParams { const CUDA_MEMCPY2D* pCopy; };
struct CuMemcpy2DAsyncParams { const CUDA_MEMCPY2D* pCopy; CUstream hStream; };
struct CuMemcpy3DParams { const CUDA_MEMCPY3D* pCopy; };
struct CuMemcpy3DAsyncParams { const CUDA_MEMCPY3D* pCopy; CUstream hStream; };

// Fills.
struct CuMemsetD8Params { CUdeviceptr dstDevice; unsigned char uc; size_t N; };
struct CuMemsetD16Params { CUdeviceptr dstDevice; unsigned short us; size_t N; };
struct CuMemsetD32Params { CUdeviceptr dstDevice; unsigned ui; size_t N; };
struct CuMemsetD2D8Params { CUdeviceptr dstDevice; size_t dstPitch; unsigned char uc; size_t Width, Height; };
struct CuMemsetD2D16Params { CUdeviceptr dstDevice; size_t dstPitch; unsigned short us; size_t Width, Height; };
struct CuMemsetD2D32Params { CUdeviceptr dstDevice; size_t dstPitch; unsigned ui; size_t Width, Height; };
struct CuMemsetD8AsyncParams { CUdeviceptr dstDevice; unsigned char uc; size_t N; CUstream hStream; };
struct CuMemsetD16AsyncParams { CUdeviceptr dstDevice; unsigned short us; size_t N; CUstream hStream; };
struct CuMemsetD32AsyncParams { CUdeviceptr dstDevice; unsigned ui; size_t N; CUstream hStream; };
struct CuMemsetD2D8AsyncParams {
  CUdeviceptr dstDevice; size_t dstPitch; unsigned char uc; size_t Width, Height; CUstream hStream;
};
struct CuMemsetD2D16AsyncParams {
  CUdeviceptr dstDevice; size_t dstPitch; unsigned short us; size_t Width, Height; CUstream hStream;
};
struct CuMemsetD2D32AsyncParams {
  CUdeviceptr dstDevice; size_t dstPitch; unsigned ui; size_t Width, Height; CUstream hStream;
};

// Prefetches.
struct CuMemPrefetchAsyncParams { CUdeviceptr devPtr; size_t count; CUdevice dstDevice; CUstream hStream; };
struct CuMemPrefetchAsyncV2Params {
  CUdeviceptr devPtr; size_t count; CUmemLocation location; unsigned flags; CUstream hStream;
};

// Streams; `mode` is a CU_STREAM_CAPTURE_MODE_*.
struct CuStreamCreateParams { CUstream* phStream; unsigned Flags; };
struct CuStreamCreateWithPriorityParams { CUstream* phStream; unsigned flags; int priority; };
struct CuStreamDestroyParams { CUstream hStream; };
struct CuStreamSynchronizeParams { CUstream hStream; };
struct CuStreamQueryParams { CUstream hStream; };
struct CuStreamWaitEventParams { CUstream hStream; CUevent hEvent; unsigned Flags; };
struct CuStreamBeginCaptureParams { CUstream hStream; unsigned mode; };
struct CuStreamEndCaptureParams { CUstream hStream; CUgraph* phGraph; };
struct CuStreamBeginCaptureToGraphParams {
  CUstream hStream; CUgraph hGraph; const CUgraphNode* dependencies; const void* dependencyData;
  size_t numDependencies; unsigned mode;
};
struct CuStreamWaitValue32Params { CUstream stream; CUdeviceptr addr; uint32_t value; unsigned flags; };
struct CuStreamWaitValue64Params { CUstream stream; CUdeviceptr addr; uint64_t value; unsigned flags; };
struct CuStreamWriteValue32Params { CUstream stream; CUdeviceptr addr; uint32_t value; unsigned flags; };
struct CuStreamWriteValue64Params { CUstream stream; CUdeviceptr addr; uint64_t value; unsigned flags; };
struct CuStreamBatchMemOpParams { CUstream stream; unsigned count; const void* paramArray; unsigned flags; };

// Events.
struct CuEventCreateParams { CUevent* phEvent; unsigned Flags; };
struct CuEventDestroyParams { CUevent hEvent; };
struct CuEventRecordParams { CUevent hEvent; CUstream hStream; };
struct CuEventRecordWithFlagsParams { CUevent hEvent; CUstream hStream; unsigned flags; };
struct CuEventSynchronizeParams { CUevent hEvent; };
struct CuEventQueryParams { CUevent hEvent; };
struct CuEventElapsedTimeParams { float* pMilliseconds; CUevent hStart, hEnd; };

// Contexts that are waited for.
struct CuCtxSynchronizeParams { CUcontext ctx; };

// Executable graphs.
struct CuGraphInstantiateParams {
  CUgraphExec* phGraphExec; CUgraph hGraph; CUgraphNode* phErrorNode; char* logBuffer; size_t bufferSize;
};
struct CuGraphInstantiateWithFlagsParams { CUgraphExec* phGraphExec; CUgraph hGraph; uint64_t flags; };
struct CuGraphInstantiateWithParamsParams {
  CUgraphExec* phGraphExec; CUgraph hGraph; CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams;
};
struct CuGraphLaunchParams { CUgraphExec hGraph; CUstream hStream; };
struct CuGraphUploadParams { CUgraphExec hGraph; CUstream hStream; };
struct CuGraphDestroyParams { CUgraph hGraph; };
struct CuGraphExecDestroyParams { CUgraphExec hGraphExec; };
struct CuGraphExecUpdateParams { CUgraphExec hGraphExec; CUgraph hGraph; void* resultInfo; };
struct CuGraphExecKernelNodeSetParamsParams {
  CUgraphExec hGraphExec; CUgraphNode hNode; const CUDA_KERNEL_NODE_PARAMS* nodeParams;
};
struct CuGraphNodeSetEnabledParams { CUgraphExec hGraphExec; CUgraphNode hNode; unsigned isEnabled; };

// Modules and libraries.
struct CuModuleLoadParams { CUmodule* module; const char* fname; };
struct CuModuleLoadDataParams { CUmodule* module; const void* image; };
struct CuModuleLoadDataExParams {
  CUmodule* module; const void* image; unsigned numOptions; CUjit_option* options; void** optionValues;
};
struct CuModuleLoadFatBinaryParams { CUmodule* module; const void* fatCubin; };
struct CuModuleUnloadParams { CUmodule hmod; };
struct CuModuleGetFunctionParams { CUfunction* hfunc; CUmodule hmod; const char* name; };
struct CuModuleGetGlobalParams { CUdeviceptr* dptr; size_t* bytes; CUmodule hmod; const char* name; };
struct CuLibraryLoadDataParams {
  CUlibrary* library; const void* code; CUjit_option* jitOptions; void** jitOptionsValues; unsigned numJitOptions;
  void* libraryOptions; void** libraryOptionValues; unsigned numLibraryOptions;
};
struct CuLibraryLoadFromFileParams {
  CUlibrary* library; const char* fileName; CUjit_option* jitOptions; void** jitOptionsValues;
  unsigned numJitOptions; void* libraryOptions; void** libraryOptionValues; unsigned numLibraryOptions;
};
struct CuLibraryUnloadParams { CUlibrary library; };
struct CuLibraryGetKernelParams { CUkernel* pKernel; CUlibrary library; const char* name; };
struct CuLibraryGetModuleParams { CUmodule* pMod; CUlibrary library; };
struct CuLibraryGetGlobalParams { CUdeviceptr* dptr; size_t* bytes; CUlibrary library; const char* name; };
struct CuLibraryGetManagedParams { CUdeviceptr* dptr; size_t* bytes; CUlibrary library; const char* name; };
struct CuKernelGetFunctionParams { CUfunction* pFunc; CUkernel kernel; };

// What a recorder refuses.
struct CuIpcOpenMemHandleParams { CUdeviceptr* pdptr; CUipcMemHandle handle; unsigned Flags; };
struct CuIpcGetMemHandleParams { CUipcMemHandle* pHandle; CUdeviceptr dptr; };
struct CuImportExternalMemoryParams { void** extMem_out; const void* memHandleDesc; };
struct CuExternalMemoryGetMappedBufferParams { CUdeviceptr* devPtr; void* extMem; const void* bufferDesc; };

// Contexts that come and go.
struct CuCtxCreateV2Params { CUcontext* pctx; unsigned flags; CUdevice dev; };
struct CuCtxCreateV4Params { CUcontext* pctx; void* ctxCreateParams; unsigned flags; CUdevice dev; };
struct CuCtxDestroyParams { CUcontext ctx; };
struct CuDevicePrimaryCtxRetainParams { CUcontext* pctx; CUdevice dev; };
struct CuDevicePrimaryCtxReleaseParams { CUdevice dev; };
struct CuDevicePrimaryCtxResetParams { CUdevice dev; };
// clang-format on

}  // namespace kgate::gpu
