// A production-shaped workload: what a program asked of the driver, in memory. Written and read as .kgw (workload/kgw.h),
// built from YAML (workload/build.h) or from a contract's shapes (precheck).
//
// Enters: a file. Leaves: Workload. It must not know about candidates, arms or measuring.
// All indices are positions in the vectors below; validate() holds before anything else looks at them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "support/dim3.h"
#include "support/error.h"

namespace kgate {

constexpr uint32_t kNone = 0xffffffff;

struct WorkloadModule {
  std::string name;      // label: "softmax.ptx"
  std::string image;     // PTX text or a cubin, as loaded
  std::string sha256;    // of image
};

struct WorkloadKernel {
  uint32_t module = 0;
  std::string entry;                                    // as the driver looks it up
  std::vector<std::pair<uint32_t, uint32_t>> params;    // {offset, size} into the parameter block
  uint32_t param_bytes = 0;
};

// How a buffer's first content is made. Random content is a function of (seed, element index) alone: see workload/content.h.
struct ContentZeros {};
struct ContentBytes { std::string bytes; };             // shorter than the buffer: the rest is zero
struct ContentRandom {
  std::string dtype;                                    // names of contract dtypes: "f32", "f16", "i32", ...
  double low = -1, high = 1;                            // uniform in [low, high); integers inclusive of both
  uint64_t seed = 0;
};
struct ContentPoison { uint8_t value = 0xff; };         // every byte: an output nobody has written yet
using Content = std::variant<ContentZeros, ContentBytes, ContentRandom, ContentPoison>;

struct Buffer {
  std::string name;
  uint64_t bytes = 0;
  uint32_t align = 256;
  uint64_t address = 0;      // where the recorded program had it; 0: anywhere
  bool written = true;       // some call writes it: restored before each round
  Content content;
};

struct Relocation {
  uint32_t param_offset = 0;  // 8 bytes there become address(buffer) + delta
  uint32_t buffer = 0;
  int64_t delta = 0;
};

// One distinct launch. Calls share it, so that a substitution is made once for each distinct launch.
struct LaunchSpec {
  uint32_t kernel = 0;
  Dim3 grid, block;
  Dim3 cluster{0, 0, 0};      // 0: none
  uint32_t shared = 0;        // dynamic bytes
  std::vector<std::byte> params;
  std::vector<Relocation> relocations;
};

enum class CallKind : uint8_t {
  launch, copy, upload, download, memset, event_record, event_wait, stream_sync, event_sync, context_sync
};
const char* call_kind_name(CallKind kind);

struct Call {
  CallKind kind = CallKind::launch;
  uint32_t thread = 0;
  uint32_t stream = 0;
  uint32_t launch = kNone;            // launch
  uint32_t dst = kNone, src = kNone;  // buffers of copy, upload (dst), download (src), memset (dst)
  uint64_t dst_offset = 0, src_offset = 0, bytes = 0;
  uint8_t value = 0;                  // memset
  uint32_t event = kNone;             // event_*
  uint64_t host_gap_ns = 0;           // between the return of the thread's previous call and the issue of this one
  std::vector<uint32_t> after;        // calls of other threads that must have returned before (indices into `calls`)
};

// A unit of work that a client waits for. Its calls are contiguous and all on `thread`.
struct Request {
  uint64_t arrival_ns = 0;            // since the start of the workload; 0 throughout for closed arrivals
  uint32_t thread = 0;
  uint32_t first_call = 0, call_count = 0;
};

enum class Arrivals { external, closed };

struct Workload {
  std::string name;
  Arrivals arrivals = Arrivals::closed;
  uint64_t period_ns = 0;             // arrivals repeat with this period when the requests are looped; ≥ the last arrival
  uint32_t threads = 1, streams = 1, events = 0;
  bool blocking_sync = false;         // CU_CTX_SCHED_BLOCKING_SYNC: part of the workload
  std::vector<WorkloadModule> modules;
  std::vector<WorkloadKernel> kernels;
  std::vector<Buffer> buffers;
  std::vector<LaunchSpec> launches;
  std::vector<Call> calls;
  std::vector<Request> requests;      // in order of arrival
  std::string sha256;                 // identity: of the canonical content, set by the reader and the builder
};

// Every index in range, parameter blocks as long as their kernels say, relocations and copies inside, requests contiguous
// and on one thread, `after` edges acyclic and backwards, sizes under the caps (2^40 bytes a buffer, 2^20 calls, ...).
Result<std::monostate> validate(const Workload& workload);

// The identity of the canonical content (independent of the file's encoding).
std::string workload_hash(const Workload& workload);

uint64_t total_buffer_bytes(const Workload& workload);

}  // namespace kgate
