// Turns one worker's block, or one application's process, of records and host events into rows and findings. Owned by a
// TraceStore that is being written.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/classes.h"
#include "trace/database.h"
#include "trace/graphs.h"
#include "trace/health.h"
#include "trace/join.h"
#include "trace/store.h"
#include "trace/tables.h"

namespace kgate::trace {

// Everything that belongs to one block while it is taken in.
struct Block {
  const Records& records;
  const std::vector<HostEvent>& host_events;
  const std::vector<ProbeSymbol>& symbols;
  const ProbeHealth* probes;
  const CollectorHealth* collector;
  Join join;
  Timeline timeline;
  Cell process = kNull;           // of an application
  double clock_uncertainty = 0;   // ns, by which a device time and a host time may differ
  std::vector<Cell> api_request;  // by driver call: index of its request in `records`, or kNull
};

class Ingest {
 public:
  Ingest(const Database& database, const ArmKernels& plan, const RunInfo& info);
  void add_block(std::span<const std::byte> memfd, const std::vector<HostEvent>& host_events,
                 const std::vector<ProbeSymbol>& symbols, const ProbeHealth* probes, const CollectorHealth* collector);
  void add_process(const ProcessTrace& process);  // ingest_process.cpp
  void finish();                                  // what is computed over the whole run: resources, launch classes
  HealthTable& health() { return health_; }
  // What was learnt about the run, by key of the table `run`.
  const std::map<std::string, std::string>& facts() const { return facts_; }
  void set_tier(const std::string& tier) { tier_ = tier; }

 private:
  using Kernel = ArmKernels::Kernel;
  // Round number and arm of a time, or kNull.
  struct Place {
    Cell round = kNull, arm = kNull;
  };
  void write_rounds(const Block& block);
  void write_requests(const Block& block);
  void assign_classes(const Block& block);
  void write_launches(const Block& block);
  void write_launch(const Block& block, uint32_t index);
  void write_free_kernels(const Block& block);
  void write_counters(const Block& block);
  void write_names();

  // ingest_rows.cpp
  static Place place_of(const Block& block, uint64_t time);
  void write_kernel(const Block& block, const KernelPlace& place, uint32_t index);  // kNoIndex: no record of it
  void write_device_calls(const Block& block);
  void write_api_calls(Block* block);
  void write_modules_and_graphs(const Block& block);
  void write_host_events(const Block& block);
  Cell shape_of(const wire::KernelRecord& kernel);
  Cell call_name(uint32_t cbid);
  Cell phase_cell(wire::Phase phase) const { return phases_[static_cast<size_t>(phase)]; }

  // ingest_process.cpp
  void write_process_kernels(const Block& block, const ProcessTrace& process);
  std::vector<uint32_t> process_classes(const Block& block, const ProcessTrace& process);
  void note_processes();

  // ingest_health.cpp
  void judge_records(const Block& block);
  void judge_clock(Block* block);
  void judge_probes(const Block& block);
  void judge_kernel_times(const Block& block);
  void judge_graphs(const Block& block);
  void judge_calls(const Block& block);
  void judge_windows(const Block& block);
  void judge_process_windows(const Block& block);
  void note_window(const Block& block, uint64_t launched, uint32_t kernel, uint64_t until);
  void note_facts(const Block& block);

  // The plan's kernel of a launch; nullptr: an index is out of range.
  const Kernel* planned(const wire::LaunchRecord& launch, uint32_t arm) const;
  Cell kernel_row(const std::string& name, const std::string& id);
  void reject(const std::string& why);  // one more record that makes no sense
  const std::string& name_of(const Block& block, uint32_t kernel) const;

  const Database& database_;
  const ArmKernels& plan_;
  std::string tier_;
  BulkWriter writer_;
  Tables tables_;
  Texts texts_;
  Cell phases_[3], from_cupti_, from_probe_, from_worker_;
  std::vector<Cell> call_names_;  // by callback id
  HealthTable health_;
  LaunchClasses classes_;
  std::map<std::string, std::string> facts_;

  struct NamedKernel {
    std::string name, id;
  };
  std::map<std::string, std::map<std::string, uint32_t>> kernel_rows_;  // by name and id
  std::vector<NamedKernel> kernels_;                                    // by row of kernel_names
  size_t written_names_ = 0;

  using Shape = std::array<uint32_t, 13>;
  struct ShapeHash {
    size_t operator()(const Shape& shape) const;
  };
  std::unordered_map<Shape, uint32_t, ShapeHash> shapes_;
  struct Use {
    uint64_t launches = 0;
    uint32_t registers = 0, static_shared = 0, dynamic_shared = 0, local = 0;  // the largest
  };
  std::map<std::pair<Cell, Cell>, Use> uses_;  // by arm and kernel row

  std::set<uint32_t> rounds_;        // numbers seen in this run
  std::set<uint32_t> block_rounds_;  // those of this block
  uint32_t block_ = 0;
  struct Totals {
    uint64_t requests = 0, quarantined = 0;    // measured
    uint64_t timed_kernels = 0, early = 0;     // matched kernels with times; those that start before their launch
    uint64_t windows = 0, outside = 0;         // kernels with a host window; those outside of it
    uint64_t launches = 0, unknown_waits = 0;  // kernels with a launch call; those whose wait the clocks cannot tell
    uint64_t captured = 0, graph_launches = 0;
    double uncertainty = 0;
  } totals_;
  struct Process {
    uint32_t process, parent;
    bool cuda, recorded, probed, finished;
  };
  std::vector<Process> processes_;
};

}  // namespace kgate::trace
