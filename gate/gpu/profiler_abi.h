// The part of CUPTI's range profiler and profiler host interface (CUDA 13.0) that the counters pass uses, declared here
// so that the build needs no toolkit. gpu/profiler_abi_check.cpp compares it with the toolkit's headers where they are
// installed.
//
// Every call takes one struct that begins with its own size; CUPTI decides by it which fields exist.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/cupti_abi.h"

namespace kgate::gpu {

struct CUpti_RangeProfiler_Object;
struct CUpti_Profiler_Host_Object;

enum : int { CUPTI_PROFILER_TYPE_RANGE_PROFILER = 0 };
enum : int { CUPTI_UserRange = 2 };
enum : int { CUPTI_UserReplay = 3 };
enum : int { CUPTI_PROFILER_CONFIGURATION_SUPPORTED = 3 };

struct CUpti_Profiler_Initialize_Params {
  size_t structSize;
  void* pPriv;
};
struct CUpti_Device_GetChipName_Params {
  size_t structSize;
  void* pPriv;
  size_t deviceIndex;
  const char* pChipName;  // out
};
struct CUpti_Profiler_GetCounterAvailability_Params {
  size_t structSize;
  void* pPriv;
  CUcontext ctx;
  size_t counterAvailabilityImageSize;  // in, out
  uint8_t* pCounterAvailabilityImage;   // null: asks for the size
};
struct CUpti_Profiler_DeviceSupported_Params {
  size_t structSize;
  void* pPriv;
  CUdevice cuDevice;
  int isSupported, architecture, sli, vGpu, confidentialCompute, cmp, wsl;  // out
  int api;                                                                  // 0: range profiling
};

struct CUpti_Profiler_Host_Initialize_Params {
  size_t structSize;
  void* pPriv;
  int profilerType;
  const char* pChipName;
  const uint8_t* pCounterAvailabilityImage;
  CUpti_Profiler_Host_Object* pHostObject;  // out
};
struct CUpti_Profiler_Host_Deinitialize_Params {
  size_t structSize;
  void* pPriv;
  CUpti_Profiler_Host_Object* pHostObject;
};
struct CUpti_Profiler_Host_ConfigAddMetrics_Params {
  size_t structSize;
  void* pPriv;
  CUpti_Profiler_Host_Object* pHostObject;
  const char** ppMetricNames;
  size_t numMetrics;
};
struct CUpti_Profiler_Host_GetConfigImageSize_Params {
  size_t structSize;
  void* pPriv;
  CUpti_Profiler_Host_Object* pHostObject;
  size_t configImageSize;  // out
};
struct CUpti_Profiler_Host_GetConfigImage_Params {
  size_t structSize;
  void* pPriv;
  CUpti_Profiler_Host_Object* pHostObject;
  size_t configImageSize;
  uint8_t* pConfigImage;
};
struct CUpti_Profiler_Host_GetNumOfPasses_Params {
  size_t structSize;
  void* pPriv;
  size_t configImageSize;
  uint8_t* pConfigImage;
  size_t numOfPasses;  // out
};
struct CUpti_Profiler_Host_EvaluateToGpuValues_Params {
  size_t structSize;
  void* pPriv;
  CUpti_Profiler_Host_Object* pHostObject;
  const uint8_t* pCounterDataImage;
  size_t counterDataImageSize;
  size_t rangeIndex;
  const char** ppMetricNames;
  size_t numMetrics;
  double* pMetricValues;  // out
};

struct CUpti_RangeProfiler_Enable_Params {
  size_t structSize;
  void* pPriv;
  CUcontext ctx;
  CUpti_RangeProfiler_Object* pRangeProfilerObject;  // out
};
// Disable, Start, PopRange
struct CUpti_RangeProfiler_Object_Params {
  size_t structSize;
  void* pPriv;
  CUpti_RangeProfiler_Object* pRangeProfilerObject;
};
struct CUpti_RangeProfiler_GetCounterDataSize_Params {
  size_t structSize;
  void* pPriv;
  CUpti_RangeProfiler_Object* pRangeProfilerObject;
  const char** pMetricNames;
  size_t numMetrics;
  size_t maxNumOfRanges;
  uint32_t maxNumRangeTreeNodes;
  size_t counterDataSize;  // out
};
struct CUpti_RangeProfiler_CounterDataImage_Initialize_Params {
  size_t structSize;
  void* pPriv;
  CUpti_RangeProfiler_Object* pRangeProfilerObject;
  size_t counterDataSize;
  uint8_t* pCounterData;
};
struct CUpti_RangeProfiler_SetConfig_Params {
  size_t structSize;
  void* pPriv;
  CUpti_RangeProfiler_Object* pRangeProfilerObject;
  size_t configSize;
  const uint8_t* pConfig;
  size_t counterDataImageSize;
  uint8_t* pCounterDataImage;
  int range, replayMode;
  size_t maxRangesPerPass;
  uint16_t numNestingLevels, minNestingLevel;
  size_t passIndex;
  uint16_t targetNestingLevel;
};
struct CUpti_RangeProfiler_PushRange_Params {
  size_t structSize;
  void* pPriv;
  CUpti_RangeProfiler_Object* pRangeProfilerObject;
  const char* pRangeName;
};
struct CUpti_RangeProfiler_Stop_Params {
  size_t structSize;
  void* pPriv;
  CUpti_RangeProfiler_Object* pRangeProfilerObject;
  size_t passIndex, targetNestingLevel;  // out
  uint8_t isAllPassSubmitted;            // out
};
struct CUpti_RangeProfiler_DecodeData_Params {
  size_t structSize;
  void* pPriv;
  CUpti_RangeProfiler_Object* pRangeProfilerObject;
  size_t numOfRangeDropped;  // out
};
struct CUpti_RangeProfiler_GetCounterDataInfo_Params {
  size_t structSize;
  void* pPriv;
  const uint8_t* pCounterDataImage;
  size_t counterDataImageSize;
  size_t numTotalRanges;  // out
};
struct CUpti_RangeProfiler_CounterData_GetRangeInfo_Params {
  size_t structSize;
  void* pPriv;
  const uint8_t* pCounterDataImage;
  size_t counterDataImageSize;
  size_t rangeIndex;
  const char* rangeDelimiter;
  const char* rangeName;  // out
};

// X(struct, its last field): structSize ends behind the last field, not behind the padding.
#define KGATE_CUPTI_PROFILER_STRUCTS(X)                                      \
  X(CUpti_Profiler_Initialize_Params, pPriv)                                 \
  X(CUpti_Device_GetChipName_Params, pChipName)                              \
  X(CUpti_Profiler_GetCounterAvailability_Params, pCounterAvailabilityImage) \
  X(CUpti_Profiler_DeviceSupported_Params, api)                              \
  X(CUpti_Profiler_Host_Initialize_Params, pHostObject)                      \
  X(CUpti_Profiler_Host_Deinitialize_Params, pHostObject)                    \
  X(CUpti_Profiler_Host_ConfigAddMetrics_Params, numMetrics)                 \
  X(CUpti_Profiler_Host_GetConfigImageSize_Params, configImageSize)          \
  X(CUpti_Profiler_Host_GetConfigImage_Params, pConfigImage)                 \
  X(CUpti_Profiler_Host_GetNumOfPasses_Params, numOfPasses)                  \
  X(CUpti_Profiler_Host_EvaluateToGpuValues_Params, pMetricValues)           \
  X(CUpti_RangeProfiler_Enable_Params, pRangeProfilerObject)                 \
  X(CUpti_RangeProfiler_Object_Params, pRangeProfilerObject)                 \
  X(CUpti_RangeProfiler_GetCounterDataSize_Params, counterDataSize)          \
  X(CUpti_RangeProfiler_CounterDataImage_Initialize_Params, pCounterData)    \
  X(CUpti_RangeProfiler_SetConfig_Params, targetNestingLevel)                \
  X(CUpti_RangeProfiler_PushRange_Params, pRangeName)                        \
  X(CUpti_RangeProfiler_Stop_Params, isAllPassSubmitted)                     \
  X(CUpti_RangeProfiler_DecodeData_Params, numOfRangeDropped)                \
  X(CUpti_RangeProfiler_GetCounterDataInfo_Params, numTotalRanges)           \
  X(CUpti_RangeProfiler_CounterData_GetRangeInfo_Params, rangeName)

// A struct with its size filled in and everything else 0.
template <typename Params>
constexpr size_t profiler_struct_size();
#define KGATE_SIZE(type, last)                        \
  template <>                                         \
  constexpr size_t profiler_struct_size<type>() {     \
    return offsetof(type, last) + sizeof(type::last); \
  }
KGATE_CUPTI_PROFILER_STRUCTS(KGATE_SIZE)
#undef KGATE_SIZE

template <typename Params>
constexpr Params profiler_params() {
  Params params{};
  params.structSize = profiler_struct_size<Params>();
  return params;
}

}  // namespace kgate::gpu
