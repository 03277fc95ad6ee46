// The driver library that loaded us, and the few calls of it that the tracer makes. Found at run time: an application
// brings the real driver or the virtual GPU, and may have loaded either in a namespace of its own.
#pragma once

#include <string>

#include "gpu/cupti_abi.h"

// X(name, parameters). A call that a driver lacks stays null.
#define KGATE_INJECT_CALLS(X)                                      \
  X(cuCtxPushCurrent_v2, (gpu::CUcontext))                         \
  X(cuCtxPopCurrent_v2, (gpu::CUcontext*))                         \
  X(cuCtxSynchronize, ())                                          \
  X(cuGraphGetNodes, (gpu::CUgraph, gpu::CUgraphNode*, size_t*))   \
  X(cuGraphNodeGetType, (gpu::CUgraphNode, gpu::CUgraphNodeType*)) \
  X(cuGraphChildGraphNodeGetGraph, (gpu::CUgraphNode, gpu::CUgraph*))

namespace kgate::inject {

struct Driver {
#define KGATE_CALL(name, parameters) gpu::CUresult(*name) parameters = nullptr;
  KGATE_INJECT_CALLS(KGATE_CALL)
#undef KGATE_CALL
  void* handle = nullptr;
  std::string path;            // resolved; empty: not found
  bool exports_cupti = false;  // the virtual GPU: it is its own CUPTI
};

// `caller`: an address inside the library that called InitializeInjection().
Driver find_driver(const void* caller);

// The CUPTI to load; empty: none is found. The virtual GPU is its own. Otherwise the application's CUPTI is taken where
// it has loaded one: two copies in one process are two tools that fight over one driver.
std::string cupti_library(const Driver& driver);

}  // namespace kgate::inject
