// What the recorder leaves while the application runs: one file of records a process, STEM.kgrec, and one of raw bytes
// beside it, STEM.blobs. `kgate record` assembles them into a workload afterwards (workload/assemble.h), because what a
// call meant is often known only later, and because an application's threads have no time for it.
//
// Enters: driver calls as CUPTI's callbacks show them. Leaves: records in the order in which they were finished; the
// order of issue is `sequence`. The file comes from a process that ran foreign code: its reader checks every length.
//
// Layout: FileHeader, then records, each beginning with Head and padded to 8 bytes. Handles and addresses are the
// application's own numbers. Times are CLOCK_MONOTONIC ns, taken in the callbacks at entry and at exit of the call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kgate::recording {

constexpr uint64_t kMagic = 0x31636572'7461676b;  // "kgatrec1"
constexpr uint32_t kVersion = 1;

struct FileHeader {
  uint64_t magic;
  uint32_t version, pid;
  uint64_t used_bytes;  // of records behind this header; written last at each append
  uint64_t complete;    // 1: the slice, or a process without one, ended in order and everything is on file
};

enum class Kind : uint16_t {
  device = 1,        // DeviceRecord: once, with the first context
  note,              // NoteRecord + text: what cannot be recorded, in words; once for each sentence
  module,            // ModuleRecord
  function,          // FunctionRecord + parameters + name: before the first launch of a handle
  stream,            // StreamRecord: when created; the legacy and per-thread streams need none
  stream_destroyed,  // HandleRecord
  event_destroyed,   // HandleRecord
  alloc,             // AllocRecord
  free,              // FreeRecord
  launch,            // LaunchRecord + parameter block; the first of the process also outside of the slice, without it
  copy,              // CopyRecord
  memset,            // MemsetRecord
  event_record,      // EventRecord
  event_wait,        // EventRecord: cuStreamWaitEvent
  event_sync,        // EventRecord
  event_query,       // EventRecord; Head.result tells: 600 is "not ready"
  stream_sync,       // StreamCallRecord
  stream_query,      // StreamCallRecord; Head.result tells
  context_sync,      // Head alone
  host_function,     // StreamCallRecord
  graph,             // GraphRecord + nodes: at instantiation
  graph_destroyed,   // HandleRecord
  graph_launch,      // GraphLaunchRecord
  range_push,        // RangeRecord + name: NVTX, begin = end
  range_pop,         // Head alone: ends the innermost range of the thread
  range_start,       // RangeRecord + name: NVTX ranges that may end on another thread
  range_end,         // RangeRecord
  slice_begin,       // SliceRecord: what follows belongs to the slice; all its snapshots come right behind it
  slice_end,         // SliceRecord
  snapshot,          // SnapshotRecord: content of an allocation at the begin or the end of the slice
};

enum : uint16_t { kCaptured = 1 };  // the call went into a graph that is being captured: nothing ran

struct Head {
  Kind kind;
  uint16_t flags;
  uint32_t bytes;     // of the whole record, a multiple of 8
  uint32_t thread;    // OS thread id
  int32_t result;     // CUresult of the call; failed calls are recorded too
  uint64_t sequence;  // of the process, taken at entry
  uint64_t begin, end;
};

struct BlobRef {
  uint64_t offset = 0, bytes = 0;  // in STEM.blobs; bytes 0: none
};

struct DeviceRecord {
  Head head;
  char name[64];
  int32_t cc_major, cc_minor, sm_count, driver_version;
  uint32_t sched_flags;  // CU_CTX_SCHED_* of the context
  uint32_t aslr;         // 1: addresses are randomised in this process
};

struct NoteRecord {
  Head head;
  uint32_t length, refused;  // refused 1: a slice that holds this call cannot be replayed
};

// Once by what the application handed over, and once more, with `cubin`, by what the driver made of it (in either
// order, joined by `load`).
struct ModuleRecord {
  Head head;
  uint64_t module;       // CUmodule; 0: not known yet (a library that loads lazily)
  uint64_t library;      // CUlibrary; 0: none
  uint64_t load;         // sequence of the load call inside which the driver made the cubin; 0: made outside of any
  BlobRef image, cubin;  // image: PTX, cubin or fatbin as loaded
};

struct FunctionRecord {
  Head head;
  uint64_t function;         // as launches name it: CUfunction or CUkernel
  uint64_t module, library;  // 0: not known
  uint32_t is_kernel;        // 1: a CUkernel
  uint32_t param_count, name_length, pad;
  // then param_count × {uint32_t offset, size}, then the name
};

struct StreamRecord {
  Head head;
  uint64_t stream;
  uint32_t flags;  // 1: CU_STREAM_NON_BLOCKING
  int32_t priority;
};

struct HandleRecord {
  Head head;
  uint64_t handle;
};

enum class Memory : uint32_t { device = 1, async, mapped, managed, pinned_host, registered_host, imported };

struct AllocRecord {
  Head head;
  uint64_t address, size;
  uint64_t stream;  // async
  Memory memory;
  uint32_t existing;  // 1: found when the slice began, not seen being made
};

struct FreeRecord {
  Head head;
  uint64_t address;
  uint64_t stream;  // async
  uint32_t async, pad;
};

struct LaunchRecord {
  Head head;
  uint64_t function, stream;
  uint32_t grid[3], block[3], cluster[3];  // cluster 0: none
  uint32_t shared;
  uint32_t cooperative, programmatic;
  uint32_t param_bytes, pad;
  // then the packed parameter block
};

enum class Side : uint32_t { device = 1, pageable, pinned };

struct CopyRecord {
  Head head;
  uint64_t dst, src, bytes;             // bytes of a row
  uint64_t rows, dst_pitch, src_pitch;  // rows 1: pitches 0
  uint64_t stream;
  Side dst_side, src_side;
  uint32_t async, pad;
  BlobRef payload;  // host → device inside the slice: rows packed one behind the other
};

struct MemsetRecord {
  Head head;
  uint64_t dst, count;   // elements of a row
  uint64_t rows, pitch;  // rows 1: pitch 0
  uint64_t stream;
  uint32_t value, unit;  // bytes of an element
  uint32_t async, pad;
};

struct EventRecord {
  Head head;
  uint64_t event, stream;
};

struct StreamCallRecord {
  Head head;
  uint64_t stream;
};

struct GraphLaunchRecord {
  Head head;
  uint64_t graph, stream;  // CUgraphExec
};

enum class NodeKind : uint32_t { kernel = 1, copy, memset, event_record, event_wait, host_function, empty };

// Child graphs are flattened: their roots come after what the child node came after, and what came after the child node
// comes after their leaves. Nodes are in topological order. Followed by node_count × {Node, after_count × uint32_t
// padded to 8, param_bytes padded to 8}.
struct GraphRecord {
  Head head;
  uint64_t graph;  // CUgraphExec
  uint32_t node_count, pad;
};
struct Node {
  NodeKind kind;
  uint32_t after_count;
  uint64_t function;  // kernel
  uint32_t grid[3], block[3], cluster[3];
  uint32_t shared, cooperative, param_bytes;
  uint64_t dst, src, bytes, rows, dst_pitch, src_pitch;  // copy, memset (bytes: of a row)
  uint32_t value, unit;                                  // memset
  uint64_t event;
};

struct RangeRecord {
  Head head;
  uint64_t id;  // of started ranges
  uint32_t length, pad;
};

struct SliceRecord {
  Head head;
  uint64_t allocations, bytes;  // snapshotted
};

// At the begin: its bytes. At the end: hashes of 4096-byte blocks (workload/block_hash.h), 8 bytes each.
struct SnapshotRecord {
  Head head;
  uint64_t address, size;
  uint32_t at_end, pad;
  BlobRef content;
};

static_assert(sizeof(Head) == 40 && sizeof(FileHeader) == 32);
static_assert(sizeof(LaunchRecord) % 8 == 0 && sizeof(CopyRecord) % 8 == 0 && sizeof(Node) % 8 == 0);

// Environment of the application, set by `kgate record`.
//   KGATE_RECORD_DIR         folder of the files above
//   KGATE_RECORD_OPTIONS     one line of JSON: {"from_ns", "for_ns", "requests", "request_range", "kernel",
//   "max_bytes"}

}  // namespace kgate::recording
