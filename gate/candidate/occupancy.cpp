// Occupancy limits of each architecture. The figures are those of cuda_occupancy.h (CUDA 13.0) and of the compute
// capability tables of the CUDA programming guide; a test compares the two where the header is installed.
#include <algorithm>
#include <array>

#include "candidate/compile.h"

namespace kgate {

namespace {

struct SmLimits {
  int arch;
  int warps, blocks;
  uint32_t shared_bytes;           // per SM
  uint32_t shared_granularity;
  uint32_t reserved_shared;        // per block
  int barriers;                    // of all resident blocks; 0: they do not bind before Hopper
};

constexpr uint32_t kKiB = 1024;
constexpr std::array kLimits{
    SmLimits{75, 32, 16, 64 * kKiB, 256, 0, 0},
    SmLimits{80, 64, 32, 164 * kKiB, 128, kKiB, 0},
    SmLimits{86, 48, 16, 100 * kKiB, 128, kKiB, 0},
    SmLimits{87, 48, 16, 164 * kKiB, 128, kKiB, 0},
    SmLimits{89, 48, 24, 100 * kKiB, 128, kKiB, 0},
    SmLimits{90, 64, 32, 228 * kKiB, 128, kKiB, 64},
    SmLimits{100, 64, 32, 228 * kKiB, 128, kKiB, 64},
    SmLimits{101, 48, 24, 228 * kKiB, 128, kKiB, 24},
    SmLimits{103, 64, 32, 228 * kKiB, 128, kKiB, 64},
    SmLimits{110, 48, 24, 228 * kKiB, 128, kKiB, 24},
    SmLimits{120, 48, 24, 100 * kKiB, 128, kKiB, 24},
    SmLimits{121, 48, 24, 100 * kKiB, 128, kKiB, 24},
};

constexpr uint32_t kWarp = 32, kMaxThreads = 1024, kMaxRegisters = 255;
constexpr uint32_t kRegistersPerSm = 64 * 1024, kRegisterGranularity = 256, kPartitions = 4;

constexpr uint32_t divide_up(uint32_t value, uint32_t by) { return value / by + (value % by != 0); }

// Registers are given to warps, inside one of four partitions; the launch check assumes that all partitions get as many.
int blocks_by_registers(uint32_t registers, uint32_t warps) {
  if (registers == 0) return INT32_MAX;
  if (registers > kMaxRegisters) return 0;
  uint32_t per_warp = divide_up(registers * kWarp, kRegisterGranularity) * kRegisterGranularity;
  if (per_warp * divide_up(warps, kPartitions) * kPartitions > kRegistersPerSm) return 0;
  uint32_t warps_per_partition = kRegistersPerSm / kPartitions / per_warp;
  return static_cast<int>(warps_per_partition * kPartitions / warps);
}

int blocks_by_shared(const SmLimits& limits, uint32_t shared_bytes) {
  uint64_t wanted = uint64_t{shared_bytes} + limits.reserved_shared;
  if (wanted == 0) return INT32_MAX;
  uint64_t allocated = (wanted + limits.shared_granularity - 1) / limits.shared_granularity * limits.shared_granularity;
  return static_cast<int>(limits.shared_bytes / allocated);
}

}  // namespace

std::optional<Occupancy> theoretical_occupancy(int arch, uint32_t registers, uint32_t shared_bytes,
                                               uint32_t block_threads, uint32_t barriers) {
  auto limits = std::find_if(kLimits.begin(), kLimits.end(), [&](const SmLimits& row) { return row.arch == arch; });
  if (limits == kLimits.end() || block_threads == 0 || block_threads > kMaxThreads) return std::nullopt;
  uint32_t warps = divide_up(block_threads, kWarp);
  bool barriers_bind = barriers && limits->barriers;
  // In the order in which equal limits are named.
  const std::pair<int, const char*> bounds[] = {
      {limits->warps / static_cast<int>(warps), "warps"},
      {limits->blocks, "blocks"},
      {blocks_by_registers(registers, warps), "registers"},
      {blocks_by_shared(*limits, shared_bytes), "shared memory"},
      {barriers_bind ? limits->barriers / static_cast<int>(std::min(barriers, kMaxThreads)) : INT32_MAX, "barriers"},
  };
  auto lowest = std::min_element(std::begin(bounds), std::end(bounds),
                                 [](const auto& a, const auto& b) { return a.first < b.first; });
  Occupancy occupancy;
  occupancy.blocks_per_sm = lowest->first;
  occupancy.fraction = static_cast<double>(lowest->first * static_cast<int>(warps)) / limits->warps;
  occupancy.limiter = lowest->second;
  return occupancy;
}

}  // namespace kgate
