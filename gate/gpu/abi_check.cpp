// Compares gpu/*_abi.h with the toolkit's headers: every value, size and offset, at compile time. Without a toolkit, or
// with one older than the layouts (CUDA 13.0), there is nothing to compare with and this file is empty.
#if KGATE_HAVE_CUDA_HEADERS

#include "gpu/cuda_abi.h"
#include "gpu/cupti_abi.h"
#include "gpu/cupti_runtime_cbids.h"
#include "gpu/graph_abi.h"

// After ours: cuda.h defines macros over the names of functions.
#include <cuda.h>
#include <cupti.h>

#if CUDA_VERSION >= 13000

namespace ours = kgate::gpu;

#define SAME_VALUE(name, value) \
  static_assert(static_cast<long long>(ours::name) == static_cast<long long>(::name), #name " differs");
KGATE_CU_RESULTS(SAME_VALUE)
KGATE_CU_FUNCTION_ATTRIBUTES(SAME_VALUE)
KGATE_CU_DEVICE_ATTRIBUTES(SAME_VALUE)
KGATE_CU_LAUNCH_ATTRIBUTES(SAME_VALUE)
KGATE_CU_JIT_OPTIONS(SAME_VALUE)
KGATE_CU_FLAGS(SAME_VALUE)
KGATE_CUPTI_RESULTS(SAME_VALUE)
KGATE_CUPTI_KINDS(SAME_VALUE)
KGATE_CUPTI_ATTRIBUTES(SAME_VALUE)
KGATE_CUPTI_VALUES(SAME_VALUE)
KGATE_CU_GRAPH_NODE_TYPES(SAME_VALUE)

#define SAME_CBID(name, value) \
  static_assert(int{ours::CUPTI_DRIVER_TRACE_CBID_##name} == int{::CUPTI_DRIVER_TRACE_CBID_##name}, "cbid of " #name);
KGATE_CUPTI_DRIVER_CBIDS(SAME_CBID)

#define SAME_RUNTIME_CBID(name, value) \
  static_assert(int{value} == int{::CUPTI_RUNTIME_TRACE_CBID_##name}, "cbid of " #name);
KGATE_CUPTI_RUNTIME_CBIDS(SAME_RUNTIME_CBID)

static_assert(ours::kMemHostAllocPortable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(ours::kMemHostAllocDeviceMap == CU_MEMHOSTALLOC_DEVICEMAP);
static_assert(ours::kMemHostAllocWriteCombined == CU_MEMHOSTALLOC_WRITECOMBINED);
static_assert(ours::kMemHostRegisterPortable == CU_MEMHOSTREGISTER_PORTABLE);
static_assert(ours::kMemHostRegisterDeviceMap == CU_MEMHOSTREGISTER_DEVICEMAP);
static_assert(ours::kMemHostRegisterIoMemory == CU_MEMHOSTREGISTER_IOMEMORY);
static_assert(ours::kMemHostRegisterReadOnly == CU_MEMHOSTREGISTER_READ_ONLY);
static_assert(ours::kCuptiNotApplicable == CUPTI_SYNCHRONIZATION_INVALID_VALUE);
static_assert(ours::kCuptiTimestampUnknown == CUPTI_TIMESTAMP_UNKNOWN);
static_assert(ours::kCuptiCorrelationUnknown == CUPTI_CORRELATION_ID_UNKNOWN);
static_assert(ours::kCuptiOldSubscriberNameMin == CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN);
static_assert(CUPTI_API_VERSION / 10000 != 13 || CUPTI_API_VERSION >= ours::kCuptiVersion, "older than the layouts");
static_assert(sizeof(ours::CUdeviceptr) == sizeof(::CUdeviceptr) && sizeof(ours::CUdevice) == sizeof(::CUdevice));
static_assert(sizeof(ours::CUresult) == sizeof(::CUresult) && sizeof(ours::CUptiResult) == sizeof(::CUptiResult));
static_assert(sizeof(ours::CUjit_option) == sizeof(::CUjit_option));

#define SAME_SIZE(type) \
  static_assert(sizeof(ours::type) == sizeof(::type) && alignof(ours::type) == alignof(::type), "size of " #type);
#define SAME_OFFSET(type, field) \
  static_assert(offsetof(ours::type, field) == offsetof(::type, field) && \
                    sizeof(ours::type::field) == sizeof(::type::field), #type "::" #field " differs from the toolkit");

SAME_SIZE(CUpti_ActivityKernel10)
SAME_OFFSET(CUpti_ActivityKernel10, cacheConfig)
SAME_OFFSET(CUpti_ActivityKernel10, sharedMemoryConfig)
SAME_OFFSET(CUpti_ActivityKernel10, registersPerThread)
SAME_OFFSET(CUpti_ActivityKernel10, partitionedGlobalCacheRequested)
SAME_OFFSET(CUpti_ActivityKernel10, start)
SAME_OFFSET(CUpti_ActivityKernel10, end)
SAME_OFFSET(CUpti_ActivityKernel10, completed)
SAME_OFFSET(CUpti_ActivityKernel10, deviceId)
SAME_OFFSET(CUpti_ActivityKernel10, contextId)
SAME_OFFSET(CUpti_ActivityKernel10, streamId)
SAME_OFFSET(CUpti_ActivityKernel10, gridX)
SAME_OFFSET(CUpti_ActivityKernel10, gridY)
SAME_OFFSET(CUpti_ActivityKernel10, gridZ)
SAME_OFFSET(CUpti_ActivityKernel10, blockX)
SAME_OFFSET(CUpti_ActivityKernel10, blockY)
SAME_OFFSET(CUpti_ActivityKernel10, blockZ)
SAME_OFFSET(CUpti_ActivityKernel10, staticSharedMemory)
SAME_OFFSET(CUpti_ActivityKernel10, dynamicSharedMemory)
SAME_OFFSET(CUpti_ActivityKernel10, localMemoryPerThread)
SAME_OFFSET(CUpti_ActivityKernel10, localMemoryTotal)
SAME_OFFSET(CUpti_ActivityKernel10, correlationId)
SAME_OFFSET(CUpti_ActivityKernel10, gridId)
SAME_OFFSET(CUpti_ActivityKernel10, name)
SAME_OFFSET(CUpti_ActivityKernel10, queued)
SAME_OFFSET(CUpti_ActivityKernel10, submitted)
SAME_OFFSET(CUpti_ActivityKernel10, launchType)
SAME_OFFSET(CUpti_ActivityKernel10, sharedMemoryExecuted)
SAME_OFFSET(CUpti_ActivityKernel10, graphNodeId)
SAME_OFFSET(CUpti_ActivityKernel10, shmemLimitConfig)
SAME_OFFSET(CUpti_ActivityKernel10, graphId)
SAME_OFFSET(CUpti_ActivityKernel10, pAccessPolicyWindow)
SAME_OFFSET(CUpti_ActivityKernel10, channelID)
SAME_OFFSET(CUpti_ActivityKernel10, channelType)
SAME_OFFSET(CUpti_ActivityKernel10, clusterX)
SAME_OFFSET(CUpti_ActivityKernel10, clusterY)
SAME_OFFSET(CUpti_ActivityKernel10, clusterZ)
SAME_OFFSET(CUpti_ActivityKernel10, clusterSchedulingPolicy)
SAME_OFFSET(CUpti_ActivityKernel10, localMemoryTotal_v2)
SAME_OFFSET(CUpti_ActivityKernel10, maxPotentialClusterSize)
SAME_OFFSET(CUpti_ActivityKernel10, maxActiveClusters)
SAME_OFFSET(CUpti_ActivityKernel10, isDeviceLaunched)

SAME_SIZE(CUpti_ActivityAPI)
SAME_OFFSET(CUpti_ActivityAPI, cbid)
SAME_OFFSET(CUpti_ActivityAPI, start)
SAME_OFFSET(CUpti_ActivityAPI, end)
SAME_OFFSET(CUpti_ActivityAPI, processId)
SAME_OFFSET(CUpti_ActivityAPI, threadId)
SAME_OFFSET(CUpti_ActivityAPI, correlationId)
SAME_OFFSET(CUpti_ActivityAPI, returnValue)

SAME_SIZE(CUpti_ActivitySynchronization2)
SAME_OFFSET(CUpti_ActivitySynchronization2, type)
SAME_OFFSET(CUpti_ActivitySynchronization2, start)
SAME_OFFSET(CUpti_ActivitySynchronization2, end)
SAME_OFFSET(CUpti_ActivitySynchronization2, correlationId)
SAME_OFFSET(CUpti_ActivitySynchronization2, contextId)
SAME_OFFSET(CUpti_ActivitySynchronization2, streamId)
SAME_OFFSET(CUpti_ActivitySynchronization2, cudaEventId)
SAME_OFFSET(CUpti_ActivitySynchronization2, cudaEventSyncId)
SAME_OFFSET(CUpti_ActivitySynchronization2, returnValue)

SAME_SIZE(CUpti_ActivityOverhead3)
SAME_OFFSET(CUpti_ActivityOverhead3, overheadKind)
SAME_OFFSET(CUpti_ActivityOverhead3, objectKind)
SAME_OFFSET(CUpti_ActivityOverhead3, objectId)
SAME_OFFSET(CUpti_ActivityOverhead3, start)
SAME_OFFSET(CUpti_ActivityOverhead3, end)
SAME_OFFSET(CUpti_ActivityOverhead3, correlationId)
SAME_OFFSET(CUpti_ActivityOverhead3, overheadData)

SAME_SIZE(CUpti_ActivityMemcpy6)
SAME_OFFSET(CUpti_ActivityMemcpy6, copyKind)
SAME_OFFSET(CUpti_ActivityMemcpy6, srcKind)
SAME_OFFSET(CUpti_ActivityMemcpy6, dstKind)
SAME_OFFSET(CUpti_ActivityMemcpy6, flags)
SAME_OFFSET(CUpti_ActivityMemcpy6, bytes)
SAME_OFFSET(CUpti_ActivityMemcpy6, start)
SAME_OFFSET(CUpti_ActivityMemcpy6, end)
SAME_OFFSET(CUpti_ActivityMemcpy6, deviceId)
SAME_OFFSET(CUpti_ActivityMemcpy6, contextId)
SAME_OFFSET(CUpti_ActivityMemcpy6, streamId)
SAME_OFFSET(CUpti_ActivityMemcpy6, correlationId)
SAME_OFFSET(CUpti_ActivityMemcpy6, runtimeCorrelationId)
SAME_OFFSET(CUpti_ActivityMemcpy6, reserved0)
SAME_OFFSET(CUpti_ActivityMemcpy6, graphNodeId)
SAME_OFFSET(CUpti_ActivityMemcpy6, graphId)
SAME_OFFSET(CUpti_ActivityMemcpy6, channelID)
SAME_OFFSET(CUpti_ActivityMemcpy6, channelType)
SAME_OFFSET(CUpti_ActivityMemcpy6, isDeviceLaunched)
SAME_OFFSET(CUpti_ActivityMemcpy6, copyCount)

SAME_SIZE(CUpti_ActivityMemset4)
SAME_OFFSET(CUpti_ActivityMemset4, value)
SAME_OFFSET(CUpti_ActivityMemset4, bytes)
SAME_OFFSET(CUpti_ActivityMemset4, start)
SAME_OFFSET(CUpti_ActivityMemset4, end)
SAME_OFFSET(CUpti_ActivityMemset4, deviceId)
SAME_OFFSET(CUpti_ActivityMemset4, contextId)
SAME_OFFSET(CUpti_ActivityMemset4, streamId)
SAME_OFFSET(CUpti_ActivityMemset4, correlationId)
SAME_OFFSET(CUpti_ActivityMemset4, flags)
SAME_OFFSET(CUpti_ActivityMemset4, memoryKind)
SAME_OFFSET(CUpti_ActivityMemset4, reserved0)
SAME_OFFSET(CUpti_ActivityMemset4, graphNodeId)
SAME_OFFSET(CUpti_ActivityMemset4, graphId)
SAME_OFFSET(CUpti_ActivityMemset4, channelID)
SAME_OFFSET(CUpti_ActivityMemset4, channelType)
SAME_OFFSET(CUpti_ActivityMemset4, isDeviceLaunched)

SAME_SIZE(CUpti_SubscriberParams)
SAME_OFFSET(CUpti_SubscriberParams, structSize)
SAME_OFFSET(CUpti_SubscriberParams, subscriberName)
SAME_OFFSET(CUpti_SubscriberParams, oldSubscriberName)
SAME_OFFSET(CUpti_SubscriberParams, oldSubscriberSize)

SAME_SIZE(CUpti_ResourceData)
SAME_OFFSET(CUpti_ResourceData, context)
SAME_OFFSET(CUpti_ResourceData, resourceDescriptor)

SAME_SIZE(CUpti_ModuleResourceData)
SAME_OFFSET(CUpti_ModuleResourceData, moduleId)
SAME_OFFSET(CUpti_ModuleResourceData, cubinSize)
SAME_OFFSET(CUpti_ModuleResourceData, pCubin)

SAME_SIZE(CUpti_GraphData)
SAME_OFFSET(CUpti_GraphData, graph)
SAME_OFFSET(CUpti_GraphData, nodeType)
SAME_OFFSET(CUpti_GraphData, graphExec)

SAME_SIZE(CUDA_KERNEL_NODE_PARAMS)
SAME_OFFSET(CUDA_KERNEL_NODE_PARAMS, gridDimX)
SAME_OFFSET(CUDA_KERNEL_NODE_PARAMS, sharedMemBytes)
SAME_OFFSET(CUDA_KERNEL_NODE_PARAMS, extra)
SAME_OFFSET(CUDA_KERNEL_NODE_PARAMS, ctx)

SAME_SIZE(CUDA_MEMSET_NODE_PARAMS)
SAME_OFFSET(CUDA_MEMSET_NODE_PARAMS, pitch)
SAME_OFFSET(CUDA_MEMSET_NODE_PARAMS, elementSize)
SAME_OFFSET(CUDA_MEMSET_NODE_PARAMS, height)

SAME_SIZE(CUmemPoolProps)
SAME_OFFSET(CUmemPoolProps, location)
SAME_OFFSET(CUmemPoolProps, maxSize)
SAME_OFFSET(CUmemPoolProps, usage)

SAME_SIZE(CUDA_MEM_ALLOC_NODE_PARAMS)
SAME_OFFSET(CUDA_MEM_ALLOC_NODE_PARAMS, accessDescs)
SAME_OFFSET(CUDA_MEM_ALLOC_NODE_PARAMS, bytesize)
SAME_OFFSET(CUDA_MEM_ALLOC_NODE_PARAMS, dptr)

SAME_SIZE(CUDA_GRAPH_INSTANTIATE_PARAMS)
SAME_OFFSET(CUDA_GRAPH_INSTANTIATE_PARAMS, hErrNode_out)
SAME_OFFSET(CUDA_GRAPH_INSTANTIATE_PARAMS, result_out)

SAME_SIZE(CUgraphEdgeData)
SAME_OFFSET(CUgraphEdgeData, to_port)
SAME_OFFSET(CUgraphEdgeData, type)

SAME_SIZE(CUDA_HOST_NODE_PARAMS)
SAME_OFFSET(CUDA_HOST_NODE_PARAMS, userData)

SAME_SIZE(CUDA_MEMCPY2D)
SAME_OFFSET(CUDA_MEMCPY2D, srcMemoryType)
SAME_OFFSET(CUDA_MEMCPY2D, srcDevice)
SAME_OFFSET(CUDA_MEMCPY2D, srcPitch)
SAME_OFFSET(CUDA_MEMCPY2D, dstMemoryType)
SAME_OFFSET(CUDA_MEMCPY2D, dstDevice)
SAME_OFFSET(CUDA_MEMCPY2D, dstPitch)
SAME_OFFSET(CUDA_MEMCPY2D, Height)

SAME_SIZE(CUDA_MEMCPY3D)
SAME_OFFSET(CUDA_MEMCPY3D, srcMemoryType)
SAME_OFFSET(CUDA_MEMCPY3D, srcDevice)
SAME_OFFSET(CUDA_MEMCPY3D, srcHeight)
SAME_OFFSET(CUDA_MEMCPY3D, dstMemoryType)
SAME_OFFSET(CUDA_MEMCPY3D, dstDevice)
SAME_OFFSET(CUDA_MEMCPY3D, dstHeight)
SAME_OFFSET(CUDA_MEMCPY3D, Depth)

SAME_SIZE(CUlaunchConfig)
SAME_OFFSET(CUlaunchConfig, gridDimX)
SAME_OFFSET(CUlaunchConfig, gridDimY)
SAME_OFFSET(CUlaunchConfig, gridDimZ)
SAME_OFFSET(CUlaunchConfig, blockDimX)
SAME_OFFSET(CUlaunchConfig, blockDimY)
SAME_OFFSET(CUlaunchConfig, blockDimZ)
SAME_OFFSET(CUlaunchConfig, sharedMemBytes)
SAME_OFFSET(CUlaunchConfig, hStream)
SAME_OFFSET(CUlaunchConfig, attrs)
SAME_OFFSET(CUlaunchConfig, numAttrs)

SAME_SIZE(CUlaunchAttribute)
SAME_OFFSET(CUlaunchAttribute, id)
SAME_OFFSET(CUlaunchAttribute, value)

SAME_SIZE(CUlaunchAttributeValue)
SAME_OFFSET(CUlaunchAttributeValue, cooperative)
SAME_OFFSET(CUlaunchAttributeValue, clusterDim)
SAME_OFFSET(CUlaunchAttributeValue, programmaticStreamSerializationAllowed)
SAME_OFFSET(CUlaunchAttributeValue, priority)

SAME_SIZE(CUmemLocation)
SAME_OFFSET(CUmemLocation, type)
SAME_OFFSET(CUmemLocation, id)

SAME_SIZE(CUmemAllocationProp)
SAME_OFFSET(CUmemAllocationProp, type)
SAME_OFFSET(CUmemAllocationProp, requestedHandleTypes)
SAME_OFFSET(CUmemAllocationProp, location)
SAME_OFFSET(CUmemAllocationProp, win32HandleMetaData)
SAME_OFFSET(CUmemAllocationProp, allocFlags)

SAME_SIZE(CUmemAccessDesc)
SAME_OFFSET(CUmemAccessDesc, location)
SAME_OFFSET(CUmemAccessDesc, flags)

SAME_SIZE(CUuuid)
SAME_OFFSET(CUuuid, bytes)

#endif  // CUDA_VERSION
#endif  // KGATE_HAVE_CUDA_HEADERS
