// The driver's entry points that kgate calls, as one table of exact exported names: a name without its _v2 is another,
// older function with other structs. Internal to gate/gpu.
#pragma once

#include <string>

#include "gpu/cuda_abi.h"
#include "gpu/graph_abi.h"
#include "support/error.h"

namespace kgate::gpu {

// X(exported name, parameter list). A library without one of these is no CUDA driver that kgate can use.
#define KGATE_REQUIRED_CALLS(X)                                                                                       \
  X(cuInit, (unsigned flags))                                                                                         \
  X(cuDriverGetVersion, (int* version))                                                                               \
  X(cuGetErrorName, (CUresult code, const char** name))                                                               \
  X(cuDeviceGet, (CUdevice * device, int ordinal))                                                                    \
  X(cuDeviceGetCount, (int* count))                                                                                   \
  X(cuDeviceGetName, (char* name, int size, CUdevice device))                                                         \
  X(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))                                                           \
  X(cuDeviceGetAttribute, (int* value, CUdevice_attribute attribute, CUdevice device))                                \
  X(cuDevicePrimaryCtxSetFlags_v2, (CUdevice device, unsigned flags))                                                 \
  X(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                                                 \
  X(cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                                                  \
  X(cuCtxSetCurrent, (CUcontext context))                                                                             \
  X(cuCtxSynchronize, ())                                                                                             \
  X(cuMemGetInfo_v2, (size_t * free, size_t * total))                                                                 \
  X(cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes))                                                             \
  X(cuMemFree_v2, (CUdeviceptr address))                                                                              \
  X(cuMemcpyHtoD_v2, (CUdeviceptr to, const void* from, size_t bytes))                                                \
  X(cuMemcpyDtoH_v2, (void* to, CUdeviceptr from, size_t bytes))                                                      \
  X(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                          \
  X(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream))                            \
  X(cuModuleLoadDataEx, (CUmodule * module, const void* image, unsigned count, CUjit_option* options, void** values)) \
  X(cuModuleUnload, (CUmodule module))                                                                                \
  X(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char* name))                                  \
  X(cuFuncGetAttribute, (int* value, CUfunction_attribute attribute, CUfunction function))                            \
  X(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value))                             \
  X(cuStreamCreate, (CUstream * stream, unsigned flags))                                                              \
  X(cuStreamDestroy_v2, (CUstream stream))                                                                            \
  X(cuStreamSynchronize, (CUstream stream))                                                                           \
  X(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))                                              \
  X(cuEventCreate, (CUevent * event, unsigned flags))                                                                 \
  X(cuEventRecord, (CUevent event, CUstream stream))                                                                  \
  X(cuEventSynchronize, (CUevent event))                                                                              \
  X(cuLaunchKernel,                                                                                                   \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,      \
     unsigned block_z, unsigned shared, CUstream stream, void** params, void** extra))

// Null where the driver is older than the call, or is the virtual GPU, which exports only what it can do.
#define KGATE_OPTIONAL_CALLS(X)                                                                                       \
  X(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device))                                                             \
  X(cuEventDestroy_v2, (CUevent event))                                                                               \
  X(cuLaunchKernelEx, (const CUlaunchConfig* config, CUfunction function, void** params, void** extra))               \
  X(cuFuncGetParamInfo, (CUfunction function, size_t index, size_t * offset, size_t * size))                          \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int* blocks, CUfunction function, int threads, size_t shared))      \
  X(cuMemGetAllocationGranularity, (size_t * granularity, const CUmemAllocationProp* prop, unsigned option))          \
  X(cuMemAddressReserve,                                                                                              \
    (CUdeviceptr * address, size_t size, size_t alignment, CUdeviceptr wanted, unsigned long long flags))             \
  X(cuMemAddressFree, (CUdeviceptr address, size_t size))                                                             \
  X(cuMemCreate,                                                                                                      \
    (CUmemGenericAllocationHandle * handle, size_t size, const CUmemAllocationProp* prop, unsigned long long flags))  \
  X(cuMemRelease, (CUmemGenericAllocationHandle handle))                                                              \
  X(cuMemMap,                                                                                                         \
    (CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)) \
  X(cuMemUnmap, (CUdeviceptr address, size_t size))                                                                   \
  X(cuMemSetAccess, (CUdeviceptr address, size_t size, const CUmemAccessDesc* desc, size_t count))                    \
  X(cuMemAllocAsync, (CUdeviceptr * address, size_t bytes, CUstream stream))                                          \
  X(cuMemFreeAsync, (CUdeviceptr address, CUstream stream))                                                           \
  X(cuMemFreeHost, (void* address))                                                                                   \
  X(cuMemHostAlloc, (void** address, size_t bytes, unsigned flags))                                                   \
  X(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void* from, size_t bytes, CUstream stream))                          \
  X(cuMemcpyDtoHAsync_v2, (void* to, CUdeviceptr from, size_t bytes, CUstream stream))                                \
  X(cuMemcpy2D_v2, (const CUDA_MEMCPY2D* copy))                                                                       \
  X(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D* copy, CUstream stream))                                                 \
  X(cuMemsetD16Async, (CUdeviceptr to, unsigned short value, size_t count, CUstream stream))                          \
  X(cuMemsetD32Async, (CUdeviceptr to, unsigned value, size_t count, CUstream stream))                                \
  X(cuMemsetD2D8Async,                                                                                                \
    (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height, CUstream stream))                \
  X(cuMemsetD2D16Async,                                                                                               \
    (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height, CUstream stream))               \
  X(cuMemsetD2D32Async, (CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height, CUstream stream)) \
  X(cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority))                                    \
  X(cuLaunchHostFunc, (CUstream stream, void (*function)(void*), void* user))                                         \
  X(cuGraphCreate, (CUgraph * graph, unsigned flags))                                                                 \
  X(cuGraphDestroy, (CUgraph graph))                                                                                  \
  X(cuGraphAddKernelNode_v2, (CUgraphNode * node, CUgraph graph, const CUgraphNode* after, size_t count,              \
                              const CUDA_KERNEL_NODE_PARAMS* params))                                                 \
  X(cuGraphKernelNodeSetAttribute,                                                                                    \
    (CUgraphNode node, CUlaunchAttributeID attribute, const CUlaunchAttributeValue* value))                           \
  X(cuGraphAddMemcpyNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode* after, size_t count,                 \
                           const CUDA_MEMCPY3D* params, CUcontext context))                                           \
  X(cuGraphAddMemsetNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode* after, size_t count,                 \
                           const CUDA_MEMSET_NODE_PARAMS* params, CUcontext context))                                 \
  X(cuGraphAddHostNode,                                                                                               \
    (CUgraphNode * node, CUgraph graph, const CUgraphNode* after, size_t count, const CUDA_HOST_NODE_PARAMS* params)) \
  X(cuGraphAddEmptyNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode* after, size_t count))                 \
  X(cuGraphAddEventRecordNode,                                                                                        \
    (CUgraphNode * node, CUgraph graph, const CUgraphNode* after, size_t count, CUevent event))                       \
  X(cuGraphAddEventWaitNode,                                                                                          \
    (CUgraphNode * node, CUgraph graph, const CUgraphNode* after, size_t count, CUevent event))                       \
  X(cuGraphInstantiateWithFlags, (CUgraphExec * executable, CUgraph graph, unsigned long long flags))                 \
  X(cuGraphLaunch, (CUgraphExec executable, CUstream stream))

struct DriverCalls {
#define KGATE_MEMBER(name, params) CUresult(*name) params = nullptr;
  KGATE_REQUIRED_CALLS(KGATE_MEMBER)
  KGATE_OPTIONAL_CALLS(KGATE_MEMBER)
#undef KGATE_MEMBER
};

struct Library {
  void* handle = nullptr;  // never closed
  std::string path;        // of the file that was mapped, symbolic links resolved
  DriverCalls calls;
};

// Loads and resolves; the failure says what was tried and what is missing.
Result<Library> load_library(const std::string& name);

}  // namespace kgate::gpu
