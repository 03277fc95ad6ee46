// Writer's side of contents: images and small contents as blobs, large ones as chunks, each once.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "workload/kgw_database.h"
#include "workload/workload.h"

struct ZSTD_CCtx_s;

namespace kgate::kgw {

// zstd, reusing one context.
class Packer {
 public:
  Packer();
  ~Packer();
  Packer(const Packer&) = delete;
  // Valid until the next call.
  std::string_view pack(std::string_view raw, int level);

 private:
  ZSTD_CCtx_s* context_;
  std::string packed_;
};

class Blobs {
 public:
  explicit Blobs(Database& db) : rows_(db, "blobs", 4) {}
  // Its row.
  uint32_t put(std::string_view raw);

 private:
  Rows rows_;
  Packer packer_;
  std::map<std::string, uint32_t> written_;  // by SHA-256
};

// A chunk as it goes into the file. `zstd` lives until the next one is asked for.
struct PackedChunk {
  uint64_t raw_bytes = 0;
  std::string_view zstd;
};
using PackedChunkSource = std::function<PackedChunk(const Sha256Digest&)>;

// All chunks that the workload names, in the order in which it names them. Throws Error{internal} for one whose size is
// not what its place asks for.
void write_chunks(Database& db, const Workload& workload, const PackedChunkSource& source);

}  // namespace kgate::kgw
