// The GPU's own account of each round: read before a block and after each of its rounds, beside the replay and not in
// it.
#pragma once

#include <memory>
#include <string>

#include "gpu/gpu_monitor.h"
#include "judge/verdict.h"
#include "trace/store.h"

namespace kgate {

class GpuWatch {
 public:
  // Without NVML nothing is read, and the verdict's facts say why.
  GpuWatch(const std::string& uuid, Verdict& verdict);

  void begin_block();
  void end_round(uint32_t round);
  void store(TraceStore& store) const;
  // Rounds in which the hardware or the driver slowed the GPU down for heat or power delivery. Not the power cap: a
  // kernel that draws more power runs slower in production too.
  HealthRow health() const;

 private:
  struct Row {
    uint32_t round;
    gpu::GpuReading before, after;
    bool slowed() const;
  };
  std::unique_ptr<gpu::GpuMonitor> monitor_;
  gpu::GpuReading last_;
  std::vector<Row> rows_;
};

}  // namespace kgate
