// The trace store: one SQLite file a run (schema in docs/formats.md, DESIGN's views and SQL functions). Only kgate
// writes it.
//
// Enters: wire records, host events, health. Leaves: rows, read back as plain structs by the judge and the reports.
// While a run is in progress the file is named PATH.partial; finish() renames it, so that an interrupted run leaves
// nothing that looks whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/error.h"
#include "trace/collector.h"
#include "trace/probes.h"
#include "trace/wire.h"

namespace kgate {

// What joins wire records to names: filled from the plan.
struct ArmKernels {
  struct Kernel {
    std::string name;  // the entry as the driver and CUPTI call it
    std::string kernel_id;
  };
  std::vector<Kernel> workload_kernels;          // by workload kernel index
  std::vector<std::vector<Kernel>> arm_kernels;  // [arm][arm kernel index]
  std::vector<bool> judged_launch;               // by workload launch index
  std::vector<uint32_t> launch_kernel;           // workload launch index → workload kernel index
};

struct RunInfo {
  std::string tier;                          // "T0", "T2", "none"
  std::map<std::string, std::string> facts;  // device, uuid, driver, kernel release, workload hash, seed, command, ...
};

// A finding about the trace itself. `limit` is the largest value that is still fit to judge.
struct HealthRow {
  std::string name;  // "cupti_dropped", "ring_lost", "unmatched_kernels", "clock_half_width_ns", ...
  double value = 0;
  double limit = 0;
  bool ok() const { return value <= limit; }
  std::string note;
};

// Rows outside rounds (set-up, canary) have round, arm, sequence, request, launch and launch_class 0xffffffff and phase
// setup.
struct RoundRow {
  uint32_t round, arm, pair;
  uint64_t begin, end;
};
struct RequestRow {
  uint32_t round, arm, request, sequence, thread;
  wire::Phase phase;
  uint64_t arrival, due, issue, end, lag;
  bool quarantined;  // overlaps an OVERHEAD record
};
struct KernelRow {
  uint32_t round, arm, sequence, request, launch, item, launch_class;
  wire::Phase phase;
  bool judged, replaced;
  std::string name, kernel_id;
  uint64_t start, end;                // GPU
  uint64_t launch_begin, launch_end;  // API call
  uint32_t stream;
  uint32_t registers, static_shared, dynamic_shared, local_per_thread;
  uint32_t grid[3], block[3];
  uint64_t previous_end = 0;  // of what ran before it on its device stream (kernels, copies, memsets); 0: nothing
};
struct ApiRow {
  uint32_t round, arm, sequence, thread;
  wire::Phase phase;
  std::string name;
  bool is_launch, is_sync, is_alloc;
  uint64_t start, end;
};
struct OffCpuRow {
  uint32_t round, arm, thread;
  uint64_t begin, end;
  uint32_t state;
  uint64_t run_queue_ns;
};
struct VirtualRow {  // a launch on the virtual GPU
  uint32_t round, arm, sequence, launch;
  wire::Phase phase;
  bool judged;
  uint64_t thread_instructions, sectors, bank_conflicts, divergent_branches;
};

class TraceStore {
 public:
  // Creates PATH.partial. Throws Error{environment} when it cannot be written.
  static std::unique_ptr<TraceStore> create(const std::filesystem::path& path, const RunInfo& info,
                                            const ArmKernels& kernels);
  // Opens a finished trace read-only. Failure: not a trace, other version, unfinished.
  static Result<std::unique_ptr<TraceStore>> open(const std::filesystem::path& path);
  ~TraceStore();  // without finish(): the partial file is removed

  // One worker's block: parses and checks the records (untrusted), joins launch ↔ API ↔ kernel ↔ request in a second
  // pass, writes the rows, adds what did not fit together to the health table.
  void add_block(std::span<const std::byte> records, const std::vector<HostEvent>& host_events,
                 const std::vector<ProbeSymbol>& symbols, const ProbeHealth* probes, const CollectorHealth* collector);
  void add_health(const HealthRow& row);  // same name: values are added up, the first limit stays
  void set_fact(const std::string& key, const std::string& value);
  void add_verdict(const std::string& json);
  void finish();

  std::vector<RoundRow> rounds() const;
  std::vector<RequestRow> requests() const;
  std::vector<KernelRow> kernels() const;
  std::vector<ApiRow> api_calls() const;
  std::vector<OffCpuRow> off_cpu() const;
  std::vector<VirtualRow> virtual_counts() const;
  std::vector<HealthRow> health() const;
  RunInfo info() const;

  // Runs any read-only SQL with kgate's functions (p50 p90 p95 p99 p999 percentile) registered. One callback a row.
  using RowCallback =
      std::function<void(const std::vector<std::string>& names, const std::vector<std::optional<std::string>>& values)>;
  Result<std::monostate> query(const std::string& sql, const RowCallback& row) const;

  const std::filesystem::path& path() const;

 private:
  struct State;
  explicit TraceStore(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kgate
