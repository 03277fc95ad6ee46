// Compares gpu/profiler_abi.h with the toolkit's headers, at compile time; without a toolkit this file is empty.
#if KGATE_HAVE_CUDA_HEADERS

#include <cuda.h>
#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include "gpu/profiler_abi.h"

#if CUDA_VERSION >= 13000

namespace ours = kgate::gpu;

// CUPTI has one struct a call where ours is shared.
using CUpti_RangeProfiler_Object_Params = CUpti_RangeProfiler_Start_Params;
static_assert(sizeof(CUpti_RangeProfiler_Start_Params) == sizeof(CUpti_RangeProfiler_PopRange_Params));
static_assert(sizeof(CUpti_RangeProfiler_Start_Params) == sizeof(CUpti_RangeProfiler_Disable_Params));

#define SAME_STRUCT(type, last)                                                                                 \
  static_assert(sizeof(ours::type) == sizeof(::type) && offsetof(ours::type, last) == offsetof(::type, last) && \
                    sizeof(ours::type::last) == sizeof(::type::last),                                           \
                #type " differs from the toolkit");
KGATE_CUPTI_PROFILER_STRUCTS(SAME_STRUCT)

#define SAME_OFFSET(type, field)                                                                               \
  static_assert(offsetof(ours::type, field) == offsetof(::type, field), #type "::" #field " differs from the " \
                                                                                          "toolkit");
SAME_OFFSET(CUpti_Profiler_Host_Initialize_Params, pChipName)
SAME_OFFSET(CUpti_Profiler_Host_Initialize_Params, pCounterAvailabilityImage)
SAME_OFFSET(CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex)
SAME_OFFSET(CUpti_Profiler_Host_EvaluateToGpuValues_Params, ppMetricNames)
SAME_OFFSET(CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumRangeTreeNodes)
SAME_OFFSET(CUpti_RangeProfiler_SetConfig_Params, pCounterDataImage)
SAME_OFFSET(CUpti_RangeProfiler_SetConfig_Params, replayMode)
SAME_OFFSET(CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass)
SAME_OFFSET(CUpti_RangeProfiler_SetConfig_Params, minNestingLevel)
SAME_OFFSET(CUpti_RangeProfiler_SetConfig_Params, passIndex)
SAME_OFFSET(CUpti_RangeProfiler_Stop_Params, passIndex)
SAME_OFFSET(CUpti_Profiler_DeviceSupported_Params, isSupported)

static_assert(int{ours::CUPTI_PROFILER_TYPE_RANGE_PROFILER} == int{::CUPTI_PROFILER_TYPE_RANGE_PROFILER});
static_assert(int{ours::CUPTI_UserRange} == int{::CUPTI_UserRange});
static_assert(int{ours::CUPTI_UserReplay} == int{::CUPTI_UserReplay});
static_assert(int{ours::CUPTI_PROFILER_CONFIGURATION_SUPPORTED} == int{::CUPTI_PROFILER_CONFIGURATION_SUPPORTED});
static_assert(int{::CUPTI_PROFILER_RANGE_PROFILING} == 0);

#endif
#endif
