#include "cli/gpu_watch.h"

#include <fmt/format.h>

namespace kgate {

GpuWatch::GpuWatch(const std::string& uuid, Verdict& verdict) {
  auto monitor = gpu::GpuMonitor::open(uuid);
  if (!monitor) {
    verdict.facts["gpu_state"] = "not read: " + monitor.failure().what;
    return;
  }
  monitor_ = std::move(*monitor);
  gpu::GpuFacts facts = monitor_->facts();
  auto note = [&](const char* name, const std::optional<bool>& value) {
    if (value) verdict.facts[name] = *value ? "on" : "off";
  };
  note("gpu_persistence", facts.persistence);
  note("gpu_ecc", facts.ecc);
  note("gpu_mig", facts.mig);
  if (facts.power_limit_milliwatts)
    verdict.facts["gpu_power_limit"] = fmt::format("{:.0f} W", *facts.power_limit_milliwatts / 1e3);
  if (facts.processes) verdict.facts["gpu_processes"] = std::to_string(*facts.processes);
}

void GpuWatch::begin_block() {
  if (monitor_) last_ = monitor_->read();
}

void GpuWatch::end_round(uint32_t round) {
  if (!monitor_) return;
  gpu::GpuReading now = monitor_->read();
  rows_.push_back({round, last_, now});
  last_ = now;
}

// A short event falls between two readings; the driver's cumulative times do not forget it.
bool GpuWatch::Row::slowed() const {
  bool violated = before.thermal_ns && after.thermal_ns && *after.thermal_ns > *before.thermal_ns;
  return violated || (after.reasons & gpu::kClocksSlowed) != 0;
}

void GpuWatch::store(TraceStore& store) const {
  for (const Row& row : rows_)
    store.add_gpu_state({row.round, row.after.sm_mhz, row.after.memory_mhz, row.after.celsius, row.after.milliwatts,
                         gpu::clock_reasons(row.after.reasons), row.slowed()});
}

HealthRow GpuWatch::health() const {
  double slowed = 0;
  std::string first;
  for (const Row& row : rows_)
    if (row.slowed() && ++slowed == 1)
      first = fmt::format("first in round {}: {}", row.round, gpu::clock_reasons(row.after.reasons));
  return {"slowed_rounds", slowed, 0, first};
}

}  // namespace kgate
