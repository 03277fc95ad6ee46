// Writes a .kgw (docs/formats.md). Deterministic: the same workload gives the same file.
#include <bit>
#include <cstring>
#include <optional>

#include "support/hash.h"
#include "workload/kgw.h"
#include "workload/kgw_chunks.h"
#include "workload/kgw_contents.h"
#include "workload/kgw_database.h"
#include "workload/kgw_names.h"
#include "workload/kgw_schema.h"

namespace kgate {

using namespace kgw;

namespace {

static_assert(std::endian::native == std::endian::little, "numbers in packed rows are copied as they lie in memory");

constexpr int kLaunchLevel = 3;
constexpr int kChunkLevel = 1;  // contents are many gigabytes and barely compressible
constexpr uint64_t kManyChunks = uint64_t{64} << 20;

void write_head(Database& db, const Workload& w) {
  const std::string identity = workload_hash(w);
  const char* arrivals = w.arrivals == Arrivals::external ? "external" : "closed";
  Rows meta(db, "meta", 9);
  meta.number(0).text(w.name).text(arrivals).number(w.period_ns).number(w.threads).number(w.events);
  meta.number(w.blocking_sync).text(addresses_name(w.addresses)).text(identity).end_row();
  const Origin& o = w.origin;
  if (o.recorded()) {
    Rows origin(db, "origin", 7);
    origin.number(0).text(o.device).number(static_cast<uint64_t>(o.arch)).number(static_cast<uint64_t>(o.sm_count));
    origin.number(static_cast<uint64_t>(o.driver_version)).text(o.command).text(o.begun).end_row();
  }
  Rows notes(db, "notes", 2);
  for (size_t i = 0; i < o.notes.size(); ++i) notes.number(i).text(o.notes[i]).end_row();
  write_fidelity(db, w.fidelity);
  Rows streams(db, "streams", 3);
  for (size_t i = 0; i < w.streams.size(); ++i) {
    streams.number(i).text(stream_kind_name(w.streams[i].kind));
    streams.number(static_cast<uint64_t>(int64_t{w.streams[i].priority})).end_row();
  }
}

void write_kernels(Database& db, const Workload& w, Blobs& blobs) {
  Rows modules(db, "modules", 4);
  for (size_t i = 0; i < w.modules.size(); ++i) {
    const WorkloadModule& module = w.modules[i];
    const uint32_t image = blobs.put(module.image);
    const uint32_t portable = module.portable.empty() ? kNone : blobs.put(module.portable);
    modules.number(i).text(module.name).number(image).reference(portable).end_row();
  }
  Rows kernels(db, "kernels", 4), params(db, "kernel_params", 4);
  for (size_t i = 0; i < w.kernels.size(); ++i) {
    const WorkloadKernel& kernel = w.kernels[i];
    kernels.number(i).number(kernel.module).text(kernel.entry).number(kernel.param_bytes).end_row();
    for (size_t p = 0; p < kernel.params.size(); ++p)
      params.number(i).number(p).number(kernel.params[p].first).number(kernel.params[p].second).end_row();
  }
}

void add_chunk_list(Rows& rows, const Content& content) {
  const auto* list = std::get_if<ContentChunks>(&content);
  if (!list) return static_cast<void>(rows.null());
  static_assert(sizeof(Sha256Digest) == 32);
  rows.blob(list->chunks.data(), list->chunks.size() * sizeof(Sha256Digest));
}

void write_buffers(Database& db, const Workload& w, Blobs& blobs) {
  Rows rows(db, "buffers", 15);
  for (size_t i = 0; i < w.buffers.size(); ++i) {
    const Buffer& buffer = w.buffers[i];
    rows.number(i).text(buffer.name).number(buffer.bytes).number(buffer.align).number(buffer.address);
    rows.number(buffer.written).text(content_name(buffer.content));
    if (const auto* bytes = std::get_if<ContentBytes>(&buffer.content)) {
      rows.number(blobs.put(bytes->bytes)).null().null().null().null().null();
    } else if (const auto* random = std::get_if<ContentRandom>(&buffer.content)) {
      rows.null().text(random->dtype).real(random->low).real(random->high).number(random->seed).null();
    } else if (const auto* poison = std::get_if<ContentPoison>(&buffer.content)) {
      rows.null().null().null().null().null().number(poison->value);
    } else {
      rows.null().null().null().null().null().null();
    }
    add_chunk_list(rows, buffer.content);
    if (buffer.end_hashes.empty())
      rows.null();
    else
      rows.blob(buffer.end_hashes.data(), buffer.end_hashes.size() * sizeof(uint64_t));
    rows.end_row();
  }
  Rows payloads(db, "payloads", 5);
  for (size_t i = 0; i < w.payloads.size(); ++i) {
    const Payload& payload = w.payloads[i];
    const auto* bytes = std::get_if<ContentBytes>(&payload.content);
    payloads.number(i).number(payload.bytes).text(content_name(payload.content));
    payloads.reference(bytes ? blobs.put(bytes->bytes) : kNone);
    add_chunk_list(payloads, payload.content);
    payloads.end_row();
  }
}

// Rows of launch_data: see kgw_schema.h.
class LaunchData {
 public:
  explicit LaunchData(Database& db) : rows_(db, "launch_data", 3) {}

  void add(const LaunchSpec& launch) {
    raw_.append(reinterpret_cast<const char*>(launch.params.data()), launch.params.size());
    for (const Relocation& relocation : launch.relocations) {
      char packed[kRelocationBytes];
      std::memcpy(packed, &relocation.param_offset, 4);
      std::memcpy(packed + 4, &relocation.buffer, 4);
      std::memcpy(packed + 8, &relocation.delta, 8);
      raw_.append(packed, sizeof packed);
    }
    if (raw_.size() >= kLaunchDataRow) flush();
  }
  void flush() {
    if (raw_.empty()) return;
    const std::string_view packed = packer_.pack(raw_, kLaunchLevel);
    rows_.number(id_++).number(raw_.size()).blob(packed.data(), packed.size()).end_row();
    raw_.clear();
  }

 private:
  Rows rows_;
  Packer packer_;
  std::string raw_;
  uint64_t id_ = 0;
};

void write_launches(Database& db, const Workload& w) {
  Rows launches(db, "launches", 15);
  LaunchData data(db);
  for (size_t i = 0; i < w.launches.size(); ++i) {
    const LaunchSpec& launch = w.launches[i];
    launches.number(i).number(launch.kernel).dim(launch.grid).dim(launch.block).dim(launch.cluster);
    launches.number(launch.shared).number(launch.cooperative).number(launch.programmatic);
    launches.number(launch.relocations.size()).end_row();
    data.add(launch);
  }
  data.flush();
}

void write_graphs(Database& db, const Workload& w) {
  Rows graphs(db, "graphs", 2), nodes(db, "graph_nodes", 15), edges(db, "graph_edges", 4);
  for (size_t g = 0; g < w.graphs.size(); ++g) {
    graphs.number(g).number(w.graphs[g].nodes.size()).end_row();
    for (size_t n = 0; n < w.graphs[g].nodes.size(); ++n) {
      const GraphNode& node = w.graphs[g].nodes[n];
      nodes.number(g).number(n).text(graph_node_kind_name(node.kind)).reference(node.launch).reference(node.dst);
      nodes.reference(node.src).number(node.dst_offset).number(node.src_offset).number(node.bytes);
      nodes.number(node.pitch.rows).number(node.pitch.dst).number(node.pitch.src).number(node.value);
      nodes.number(node.unit).reference(node.event).end_row();
      for (size_t k = 0; k < node.after.size(); ++k)
        edges.number(g).number(n).number(k).number(node.after[k]).end_row();
    }
  }
}

void write_calls(Database& db, const Workload& w) {
  Rows requests(db, "requests", 3);
  std::vector<uint32_t> request_of(w.calls.size());
  for (uint32_t i = 0; i < w.requests.size(); ++i) {
    requests.number(i).number(w.requests[i].arrival_ns).number(w.requests[i].thread).end_row();
    for (uint32_t call : w.requests[i].calls) request_of[call] = i;
  }
  Rows calls(db, "calls", 23), edges(db, "after_edges", 3);
  for (size_t i = 0; i < w.calls.size(); ++i) {
    const Call& call = w.calls[i];
    calls.number(i).number(request_of[i]).text(call_kind_name(call.kind)).number(call.thread).number(call.stream);
    calls.reference(call.launch).reference(call.graph).reference(call.dst).reference(call.src);
    calls.number(call.dst_offset).number(call.src_offset).number(call.bytes);
    calls.number(call.pitch.rows).number(call.pitch.dst).number(call.pitch.src).number(call.value).number(call.unit);
    calls.number(call.async).number(call.pinned).reference(call.payload).reference(call.allocation);
    calls.reference(call.event).number(call.host_gap_ns).end_row();
    for (size_t k = 0; k < call.after.size(); ++k) edges.number(i).number(k).number(call.after[k]).end_row();
  }
}

uint64_t chunk_list_bytes(const Workload& w) {
  uint64_t bytes = 0;
  for (const Buffer& buffer : w.buffers)
    if (std::holds_alternative<ContentChunks>(buffer.content)) bytes += buffer.bytes;
  for (const Payload& payload : w.payloads)
    if (std::holds_alternative<ContentChunks>(payload.content)) bytes += payload.bytes;
  return bytes;
}

void write_file(const Workload& w, const std::filesystem::path& path, const PackedChunkSource& chunks) {
  if (auto valid = validate(w); !valid) {
    const Failure& failure = valid.failure();
    throw Error(Exit::internal,
                "refusing to write a workload that no reader would accept: " + failure.where + ": " + failure.what,
                path.string());
  }
  Scratch scratch(path);
  {
    Database db(scratch.name(), path);
    // Gigabytes are written twice as fast in larger pages; but a table takes one at least.
    db.execute(std::string("PRAGMA page_size=") + (chunk_list_bytes(w) > kManyChunks ? "16384" : "4096"));
    db.execute("PRAGMA application_id=" + std::to_string(kKgwApplicationId) +
               "; PRAGMA user_version=" + std::to_string(kKgwVersion));
    db.execute("BEGIN");
    for (const KgwTable& table : kKgwTables) db.execute(table.sql);
    Blobs blobs(db);
    write_head(db, w);
    write_kernels(db, w, blobs);
    write_buffers(db, w, blobs);
    write_launches(db, w);
    write_graphs(db, w);
    write_calls(db, w);
    write_chunks(db, w, chunks);
    db.execute("COMMIT");
  }
  scratch.rename_into_place();
}

}  // namespace

void write_kgw(const Workload& workload, const std::filesystem::path& path, const ChunkSource& chunks) {
  std::optional<ChunkReader> reader;
  Packer packer;
  const auto copied = [&](const Sha256Digest& digest) -> PackedChunk {
    if (workload.source.empty())
      throw Error(Exit::internal, "a workload with contents in chunks does not say which file has them", path.string());
    if (!reader) reader.emplace(ChunkReader::open(workload.source).value_or_throw(Exit::bad_input));
    const auto stored = reader->packed(digest).value_or_throw(Exit::bad_input);
    return {stored.raw_bytes, stored.zstd};
  };
  const auto packed = [&](const Sha256Digest& digest) -> PackedChunk {
    const std::string raw = chunks(digest);
    if (sha256(raw) != digest_hex(digest))
      throw Error(Exit::internal, "chunk " + digest_hex(digest).substr(0, 12) + " came with another content",
                  path.string());
    return {raw.size(), packer.pack(raw, kChunkLevel)};
  };
  write_file(workload, path, chunks ? PackedChunkSource(packed) : PackedChunkSource(copied));
}

}  // namespace kgate
