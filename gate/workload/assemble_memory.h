// Device memory of the slice as buffers with contents. Allocations that took each other's place become one buffer, and
// so do neighbouring mappings of one address range, since an array may run across them; other neighbours stay apart.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "workload/assemble_file.h"
#include "workload/assemble_timeline.h"

namespace kgate::assembly {

// Where the bytes of chunks lie in STEM.blobs. A chunk may be pieced together from several snapshots.
class Chunks {
 public:
  explicit Chunks(std::shared_ptr<const RecordFile> file) : file_(std::move(file)) {}

  struct Piece {
    uint64_t offset = 0;  // in the chunk
    uint64_t blob = 0, bytes = 0;
  };
  // Reads a chunk of `bytes` bytes, zeros between the pieces, and remembers it; all-zero digest for zeros. Without
  // pieces `content` becomes empty.
  Sha256Digest add(uint64_t bytes, std::vector<Piece> pieces, std::string& content);
  std::string read(const Sha256Digest& digest) const;

 private:
  struct Chunk {
    uint64_t bytes = 0;
    std::vector<Piece> pieces;
  };
  std::string load(const Chunk& chunk) const;

  std::shared_ptr<const RecordFile> file_;
  std::map<Sha256Digest, Chunk> chunks_;
};

struct Place {
  uint32_t buffer = kNone;
  uint64_t offset = 0;
};

class DeviceMemory {
 public:
  DeviceMemory(std::shared_ptr<const RecordFile> file, const Timeline& timeline, Chunks& chunks, Notes& notes);

  size_t size() const { return buffers_.size(); }

  // Inside a buffer; for pointers, one past its end as well, unless another begins there.
  std::optional<Place> find(uint64_t address) const;
  std::optional<Place> find_pointer(uint64_t address) const;
  // `bytes` from `address` on, all inside one buffer.
  std::optional<Place> find_range(uint64_t address, uint64_t bytes) const;
  // Memory of the host or of another process that kernels may reach.
  bool is_foreign(uint64_t address) const;

  // Calls `found` with every buffer that an aligned 8-byte word of `bytes` points into.
  void scan(std::span<const std::byte> bytes, const std::function<void(uint32_t)>& found) const;

  // The buffer with its content (read here, once); `found` as in scan, over the content. `unchanged`: what it held at
  // the end of the slice is what it held at the begin.
  struct Filled {
    Buffer buffer;
    bool unchanged = false;
    bool recorded = false;  // some content was snapshotted
  };
  Filled fill(uint32_t index, const std::function<void(uint32_t)>& found);

  uint64_t bytes(uint32_t index) const { return buffers_[index].end - buffers_[index].begin; }

 private:
  struct Range {
    uint64_t begin = 0, end = 0;
    bool mapped = false;
    bool before = false;  // some of it was there when the slice began
  };
  struct Snapshot {
    uint64_t address = 0, size = 0;
    recording::BlobRef content;
  };
  void read_snapshots();
  std::span<const Snapshot> overlapping(const std::vector<Snapshot>& all, const Range& range) const;
  std::vector<uint64_t> end_hashes(const Range& range) const;

  std::shared_ptr<const RecordFile> file_;
  Chunks& chunks_;
  Notes& notes_;
  std::vector<Range> buffers_, foreign_;     // by address, disjoint
  std::vector<Snapshot> at_begin_, at_end_;  // by address, disjoint
};

}  // namespace kgate::assembly
