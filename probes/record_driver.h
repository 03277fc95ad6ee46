// The driver's calls that the recorder makes itself, found in the library that loaded it. Older drivers lack some.
#pragma once

#include "gpu/cupti_params_abi.h"

// X(name, parameters)
// clang-format off
#define KGATE_RECORD_CALLS(X) \
  X(cuDriverGetVersion, (int*)) \
  X(cuDeviceGetName, (char*, int, gpu::CUdevice)) \
  X(cuDeviceGetAttribute, (int*, gpu::CUdevice_attribute, gpu::CUdevice)) \
  X(cuCtxGetDevice, (gpu::CUdevice*)) \
  X(cuCtxGetFlags, (unsigned*)) \
  X(cuCtxPushCurrent_v2, (gpu::CUcontext)) \
  X(cuCtxPopCurrent_v2, (gpu::CUcontext*)) \
  X(cuCtxSynchronize, ()) \
  X(cuMemcpyDtoH_v2, (void*, gpu::CUdeviceptr, size_t)) \
  X(cuMemGetAddressRange_v2, (gpu::CUdeviceptr*, size_t*, gpu::CUdeviceptr)) \
  X(cuPointerGetAttribute, (void*, int, gpu::CUdeviceptr)) \
  X(cuStreamIsCapturing, (gpu::CUstream, int*)) \
  X(cuStreamGetFlags, (gpu::CUstream, unsigned*)) \
  X(cuStreamGetPriority, (gpu::CUstream, int*)) \
  X(cuFuncGetName, (const char**, gpu::CUfunction)) \
  X(cuFuncGetModule, (gpu::CUmodule*, gpu::CUfunction)) \
  X(cuFuncGetParamInfo, (gpu::CUfunction, size_t, size_t*, size_t*)) \
  X(cuKernelGetName, (const char**, gpu::CUkernel)) \
  X(cuKernelGetLibrary, (gpu::CUlibrary*, gpu::CUkernel)) \
  X(cuKernelGetParamInfo, (gpu::CUkernel, size_t, size_t*, size_t*)) \
  X(cuGraphGetNodes, (gpu::CUgraph, gpu::CUgraphNode*, size_t*)) \
  X(cuGraphGetEdges, (gpu::CUgraph, gpu::CUgraphNode*, gpu::CUgraphNode*, size_t*)) \
  X(cuGraphGetEdges_v2, (gpu::CUgraph, gpu::CUgraphNode*, gpu::CUgraphNode*, void*, size_t*)) \
  X(cuGraphNodeGetType, (gpu::CUgraphNode, gpu::CUgraphNodeType*)) \
  X(cuGraphKernelNodeGetParams_v2, (gpu::CUgraphNode, gpu::CUDA_KERNEL_NODE_PARAMS*)) \
  X(cuGraphKernelNodeGetAttribute, (gpu::CUgraphNode, gpu::CUlaunchAttributeID, gpu::CUlaunchAttributeValue*)) \
  X(cuGraphMemcpyNodeGetParams, (gpu::CUgraphNode, gpu::CUDA_MEMCPY3D*)) \
  X(cuGraphMemsetNodeGetParams, (gpu::CUgraphNode, gpu::CUDA_MEMSET_NODE_PARAMS*)) \
  X(cuGraphEventRecordNodeGetEvent, (gpu::CUgraphNode, gpu::CUevent*)) \
  X(cuGraphEventWaitNodeGetEvent, (gpu::CUgraphNode, gpu::CUevent*)) \
  X(cuGraphChildGraphNodeGetGraph, (gpu::CUgraphNode, gpu::CUgraph*)) \
  X(cuGraphMemAllocNodeGetParams, (gpu::CUgraphNode, gpu::CUDA_MEM_ALLOC_NODE_PARAMS*))
// clang-format on

namespace kgate::record {

struct DriverCalls {
#define KGATE_CALL(name, parameters) gpu::CUresult(*name) parameters = nullptr;
  KGATE_RECORD_CALLS(KGATE_CALL)
#undef KGATE_CALL
};

// `handle`: of the driver library. A call that it lacks stays null.
DriverCalls resolve_driver_calls(void* handle);

// A call that the driver lacks is not supported.
template <typename... Parameters, typename... Arguments>
gpu::CUresult ask(gpu::CUresult (*call)(Parameters...), Arguments... arguments) {
  return call != nullptr ? call(arguments...) : gpu::CUDA_ERROR_NOT_SUPPORTED;
}

// Makes a context current for the recorder's own calls.
class InContext {
 public:
  InContext(const DriverCalls& driver, gpu::CUcontext context)
      : driver_(driver), ok_(ask(driver.cuCtxPushCurrent_v2, context) == gpu::CUDA_SUCCESS) {}
  ~InContext() {
    gpu::CUcontext popped = nullptr;
    if (ok_) ask(driver_.cuCtxPopCurrent_v2, &popped);
  }
  explicit operator bool() const { return ok_; }

 private:
  const DriverCalls& driver_;
  const bool ok_;
};

}  // namespace kgate::record
