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
    : reader_(file.reader),
      limit_(std::min(cap::kMaxAllBlobBytes, cap::kUnpackedBase + file.file_bytes * cap::kUnpackedPerByte)) {}

std::string Unpacker::blob(SqliteCursor& user, int column) {
  std::string raw;
  const std::string hash = user.text(column, kHexHash);
  if (user.failure()) return raw;
  if (hash.size() != kHexHash || hash.find_first_not_of("0123456789abcdef") != std::string::npos) {
    user.fail("its blob is not named by a SHA-256");
    return raw;
  }
  SqliteCursor cursor(reader_, "blobs", "SELECT raw_bytes, zstd FROM blobs WHERE sha256='" + hash + "'");
  if (cursor.next()) {
    frame(cursor, 0, cap::kMaxBlobBytes, raw);
    if (!cursor.failure() && sha256(raw) != hash) cursor.fail("its content does not have the hash that names it");
  } else if (!cursor.failure()) {
    cursor.fail("there is no blob " + hash);
  }
  if (cursor.failure()) user.fail("blob " + hash.substr(0, 12) + ": " + cursor.failure()->what);
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
