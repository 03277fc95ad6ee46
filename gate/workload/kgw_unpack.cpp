#include <zstd.h>

#include <algorithm>

#include "support/hash.h"
#include "workload/kgw_tables.h"
#include "workload/limits.h"

namespace kgate::kgw {

namespace {

constexpr size_t kHexHash = 64;

}  // namespace

Unpacker::Unpacker(const OpenedKgw& file)
    : blobs_(file.reader, "blobs", "SELECT sha256, raw_bytes, zstd FROM blobs WHERE id=?"),
      limit_(std::min(cap::kMaxAllBlobBytes, cap::kUnpackedBase + file.file_bytes * cap::kUnpackedPerByte)) {}

std::string Unpacker::blob(SqliteCursor& user, int column) {
  std::string hash;
  return blob(user, column, hash);
}

std::string Unpacker::blob(SqliteCursor& user, int column, std::string& hash) {
  std::string raw;
  const uint32_t id = user.u32(column);
  if (user.failure()) return raw;
  blobs_.restart(id);
  if (blobs_.next()) {
    hash = blobs_.text(0, kHexHash);
    frame(blobs_, 1, cap::kMaxBlobBytes, raw);
    if (!blobs_.failure() && sha256(raw) != hash) blobs_.fail("its content does not have the hash that names it");
  } else if (!blobs_.failure()) {
    blobs_.fail("does not exist");
  }
  if (blobs_.failure()) user.fail("blob " + std::to_string(id) + ": " + blobs_.failure()->what);
  return raw;
}

void Unpacker::frame(SqliteCursor& cursor, int first_column, uint64_t max_bytes, std::string& raw) {
  const auto size = static_cast<uint64_t>(cursor.integer(first_column, 0, static_cast<int64_t>(max_bytes)));
  const std::string_view packed = cursor.blob(first_column + 1, ZSTD_compressBound(max_bytes));
  if (cursor.failure()) return;
  if (ZSTD_getFrameContentSize(packed.data(), packed.size()) != size)
    return cursor.fail("raw_bytes is not what the zstd frame says");
  used_ += size;
  if (used_ > limit_) return cursor.fail("the contents are too large together");
  raw.resize(size);
  const size_t done = ZSTD_decompress(raw.data(), raw.size(), packed.data(), packed.size());
  if (ZSTD_isError(done) || done != size) cursor.fail("does not decompress to its size");
}

}  // namespace kgate::kgw
