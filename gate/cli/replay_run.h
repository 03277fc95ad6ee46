// Timing: blocks of pairs in fresh workers, a look at the evidence after each planned number of pairs, and the trace
// that is kept.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "judge/verdict.h"
#include "precheck/precheck.h"
#include "replay/arms.h"

namespace kgate {

struct ReplayRequest {
  const Contract* contract = nullptr;
  const Prepared* candidate = nullptr;
  const Prepared* baseline = nullptr;  // null: what was recorded
  const Workload* workload = nullptr;
  std::filesystem::path workload_file;  // .kgw: the same, for the workers
  const Comparison* comparison = nullptr;
  double speed = 1;
  gpu::DeviceChoice device;
  std::vector<EffectiveLimit> limits;
  StaticFigures statics;
  std::string require_tier;
  uint64_t seed = 0;
  uint32_t warmup = 0, requests = 0, max_pairs = 24;
  bool counters = false;
  std::filesystem::path trace;
  std::string command;
  std::function<void(double fraction, const std::string& what)> on_progress;
};

// Adds metrics, findings, classes, health, pairs and facts (tier, trace) to the verdict. Leaves the trace open, so that
// the verdict can be put into it before finish(); null where nothing was measured: no trace is left then.
std::unique_ptr<TraceStore> run_replay(const ReplayRequest& request, Verdict& verdict);

// The workload of a contract that names none: one request a shape, closed arrivals, launched as the contract says.
Workload contract_workload(const Contract& contract, const Prepared& baseline, uint64_t seed);

}  // namespace kgate
