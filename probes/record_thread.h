// One thread of the application: the call that it is in, and a chunk of records that the draining thread empties. A
// chunk has a lock of its own, which nobody else wants but once in a drain, and which is never held over a driver call.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "probes/record_memory.h"
#include "probes/record_output.h"
#include "workload/recording.h"

namespace kgate::record {

struct Function;  // record_modules.h

constexpr size_t kChunkBytes = 512 << 10;
constexpr size_t kSmallBlobBytes = 32 << 10;  // host data up to here is copied, the rest written at once
constexpr size_t kMaxParamBytes = 32 << 10;   // CUDA allows 32,764

struct Chunk {
  std::unique_ptr<std::byte[]> bytes{new std::byte[kChunkBytes]};
  size_t used = 0;
};

// What a call leaves between its entry and its exit.
struct OpenCall {
  uint64_t sequence = 0, begin = 0, end = 0;
  recording::BlobRef payload;
  recording::Side dst_side{}, src_side{};
  const Function* function = nullptr;  // launches
  uint32_t param_bytes = 0;
  bool captured = false, work = false;
  bool first = false;  // launch of the process
};

struct Thread {
  explicit Thread(Output& out) : output(out) { blobs.used = 0; }

  Output& output;
  uint32_t id = 0;
  // 0: outside of any call; 1: in one; 2: in one that waits for the device and changes nothing.
  std::atomic<uint32_t> busy{0};
  uint32_t depth = 0;   // of driver calls in driver calls
  bool inside = false;  // in a driver call of the recorder's own
  OpenCall call;
  std::vector<Allocation> freed;  // by the call
  uint64_t module_library = 0;    // of the kernel that is about to be launched: what is loaded now is probably its code
  uint64_t load = 0;              // sequence of the load call that the thread is in; 0: none
  uint64_t launches = 0;          // since the last host sync
  uint64_t records = 0;           // calls recorded
  uint64_t polled = 0, polled_at = 0;  // handle of the last unsuccessful poll, and `records` then
  uint64_t functions_of = 0;           // generation of the cache below
  std::unordered_map<uint64_t, const Function*> functions;
  struct Range {
    bool kept = false, request = false;
  };
  std::vector<Range> ranges;  // NVTX ranges that are pushed
  uint32_t request_depth = 0;
  std::unique_ptr<std::byte[]> params{new std::byte[kMaxParamBytes]};

  // `record` with head.bytes set by this, followed by `tails`, padded to 8.
  template <typename T>
  void add(T& record, std::initializer_list<std::span<const std::byte>> tails = {}) {
    size_t size = sizeof record;
    for (auto tail : tails) size += tail.size();
    reinterpret_cast<recording::Head&>(record).bytes = static_cast<uint32_t>((size + 7) / 8 * 8);
    add_bytes({reinterpret_cast<const std::byte*>(&record), sizeof record}, tails);
  }
  // Host data that may change as soon as the call goes on.
  recording::BlobRef add_blob(const void* bytes, size_t size);

  // Everything so far goes to the files; `spare` takes the place of the full chunks and comes back as one of them.
  void flush(Chunk& spare);

 private:
  void add_bytes(std::span<const std::byte> record, std::initializer_list<std::span<const std::byte>> tails);
  void write_blobs();

  std::mutex mutex;  // of what follows
  Chunk chunk, blobs;
  uint64_t blobs_at = 0, blobs_left = 0;  // of STEM.blobs: where blobs.bytes go, and the room that is reserved there
};

// All threads that ever made a call. A thread that has ended leaves its place to the next one.
class Threads {
 public:
  explicit Threads(Output& output) : output_(output) {}

  Thread& mine();    // of the calling thread; made at its first call
  void flush_all();  // from any thread
  void leave(Thread* thread);
  std::vector<Thread*> all();

 private:
  Output& output_;
  std::mutex mutex_;  // of all_ and free_
  std::vector<std::unique_ptr<Thread>> all_;
  std::vector<Thread*> free_;
  std::mutex flush_;  // of spare_
  Chunk spare_;
};

uint64_t monotonic_ns();

}  // namespace kgate::record
