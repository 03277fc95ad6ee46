// What the GPU itself says about its fitness to be timed: clocks, why they are what they are, and who else uses it.
// NVML, found at run time; read-only.
//
// Enters: the UUID of a device. Leaves: readings to set beside the rounds of a replay, and facts for the report.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "support/error.h"

namespace kgate::gpu {

// Bits of GpuReading::reasons (nvmlClocksEventReasons).
enum ClockReason : uint64_t {
  kClocksIdle = 0x1,
  kClocksApplication = 0x2,
  kClocksPowerCap = 0x4,
  kClocksHwSlowdown = 0x8,
  kClocksSyncBoost = 0x10,
  kClocksSwThermal = 0x20,
  kClocksHwThermal = 0x40,
  kClocksPowerBrake = 0x80,
  kClocksDisplay = 0x100,
};
constexpr uint64_t kClocksSlowed = kClocksHwSlowdown | kClocksSwThermal | kClocksHwThermal | kClocksPowerBrake;
std::string clock_reasons(uint64_t reasons);  // "power cap, hardware thermal"; unknown bits as hex; "none"

// Absent: this GPU or driver does not tell.
struct GpuReading {
  uint64_t reasons = 0;
  std::optional<uint32_t> sm_mhz, memory_mhz, celsius, milliwatts;
  std::optional<uint64_t> thermal_ns, power_ns;  // cumulative time under the driver's thermal and power policies
};

struct GpuFacts {
  std::optional<bool> persistence, ecc, mig;
  std::optional<uint32_t> power_limit_milliwatts;
  std::optional<uint32_t> processes;  // with a compute context, this one's children included
};

class GpuMonitor {
 public:
  // `uuid`: 32 hex digits. $KGATE_NVML, else libnvidia-ml.so.1. Failure: no NVML, or it does not know the device.
  static Result<std::unique_ptr<GpuMonitor>> open(const std::string& uuid);
  ~GpuMonitor();

  GpuReading read() const;  // some 100 us
  GpuFacts facts() const;

 private:
  struct State;
  explicit GpuMonitor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kgate::gpu
