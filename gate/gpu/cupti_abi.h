// The part of CUPTI's activity interface that kgate speaks, with the record layouts of CUPTI 13.0 (Kernel10), declared
// here so that the build needs no toolkit. gpu/abi_check.cpp compares it with cupti.h where one is installed. The same
// rules as for gpu/cuda_abi.h.
//
// CUPTI writes the records of its own version: a reader checks cuptiGetVersion (major 13) before it trusts a layout.
// Fields that newer versions append lie behind these, and cuptiActivityGetNextRecord knows the true length.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/cuda_abi.h"
#include "gpu/cupti_driver_cbids.h"

// clang-format off
#define KGATE_CUPTI_RESULTS(X) \
  X(CUPTI_SUCCESS, 0) X(CUPTI_ERROR_INVALID_PARAMETER, 1) X(CUPTI_ERROR_INVALID_DEVICE, 2) \
  X(CUPTI_ERROR_INVALID_CONTEXT, 3) X(CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID, 4) X(CUPTI_ERROR_INVALID_EVENT_ID, 5) \
  X(CUPTI_ERROR_INVALID_EVENT_NAME, 6) X(CUPTI_ERROR_INVALID_OPERATION, 7) X(CUPTI_ERROR_OUT_OF_MEMORY, 8) \
  X(CUPTI_ERROR_HARDWARE, 9) X(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, 10) \
  X(CUPTI_ERROR_API_NOT_IMPLEMENTED, 11) X(CUPTI_ERROR_MAX_LIMIT_REACHED, 12) X(CUPTI_ERROR_NOT_READY, 13) \
  X(CUPTI_ERROR_NOT_COMPATIBLE, 14) X(CUPTI_ERROR_NOT_INITIALIZED, 15) X(CUPTI_ERROR_INVALID_METRIC_ID, 16) \
  X(CUPTI_ERROR_INVALID_METRIC_NAME, 17) X(CUPTI_ERROR_QUEUE_EMPTY, 18) X(CUPTI_ERROR_INVALID_HANDLE, 19) \
  X(CUPTI_ERROR_INVALID_STREAM, 20) X(CUPTI_ERROR_INVALID_KIND, 21) X(CUPTI_ERROR_INVALID_EVENT_VALUE, 22) \
  X(CUPTI_ERROR_DISABLED, 23) X(CUPTI_ERROR_INVALID_MODULE, 24) X(CUPTI_ERROR_INVALID_METRIC_VALUE, 25) \
  X(CUPTI_ERROR_HARDWARE_BUSY, 26) X(CUPTI_ERROR_NOT_SUPPORTED, 27) X(CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED, 28) \
  X(CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_DEVICE, 29) \
  X(CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_NON_P2P_DEVICES, 30) \
  X(CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_WITH_MPS, 31) X(CUPTI_ERROR_CDP_TRACING_NOT_SUPPORTED, 32) \
  X(CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, 33) X(CUPTI_ERROR_CUDA_COMPILER_NOT_COMPATIBLE, 34) \
  X(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, 35) X(CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED, 36) \
  X(CUPTI_ERROR_OPENACC_UNDEFINED_ROUTINE, 37) X(CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED, 38) \
  X(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, 39) \
  X(CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, 40) \
  X(CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, 41) X(CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED, 42) \
  X(CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED, 43) X(CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED, 44) \
  X(CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED, 45) X(CUPTI_ERROR_INVALID_CHIP_NAME, 46) X(CUPTI_ERROR_UNKNOWN, 999)

#define KGATE_CUPTI_KINDS(X) \
  X(CUPTI_ACTIVITY_KIND_INVALID, 0) X(CUPTI_ACTIVITY_KIND_MEMCPY, 1) X(CUPTI_ACTIVITY_KIND_MEMSET, 2) \
  X(CUPTI_ACTIVITY_KIND_KERNEL, 3) X(CUPTI_ACTIVITY_KIND_DRIVER, 4) X(CUPTI_ACTIVITY_KIND_RUNTIME, 5) \
  X(CUPTI_ACTIVITY_KIND_DEVICE, 8) X(CUPTI_ACTIVITY_KIND_CONTEXT, 9) X(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 10) \
  X(CUPTI_ACTIVITY_KIND_NAME, 11) X(CUPTI_ACTIVITY_KIND_MARKER, 12) X(CUPTI_ACTIVITY_KIND_OVERHEAD, 17) \
  X(CUPTI_ACTIVITY_KIND_MEMCPY2, 22) X(CUPTI_ACTIVITY_KIND_FUNCTION, 26) X(CUPTI_ACTIVITY_KIND_MODULE, 27) \
  X(CUPTI_ACTIVITY_KIND_CUDA_EVENT, 36) X(CUPTI_ACTIVITY_KIND_STREAM, 37) \
  X(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 38) X(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, 39) \
  X(CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API, 48) X(CUPTI_ACTIVITY_KIND_MEMORY2, 49) \
  X(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, 51)

#define KGATE_CUPTI_ATTRIBUTES(X) \
  X(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, 0) X(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP, 1) \
  X(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, 2) X(CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_SIZE, 3) \
  X(CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_LIMIT, 4) X(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, 5) \
  X(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, 6) \
  X(CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_PRE_ALLOCATE_VALUE, 7) \
  X(CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, 8) X(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, 9)

#define KGATE_CUPTI_VALUES(X) \
  X(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN, 0) X(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE, 1) \
  X(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT, 2) \
  X(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE, 3) \
  X(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE, 4) X(CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT, 0) \
  X(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM, 1) X(CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN, 0) \
  X(CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, 1) X(CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, 2) X(CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, 8) \
  X(CUPTI_ACTIVITY_MEMCPY_KIND_HTOH, 9) X(CUPTI_ACTIVITY_MEMCPY_KIND_PTOP, 10) \
  X(CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN, 0) X(CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, 1) \
  X(CUPTI_ACTIVITY_MEMORY_KIND_PINNED, 2) X(CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, 3) \
  X(CUPTI_ACTIVITY_MEMORY_KIND_MANAGED, 5) X(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED, 1) \
  X(CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC, 1) X(CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC, 1) \
  X(CUPTI_ACTIVITY_OVERHEAD_UNKNOWN, 0) X(CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER, 1) \
  X(CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH, 65536) X(CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION, 131072) \
  X(CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE, 196608) \
  X(CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING, 262144) \
  X(CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING, 327680) X(CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL, 393216) \
  X(CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST, 458752) X(CUPTI_ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT, 524288) \
  X(CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR, 0) X(CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE, 1) \
  X(CUPTI_CHANNEL_TYPE_COMPUTE, 1) X(CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY, 2) X(CUPTI_ACTIVITY_OBJECT_PROCESS, 1) \
  X(CUPTI_ACTIVITY_OBJECT_THREAD, 2) X(CUPTI_CB_DOMAIN_DRIVER_API, 1) X(CUPTI_CB_DOMAIN_RUNTIME_API, 2) \
  X(CUPTI_CB_DOMAIN_RESOURCE, 3) X(CUPTI_API_ENTER, 0) X(CUPTI_API_EXIT, 1) X(CUPTI_CBID_RESOURCE_CONTEXT_CREATED, 1) \
  X(CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, 2) X(CUPTI_CBID_RESOURCE_STREAM_CREATED, 3) \
  X(CUPTI_CBID_RESOURCE_MODULE_LOADED, 6) X(CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, 7) \
  X(CUPTI_CBID_RESOURCE_GRAPH_CREATED, 9) X(CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING, 10) \
  X(CUPTI_CBID_RESOURCE_GRAPH_CLONED, 11) X(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, 13) \
  X(CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING, 14) X(CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING, 17) \
  X(CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED, 18) X(CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING, 19) \
  X(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, 20) X(CUPTI_CBID_RESOURCE_GRAPH_NODE_UPDATED, 22) \
  X(CUPTI_CBID_RESOURCE_GRAPH_NODE_SET_PARAMS, 23) X(CUPTI_CBID_RESOURCE_SIZE, 24)

// What a node of a CUDA graph is.
#define KGATE_CU_GRAPH_NODE_TYPES(X) \
  X(CU_GRAPH_NODE_TYPE_KERNEL, 0) X(CU_GRAPH_NODE_TYPE_MEMCPY, 1) X(CU_GRAPH_NODE_TYPE_MEMSET, 2) \
  X(CU_GRAPH_NODE_TYPE_HOST, 3) X(CU_GRAPH_NODE_TYPE_GRAPH, 4) X(CU_GRAPH_NODE_TYPE_EMPTY, 5) \
  X(CU_GRAPH_NODE_TYPE_WAIT_EVENT, 6) X(CU_GRAPH_NODE_TYPE_EVENT_RECORD, 7) X(CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL, 8) \
  X(CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT, 9) X(CU_GRAPH_NODE_TYPE_MEM_ALLOC, 10) X(CU_GRAPH_NODE_TYPE_MEM_FREE, 11) \
  X(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, 12) X(CU_GRAPH_NODE_TYPE_CONDITIONAL, 13)

// clang-format on

namespace kgate::gpu {

#define KGATE_ENUMERATOR(name, value) name = value,
enum CUptiResult : int { KGATE_CUPTI_RESULTS(KGATE_ENUMERATOR) };
enum CUpti_ActivityKind : int { KGATE_CUPTI_KINDS(KGATE_ENUMERATOR) };
enum CUpti_ActivityAttribute : int { KGATE_CUPTI_ATTRIBUTES(KGATE_ENUMERATOR) };
enum : uint32_t { KGATE_CUPTI_VALUES(KGATE_ENUMERATOR) };
enum CUgraphNodeType : int { KGATE_CU_GRAPH_NODE_TYPES(KGATE_ENUMERATOR) };
#undef KGATE_ENUMERATOR
inline constexpr uint32_t kCuptiVersion = 130001;             // these layouts: CUDA 13.0 update 1
inline constexpr uint64_t kCuptiTimestampUnknown = 0;         // start == end == 0: no time was collected
inline constexpr uint32_t kCuptiCorrelationUnknown = 0;
inline constexpr uint32_t kCuptiNotApplicable = 0xffffffffu;  // stream or event ids of synchronization records
inline constexpr size_t kCuptiOldSubscriberNameMin = 64;

// Every record starts with its kind; all layouts below are naturally aligned, as CUPTI's packed ones happen to be.
struct CUpti_Activity {
  CUpti_ActivityKind kind;
};

// CONCURRENT_KERNEL and KERNEL.
struct CUpti_ActivityKernel10 {
  CUpti_ActivityKind kind;
  uint8_t cacheConfig;  // requested in the low nibble, executed in the high
  uint8_t sharedMemoryConfig;
  uint16_t registersPerThread;
  uint32_t partitionedGlobalCacheRequested, partitionedGlobalCacheExecuted;
  uint64_t start, end, completed;  // ns
  uint32_t deviceId, contextId, streamId;
  int32_t gridX, gridY, gridZ;
  int32_t blockX, blockY, blockZ;
  int32_t staticSharedMemory, dynamicSharedMemory;  // bytes
  uint32_t localMemoryPerThread;
  uint32_t localMemoryTotal;  // deprecated: localMemoryTotal_v2
  uint32_t correlationId;     // of the API call that launched it
  int64_t gridId;
  const char* name;  // owned by CUPTI; copy it inside the buffer callback
  void* reserved0;
  uint64_t queued, submitted;  // kCuptiTimestampUnknown unless latency timestamps are on
  uint8_t launchType;
  uint8_t isSharedMemoryCarveoutRequested, sharedMemoryCarveoutRequested;
  uint8_t padding;
  uint32_t sharedMemoryExecuted;
  uint64_t graphNodeId;  // 0: not from a graph
  uint32_t shmemLimitConfig;
  uint32_t graphId;
  void* pAccessPolicyWindow;
  uint32_t channelID, channelType;
  uint32_t clusterX, clusterY, clusterZ;
  uint32_t clusterSchedulingPolicy;
  uint64_t localMemoryTotal_v2;
  uint32_t maxPotentialClusterSize, maxActiveClusters;
  uint8_t isDeviceLaunched;
  uint8_t padding3[7];
};

// DRIVER and RUNTIME: one API call.
struct CUpti_ActivityAPI {
  CUpti_ActivityKind kind;
  uint32_t cbid;
  uint64_t start, end;  // ns
  uint32_t processId, threadId;
  uint32_t correlationId;
  uint32_t returnValue;  // CUresult
};

// SYNCHRONIZATION.
struct CUpti_ActivitySynchronization2 {
  CUpti_ActivityKind kind;
  uint32_t type;        // CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_*
  uint64_t start, end;  // ns
  uint32_t correlationId, contextId;
  uint32_t streamId, cudaEventId;  // kCuptiNotApplicable where the type has none
  uint64_t cudaEventSyncId;
  uint32_t returnValue;
  uint32_t pad;
};

// OVERHEAD: time that CUPTI itself took.
struct CUpti_ActivityOverhead3 {
  CUpti_ActivityKind kind;
  uint32_t overheadKind;  // CUPTI_ACTIVITY_OVERHEAD_*
  uint32_t objectKind;    // CUPTI_ACTIVITY_OBJECT_*
  uint32_t objectId[3];   // process: {pid, tid, -}; device: {device, context, stream}
  uint64_t start, end;    // ns
  uint32_t correlationId;
  uint32_t reserved0;
  void* overheadData;
};

// MEMCPY.
struct CUpti_ActivityMemcpy6 {
  CUpti_ActivityKind kind;
  uint8_t copyKind;          // CUPTI_ACTIVITY_MEMCPY_KIND_*
  uint8_t srcKind, dstKind;  // CUPTI_ACTIVITY_MEMORY_KIND_*
  uint8_t flags;             // CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC
  uint64_t bytes;
  uint64_t start, end;  // ns
  uint32_t deviceId, contextId, streamId;
  uint32_t correlationId, runtimeCorrelationId;
  uint32_t pad;
  void* reserved0;
  uint64_t graphNodeId;
  uint32_t graphId;
  uint32_t channelID, channelType;
  uint8_t isDeviceLaunched;
  uint8_t pad2[3];
  uint64_t copyCount;
};

// MEMSET.
struct CUpti_ActivityMemset4 {
  CUpti_ActivityKind kind;
  uint32_t value;
  uint64_t bytes;
  uint64_t start, end;  // ns
  uint32_t deviceId, contextId, streamId;
  uint32_t correlationId;
  uint16_t flags, memoryKind;
  uint32_t pad;
  void* reserved0;
  uint64_t graphNodeId;
  uint32_t graphId;
  uint32_t channelID, channelType;
  uint8_t isDeviceLaunched;
  uint8_t pad2[3];
};

using CUpti_SubscriberHandle = struct CUpti_Subscriber_st*;
using CUpti_BuffersCallbackRequestFunc = void (*)(uint8_t** buffer, size_t* size, size_t* max_records);
using CUpti_BuffersCallbackCompleteFunc = void (*)(CUcontext context, uint32_t stream, uint8_t* buffer, size_t size,
                                                   size_t valid_size);
using CUpti_TimestampCallbackFunc = uint64_t (*)();
using CUpti_CallbackFunc = void (*)(void* user_data, int domain, uint32_t cbid, const void* data);

struct CUpti_SubscriberParams {
  size_t structSize;  // sizeof(CUpti_SubscriberParams)
  const char* subscriberName;
  char* oldSubscriberName;  // filled when another subscriber is in the way; at least kCuptiOldSubscriberNameMin bytes
  size_t oldSubscriberSize;
};

// Resource callbacks: `data` is a CUpti_ResourceData, whose descriptor is one of the two below. All of it is valid only
// inside the callback.
struct CUpti_ResourceData {
  CUcontext context;
  void* resourceHandle;  // a stream, in CUDA's union of one
  void* resourceDescriptor;
};

// MODULE_LOADED. CUPTI gives the cubin, also of a module that was loaded as PTX; the virtual GPU compiles nothing and
// gives the PTX, without its terminating zero; of a cubin, which it does not execute, it tells nothing.
struct CUpti_ModuleResourceData {
  uint32_t moduleId;
  size_t cubinSize;
  const char* pCubin;
};

using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUgraphNode = struct CUgraphNode_st*;

// GRAPHEXEC_CREATED and the other GRAPH* callbacks.
struct CUpti_GraphData {
  CUgraph graph, originalGraph;
  CUgraphNode node, originalNode;
  CUgraphNodeType nodeType;
  CUgraphNode dependency;
  CUgraphExec graphExec;
};

}  // namespace kgate::gpu
