// The order of calls is CUPTI's: initialise, chip name, availability, host object, then for each set a configuration
// image, enable, counter data, config, [start, push, pop, ..., stop], decode, evaluate, disable. Images are kept until
// the profiler is disabled: it goes on reading them.
#include "trace/range_profiler.h"

#include <dlfcn.h>

#include <charconv>
#include <cstring>
#include <fstream>

#include "gpu/profiler_abi.h"
#include "support/text.h"

namespace kgate {

using namespace gpu;

namespace {

#define KGATE_PROFILER_CALLS(X)                                                                           \
  X(cuptiProfilerInitialize, CUpti_Profiler_Initialize_Params)                                            \
  X(cuptiProfilerDeviceSupported, CUpti_Profiler_DeviceSupported_Params)                                  \
  X(cuptiDeviceGetChipName, CUpti_Device_GetChipName_Params)                                              \
  X(cuptiProfilerGetCounterAvailability, CUpti_Profiler_GetCounterAvailability_Params)                    \
  X(cuptiProfilerHostInitialize, CUpti_Profiler_Host_Initialize_Params)                                   \
  X(cuptiProfilerHostDeinitialize, CUpti_Profiler_Host_Deinitialize_Params)                               \
  X(cuptiProfilerHostConfigAddMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params)                       \
  X(cuptiProfilerHostGetConfigImageSize, CUpti_Profiler_Host_GetConfigImageSize_Params)                   \
  X(cuptiProfilerHostGetConfigImage, CUpti_Profiler_Host_GetConfigImage_Params)                           \
  X(cuptiProfilerHostGetNumOfPasses, CUpti_Profiler_Host_GetNumOfPasses_Params)                           \
  X(cuptiProfilerHostEvaluateToGpuValues, CUpti_Profiler_Host_EvaluateToGpuValues_Params)                 \
  X(cuptiRangeProfilerEnable, CUpti_RangeProfiler_Enable_Params)                                          \
  X(cuptiRangeProfilerDisable, CUpti_RangeProfiler_Object_Params)                                         \
  X(cuptiRangeProfilerGetCounterDataSize, CUpti_RangeProfiler_GetCounterDataSize_Params)                  \
  X(cuptiRangeProfilerCounterDataImageInitialize, CUpti_RangeProfiler_CounterDataImage_Initialize_Params) \
  X(cuptiRangeProfilerSetConfig, CUpti_RangeProfiler_SetConfig_Params)                                    \
  X(cuptiRangeProfilerStart, CUpti_RangeProfiler_Object_Params)                                           \
  X(cuptiRangeProfilerPushRange, CUpti_RangeProfiler_PushRange_Params)                                    \
  X(cuptiRangeProfilerPopRange, CUpti_RangeProfiler_Object_Params)                                        \
  X(cuptiRangeProfilerStop, CUpti_RangeProfiler_Stop_Params)                                              \
  X(cuptiRangeProfilerDecodeData, CUpti_RangeProfiler_DecodeData_Params)                                  \
  X(cuptiRangeProfilerGetCounterDataInfo, CUpti_RangeProfiler_GetCounterDataInfo_Params)                  \
  X(cuptiRangeProfilerCounterDataGetRangeInfo, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params)

bool admin_only() {
  std::ifstream params("/proc/driver/nvidia/params");
  for (std::string line; std::getline(params, line);)
    if (line.starts_with("RmProfilingAdminOnly:")) return line.find('1') != std::string::npos;
  return false;
}

std::string hint_of(CUptiResult result) {
  switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return std::string("Hardware counters are for administrators here") +
             (admin_only() ? " (RmProfilingAdminOnly: 1)" : "") +
             ": run as root or with CAP_SYS_ADMIN, or load the nvidia module with "
             "NVreg_RestrictProfilingToAdminUsers=0.";
    case CUPTI_ERROR_HARDWARE_BUSY:
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      return "Another tool holds the performance monitors: end it, or pause DCGM with `dcgmi profile --pause`.";
    case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_NOT_SUPPORTED:
    case CUPTI_ERROR_INVALID_CHIP_NAME:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
    case CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED:
      return "This GPU, in this configuration, has no counters for CUPTI: leave --counters away.";
    default:
      return "Leave --counters away, or try the CUPTI of another toolkit (KGATE_CUPTI).";
  }
}

}  // namespace

struct RangeProfiler::State {
  std::string path, chip;
  CUcontext context = nullptr;
  std::vector<uint8_t> availability;
  CUpti_RangeProfiler_Object* profiler = nullptr;
  CUpti_Profiler_Host_Object* host = nullptr;
  std::vector<uint8_t> config, data;
  std::vector<const char*> metrics;
  uint32_t pushed = 0;
  CUptiResult (*result_string)(CUptiResult, const char**) = nullptr;
#define KGATE_CALL(name, params) CUptiResult (*name)(params*) = nullptr;
  KGATE_PROFILER_CALLS(KGATE_CALL)
#undef KGATE_CALL

  ~State() { release(); }
  void release() {
    if (profiler != nullptr) {
      auto off = profiler_params<CUpti_RangeProfiler_Object_Params>();
      off.pRangeProfilerObject = profiler;
      cuptiRangeProfilerDisable(&off);
      profiler = nullptr;
    }
    if (host != nullptr) {
      auto off = profiler_params<CUpti_Profiler_Host_Deinitialize_Params>();
      off.pHostObject = host;
      cuptiProfilerHostDeinitialize(&off);
      host = nullptr;
    }
  }
  Failure failure(const char* call, CUptiResult result) const {
    const char* text = nullptr;
    if (result_string == nullptr || result_string(result, &text) != CUPTI_SUCCESS || text == nullptr) text = "error";
    return {std::string(call) + ": " + sanitize(text, 100) + " (" + std::to_string(result) + ")", path,
            hint_of(result)};
  }

  std::optional<Failure> resolve(void* handle);
  std::optional<Failure> open(int device);
  std::optional<Failure> make_config(const trace::CounterSet& set);
  std::optional<Failure> enable(uint32_t ranges);
  Result<std::vector<std::vector<double>>> evaluate();
};

// Calls `name` of the profiler; a result that is not success ends the function with a Failure.
#define KGATE_TRY(state, name, params) \
  if (CUptiResult result = (state).name(&(params)); result != CUPTI_SUCCESS) return (state).failure(#name, result)

std::optional<Failure> RangeProfiler::State::resolve(void* handle) {
  std::string missing;
#define KGATE_RESOLVE(name, params)                                        \
  name = reinterpret_cast<CUptiResult (*)(params*)>(dlsym(handle, #name)); \
  if (name == nullptr) missing = #name;
  KGATE_PROFILER_CALLS(KGATE_RESOLVE)
#undef KGATE_RESOLVE
  result_string = reinterpret_cast<CUptiResult (*)(CUptiResult, const char**)>(dlsym(handle, "cuptiGetResultString"));
  if (missing.empty()) return {};
  return Failure{"this CUPTI has no range profiler: it lacks " + missing, path, hint_of(CUPTI_ERROR_UNKNOWN)};
}

std::optional<Failure> RangeProfiler::State::open(int device) {
  auto init = profiler_params<CUpti_Profiler_Initialize_Params>();
  KGATE_TRY(*this, cuptiProfilerInitialize, init);
  auto supported = profiler_params<CUpti_Profiler_DeviceSupported_Params>();
  supported.cuDevice = device;
  KGATE_TRY(*this, cuptiProfilerDeviceSupported, supported);
  if (supported.isSupported != CUPTI_PROFILER_CONFIGURATION_SUPPORTED)
    return Failure{"this GPU cannot be profiled in its present configuration", path,
                   hint_of(CUPTI_ERROR_NOT_SUPPORTED)};
  auto name = profiler_params<CUpti_Device_GetChipName_Params>();
  name.deviceIndex = static_cast<size_t>(device);
  KGATE_TRY(*this, cuptiDeviceGetChipName, name);
  chip = name.pChipName != nullptr ? name.pChipName : "";
  auto available = profiler_params<CUpti_Profiler_GetCounterAvailability_Params>();
  available.ctx = context;
  KGATE_TRY(*this, cuptiProfilerGetCounterAvailability, available);
  availability.resize(available.counterAvailabilityImageSize);
  available.pCounterAvailabilityImage = availability.data();
  KGATE_TRY(*this, cuptiProfilerGetCounterAvailability, available);
  return {};
}

std::optional<Failure> RangeProfiler::State::make_config(const trace::CounterSet& set) {
  metrics.assign(set.metrics.begin(), set.metrics.begin() + static_cast<ptrdiff_t>(set.size()));
  auto init = profiler_params<CUpti_Profiler_Host_Initialize_Params>();
  init.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  init.pChipName = chip.c_str();
  init.pCounterAvailabilityImage = availability.data();
  KGATE_TRY(*this, cuptiProfilerHostInitialize, init);
  host = init.pHostObject;
  auto add = profiler_params<CUpti_Profiler_Host_ConfigAddMetrics_Params>();
  add.pHostObject = host;
  add.ppMetricNames = metrics.data();
  add.numMetrics = metrics.size();
  if (cuptiProfilerHostConfigAddMetrics(&add) != CUPTI_SUCCESS)
    return Failure{chip + " does not have " + metrics.front() + " and what is read with it", path, {}};
  auto size = profiler_params<CUpti_Profiler_Host_GetConfigImageSize_Params>();
  size.pHostObject = host;
  KGATE_TRY(*this, cuptiProfilerHostGetConfigImageSize, size);
  config.resize(size.configImageSize);
  auto image = profiler_params<CUpti_Profiler_Host_GetConfigImage_Params>();
  image.pHostObject = host;
  image.configImageSize = config.size();
  image.pConfigImage = config.data();
  KGATE_TRY(*this, cuptiProfilerHostGetConfigImage, image);
  auto passes = profiler_params<CUpti_Profiler_Host_GetNumOfPasses_Params>();
  passes.configImageSize = config.size();
  passes.pConfigImage = config.data();
  KGATE_TRY(*this, cuptiProfilerHostGetNumOfPasses, passes);
  if (passes.numOfPasses != 1)
    return Failure{chip + " needs " + std::to_string(passes.numOfPasses) + " passes for " + metrics.front() +
                       " and what is read with it: values of several executions do not belong together",
                   path,
                   {}};
  return {};
}

std::optional<Failure> RangeProfiler::State::enable(uint32_t ranges) {
  auto on = profiler_params<CUpti_RangeProfiler_Enable_Params>();
  on.ctx = context;
  KGATE_TRY(*this, cuptiRangeProfilerEnable, on);
  profiler = on.pRangeProfilerObject;
  auto size = profiler_params<CUpti_RangeProfiler_GetCounterDataSize_Params>();
  size.pRangeProfilerObject = profiler;
  size.pMetricNames = metrics.data();
  size.numMetrics = metrics.size();
  size.maxNumOfRanges = ranges;
  size.maxNumRangeTreeNodes = ranges;
  KGATE_TRY(*this, cuptiRangeProfilerGetCounterDataSize, size);
  data.assign(size.counterDataSize, 0);
  auto init = profiler_params<CUpti_RangeProfiler_CounterDataImage_Initialize_Params>();
  init.pRangeProfilerObject = profiler;
  init.counterDataSize = data.size();
  init.pCounterData = data.data();
  KGATE_TRY(*this, cuptiRangeProfilerCounterDataImageInitialize, init);
  auto set = profiler_params<CUpti_RangeProfiler_SetConfig_Params>();
  set.pRangeProfilerObject = profiler;
  set.configSize = config.size();
  set.pConfig = config.data();
  set.counterDataImageSize = data.size();
  set.pCounterDataImage = data.data();
  set.range = CUPTI_UserRange;
  set.replayMode = CUPTI_UserReplay;
  set.maxRangesPerPass = ranges;
  set.numNestingLevels = set.minNestingLevel = set.targetNestingLevel = 1;
  KGATE_TRY(*this, cuptiRangeProfilerSetConfig, set);
  return {};
}

Result<std::vector<std::vector<double>>> RangeProfiler::State::evaluate() {
  auto info = profiler_params<CUpti_RangeProfiler_GetCounterDataInfo_Params>();
  info.pCounterDataImage = data.data();
  info.counterDataImageSize = data.size();
  KGATE_TRY(*this, cuptiRangeProfilerGetCounterDataInfo, info);
  if (info.numTotalRanges != pushed)
    return Failure{
        "the profiler measured " + std::to_string(info.numTotalRanges) + " of " + std::to_string(pushed) + " launches",
        path,
        {}};
  std::vector<std::vector<double>> values(pushed);
  for (size_t i = 0; i < info.numTotalRanges; ++i) {
    auto range = profiler_params<CUpti_RangeProfiler_CounterData_GetRangeInfo_Params>();
    range.pCounterDataImage = data.data();
    range.counterDataImageSize = data.size();
    range.rangeIndex = i;
    range.rangeDelimiter = "/";
    KGATE_TRY(*this, cuptiRangeProfilerCounterDataGetRangeInfo, range);
    uint32_t number = pushed;
    if (range.rangeName != nullptr)
      std::from_chars(range.rangeName, range.rangeName + std::strlen(range.rangeName), number);
    if (number >= pushed || !values[number].empty())
      return Failure{
          "the profiler names a range that was not pushed: " + sanitize(range.rangeName ? range.rangeName : "", 40),
          path,
          {}};
    values[number].resize(metrics.size());
    auto evaluate = profiler_params<CUpti_Profiler_Host_EvaluateToGpuValues_Params>();
    evaluate.pHostObject = host;
    evaluate.pCounterDataImage = data.data();
    evaluate.counterDataImageSize = data.size();
    evaluate.rangeIndex = i;
    evaluate.ppMetricNames = metrics.data();
    evaluate.numMetrics = metrics.size();
    evaluate.pMetricValues = values[number].data();
    KGATE_TRY(*this, cuptiProfilerHostEvaluateToGpuValues, evaluate);
  }
  return values;
}

RangeProfiler::RangeProfiler(std::unique_ptr<State> state) : state_(std::move(state)) {}
RangeProfiler::~RangeProfiler() = default;

Result<std::unique_ptr<RangeProfiler>> RangeProfiler::open(const std::string& library, CUcontext context, int device) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    return Failure{"cannot load CUPTI: " + sanitize(reason ? reason : "unknown reason"), library,
                   hint_of(CUPTI_ERROR_UNKNOWN)};
  }
  auto state = std::make_unique<State>();
  state->path = library;
  state->context = context;
  if (auto problem = state->resolve(handle)) return *problem;
  if (auto problem = state->open(device)) return *problem;
  return std::unique_ptr<RangeProfiler>(new RangeProfiler(std::move(state)));
}

Result<std::monostate> RangeProfiler::configure(const trace::CounterSet& set, uint32_t ranges) {
  state_->release();
  state_->pushed = 0;
  if (auto problem = state_->make_config(set)) return *problem;
  if (auto problem = state_->enable(ranges)) return *problem;
  return std::monostate{};
}

Result<std::monostate> RangeProfiler::start() {
  auto params = profiler_params<CUpti_RangeProfiler_Object_Params>();
  params.pRangeProfilerObject = state_->profiler;
  KGATE_TRY(*state_, cuptiRangeProfilerStart, params);
  return std::monostate{};
}

Result<std::monostate> RangeProfiler::push() {
  auto params = profiler_params<CUpti_RangeProfiler_PushRange_Params>();
  std::string name = std::to_string(state_->pushed);
  params.pRangeProfilerObject = state_->profiler;
  params.pRangeName = name.c_str();
  KGATE_TRY(*state_, cuptiRangeProfilerPushRange, params);
  ++state_->pushed;
  return std::monostate{};
}

Result<std::monostate> RangeProfiler::pop() {
  auto params = profiler_params<CUpti_RangeProfiler_Object_Params>();
  params.pRangeProfilerObject = state_->profiler;
  KGATE_TRY(*state_, cuptiRangeProfilerPopRange, params);
  return std::monostate{};
}

Result<std::vector<std::vector<double>>> RangeProfiler::stop() {
  auto stop = profiler_params<CUpti_RangeProfiler_Stop_Params>();
  stop.pRangeProfilerObject = state_->profiler;
  KGATE_TRY(*state_, cuptiRangeProfilerStop, stop);
  if (!stop.isAllPassSubmitted)
    return Failure{"the profiler asks for another pass of a single-pass set", state_->path, {}};
  auto decode = profiler_params<CUpti_RangeProfiler_DecodeData_Params>();
  decode.pRangeProfilerObject = state_->profiler;
  KGATE_TRY(*state_, cuptiRangeProfilerDecodeData, decode);
  if (decode.numOfRangeDropped != 0)
    return Failure{"the profiler dropped " + std::to_string(decode.numOfRangeDropped) + " launches", state_->path, {}};
  return state_->evaluate();
}

}  // namespace kgate
