// kgate's side of one worker: spawn, attach probes, watch, collect. Whatever the worker does (crash, hang, garbage) is
// a value in WorkerOutcome, never an exception.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gpu/driver.h"
#include "replay/plan.h"
#include "support/fd.h"
#include "trace/collector.h"
#include "trace/probes.h"
#include "worker/protocol.h"

namespace kgate {

enum class WorkerEnd { completed, fault, crashed, hung, garbage, failed_to_start };
const char* worker_end_name(WorkerEnd end);

struct WorkerOutcome {
  WorkerEnd end = WorkerEnd::failed_to_start;
  std::string detail;  // "SIGSEGV", "no answer for 20 s after round 3", the garbage (sanitised)
  std::optional<worker::FaultEvent> fault;
  std::optional<gpu::DeviceProperties> device;
  Mapping records;  // the whole memfd: wire::Header first
  Mapping readback;
  std::optional<CollectorHealth> collector;
  // T0 only
  std::vector<HostEvent> host_events;
  std::vector<ProbeSymbol> symbols;
  std::optional<ProbeHealth> probes;
  std::string probe_failure;              // why T0 was not reached, empty when it was
  bool canary_ok = false;                 // one known launch and sync were seen exactly once each
  std::map<std::string, double> load_ns;  // module load by arm label
  uint32_t wanted = 0, exact = 0;         // buffers with a recorded address, and those that lie there
};

struct SessionOptions {
  gpu::DeviceChoice device;
  bool attach_probes = true;
  bool collect_cupti = true;
  std::string cupti;  // instead of the library that fits the device
  Collect collect;    // fewer records are no evidence: only for measuring what tracing costs
  std::chrono::milliseconds start_timeout{60'000}, round_timeout{60'000};
  std::function<void(uint32_t rounds_done)> on_progress;
};

// Runs the plan in a fresh worker.
WorkerOutcome run_worker(const ReplayPlan& plan, const Workload& workload, const SessionOptions& options);

}  // namespace kgate
