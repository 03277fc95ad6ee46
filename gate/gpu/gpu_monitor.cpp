// NVML's calls are declared here as far as they are used (nvml.h of driver 580); none of them changes a setting. Calls
// that only some drivers have are optional, and what they would say is then absent.
#include "gpu/gpu_monitor.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "support/text.h"

namespace kgate::gpu {

namespace {

using Device = struct NvmlDevice*;
constexpr int kSuccess = 0, kInsufficientSize = 7;
enum { kClockSm = 1, kClockMemory = 2, kSensorGpu = 0, kPolicyPower = 0, kPolicyThermal = 1 };
struct Violation {
  unsigned long long reference, violation;  // us, ns
};
struct Process {  // nvmlProcessInfo_v2_t
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};

constexpr std::pair<uint64_t, const char*> kReasons[] = {
    {kClocksIdle, "idle"},
    {kClocksApplication, "application clocks"},
    {kClocksPowerCap, "power cap"},
    {kClocksHwSlowdown, "hardware slowdown"},
    {kClocksSyncBoost, "sync boost"},
    {kClocksSwThermal, "software thermal slowdown"},
    {kClocksHwThermal, "hardware thermal slowdown"},
    {kClocksPowerBrake, "power brake"},
    {kClocksDisplay, "display clocks"},
};

// "GPU-8-4-4-4-12" of 32 hex digits.
std::string nvml_uuid(const std::string& hex) {
  std::string text = "GPU-";
  for (size_t i = 0; i < hex.size(); ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) text += '-';
    text += hex[i];
  }
  return text;
}

}  // namespace

std::string clock_reasons(uint64_t reasons) {
  std::string text;
  auto add = [&](const std::string& name) { text += (text.empty() ? "" : ", ") + name; };
  for (auto [bit, name] : kReasons) {
    if (reasons & bit) add(name);
    reasons &= ~bit;
  }
  char unknown[24];
  std::snprintf(unknown, sizeof unknown, "0x%llx", static_cast<unsigned long long>(reasons));
  if (reasons != 0) add(unknown);
  return text.empty() ? "none" : text;
}

struct GpuMonitor::State {
  Device device = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error)(int) = nullptr;
  int (*by_uuid)(const char*, Device*) = nullptr;
  int (*reasons)(Device, unsigned long long*) = nullptr;
  int (*clock)(Device, int, unsigned*) = nullptr;
  int (*temperature)(Device, int, unsigned*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;
  int (*violation)(Device, int, Violation*) = nullptr;
  int (*persistence)(Device, int*) = nullptr;
  int (*ecc)(Device, int*, int*) = nullptr;
  int (*mig)(Device, unsigned*, unsigned*) = nullptr;
  int (*power_limit)(Device, unsigned*) = nullptr;
  int (*processes)(Device, unsigned*, Process*) = nullptr;
  bool started = false;

  ~State() {
    if (started) shutdown();
  }
  std::string resolve(void* library);
};

// The first required call that is missing, or nothing.
std::string GpuMonitor::State::resolve(void* library) {
  std::string missing;
  auto get = [&](auto& call, bool required, std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (call == nullptr) call = reinterpret_cast<std::decay_t<decltype(call)>>(dlsym(library, name));
    if (call == nullptr && required && missing.empty()) missing = *names.begin();
  };
  get(init, true, {"nvmlInit_v2"});
  get(shutdown, true, {"nvmlShutdown"});
  get(error, true, {"nvmlErrorString"});
  get(by_uuid, true, {"nvmlDeviceGetHandleByUUID"});
  get(reasons, true, {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  get(clock, true, {"nvmlDeviceGetClockInfo"});
  get(temperature, false, {"nvmlDeviceGetTemperature"});
  get(power, false, {"nvmlDeviceGetPowerUsage"});
  get(violation, false, {"nvmlDeviceGetViolationStatus"});
  get(persistence, false, {"nvmlDeviceGetPersistenceMode"});
  get(ecc, false, {"nvmlDeviceGetEccMode"});
  get(mig, false, {"nvmlDeviceGetMigMode"});
  get(power_limit, false, {"nvmlDeviceGetEnforcedPowerLimit"});
  get(processes, false, {"nvmlDeviceGetComputeRunningProcesses_v3"});
  return missing;
}

GpuMonitor::GpuMonitor(std::unique_ptr<State> state) : state_(std::move(state)) {}
GpuMonitor::~GpuMonitor() = default;

Result<std::unique_ptr<GpuMonitor>> GpuMonitor::open(const std::string& uuid) {
  const char* chosen = std::getenv("KGATE_NVML");
  std::string path = chosen != nullptr ? chosen : "libnvidia-ml.so.1";
  const char* hint = "NVML comes with the NVIDIA driver; KGATE_NVML names another file.";
  if (uuid.size() != 32) return Failure{"the device has no UUID to ask NVML for", path, {}};
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return Failure{"cannot load NVML: " + sanitize(reason != nullptr ? reason : "unknown reason"), path, hint};
  }
  auto state = std::make_unique<State>();
  if (std::string missing = state->resolve(library); !missing.empty())
    return Failure{"not an NVML that kgate can use: it lacks " + missing, path, hint};
  auto failed = [&](const char* call, int result) {
    const char* text = state->error(result);
    return Failure{std::string(call) + ": " + sanitize(text != nullptr ? text : "error", 100) + " (" +
                       std::to_string(result) + ")",
                   path, hint};
  };
  if (int result = state->init(); result != kSuccess) return failed("nvmlInit_v2", result);
  state->started = true;
  if (int result = state->by_uuid(nvml_uuid(uuid).c_str(), &state->device); result != kSuccess)
    return failed("nvmlDeviceGetHandleByUUID", result);
  return std::unique_ptr<GpuMonitor>(new GpuMonitor(std::move(state)));
}

GpuReading GpuMonitor::read() const {
  const State& s = *state_;
  GpuReading reading;
  unsigned long long reasons = 0;
  if (s.reasons(s.device, &reasons) == kSuccess) reading.reasons = reasons;
  unsigned value = 0;
  if (s.clock(s.device, kClockSm, &value) == kSuccess) reading.sm_mhz = value;
  if (s.clock(s.device, kClockMemory, &value) == kSuccess) reading.memory_mhz = value;
  if (s.temperature != nullptr && s.temperature(s.device, kSensorGpu, &value) == kSuccess) reading.celsius = value;
  if (s.power != nullptr && s.power(s.device, &value) == kSuccess) reading.milliwatts = value;
  Violation violation{};
  if (s.violation != nullptr && s.violation(s.device, kPolicyThermal, &violation) == kSuccess)
    reading.thermal_ns = violation.violation;
  if (s.violation != nullptr && s.violation(s.device, kPolicyPower, &violation) == kSuccess)
    reading.power_ns = violation.violation;
  return reading;
}

GpuFacts GpuMonitor::facts() const {
  const State& s = *state_;
  GpuFacts facts;
  int on = 0, pending = 0;
  if (s.persistence != nullptr && s.persistence(s.device, &on) == kSuccess) facts.persistence = on != 0;
  if (s.ecc != nullptr && s.ecc(s.device, &on, &pending) == kSuccess) facts.ecc = on != 0;
  unsigned value = 0, other = 0;
  if (s.mig != nullptr && s.mig(s.device, &value, &other) == kSuccess) facts.mig = value != 0;
  if (s.power_limit != nullptr && s.power_limit(s.device, &value) == kSuccess) facts.power_limit_milliwatts = value;
  if (s.processes != nullptr) {
    std::vector<Process> room(256);
    unsigned count = static_cast<unsigned>(room.size());
    int result = s.processes(s.device, &count, room.data());
    if (result == kSuccess || result == kInsufficientSize) facts.processes = count;
  }
  return facts;
}

}  // namespace kgate::gpu
