// Every driver call that libkgate_vgpu.so exports, for cuGetProcAddress: X(name that is asked for, exported name) and
// X2(name that is asked for, exported name, exported name of the twin that takes the thread's own default stream).
#pragma once

// clang-format off
#define KGATE_EXPORTS(X, X2) \
  X(cuInit, cuInit) \
  X(cuDriverGetVersion, cuDriverGetVersion) \
  X(cuGetErrorName, cuGetErrorName) \
  X(cuGetErrorString, cuGetErrorString) \
  X(cuGetProcAddress, cuGetProcAddress_v2) \
  X(cuDeviceGet, cuDeviceGet) \
  X(cuDeviceGetCount, cuDeviceGetCount) \
  X(cuDeviceGetName, cuDeviceGetName) \
  X(cuDeviceGetUuid, cuDeviceGetUuid_v2) \
  X(cuDeviceTotalMem, cuDeviceTotalMem_v2) \
  X(cuDeviceGetAttribute, cuDeviceGetAttribute) \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain) \
  X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2) \
  X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2) \
  X(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2) \
  X(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState) \
  X(cuCtxCreate, cuCtxCreate_v4) \
  X(cuCtxDestroy, cuCtxDestroy_v2) \
  X(cuCtxSetCurrent, cuCtxSetCurrent) \
  X(cuCtxGetCurrent, cuCtxGetCurrent) \
  X(cuCtxPushCurrent, cuCtxPushCurrent_v2) \
  X(cuCtxPopCurrent, cuCtxPopCurrent_v2) \
  X(cuCtxGetDevice, cuCtxGetDevice) \
  X(cuCtxGetFlags, cuCtxGetFlags) \
  X(cuCtxGetId, cuCtxGetId) \
  X(cuCtxGetApiVersion, cuCtxGetApiVersion) \
  X(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange) \
  X(cuCtxSynchronize, cuCtxSynchronize) \
  X(cuModuleLoadData, cuModuleLoadData) \
  X(cuModuleLoadDataEx, cuModuleLoadDataEx) \
  X(cuModuleUnload, cuModuleUnload) \
  X(cuModuleGetFunction, cuModuleGetFunction) \
  X(cuModuleGetFunctionCount, cuModuleGetFunctionCount) \
  X(cuModuleEnumerateFunctions, cuModuleEnumerateFunctions) \
  X(cuModuleGetGlobal, cuModuleGetGlobal_v2) \
  X(cuFuncGetAttribute, cuFuncGetAttribute) \
  X(cuFuncSetAttribute, cuFuncSetAttribute) \
  X(cuFuncGetName, cuFuncGetName) \
  X(cuFuncGetParamInfo, cuFuncGetParamInfo) \
  X(cuMemGetInfo, cuMemGetInfo_v2) \
  X(cuMemAlloc, cuMemAlloc_v2) \
  X(cuMemFree, cuMemFree_v2) \
  X(cuMemGetAddressRange, cuMemGetAddressRange_v2) \
  X(cuMemAllocHost, cuMemAllocHost_v2) \
  X(cuMemHostAlloc, cuMemHostAlloc) \
  X(cuMemFreeHost, cuMemFreeHost) \
  X2(cuMemcpyHtoD, cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds) \
  X2(cuMemcpyDtoH, cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds) \
  X2(cuMemcpyDtoD, cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds) \
  X2(cuMemcpy, cuMemcpy, cuMemcpy_ptds) \
  X2(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz) \
  X2(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz) \
  X2(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz) \
  X2(cuMemcpyAsync, cuMemcpyAsync, cuMemcpyAsync_ptsz) \
  X2(cuMemsetD8, cuMemsetD8_v2, cuMemsetD8_v2_ptds) \
  X2(cuMemsetD16, cuMemsetD16_v2, cuMemsetD16_v2_ptds) \
  X2(cuMemsetD32, cuMemsetD32_v2, cuMemsetD32_v2_ptds) \
  X2(cuMemsetD8Async, cuMemsetD8Async, cuMemsetD8Async_ptsz) \
  X2(cuMemsetD16Async, cuMemsetD16Async, cuMemsetD16Async_ptsz) \
  X2(cuMemsetD32Async, cuMemsetD32Async, cuMemsetD32Async_ptsz) \
  X(cuStreamCreate, cuStreamCreate) \
  X(cuStreamCreateWithPriority, cuStreamCreateWithPriority) \
  X(cuStreamDestroy, cuStreamDestroy_v2) \
  X2(cuStreamSynchronize, cuStreamSynchronize, cuStreamSynchronize_ptsz) \
  X2(cuStreamQuery, cuStreamQuery, cuStreamQuery_ptsz) \
  X2(cuStreamWaitEvent, cuStreamWaitEvent, cuStreamWaitEvent_ptsz) \
  X2(cuLaunchHostFunc, cuLaunchHostFunc, cuLaunchHostFunc_ptsz) \
  X(cuEventCreate, cuEventCreate) \
  X(cuEventDestroy, cuEventDestroy_v2) \
  X2(cuEventRecord, cuEventRecord, cuEventRecord_ptsz) \
  X(cuEventQuery, cuEventQuery) \
  X(cuEventSynchronize, cuEventSynchronize) \
  X(cuEventElapsedTime, cuEventElapsedTime_v2) \
  X2(cuLaunchKernel, cuLaunchKernel, cuLaunchKernel_ptsz) \
  X2(cuLaunchKernelEx, cuLaunchKernelEx, cuLaunchKernelEx_ptsz) \
  X2(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz) \
  X(cuFuncGetModule, cuFuncGetModule) \
  X(cuMemAllocPitch, cuMemAllocPitch_v2) \
  X(cuMemAllocManaged, cuMemAllocManaged) \
  X2(cuMemAllocAsync, cuMemAllocAsync, cuMemAllocAsync_ptsz) \
  X2(cuMemFreeAsync, cuMemFreeAsync, cuMemFreeAsync_ptsz) \
  X(cuMemHostRegister, cuMemHostRegister_v2) \
  X(cuMemHostUnregister, cuMemHostUnregister) \
  X(cuMemGetAllocationGranularity, cuMemGetAllocationGranularity) \
  X(cuMemAddressReserve, cuMemAddressReserve) \
  X(cuMemAddressFree, cuMemAddressFree) \
  X(cuMemCreate, cuMemCreate) \
  X(cuMemRelease, cuMemRelease) \
  X(cuMemMap, cuMemMap) \
  X(cuMemUnmap, cuMemUnmap) \
  X(cuMemSetAccess, cuMemSetAccess) \
  X(cuPointerGetAttribute, cuPointerGetAttribute) \
  X(cuPointerGetAttributes, cuPointerGetAttributes) \
  X2(cuMemcpy2D, cuMemcpy2D_v2, cuMemcpy2D_v2_ptds) \
  X2(cuMemcpy2DUnaligned, cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds) \
  X2(cuMemcpy2DAsync, cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz) \
  X2(cuMemcpy3D, cuMemcpy3D_v2, cuMemcpy3D_v2_ptds) \
  X2(cuMemcpy3DAsync, cuMemcpy3DAsync_v2, cuMemcpy3DAsync_v2_ptsz) \
  X2(cuMemsetD2D8, cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds) \
  X2(cuMemsetD2D16, cuMemsetD2D16_v2, cuMemsetD2D16_v2_ptds) \
  X2(cuMemsetD2D32, cuMemsetD2D32_v2, cuMemsetD2D32_v2_ptds) \
  X2(cuMemsetD2D8Async, cuMemsetD2D8Async, cuMemsetD2D8Async_ptsz) \
  X2(cuMemsetD2D16Async, cuMemsetD2D16Async, cuMemsetD2D16Async_ptsz) \
  X2(cuMemsetD2D32Async, cuMemsetD2D32Async, cuMemsetD2D32Async_ptsz) \
  X2(cuStreamGetFlags, cuStreamGetFlags, cuStreamGetFlags_ptsz) \
  X2(cuStreamGetPriority, cuStreamGetPriority, cuStreamGetPriority_ptsz) \
  X2(cuStreamBeginCapture, cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz) \
  X2(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph_ptsz) \
  X2(cuStreamEndCapture, cuStreamEndCapture, cuStreamEndCapture_ptsz) \
  X2(cuStreamIsCapturing, cuStreamIsCapturing, cuStreamIsCapturing_ptsz) \
  X2(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz) \
  X2(cuEventRecordWithFlags, cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz) \
  X(cuGraphCreate, cuGraphCreate) \
  X(cuGraphDestroy, cuGraphDestroy) \
  X(cuGraphAddKernelNode, cuGraphAddKernelNode_v2) \
  X(cuGraphAddMemcpyNode, cuGraphAddMemcpyNode) \
  X(cuGraphAddMemsetNode, cuGraphAddMemsetNode) \
  X(cuGraphAddHostNode, cuGraphAddHostNode) \
  X(cuGraphAddEmptyNode, cuGraphAddEmptyNode) \
  X(cuGraphAddChildGraphNode, cuGraphAddChildGraphNode) \
  X(cuGraphAddEventRecordNode, cuGraphAddEventRecordNode) \
  X(cuGraphAddEventWaitNode, cuGraphAddEventWaitNode) \
  X(cuGraphGetNodes, cuGraphGetNodes) \
  X(cuGraphGetEdges, cuGraphGetEdges_v2) \
  X(cuGraphNodeGetType, cuGraphNodeGetType) \
  X(cuGraphNodeGetDependencies, cuGraphNodeGetDependencies_v2) \
  X(cuGraphKernelNodeGetParams, cuGraphKernelNodeGetParams_v2) \
  X(cuGraphKernelNodeSetAttribute, cuGraphKernelNodeSetAttribute) \
  X(cuGraphKernelNodeGetAttribute, cuGraphKernelNodeGetAttribute) \
  X(cuGraphMemcpyNodeGetParams, cuGraphMemcpyNodeGetParams) \
  X(cuGraphMemsetNodeGetParams, cuGraphMemsetNodeGetParams) \
  X(cuGraphHostNodeGetParams, cuGraphHostNodeGetParams) \
  X(cuGraphChildGraphNodeGetGraph, cuGraphChildGraphNodeGetGraph) \
  X(cuGraphEventRecordNodeGetEvent, cuGraphEventRecordNodeGetEvent) \
  X(cuGraphEventWaitNodeGetEvent, cuGraphEventWaitNodeGetEvent) \
  X(cuGraphInstantiate, cuGraphInstantiateWithFlags) \
  X2(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams, cuGraphInstantiateWithParams_ptsz) \
  X(cuGraphExecDestroy, cuGraphExecDestroy) \
  X2(cuGraphLaunch, cuGraphLaunch, cuGraphLaunch_ptsz) \
  X2(cuGraphUpload, cuGraphUpload, cuGraphUpload_ptsz) \
  X(cuGraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams_v2)

// What a program gets that was built for an older CUDA: X(name that is asked for, exported name, first version that gets
// the newer one).
#define KGATE_OLD_EXPORTS(X, X2) \
  X(cuGraphGetEdges, cuGraphGetEdges, 12030) \
  X(cuGraphNodeGetDependencies, cuGraphNodeGetDependencies, 12030) \
  X(cuGraphInstantiate, cuGraphInstantiate_v2, 12000) \
  X2(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz, 12030)
// clang-format on
