// The .kgw file: one SQLite database (docs/formats.md). Contents are content-addressed and zstd-compressed. Files are
// untrusted: defensive settings, every length and reference checked, blobs verified by hash, sizes capped.
//
// Recorded contents (ContentChunks) may be larger than memory: they are written from, and read as, chunks of at most
// kChunkBytes that are named by their SHA-256.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "workload/workload.h"

namespace kgate {

constexpr uint32_t kKgwApplicationId = 0x6b677731;  // "kgw1"
constexpr int kKgwVersion = 2;                      // SQLite user_version; readers accept the same

// The bytes of a chunk; asked once for each distinct digest that is not zeros. May throw Error.
using ChunkSource = std::function<std::string(const Sha256Digest&)>;

// Written beside `path` and renamed: never half a file. Chunks come from `chunks`, without one from Workload::source.
// Throws Error{environment} when the folder cannot be written, Error{bad_input} when the source lacks a chunk.
void write_kgw(const Workload& workload, const std::filesystem::path& path, const ChunkSource& chunks = {});

// Throws nothing for bad content: the failure says what is wrong and where. Chunks are not read here, but each one that
// the workload names is there; Workload::source is `path` when there are any.
Result<Workload> read_kgw(const std::filesystem::path& path);

// Reads chunks of a .kgw; each is verified by size and hash. For one thread at a time.
class ChunkReader {
 public:
  static Result<ChunkReader> open(const std::filesystem::path& path);
  ChunkReader(ChunkReader&& other) noexcept;
  ~ChunkReader();

  // Fills `out`, whose size must be the chunk's. The all-zero digest is zeros of any size.
  Result<std::monostate> read(const Sha256Digest& digest, std::span<std::byte> out);

  // As stored, for copying into another file: a zstd frame, valid until the next call, and the size that it must have
  // when it is unpacked. Not verified.
  struct Packed {
    uint64_t raw_bytes = 0;
    std::string_view zstd;
  };
  Result<Packed> packed(const Sha256Digest& digest);

 private:
  struct State;
  explicit ChunkReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Stores how faithful a replay was, in place of an earlier row of the same device, and what is now known of addresses.
// The workload's identity stays. Made in a copy that is renamed: never half a file. The failure is that the file is no
// workload; Error{environment} is thrown when it cannot be written.
Result<std::monostate> add_fidelity(const std::filesystem::path& kgw, const Fidelity& fidelity, Addresses addresses);

}  // namespace kgate
