// A production-shaped workload: what a program asked of the driver, in memory. Written and read as .kgw (workload/kgw.h),
// built from YAML (workload/build.h), from a recording (workload/assemble.h) or from a contract's shapes (precheck).
//
// Enters: a file. Leaves: Workload. It must not know about candidates, arms or measuring.
// All indices are positions in the vectors below; validate() holds before anything else looks at them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "support/dim3.h"
#include "support/error.h"

namespace kgate {

constexpr uint32_t kNone = 0xffffffff;

struct WorkloadModule {
  std::string name;      // label: "softmax.ptx"
  std::string image;     // PTX text or a cubin: what a replay loads on the GPU that it is for
  std::string sha256;    // of image
  std::string portable{};  // PTX of the same code, where image is a cubin and the program brought PTX; may be empty
};

struct WorkloadKernel {
  uint32_t module = 0;
  std::string entry;                                    // as the driver looks it up
  std::vector<std::pair<uint32_t, uint32_t>> params;    // {offset, size} into the parameter block
  uint32_t param_bytes = 0;
};

using Sha256Digest = std::array<uint8_t, 32>;

// How a buffer's first content is made. Random content is a function of (seed, element index) alone: see workload/content.h.
struct ContentZeros {};
struct ContentBytes { std::string bytes; };             // shorter than the buffer: the rest is zero
struct ContentRandom {
  std::string dtype;                                    // names of contract dtypes: "f32", "f16", "i32", ...
  double low = -1, high = 1;                            // uniform in [low, high); integers inclusive of both
  uint64_t seed = 0;
};
struct ContentPoison { uint8_t value = 0xff; };         // every byte: an output nobody has written yet
// Lies in the workload's file, in chunks that are named by their SHA-256 and read when the buffer is filled. An all-zero
// digest is a chunk of zeros; the last chunk may be shorter.
struct ContentChunks { std::vector<Sha256Digest> chunks; };
constexpr uint64_t kChunkBytes = uint64_t{1} << 20;
using Content = std::variant<ContentZeros, ContentBytes, ContentRandom, ContentPoison, ContentChunks>;

struct Buffer {
  std::string name;
  uint64_t bytes = 0;
  uint32_t align = 256;
  uint64_t address = 0;      // where the recorded program had it; 0: anywhere
  bool written = true;       // some call writes it: restored before each round
  Content content;
  // Of recordings: hash (workload/block_hash.h) of every kHashBlockBytes of what the buffer held after the last call;
  // empty: not known.
  std::vector<uint64_t> end_hashes{};
};
constexpr uint64_t kHashBlockBytes = 4096;

struct Relocation {
  uint32_t param_offset = 0;  // 8 bytes there become address(buffer) + delta
  uint32_t buffer = 0;
  int64_t delta = 0;
};

// One distinct launch. Calls and graph nodes share it, so that a substitution is made once for each distinct launch.
struct LaunchSpec {
  uint32_t kernel = 0;
  Dim3 grid, block;
  Dim3 cluster{0, 0, 0};      // 0: none
  uint32_t shared = 0;        // dynamic bytes
  bool cooperative = false;   // grid-wide barriers
  bool programmatic = false;  // programmatic dependent launch: may begin before its predecessor on the stream has ended
  std::vector<std::byte> params;
  std::vector<Relocation> relocations;
};

// blocking: created with CU_STREAM_DEFAULT, so that it waits for the legacy default stream and is waited for by it.
enum class StreamKind : uint8_t { non_blocking, blocking, legacy, per_thread };
struct WorkloadStream {
  StreamKind kind = StreamKind::non_blocking;
  int32_t priority = 0;  // CUDA's: lower is more urgent
};

enum class CallKind : uint8_t {
  launch, copy, upload, download, memset, event_record, event_wait, stream_sync, event_sync, context_sync,
  graph_launch, alloc, free, host_function
};
constexpr CallKind kLastCallKind = CallKind::host_function;
const char* call_kind_name(CallKind kind);

// A rectangle of rows for copies and fills; rows = 1: `bytes` in one piece.
struct Pitch {
  uint64_t rows = 1;
  uint64_t dst = 0, src = 0;  // bytes from one row to the next; 0 where rows = 1
};

struct Call {
  CallKind kind = CallKind::launch;
  uint32_t thread = 0;
  uint32_t stream = 0;
  uint32_t launch = kNone;            // launch
  uint32_t graph = kNone;             // graph_launch
  uint32_t dst = kNone, src = kNone;  // buffers of copy, upload (dst), download (src), memset (dst)
  uint64_t dst_offset = 0, src_offset = 0, bytes = 0;  // bytes of a row; of an alloc
  Pitch pitch;                        // copy, upload, download, memset
  uint32_t value = 0;                 // memset
  uint8_t unit = 1;                   // memset: bytes of an element, 1, 2 or 4
  bool async = false;                 // copy, upload, download, memset, alloc, free: the call that returns at once
  bool pinned = false;                // upload, download: the host side is page-locked
  uint32_t payload = kNone;           // upload: in Workload::payloads; none: the buffer's own first content
  uint32_t allocation = kNone;        // alloc, free: which belong together. Replayed for its time: no buffer comes or goes
  uint32_t event = kNone;             // event_*
  uint64_t host_gap_ns = 0;           // between the return of the thread's previous call and the issue of this one
  std::vector<uint32_t> after;        // earlier calls of other threads that must have returned before (indices, ascending)
};

// A CUDA graph as it was instantiated, child graphs flattened. Nodes depend on earlier ones only.
struct GraphNode {
  enum class Kind : uint8_t { kernel, copy, memset, event_record, event_wait, host_function, empty };
  Kind kind = Kind::empty;
  uint32_t launch = kNone;            // kernel
  uint32_t dst = kNone, src = kNone;  // copy (device to device), memset (dst)
  uint64_t dst_offset = 0, src_offset = 0, bytes = 0;
  Pitch pitch;
  uint32_t value = 0;
  uint8_t unit = 1;
  uint32_t event = kNone;
  std::vector<uint32_t> after;        // nodes, ascending
};
const char* graph_node_kind_name(GraphNode::Kind kind);
struct WorkloadGraph {
  std::vector<GraphNode> nodes;
};

// Host data that an upload sends.
struct Payload {
  uint64_t bytes = 0;
  Content content;                    // ContentBytes, ContentChunks or ContentZeros
};

// A unit of work that a client waits for. All its calls are on `thread`.
struct Request {
  uint64_t arrival_ns = 0;            // since the start of the workload; 0 throughout for closed arrivals
  uint32_t thread = 0;
  std::vector<uint32_t> calls;        // ascending; every call belongs to exactly one request
};

enum class Arrivals { external, closed };

// May the buffers lie elsewhere? free: made for it. Of recordings: unknown until the fidelity check has replayed them
// with all addresses shifted; then relocatable (same outputs) or pinned (needs the recorded addresses).
enum class Addresses : uint8_t { free, unknown, relocatable, pinned };
const char* addresses_name(Addresses addresses);

// Where a recording comes from. Empty for workloads that were built.
struct Origin {
  std::string device;                 // "NVIDIA H200"; empty: no recording
  int arch = 0;                       // 90
  int sm_count = 0, driver_version = 0;
  std::string command;                // of the application, for people
  std::string begun;                  // UTC, ISO 8601
  std::vector<std::string> notes;     // what was left out or could not be recorded, one sentence each
  bool recorded() const { return !device.empty(); }
};

// How faithful a replay of the recording was, as measured once on one machine (workload/fidelity.h). Not part of the
// workload's identity.
struct Fidelity {
  std::string device;                 // "NVIDIA H200, driver 13.0"
  uint64_t blocks = 0, equal = 0;     // end_hashes compared and equal, at the recorded addresses (or any, when exact is 0)
  uint64_t buffers = 0, exact = 0;    // buffers, and how many lay at their recorded address
  uint64_t shifted_equal = 0;         // blocks equal with all addresses shifted
};

struct Workload {
  std::string name;
  Arrivals arrivals = Arrivals::closed;
  uint64_t period_ns = 0;             // arrivals repeat with this period when the requests are looped; ≥ the last arrival
  uint32_t threads = 1, events = 0;
  std::vector<WorkloadStream> streams{WorkloadStream{}};
  bool blocking_sync = false;         // CU_CTX_SCHED_BLOCKING_SYNC: part of the workload
  Addresses addresses = Addresses::free;
  Origin origin;
  std::vector<WorkloadModule> modules;
  std::vector<WorkloadKernel> kernels;
  std::vector<Buffer> buffers;
  std::vector<Payload> payloads;
  std::vector<LaunchSpec> launches;
  std::vector<WorkloadGraph> graphs;
  std::vector<Call> calls;            // in the order in which they were issued
  std::vector<Request> requests;      // in order of arrival
  std::vector<Fidelity> fidelity;
  std::string sha256;                 // identity: of the canonical content, set by the reader and the builder
  std::filesystem::path source;       // the file that ContentChunks lie in; empty without any
};

// Every index in range, parameter blocks as long as their kernels say, relocations and copies inside, every call in one
// request of its own thread, `after` edges acyclic and backwards, sizes under the caps (2^40 bytes a buffer, 2^21 calls, ...).
Result<std::monostate> validate(const Workload& workload);

// The identity of the canonical content (independent of the file's encoding).
std::string workload_hash(const Workload& workload);

uint64_t total_buffer_bytes(const Workload& workload);

}  // namespace kgate
