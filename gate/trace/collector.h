// CUPTI activity collection inside the worker, or inside a traced application (real CUPTI, or the virtual GPU's own
// export of it). One session a process, in the order that the notes in docs/tracing.md demand; never finalised: flush,
// count, _exit.
//
// Enters: the driver library's kind. Leaves: records in a RecordWriter::Stage and CollectorHealth. No lock is held over
// a CUPTI call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/cupti_abi.h"
#include "support/error.h"
#include "trace/writer.h"

namespace kgate {

struct CollectorHealth {
  std::string library;  // the CUPTI that was loaded
  uint32_t cupti_version = 0;
  uint64_t dropped = 0;        // cuptiActivityGetNumDroppedRecords, summed
  uint64_t forced = 0;         // records that only a forced flush gave up
  uint64_t invalid_times = 0;  // end < start, or both 0
  uint64_t unknown_records = 0;
  uint64_t buffers_exhausted = 0;                        // requests that found the pool empty
  int64_t clock_offset_begin = 0, clock_offset_end = 0;  // cuptiGetTimestamp − CLOCK_MONOTONIC, ns
  uint64_t clock_half_width = 0;                         // the larger of the two brackets' half-widths, ns
};

// Which records are collected. A verdict needs all of them; fewer are for measuring what each of them costs.
struct Collect {
  bool kernels = true, driver = true, sync = true, memory = true, overhead = true;
  bool runtime = false;  // what a worker never calls
  bool graph_nodes = false;
};

// Who is told of contexts, modules and graphs while they come and go (CUPTI_CBID_RESOURCE_*), in the thread that makes
// them. The subscription lasts as long as the process.
struct ResourceListener {
  gpu::CUpti_CallbackFunc callback = nullptr;
  void* user = nullptr;
  std::vector<uint32_t> wanted;  // callback ids
};

class CuptiCollector {
 public:
  // `library`: path of libcupti, or of libkgate_vgpu.so. Call before cuInit. Throws nothing: no CUPTI is a Failure with
  // a hint.
  // With `collect.graph_nodes` node_id() knows the nodes of executable graphs.
  static Result<std::unique_ptr<CuptiCollector>> start(const std::string& library, const Collect& collect = {});
  // In an application: of many threads, whose calls nobody foresees.
  static Result<std::unique_ptr<CuptiCollector>> start(const std::string& library, const ResourceListener& listener);
  ~CuptiCollector();

  // Between rounds, after a context synchronize: hands over completed records, tagged with `round`.
  void drain(RecordWriter& writer, uint32_t round);
  // Last: flush, count drops, bracket the clock, forced flush (must be empty).
  CollectorHealth finish(RecordWriter& writer);

  CollectorHealth health() const;  // so far
  bool active() const;             // CUPTI has asked for a buffer: CUDA is at work
  // Leaves out what `thread` calls from `begin` to `end`: calls that the tracer itself makes. Any thread; before the
  // calls' records are drained.
  void hide(uint32_t thread, uint64_t begin, uint64_t end);
  std::optional<uint32_t> graph_id(gpu::CUgraphExec graph) const;  // KernelRecord.graph
  // KernelRecord.graph_node of the kernels that `node` becomes in the executable graph made of it last; 0: not known.
  uint64_t node_id(gpu::CUgraphNode node) const;

 private:
  struct State;
  static Result<std::unique_ptr<CuptiCollector>> start(const std::string& library, const Collect& collect,
                                                       const ResourceListener* listener);
  explicit CuptiCollector(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// $KGATE_CUPTI, the usual toolkit folders, the loader's path; empty when there is none.
std::string find_cupti();

}  // namespace kgate
