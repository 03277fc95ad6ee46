// Records that the worker writes and kgate reads: fixed-size structs in a shared memfd. The layout is versioned; both
// sides are built together, and a worker that writes another version is a finding, not a crash. Everything in here is a
// claim by an untrusted process: the reader checks every index and length.
//
// Times are CLOCK_MONOTONIC ns. Layout: Header, then `capacity_bytes` of records, each beginning with RecordHead,
// written front to back by one thread (per-thread staging is merged between rounds) and published by `used_bytes`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace kgate::wire {

constexpr uint32_t kMagic = 0x6b677472;  // "kgtr"
constexpr uint32_t kVersion = 4;

struct Header {
  uint32_t magic, version;
  uint64_t capacity_bytes;
  std::atomic<uint64_t> used_bytes;
  std::atomic<uint64_t> lost_records;  // did not fit
};

enum class Kind : uint16_t {
  request = 1,
  launch,
  kernel,
  api,
  sync,
  memory,
  overhead,
  name,
  virtual_counters,
  round,
  graph,  // from here on: of a traced application, written by the injection library
  module,
  process,
  collector,
  hardware_counters,  // of the counters pass
  graph_node,         // of a traced application
  graph_plan,         // of a worker that launches graphs
  graph_call,
  buffer_hash,  // of the fidelity check
};

struct RecordHead {
  Kind kind;
  uint16_t bytes;  // of the whole record, a multiple of 8
  uint32_t round;  // running number of the round in the run; 0xffffffff outside rounds (set-up, canary)
};

constexpr uint32_t kNoRound = 0xffffffff;

enum class Phase : uint8_t { setup = 0, warmup = 1, measured = 2 };

// A round as it was run.
struct RoundRecord {
  RecordHead head;
  uint64_t begin, end;
  uint32_t arm, pair;
};

// A request as it was replayed.
struct RequestRecord {
  RecordHead head;
  uint64_t arrival, due, issue, end;  // arrival = 0 for closed workloads
  uint32_t request;                   // index in the workload
  uint32_t sequence;                  // position in the round
  uint32_t thread;                    // OS thread id
  Phase phase;
  uint8_t pad[3];
  uint64_t lag;  // max over the request's calls of (issue − due), ns
};

// One launch as the worker issued it: the join key between plan, API records and kernels.
struct LaunchRecord {
  RecordHead head;
  uint64_t begin, end;  // around the driver call
  uint32_t sequence;    // of the request in the round
  uint32_t request;
  uint32_t call;    // workload call index
  uint32_t launch;  // workload launch index
  uint16_t item;    // which of the replacements
  Phase phase;
  uint8_t replaced;  // 1: by the arm's own kernel
  uint32_t thread;
  uint32_t kernel;  // index into the arm's (replaced) or the workload's kernels
  uint32_t stream;  // workload stream
  // Only set by the reader, which makes one record of each kernel of a GraphCallRecord: CUPTI's id of the node.
  uint64_t graph_node;
};

// A kernel of a graph that an arm launches, as the executable graph has it. Written once, before the first round.
struct GraphPlanRecord {
  RecordHead head;
  uint64_t node;        // KernelRecord.graph_node of its kernel
  uint32_t arm, graph;  // workload graph index
  uint32_t launch;      // workload launch index
  uint32_t kernel;      // index into the arm's (replaced) or the workload's kernels
  uint16_t item;        // which of the replacements
  uint8_t replaced, pad[5];
};

// One launch of a graph as the worker issued it.
struct GraphCallRecord {
  RecordHead head;
  uint64_t begin, end;  // around the driver call
  uint32_t sequence, request, call;
  uint32_t graph;  // workload graph index
  uint32_t thread, stream;
  Phase phase;
  uint8_t pad[7];
};

// How much of a buffer holds what it held at the end of the recording, or at the end of this run's first round.
struct BufferHashRecord {
  RecordHead head;
  uint32_t buffer, exact;            // exact 1: at its recorded address
  uint64_t blocks, equal, repeated;  // blocks with a recorded hash; equal to it; equal to the first round's
};

// Virtual GPU: exact counts of the LaunchRecord written just before it by the same thread.
struct VirtualCountersRecord {
  RecordHead head;
  uint64_t launch_begin;  // LaunchRecord.begin of the launch: the join key together with `thread`
  uint32_t thread, pad;
  uint64_t warp_instructions, thread_instructions, global_load_sectors, global_store_sectors, global_requests,
      bank_conflicts, divergent_branches, barriers, atomics;
};

// From CUPTI CONCURRENT_KERNEL.
struct KernelRecord {
  RecordHead head;
  uint64_t start, end;         // 0/0: not collected
  uint32_t correlation, name;  // name: id of a NameRecord
  uint32_t grid[3], block[3];
  uint32_t static_shared, dynamic_shared, local_per_thread;
  uint16_t registers, pad;
  uint32_t stream, context;
  uint32_t graph_node_lo, graph_node_hi;
  uint32_t graph;       // CUPTI's id of the executable graph; 0: not launched by a graph
  uint32_t cluster[3];  // 0: no cluster
};

// From CUPTI DRIVER; in an application from CUPTI RUNTIME, too. `cbid` is then a callback id of the runtime with
// kRuntimeCall set, and `result` a cudaError. Of a call of the runtime CUPTI writes the runtime's record, which the
// kernels refer to, and not always one of the driver's calls inside it.
struct ApiRecord {
  RecordHead head;
  uint64_t start, end;
  uint32_t cbid, correlation, thread, result;
};
constexpr uint32_t kRuntimeCall = 0x80000000;
// Only set by the reader: what the call does is said by the record of a runtime call around it (trace/nested_calls.h).
constexpr uint32_t kNestedCall = 0x40000000;

// From CUPTI SYNCHRONIZATION.
struct SyncRecord {
  RecordHead head;
  uint64_t start, end;
  uint32_t type, correlation, stream, context;  // type: CUPTI's CUpti_ActivitySynchronizationType
};

// From CUPTI MEMCPY and MEMSET.
struct MemoryRecord {
  RecordHead head;
  uint64_t start, end, bytes;
  uint32_t correlation, stream;
  uint32_t copy_kind;  // CUPTI's; 0xffffffff for memset
  uint32_t context;
};

// From CUPTI OVERHEAD.
struct OverheadRecord {
  RecordHead head;
  uint64_t start, end;
  uint32_t kind, thread;
};

struct NameRecord {
  RecordHead head;
  uint32_t id, length;  // text follows, padded to 8 bytes; at most 4096 bytes
};

// A CUDA graph as it was instantiated: what each launch of it must bring.
struct GraphRecord {
  RecordHead head;
  uint64_t time;
  uint32_t graph;                             // KernelRecord.graph
  uint32_t kernels, copies, memsets, others;  // nodes, child graphs included
  uint32_t open;                              // 1: conditional or device-launched nodes, so that no number is expected
};

// A node of a graph that is being made, in the thread that makes it. Where that thread is in a launch call, the launch
// is captured and runs no kernel.
struct GraphNodeRecord {
  RecordHead head;
  uint64_t time;
  uint32_t thread;
  uint32_t kernel;  // 1: a kernel node; 0: another
};

// A module as the driver loaded it.
struct ModuleRecord {
  RecordHead head;
  uint64_t time, bytes;  // of the image
  uint32_t module;
  uint32_t image;  // the image lies in MODULE-<image>.cubin beside the records; 0xffffffff: not kept
};

// The process that wrote the stream. end 0: it did not come to its end in order.
struct ProcessRecord {
  RecordHead head;
  uint64_t begin, end;
  uint32_t process, parent;
};

// What a worker says in its last message and an application here: CollectorHealth.
struct CollectorRecord {
  RecordHead head;
  uint64_t cupti_version, dropped, forced, invalid_times, unknown_records, buffers_exhausted;
  int64_t clock_offset_begin, clock_offset_end;
  uint64_t clock_half_width;
};

// What the range profiler counted for one launch: the values of one set (trace/counter_sets.h) in one execution. A set
// that this chip cannot collect has a NameRecord with the id kRefusedSet + set instead, which says why.
struct HardwareCountersRecord {
  RecordHead head;
  uint32_t launch;  // workload launch index
  uint16_t item, set;
  uint32_t count, pad;
  double values[4];
};
constexpr uint32_t kRefusedSet = 0xffff0000;

// The head of a record of fixed size.
template <typename Record>
constexpr RecordHead head(Kind kind, uint32_t round) {
  static_assert(sizeof(Record) % 8 == 0);
  return {kind, static_cast<uint16_t>(sizeof(Record)), round};
}

constexpr size_t kMaxNameBytes = 4096;

static_assert(sizeof(RecordHead) == 8 && sizeof(LaunchRecord) % 8 == 0 && sizeof(RequestRecord) % 8 == 0);
static_assert(sizeof(GraphRecord) % 8 == 0 && sizeof(GraphNodeRecord) % 8 == 0);
static_assert(sizeof(ModuleRecord) % 8 == 0 && sizeof(ProcessRecord) % 8 == 0);
static_assert(sizeof(GraphPlanRecord) % 8 == 0 && sizeof(GraphCallRecord) % 8 == 0 &&
              sizeof(BufferHashRecord) % 8 == 0);
static_assert(sizeof(HardwareCountersRecord) % 8 == 0 && sizeof(CollectorRecord) % 8 == 0 &&
              sizeof(KernelRecord) % 8 == 0 && sizeof(VirtualCountersRecord) % 8 == 0 && sizeof(NameRecord) % 8 == 0);

}  // namespace kgate::wire
