#include "workload/kgw_tables.h"

#include <cstring>

#include "support/text.h"
#include "workload/kgw_names.h"
#include "workload/limits.h"

namespace kgate::kgw {

using namespace cap;

namespace {

using Check = std::optional<Failure>;

constexpr size_t kHexHash = 64;

Check read_meta(const SqliteReader& reader, Workload& w) {
  Check failed = each_row(reader, "meta", 1, [&](SqliteCursor& row) {
    w.name = row.text(1, kMaxName);
    const std::string arrivals = row.text(2, 16);
    if (arrivals != "external" && arrivals != "closed") row.fail("arrivals is neither external nor closed");
    w.arrivals = arrivals == "external" ? Arrivals::external : Arrivals::closed;
    w.period_ns = row.u63(3);
    w.threads = row.u32(4);
    w.events = row.u32(5);
    w.blocking_sync = row.flag(6);
    const auto addresses = addresses_named(row.text(7, 16));
    if (!addresses) row.fail("addresses is unknown");
    w.addresses = addresses.value_or(Addresses::unknown);
    w.sha256 = row.text(8, kHexHash);
  });
  if (!failed && w.sha256.empty()) return Failure{"the row is missing", "meta", {}};
  return failed;
}

Check read_origin(const SqliteReader& reader, Workload& w) {
  const auto small = [](SqliteCursor& row, int column) { return static_cast<int>(row.integer(column, 0, INT32_MAX)); };
  Check failed = each_row(reader, "origin", 1, [&](SqliteCursor& row) {
    w.origin.device = row.text(1, kMaxName);
    if (w.origin.device.empty()) row.fail("device is empty");
    w.origin.arch = small(row, 2);
    w.origin.sm_count = small(row, 3);
    w.origin.driver_version = small(row, 4);
    w.origin.command = row.text(5, kMaxName);
    w.origin.begun = row.text(6, kMaxName);
  });
  if (failed) return failed;
  failed =
      each_row(reader, "notes", kMaxNotes, [&](SqliteCursor& row) { w.origin.notes.push_back(row.text(1, kMaxName)); });
  if (failed) return failed;
  return each_row(reader, "fidelity", kMaxFidelity, [&](SqliteCursor& row) {
    Fidelity f;
    f.device = row.text(1, kMaxName);
    f.blocks = row.u63(2), f.equal = row.u63(3), f.buffers = row.u63(4), f.exact = row.u63(5);
    f.shifted_equal = row.u63(6);
    w.fidelity.push_back(std::move(f));
  });
}

Check read_streams(const SqliteReader& reader, Workload& w) {
  w.streams.clear();
  return each_row(reader, "streams", kMaxStreams, [&](SqliteCursor& row) {
    const auto kind = stream_kind_named(row.text(1, 32));
    if (!kind) return row.fail("kind is unknown");
    w.streams.push_back({*kind, static_cast<int32_t>(row.integer(2, INT32_MIN, INT32_MAX))});
  });
}

Check read_code(const SqliteReader& reader, Unpacker& unpacker, Workload& w) {
  Check failed = each_row(reader, "modules", kMaxModules, [&](SqliteCursor& row) {
    WorkloadModule module;
    module.name = row.text(1, kMaxName);
    module.image = unpacker.blob(row, 2, module.sha256);
    if (!row.is_null(3)) module.portable = unpacker.blob(row, 3);
    w.modules.push_back(std::move(module));
  });
  if (failed) return failed;
  failed = each_row(reader, "kernels", kMaxKernels, [&](SqliteCursor& row) {
    WorkloadKernel kernel;
    kernel.module = row.u32(1);
    kernel.entry = row.text(2, kMaxName);
    kernel.param_bytes = row.u32(3);
    w.kernels.push_back(std::move(kernel));
  });
  if (failed) return failed;
  return each_child(
      reader, "kernel_params", "kernel", w.kernels.size(), kMaxAllKernelParams,
      [&](SqliteCursor& row, uint32_t kernel) { w.kernels[kernel].params.emplace_back(row.u32(2), row.u32(3)); });
}

// `count` items of `T` of a blob that must hold exactly so many.
template <typename T>
std::vector<T> read_list(SqliteCursor& row, int column, uint64_t count, uint64_t cap, const char* what) {
  std::vector<T> list;
  const std::string_view bytes = row.blob(column, cap * sizeof(T));
  if (row.failure()) return list;
  if (count > cap || bytes.size() != count * sizeof(T)) {
    row.fail(std::string(what) + " are not as many as its size asks for");
    return list;
  }
  list.resize(count);
  if (!bytes.empty()) std::memcpy(list.data(), bytes.data(), bytes.size());
  return list;
}

ContentChunks chunk_list(SqliteCursor& row, int column, uint64_t bytes) {
  return {read_list<Sha256Digest>(row, column, (bytes + kChunkBytes - 1) / kChunkBytes, kMaxBufferBytes / kChunkBytes,
                                  "its chunks")};
}

Content buffer_content(SqliteCursor& row, Unpacker& unpacker, uint64_t bytes) {
  const std::string kind = row.text(6, 16);
  const auto unused = [&](std::initializer_list<int> columns) {
    for (int column : columns) row.null(column);
  };
  if (kind == "bytes") {
    unused({8, 9, 10, 11, 12, 13});
    return ContentBytes{unpacker.blob(row, 7)};
  }
  if (kind == "random") {
    unused({7, 12, 13});
    const auto seed = static_cast<uint64_t>(row.integer(11, INT64_MIN, INT64_MAX));
    return ContentRandom{row.text(8, 16), row.real(9), row.real(10), seed};
  }
  if (kind == "poison") {
    unused({7, 8, 9, 10, 11, 13});
    return ContentPoison{static_cast<uint8_t>(row.integer(12, 0, 255))};
  }
  unused({7, 8, 9, 10, 11, 12});
  if (kind == "chunks") return chunk_list(row, 13, bytes);
  unused({13});
  if (kind != "zeros") row.fail("unknown content \"" + sanitize(kind, 20) + "\"");
  return ContentZeros{};
}

Content payload_content(SqliteCursor& row, Unpacker& unpacker, uint64_t bytes) {
  const std::string kind = row.text(2, 16);
  if (kind != "bytes") row.null(3);
  if (kind != "chunks") row.null(4);
  if (kind == "bytes") return ContentBytes{unpacker.blob(row, 3)};
  if (kind == "chunks") return chunk_list(row, 4, bytes);
  if (kind != "zeros") row.fail("unknown content \"" + sanitize(kind, 20) + "\"");
  return ContentZeros{};
}

Check read_buffers(const SqliteReader& reader, Unpacker& unpacker, Workload& w) {
  uint64_t hashes = 0;
  Check failed = each_row(reader, "buffers", kMaxBuffers, [&](SqliteCursor& row) {
    Buffer buffer;
    buffer.name = row.text(1, kMaxName);
    buffer.bytes = static_cast<uint64_t>(row.integer(2, 1, kMaxBufferBytes));
    buffer.align = row.u32(3);
    buffer.address = row.u63(4);
    buffer.written = row.flag(5);
    buffer.content = buffer_content(row, unpacker, buffer.bytes);
    if (!row.is_null(14))
      buffer.end_hashes = read_list<uint64_t>(row, 14, (buffer.bytes + kHashBlockBytes - 1) / kHashBlockBytes,
                                              kMaxAllEndHashes, "its end hashes");
    hashes += buffer.end_hashes.size();
    if (hashes > kMaxAllEndHashes) return row.fail("there are too many end hashes together");
    w.buffers.push_back(std::move(buffer));
  });
  if (failed) return failed;
  return each_row(reader, "payloads", kMaxPayloads, [&](SqliteCursor& row) {
    Payload payload;
    payload.bytes = static_cast<uint64_t>(row.integer(1, 1, kMaxBufferBytes));
    payload.content = payload_content(row, unpacker, payload.bytes);
    w.payloads.push_back(std::move(payload));
  });
}

}  // namespace

Check read_tables(const OpenedKgw& file, Workload& w) {
  Unpacker unpacker(file);
  if (Check failed = read_meta(file.reader, w)) return failed;
  if (Check failed = read_origin(file.reader, w)) return failed;
  if (Check failed = read_streams(file.reader, w)) return failed;
  if (Check failed = read_code(file.reader, unpacker, w)) return failed;
  if (Check failed = read_buffers(file.reader, unpacker, w)) return failed;
  if (Check failed = read_launches(file, unpacker, w)) return failed;
  if (Check failed = read_graphs(file, w)) return failed;
  return read_calls(file, w);
}

}  // namespace kgate::kgw
