// Contents in chunks stay in the .kgw until a buffer is filled, because they may be many gigabytes. That a chunk is
// what its name says is verified as it is read.
#include "workload/kgw_chunks.h"

#include <sqlite3.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "support/hash.h"
#include "workload/kgw.h"
#include "workload/kgw_open.h"
#include "workload/limits.h"
#include "workload/sqlite_reader.h"

namespace kgate {

Sha256Digest sha256_digest(std::string_view bytes) {
  const std::string hex = sha256(bytes);
  const auto nibble = [](char c) { return static_cast<uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10); };
  Sha256Digest digest{};
  for (size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<uint8_t>(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
  return digest;
}

std::string digest_hex(const Sha256Digest& digest) {
  std::string hex;
  for (uint8_t byte : digest) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

uint64_t chunk_bytes(uint64_t bytes, size_t index) {
  const uint64_t before = index * kChunkBytes;
  return before >= bytes ? 0 : std::min(kChunkBytes, bytes - before);
}

std::optional<Failure> check_chunks(const SqliteReader& reader, const Workload& workload) {
  SqliteCursor row(reader, "chunk_names",
                   "SELECT raw_bytes FROM chunk_names JOIN chunks ON chunks.id = chunk WHERE sha256=?");
  const auto problem = [&](const Content& content, uint64_t bytes) -> std::string {
    const auto* list = std::get_if<ContentChunks>(&content);
    for (size_t k = 0; list && k < list->chunks.size(); ++k) {
      if (list->chunks[k] == Sha256Digest{}) continue;
      const std::string name = "chunk " + digest_hex(list->chunks[k]).substr(0, 12);
      const uint64_t needed = chunk_bytes(bytes, k);
      row.restart(digest_view(list->chunks[k]));
      if (!row.next()) return name + (row.failure() ? ": " + row.failure()->what : " is not in the file");
      const uint64_t has = row.u63(0);
      if (row.failure()) return name + ": " + row.failure()->what;
      if (has != needed)
        return name + " has " + std::to_string(has) + " bytes; " + std::to_string(needed) + " are needed";
    }
    return {};
  };
  const auto all = [&](const char* table, const auto& items) -> std::optional<Failure> {
    for (size_t i = 0; i < items.size(); ++i)
      if (std::string what = problem(items[i].content, items[i].bytes); !what.empty())
        return Failure{what, std::string(table) + " " + std::to_string(i), {}};
    return {};
  };
  if (auto failed = all("buffers", workload.buffers)) return failed;
  return all("payloads", workload.payloads);
}

// ---- reading -------------------------------------------------------------------------------------------------------

struct ChunkReader::State {
  State(SqliteReader opened, std::filesystem::path from) : reader(std::move(opened)), path(std::move(from)) {
    sqlite3_prepare_v2(reader.get(),
                       "SELECT raw_bytes, zstd FROM chunk_names JOIN chunks ON chunks.id = chunk WHERE sha256=?", -1,
                       &statement, nullptr);
  }
  ~State() {
    sqlite3_finalize(statement);
    ZSTD_freeDCtx(unpack);
  }
  Failure bad(const Sha256Digest& digest, const std::string& what) const {
    return {"chunk " + digest_hex(digest).substr(0, 12) + ": " + what, path.string(), {}};
  }

  SqliteReader reader;
  std::filesystem::path path;
  sqlite3_stmt* statement = nullptr;
  ZSTD_DCtx* unpack = ZSTD_createDCtx();
};

ChunkReader::ChunkReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChunkReader::ChunkReader(ChunkReader&&) noexcept = default;
ChunkReader::~ChunkReader() = default;

Result<ChunkReader> ChunkReader::open(const std::filesystem::path& path) {
  auto opened = kgw::open_kgw(path);
  if (!opened) return kgw::in_file(opened.failure(), path);
  auto state = std::make_unique<State>(std::move(opened->reader), path);
  if (!state->statement || !state->unpack) return Failure{state->reader.message(), path.string(), {}};
  return ChunkReader(std::move(state));
}

Result<ChunkReader::Packed> ChunkReader::packed(const Sha256Digest& digest) {
  sqlite3_stmt* statement = state_->statement;
  sqlite3_reset(statement);
  sqlite3_bind_blob(statement, 1, digest.data(), static_cast<int>(digest.size()), SQLITE_STATIC);
  const int code = sqlite3_step(statement);
  if (code == SQLITE_DONE) return state_->bad(digest, "is not in the file");
  if (code != SQLITE_ROW) return state_->bad(digest, "cannot be read: " + state_->reader.message());
  const bool typed =
      sqlite3_column_type(statement, 0) == SQLITE_INTEGER && sqlite3_column_type(statement, 1) == SQLITE_BLOB;
  const int64_t raw_bytes = sqlite3_column_int64(statement, 0);
  if (!typed || raw_bytes < 1 || raw_bytes > static_cast<int64_t>(kChunkBytes))
    return state_->bad(digest, "its row is not one of a chunk");
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement, 1));
  const auto bytes = static_cast<size_t>(sqlite3_column_bytes(statement, 1));
  if (!data || bytes > ZSTD_compressBound(kChunkBytes)) return state_->bad(digest, "cannot be read");
  if (ZSTD_getFrameContentSize(data, bytes) != static_cast<uint64_t>(raw_bytes))
    return state_->bad(digest, "raw_bytes is not what the zstd frame says");
  return Packed{static_cast<uint64_t>(raw_bytes), {data, bytes}};
}

Result<std::monostate> ChunkReader::read(const Sha256Digest& digest, std::span<std::byte> out) {
  if (digest == Sha256Digest{}) {
    std::fill(out.begin(), out.end(), std::byte{0});
    return std::monostate{};
  }
  const auto stored = packed(digest);
  if (!stored) return stored.failure();
  if (stored->raw_bytes != out.size())
    return state_->bad(
        digest, "has " + std::to_string(stored->raw_bytes) + " bytes; " + std::to_string(out.size()) + " are needed");
  const size_t done =
      ZSTD_decompressDCtx(state_->unpack, out.data(), out.size(), stored->zstd.data(), stored->zstd.size());
  if (ZSTD_isError(done) || done != out.size()) return state_->bad(digest, "does not decompress to its size");
  if (sha256({reinterpret_cast<const char*>(out.data()), out.size()}) != digest_hex(digest))
    return state_->bad(digest, "its content does not have the hash that names it");
  return std::monostate{};
}

}  // namespace kgate
