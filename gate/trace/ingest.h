// Turns one worker's block of records and host events into rows and findings. Owned by a TraceStore that is being
// written.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "trace/classes.h"
#include "trace/database.h"
#include "trace/health.h"
#include "trace/join.h"
#include "trace/store.h"

namespace kgate::trace {

struct Statements;

// Everything that belongs to one block while it is taken in.
struct Block {
  const Records& records;
  const std::vector<HostEvent>& host_events;
  const std::vector<ProbeSymbol>& symbols;
  const ProbeHealth* probes;
  const CollectorHealth* collector;
  Join join;
  Timeline timeline;
  double clock_uncertainty = 0;  // ns, by which a device time and a host time may differ
};

class Ingest {
 public:
  Ingest(const Database& database, const ArmKernels& plan);
  ~Ingest();
  void add_block(std::span<const std::byte> memfd, const std::vector<HostEvent>& host_events,
                 const std::vector<ProbeSymbol>& symbols, const ProbeHealth* probes, const CollectorHealth* collector);
  void finish();  // what is computed over the whole run: resources, launch classes
  HealthTable& health() { return health_; }

 private:
  using Kernel = ArmKernels::Kernel;
  void write_rounds(const Block& block);
  void write_requests(const Block& block);
  void write_launches(const Block& block);
  void write_launch(const Block& block, uint32_t index);
  void write_free_kernels(const Block& block);
  void write_counters(const Block& block);
  void write_device_calls(const Block& block);
  void write_host_events(const Block& block);
  void assign_classes(const Block& block);
  void judge_records(const Block& block);  // ingest_health.cpp
  void judge_clock(Block* block);
  void judge_probes(const Block& block);
  void judge_kernel_times(const Block& block);
  // The plan's kernel of a launch; nullptr: an index is out of range.
  const Kernel* planned(const wire::LaunchRecord& launch, uint32_t arm) const;
  uint32_t kernel_row(const Kernel& kernel);
  void reject(const std::string& why);  // one more record that makes no sense

  const Database& database_;
  const ArmKernels& plan_;
  std::unique_ptr<Statements> statements_;
  HealthTable health_;
  LaunchClasses classes_;
  std::map<std::string, std::map<std::string, uint32_t>> kernel_rows_;  // by name and id
  uint32_t kernel_row_count_ = 0;
  std::set<uint32_t> rounds_;        // numbers seen in this run
  std::set<uint32_t> block_rounds_;  // those of this block
  uint32_t block_ = 0;
  struct Totals {
    uint64_t requests = 0, quarantined = 0;  // measured
    uint64_t timed_kernels = 0, early = 0;   // matched kernels with times; those that start before their launch
    uint64_t windows = 0, outside = 0;       // kernels with a host window; those outside of it
  } totals_;
};

const char* phase_name(wire::Phase phase);

}  // namespace kgate::trace
