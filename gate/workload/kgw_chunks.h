// What the writer and the readers of chunks share (ChunkReader: workload/kgw.h).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "workload/workload.h"

namespace kgate {

class SqliteReader;

Sha256Digest sha256_digest(std::string_view bytes);
std::string digest_hex(const Sha256Digest& digest);
inline std::string_view digest_view(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

// Of the chunk at `index` of a content of `bytes` bytes.
uint64_t chunk_bytes(uint64_t bytes, size_t index);

// Every chunk that the workload names is in the file, in its size.
std::optional<Failure> check_chunks(const SqliteReader& reader, const Workload& workload);

}  // namespace kgate
