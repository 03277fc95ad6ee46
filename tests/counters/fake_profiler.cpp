// A CUPTI that has only the range profiler's calls: counter i of range r has the value 100 * r + i. It checks what the
// real one takes for granted: sizes of structs, the order of calls, images that stay alive.
#include "tests/counters/fake_profiler.h"

#include <cstring>
#include <string>
#include <vector>

#include "gpu/profiler_abi.h"

using namespace kgate::gpu;

#define EXPORT extern "C" __attribute__((visibility("default")))

extern "C" {
__attribute__((visibility("default"))) FakeProfiler kgate_fake_profiler;
}

namespace {

int object;
bool enabled = false, started = false, in_range = false;
std::vector<std::string> names;
std::string name_text;

template <typename Params>
CUptiResult enter(const char* call, const Params* params) {
  FakeProfiler& fake = kgate_fake_profiler;
  if (std::strlen(fake.calls) + std::strlen(call) + 2 < sizeof fake.calls) {
    std::strcat(fake.calls, call);
    std::strcat(fake.calls, " ");
  }
  if (params->structSize != profiler_struct_size<Params>() || params->pPriv != nullptr)
    return CUPTI_ERROR_INVALID_PARAMETER;
  if (std::strcmp(fake.fail_call, call) == 0) return static_cast<CUptiResult>(fake.fail_with);
  return CUPTI_SUCCESS;
}

}  // namespace

#define CALL(name, Params)                                 \
  EXPORT CUptiResult name(Params* params) {                \
    if (auto result = enter(#name, params)) return result; \
    FakeProfiler& fake = kgate_fake_profiler;              \
    (void)fake;
#define END             \
  return CUPTI_SUCCESS; \
  }

EXPORT CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "CUPTI_ERROR";
  return CUPTI_SUCCESS;
}

CALL(cuptiProfilerInitialize, CUpti_Profiler_Initialize_Params)
names.clear();
enabled = started = in_range = false;
END CALL(cuptiProfilerDeviceSupported, CUpti_Profiler_DeviceSupported_Params) params->isSupported = fake.supported;
END CALL(cuptiDeviceGetChipName, CUpti_Device_GetChipName_Params) params->pChipName = "FAKE100";
END CALL(cuptiProfilerGetCounterAvailability,
         CUpti_Profiler_GetCounterAvailability_Params) params->counterAvailabilityImageSize = 16;
END CALL(cuptiProfilerHostInitialize,
         CUpti_Profiler_Host_Initialize_Params) if (std::strcmp(params->pChipName, "FAKE100") !=
                                                    0) return CUPTI_ERROR_INVALID_CHIP_NAME;
params->pHostObject = reinterpret_cast<CUpti_Profiler_Host_Object*>(&object);
END CALL(cuptiProfilerHostDeinitialize, CUpti_Profiler_Host_Deinitialize_Params)
END CALL(cuptiProfilerHostConfigAddMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params)
END CALL(cuptiProfilerHostGetConfigImageSize,
         CUpti_Profiler_Host_GetConfigImageSize_Params) params->configImageSize = 64;
END CALL(cuptiProfilerHostGetConfigImage,
         CUpti_Profiler_Host_GetConfigImage_Params) std::memset(params->pConfigImage, 7, params->configImageSize);
END CALL(cuptiProfilerHostGetNumOfPasses, CUpti_Profiler_Host_GetNumOfPasses_Params) params->numOfPasses = fake.passes;
END CALL(cuptiProfilerHostEvaluateToGpuValues, CUpti_Profiler_Host_EvaluateToGpuValues_Params)
size_t range = fake.reverse_ranges ? names.size() - 1 - params->rangeIndex : params->rangeIndex;
for (size_t i = 0; i < params->numMetrics; ++i) params->pMetricValues[i] = 100.0 * double(range) + double(i);
END CALL(cuptiRangeProfilerEnable, CUpti_RangeProfiler_Enable_Params) if (enabled) return CUPTI_ERROR_INVALID_OPERATION;
enabled = true;
names.clear();
params->pRangeProfilerObject = reinterpret_cast<CUpti_RangeProfiler_Object*>(&object);
END CALL(cuptiRangeProfilerGetCounterDataSize,
         CUpti_RangeProfiler_GetCounterDataSize_Params) params->counterDataSize = 256;
END CALL(cuptiRangeProfilerCounterDataImageInitialize,
         CUpti_RangeProfiler_CounterDataImage_Initialize_Params) std::memset(params->pCounterData, 0,
                                                                             params->counterDataSize);
END CALL(cuptiRangeProfilerSetConfig,
         CUpti_RangeProfiler_SetConfig_Params) if (!enabled || params->range != CUPTI_UserRange ||
                                                   params->replayMode !=
                                                       CUPTI_UserReplay) return CUPTI_ERROR_INVALID_PARAMETER;
END

    // Disable, start and pop share one struct of ours.
    EXPORT CUptiResult
    cuptiRangeProfilerDisable(CUpti_RangeProfiler_Object_Params* params) {
  if (auto result = enter("cuptiRangeProfilerDisable", params)) return result;
  enabled = false;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiRangeProfilerStart(CUpti_RangeProfiler_Object_Params* params) {
  if (auto result = enter("cuptiRangeProfilerStart", params)) return result;
  if (!enabled || started) return CUPTI_ERROR_INVALID_OPERATION;
  started = true;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiRangeProfilerPopRange(CUpti_RangeProfiler_Object_Params* params) {
  if (auto result = enter("cuptiRangeProfilerPopRange", params)) return result;
  if (!in_range) return CUPTI_ERROR_INVALID_OPERATION;
  in_range = false;
  return CUPTI_SUCCESS;
}

CALL(cuptiRangeProfilerPushRange, CUpti_RangeProfiler_PushRange_Params)
if (!started || in_range) return CUPTI_ERROR_INVALID_OPERATION;
in_range = true;
names.emplace_back(params->pRangeName);
++fake.ranges;
END CALL(cuptiRangeProfilerStop, CUpti_RangeProfiler_Stop_Params) if (!started) return CUPTI_ERROR_INVALID_OPERATION;
started = false;
params->isAllPassSubmitted = fake.all_passes_submitted;
END CALL(cuptiRangeProfilerDecodeData, CUpti_RangeProfiler_DecodeData_Params) params->numOfRangeDropped = fake.dropped;
END CALL(cuptiRangeProfilerGetCounterDataInfo,
         CUpti_RangeProfiler_GetCounterDataInfo_Params) params->numTotalRanges = names.size() -
                                                                                 (fake.lose_last_range ? 1 : 0);
END CALL(cuptiRangeProfilerCounterDataGetRangeInfo, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params) name_text =
    names[fake.reverse_ranges ? names.size() - 1 - params->rangeIndex : params->rangeIndex];
params->rangeName = name_text.c_str();
END
