// What happened in the slice, call by call, in the order of issue: which records are calls of the workload, on which
// stream, with which host gap, in which request. Handles are resolved here, since the driver gives them out again:
// stream, graph and allocation are those that the handle stood for when the call was made. Nothing is copied from the
// file yet, so that a cut costs nothing.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "workload/assemble.h"
#include "workload/assemble_file.h"
#include "workload/workload.h"

namespace kgate::assembly {

constexpr uint32_t kStillNotReady = 600;  // CUDA_ERROR_NOT_READY

// Sentences for people, each once.
class Notes {
  static constexpr size_t kMaxNotes = 256;

 public:
  void add(std::string note);
  const std::vector<std::string>& all() const { return notes_; }

 private:
  std::vector<std::string> notes_;
  std::set<std::string> known_;
};

struct Allocation {
  uint64_t address = 0, size = 0;
  recording::Memory memory = recording::Memory::device;
  bool in_slice = false;  // made inside it

  // Replayed as a buffer; other memory belongs to the host or to another process.
  bool is_buffer() const {
    using recording::Memory;
    return memory == Memory::device || memory == Memory::async || memory == Memory::mapped || memory == Memory::managed;
  }
};

struct RawCall {
  const Record* record = nullptr;
  CallKind kind = CallKind::launch;
  uint32_t thread = 0;            // OS thread id
  uint32_t stream = 0;            // of Timeline::streams
  uint32_t allocation = kNone;    // alloc, free
  const Record* graph = nullptr;  // graph_launch: as it was instantiated
  uint64_t host_gap_ns = 0;
  uint64_t event = 0;  // handle: event_*
};

// [begin, end) in sequence numbers: from push to pop of a range of the name that requests have.
struct Span {
  uint32_t thread = 0;
  uint64_t begin = 0, end = ~uint64_t{0};
};

struct Timeline {
  std::vector<RawCall> calls;  // by sequence
  std::vector<WorkloadStream> streams;
  std::vector<Allocation> allocations;      // that were there at some time of the slice
  std::vector<Span> spans;                  // by begin
  uint32_t slice_begin = 0, slice_end = 0;  // positions in the file
  bool ended = false;                       // the slice has an end, so that its end hashes are of its last call
};

// Throws Error{environment} where there is no slice or where a call inside it cannot be replayed: all of them, by name.
Timeline read_timeline(const RecordFile& file, const std::string& request_range, Notes& notes);

// Positions in Timeline::calls, ascending.
struct RawRequest {
  uint32_t thread = 0;
  std::vector<uint32_t> calls;
};

// Every call belongs to exactly one. `limit`: only the first so many, 0: all; what comes later is left out.
std::vector<RawRequest> find_requests(const Timeline& timeline, uint64_t limit);

}  // namespace kgate::assembly
