#include "workload/kgw_contents.h"

#include <zstd.h>

#include <set>

#include "support/hash.h"
#include "workload/kgw_chunks.h"

namespace kgate::kgw {

namespace {

constexpr int kBlobLevel = 3;

}  // namespace

Packer::Packer() : context_(ZSTD_createCCtx()) {
  if (!context_) throw Error(Exit::environment, "there is not enough memory to compress the workload");
}

Packer::~Packer() { ZSTD_freeCCtx(context_); }

std::string_view Packer::pack(std::string_view raw, int level) {
  packed_.resize(ZSTD_compressBound(raw.size()));
  const size_t size = ZSTD_compressCCtx(context_, packed_.data(), packed_.size(), raw.data(), raw.size(), level);
  if (ZSTD_isError(size)) throw Error(Exit::internal, std::string("zstd: ") + ZSTD_getErrorName(size));
  return std::string_view(packed_).substr(0, size);
}

uint32_t Blobs::put(std::string_view raw) {
  const auto [at, fresh] = written_.try_emplace(sha256(raw), static_cast<uint32_t>(written_.size()));
  if (!fresh) return at->second;
  const std::string_view packed = packer_.pack(raw, kBlobLevel);
  rows_.number(at->second).text(at->first).number(raw.size()).blob(packed.data(), packed.size()).end_row();
  return at->second;
}

void write_chunks(Database& db, const Workload& workload, const PackedChunkSource& source) {
  Rows rows(db, "chunks", 2), names(db, "chunk_names", 3);
  std::set<Sha256Digest> written;
  const auto write = [&](const Content& content, uint64_t bytes) {
    const auto* list = std::get_if<ContentChunks>(&content);
    for (size_t k = 0; list && k < list->chunks.size(); ++k) {
      const Sha256Digest& digest = list->chunks[k];
      if (digest == Sha256Digest{} || !written.insert(digest).second) continue;
      const PackedChunk chunk = source(digest);
      if (chunk.raw_bytes != chunk_bytes(bytes, k))
        throw Error(Exit::internal, "chunk " + digest_hex(digest).substr(0, 12) + " has " +
                                        std::to_string(chunk.raw_bytes) + " bytes; " +
                                        std::to_string(chunk_bytes(bytes, k)) + " are needed");
      const uint64_t id = written.size() - 1;
      rows.number(id).blob(chunk.zstd.data(), chunk.zstd.size()).end_row();
      names.blob(digest.data(), digest.size()).number(id).number(chunk.raw_bytes).end_row();
    }
  };
  for (const Buffer& buffer : workload.buffers) write(buffer.content, buffer.bytes);
  for (const Payload& payload : workload.payloads) write(payload.content, payload.bytes);
}

}  // namespace kgate::kgw
