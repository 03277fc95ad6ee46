// The trace store: one SQLite file a run (schema in docs/formats.md). Only kgate writes it.
//
// Enters: wire records, host events, health. Leaves: rows, read back as plain structs by the judge and the reports.
// There are two kinds of run: a replay, whose workers say which launch of a plan each call is (add_block), and traced
// applications, of which nothing is known but what their processes did (add_process).
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
// A fact of traces in which kernel_time is of a request: `kernel_time_of` = `request`.
inline constexpr const char* kKernelTimeOf = "kernel_time_of";
inline constexpr const char* kKernelTimeOfRequests = "request";

struct ArmKernels {
  struct Kernel {
    std::string name;  // the entry as the driver and CUPTI call it
    std::string kernel_id;
  };
  std::vector<Kernel> workload_kernels;          // by workload kernel index
  std::vector<std::vector<Kernel>> arm_kernels;  // [arm][arm kernel index]
  std::vector<bool> judged_launch;               // by workload launch index
  std::vector<uint32_t> launch_kernel;           // workload launch index → workload kernel index
  bool sum_requests = false;  // launches have no partner in the other arm: kernel_time is of a request (a fact)
};

// One process of a traced application. There is no plan and nobody says what a launch is for: kernels come from CUPTI's
// kernel records, and their calls, graphs and threads from correlation ids.
//
// The process is one round of arm 0, with a running number; its phase is `measured` from ProcessRecord.begin to .end.
// A request is what one thread asks for between two of its host synchronisations: from its first launch, copy or
// memset after the one to the end of the next; without a launch in between there is none. Every kernel is judged.
struct ProcessTrace {
  uint32_t process = 0, parent = 0;  // ids as the operating system gives them; parent 0: not known
  std::string command;
  std::span<const std::byte> records;  // wire::Header first; empty: the process wrote none
  bool uses_cuda = false;              // the driver was seen in it, although it may have written no records
  std::vector<HostEvent> host_events;  // of this process; `fork` events name its children
  std::vector<ProbeSymbol> symbols;
  std::optional<ProbeHealth> probes;              // absent: no probe watched it
  std::map<std::string, std::string> kernel_ids;  // kernel name as CUPTI gives it → kernel_id; absent: not known
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
  uint32_t round, arm, sequence, request, launch, item, launch_class;  // of an application: launch 0xffffffff, item 0
  wire::Phase phase;
  bool judged, replaced;
  std::string name, kernel_id;        // kernel_id empty: not known
  uint64_t start, end;                // GPU
  uint64_t launch_begin, launch_end;  // API call; 0: not known
  uint32_t stream;                    // of the workload
  uint32_t registers, static_shared, dynamic_shared, local_per_thread;
  uint32_t grid[3], block[3], cluster[3];
  uint64_t previous_end = 0;  // of what ran before it on its device stream (kernels, copies, memsets); 0: nothing
  std::optional<uint64_t> queue_ns;  // start − max(launch_end, previous_end); nullopt: below what the clocks can tell
  uint32_t process = 0, thread = 0, device_stream = 0, context = 0, correlation = 0;
  uint32_t graph = 0;       // CUPTI's id of the executable graph that brought it; 0: none
  uint64_t graph_node = 0;  // (graph, graph_node) is the same in every launch of one instantiated graph
};
struct ApiRow {
  uint32_t round, arm, sequence, thread;
  wire::Phase phase;
  std::string name;
  bool is_launch, is_sync, is_alloc;
  uint64_t start, end;
  uint32_t process = 0, correlation = 0, result = 0;
};
struct SyncRow {                          // CUPTI's own record of a synchronisation: lies inside a driver call
  uint32_t round, arm, sequence, thread;  // of that call; thread 0: no record of the call
  wire::Phase phase;
  uint32_t type;  // CUPTI's CUpti_ActivitySynchronizationType
  uint64_t start, end;
  uint32_t process;
  bool waits;  // the host waits: everything but a stream that waits for an event
};
struct CopyRow {
  uint32_t round, arm;
  uint64_t start, end, bytes;
  uint32_t copy_kind;  // CUPTI's; 0xffffffff: memset
  uint32_t process, device_stream, context, correlation;
};
struct HostCallRow {  // as the probes saw it; blocked + preempted + run queue is what the call spent off the CPU
  uint32_t round, arm, thread;
  std::string name, use;  // use_name()
  uint64_t begin, end;
  uint64_t blocked_ns, preempted_ns, run_queue_ns;
  uint32_t process;
};
struct ProcessRow {
  uint32_t process, parent;
  std::string command;
  uint64_t begin, end;  // 0: not known
  bool cuda;            // used the driver
  bool recorded;        // wrote records
  bool probed;
  uint32_t round;  // 0xffffffff: none, because it wrote no records
};
// The launches of one arm in one launch class: what two traces are compared by.
struct ClassRow {
  uint32_t arm, launch_class;
  std::string kernel_name, kernel_id, demangled, label;  // label: shape in words; the same in two traces if that is
  bool pooled;
  uint64_t launches;
  double mean_ns, p50_ns, p99_ns;  // of measured launches with times
};
struct OffCpuRow {
  uint32_t round, arm, thread;
  uint64_t begin, end;
  uint32_t state;
  uint64_t run_queue_ns;
  uint32_t process = 0;
};
struct VirtualRow {  // a launch on the virtual GPU
  uint32_t round, arm, sequence, launch;
  wire::Phase phase;
  bool judged;
  uint64_t thread_instructions, sectors, bank_conflicts, divergent_branches;
};

// A value of the counters pass; not valid: measured, and cannot be (the note says why).
struct HardwareRow {
  uint32_t arm, launch, item;
  std::string metric;  // docs/metrics.md
  double value;
  bool valid;
  uint32_t samples;
  std::string note;
};

// The GPU's state at the end of a round; absent where it does not tell.
struct GpuStateRow {
  uint32_t round;
  std::optional<uint32_t> sm_mhz, memory_mhz, celsius, milliwatts;
  std::string clock_reasons;  // "none", "power cap", ...
  bool slowed;                // for heat or power delivery, at some time in the round
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
  // One process of an application, after its end; in any order. The records are as untrusted as a worker's.
  void add_process(const ProcessTrace& process);
  void add_health(const HealthRow& row);  // same name: values are added up, the first limit stays
  void set_fact(const std::string& key, const std::string& value);
  void add_gpu_state(const GpuStateRow& row);
  void add_hardware(const HardwareRow& row);
  void add_verdict(const std::string& json);
  void finish();

  std::vector<RoundRow> rounds() const;
  std::vector<RequestRow> requests() const;
  std::vector<KernelRow> kernels(bool with_names = true) const;  // false: name and kernel_id stay empty, for speed
  std::vector<ApiRow> api_calls() const;
  std::vector<SyncRow> syncs() const;
  std::vector<CopyRow> copies() const;
  std::vector<HostCallRow> host_calls() const;
  std::vector<OffCpuRow> off_cpu() const;
  std::vector<ProcessRow> processes() const;
  std::vector<ClassRow> classes() const;
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
