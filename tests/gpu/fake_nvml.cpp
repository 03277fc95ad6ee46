// An NVML of one device, whose answers the test sets through KGATE_FAKE_NVML_* (numbers; absent: not supported).
#include <cstdlib>
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {
constexpr int kSuccess = 0, kNotFound = 6, kNotSupported = 3;
template <typename Value>
int answer(const char* name, Value* value) {
  const char* text = std::getenv(name);
  if (text == nullptr) return kNotSupported;
  *value = static_cast<Value>(std::strtoull(text, nullptr, 0));
  return kSuccess;
}
int device;
}  // namespace

EXPORT int nvmlInit_v2() { return kSuccess; }
EXPORT int nvmlShutdown() { return kSuccess; }
EXPORT const char* nvmlErrorString(int) { return "Not Found"; }
EXPORT int nvmlDeviceGetHandleByUUID(const char* uuid, void** out) {
  *out = &device;
  return std::strcmp(uuid, "GPU-00112233-4455-6677-8899-aabbccddeeff") == 0 ? kSuccess : kNotFound;
}
EXPORT int nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* reasons) {
  return answer("KGATE_FAKE_NVML_REASONS", reasons);
}
EXPORT int nvmlDeviceGetClockInfo(void*, int type, unsigned* mhz) {
  return answer(type == 1 ? "KGATE_FAKE_NVML_SM" : "KGATE_FAKE_NVML_MEMORY", mhz);
}
EXPORT int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) { return answer("KGATE_FAKE_NVML_POWER", milliwatts); }
struct Violation {
  unsigned long long reference, violation;
};
EXPORT int nvmlDeviceGetViolationStatus(void*, int policy, Violation* out) {
  return answer(policy == 1 ? "KGATE_FAKE_NVML_THERMAL_NS" : "KGATE_FAKE_NVML_POWER_NS", &out->violation);
}
EXPORT int nvmlDeviceGetMigMode(void*, unsigned* current, unsigned*) { return answer("KGATE_FAKE_NVML_MIG", current); }
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void*) {
  return answer("KGATE_FAKE_NVML_PROCESSES", count);
}
