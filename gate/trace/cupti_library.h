// The calls of CUPTI that the collector makes, resolved from a library by path: CUPTI itself or the virtual GPU.
#pragma once

#include <string>

#include "gpu/cupti_abi.h"
#include "support/error.h"

// X(name, parameters): calls without which nothing works.
#define KGATE_CUPTI_CALLS(X)                                                                                         \
  X(cuptiGetVersion, (uint32_t*))                                                                                    \
  X(cuptiGetResultString, (gpu::CUptiResult, const char**))                                                          \
  X(cuptiGetTimestamp, (uint64_t*))                                                                                  \
  X(cuptiSetThreadIdType, (unsigned))                                                                                \
  X(cuptiActivityRegisterCallbacks, (gpu::CUpti_BuffersCallbackRequestFunc, gpu::CUpti_BuffersCallbackCompleteFunc)) \
  X(cuptiActivityRegisterTimestampCallback, (gpu::CUpti_TimestampCallbackFunc))                                      \
  X(cuptiActivityEnable, (gpu::CUpti_ActivityKind))                                                                  \
  X(cuptiActivitySetAttribute, (gpu::CUpti_ActivityAttribute, size_t*, void*))                                       \
  X(cuptiActivityFlushAll, (uint32_t))                                                                               \
  X(cuptiActivityGetNumDroppedRecords, (gpu::CUcontext, uint32_t, size_t*))                                          \
  X(cuptiActivityGetNextRecord, (uint8_t*, size_t, gpu::CUpti_Activity**))

// Calls that may be missing.
#define KGATE_CUPTI_OPTIONAL_CALLS(X)                                                                                \
  X(cuptiSubscribe_v2, (gpu::CUpti_SubscriberHandle*, gpu::CUpti_CallbackFunc, void*, gpu::CUpti_SubscriberParams*)) \
  X(cuptiUnsubscribe, (gpu::CUpti_SubscriberHandle))                                                                 \
  X(cuptiEnableCallback, (uint32_t, gpu::CUpti_SubscriberHandle, int, uint32_t))                                     \
  X(cuptiGetGraphExecId, (gpu::CUgraphExec, uint32_t*))                                                              \
  X(cuptiGetGraphNodeId, (gpu::CUgraphNode, uint64_t*))                                                              \
  X(cuptiActivityEnableAllSyncRecords, (uint8_t))

namespace kgate::trace {

struct CuptiLibrary {
#define KGATE_CALL(name, parameters) gpu::CUptiResult(*name) parameters = nullptr;
  KGATE_CUPTI_CALLS(KGATE_CALL)
  KGATE_CUPTI_OPTIONAL_CALLS(KGATE_CALL)
#undef KGATE_CALL
  std::string path;
  uint32_t version = 0;

  std::string describe(gpu::CUptiResult result) const;  // "CUPTI_ERROR_INVALID_KIND (21)"
};

// Failure: not loadable, a call is missing, or another major version than 13, whose records have another layout.
// The library stays loaded for the life of the process.
Result<CuptiLibrary> load_cupti(const std::string& path);

}  // namespace kgate::trace
