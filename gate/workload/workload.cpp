// Names, sizes and the identity of a workload. The identity hashes every field in a fixed order and encoding, so that
// it depends on neither the file's encoding nor on the machine; images and contents enter by their own SHA-256.
#include "workload/workload.h"

#include <bit>
#include <string_view>

#include "support/hash.h"

namespace kgate {

const char* call_kind_name(CallKind kind) {
  switch (kind) {
    case CallKind::launch:
      return "launch";
    case CallKind::copy:
      return "copy";
    case CallKind::upload:
      return "upload";
    case CallKind::download:
      return "download";
    case CallKind::memset:
      return "memset";
    case CallKind::event_record:
      return "event_record";
    case CallKind::event_wait:
      return "event_wait";
    case CallKind::stream_sync:
      return "stream_sync";
    case CallKind::event_sync:
      return "event_sync";
    case CallKind::context_sync:
      return "context_sync";
    case CallKind::graph_launch:
      return "graph_launch";
    case CallKind::alloc:
      return "alloc";
    case CallKind::free:
      return "free";
    case CallKind::host_function:
      return "host_function";
  }
  return "unknown";
}

const char* graph_node_kind_name(GraphNode::Kind kind) {
  switch (kind) {
    case GraphNode::Kind::kernel:
      return "kernel";
    case GraphNode::Kind::copy:
      return "copy";
    case GraphNode::Kind::memset:
      return "memset";
    case GraphNode::Kind::event_record:
      return "event_record";
    case GraphNode::Kind::event_wait:
      return "event_wait";
    case GraphNode::Kind::host_function:
      return "host_function";
    case GraphNode::Kind::empty:
      return "empty";
  }
  return "unknown";
}

const char* addresses_name(Addresses addresses) {
  switch (addresses) {
    case Addresses::free:
      return "free";
    case Addresses::unknown:
      return "unknown";
    case Addresses::relocatable:
      return "relocatable";
    case Addresses::pinned:
      return "pinned";
  }
  return "?";
}

uint64_t total_buffer_bytes(const Workload& workload) {
  uint64_t total = 0;
  for (const Buffer& buffer : workload.buffers) total += buffer.bytes;
  return total;
}

namespace {

// One section's fields. Numbers are little-endian groups of 7 bits, the last of which has its top bit clear, so that
// the small ones of a million calls stay small; strings are framed by their length. No encoding is the begin of
// another.
class Canonical {
 public:
  Canonical& number(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
    return *this;
  }
  Canonical& integer(int64_t value) { return number(static_cast<uint64_t>(value)); }
  Canonical& reference(uint32_t index) { return number(index + 1); }  // kNone: 0
  Canonical& real(double value) { return number(std::bit_cast<uint64_t>(value)); }
  Canonical& raw(const void* data, size_t bytes) {
    number(bytes);
    bytes_.append(static_cast<const char*>(data), bytes);
    return *this;
  }
  Canonical& text(std::string_view value) { return raw(value.data(), value.size()); }
  Canonical& list(const std::vector<uint32_t>& indices) {
    number(indices.size());
    for (uint32_t index : indices) number(index);
    return *this;
  }
  Canonical& dim(const Dim3& dim) { return number(dim.x).number(dim.y).number(dim.z); }
  const std::string& bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }

 private:
  std::string bytes_;
};

void add_content(Canonical& out, const Content& content) {
  out.number(content.index());
  if (const auto* bytes = std::get_if<ContentBytes>(&content)) {
    out.number(bytes->bytes.size()).text(sha256(bytes->bytes));
  } else if (const auto* random = std::get_if<ContentRandom>(&content)) {
    out.text(random->dtype).real(random->low).real(random->high).number(random->seed);
  } else if (const auto* poison = std::get_if<ContentPoison>(&content)) {
    out.number(poison->value);
  } else if (const auto* chunks = std::get_if<ContentChunks>(&content)) {
    out.raw(chunks->chunks.data(), chunks->chunks.size() * sizeof(Sha256Digest));
  }
}

void add_launch(Canonical& out, const LaunchSpec& launch) {
  out.number(launch.kernel).dim(launch.grid).dim(launch.block).dim(launch.cluster).number(launch.shared);
  out.number(launch.cooperative).number(launch.programmatic).raw(launch.params.data(), launch.params.size());
  out.number(launch.relocations.size());
  for (const Relocation& relocation : launch.relocations)
    out.number(relocation.param_offset).number(relocation.buffer).integer(relocation.delta);
}

template <typename T>
void add_memory(Canonical& out, const T& t) {
  out.reference(t.dst).reference(t.src).number(t.dst_offset).number(t.src_offset).number(t.bytes);
  out.number(t.pitch.rows).number(t.pitch.dst).number(t.pitch.src).number(t.value).number(t.unit);
}

void add_call(Canonical& out, const Call& call) {
  out.text(call_kind_name(call.kind)).number(call.thread).number(call.stream);
  out.reference(call.launch).reference(call.graph);
  add_memory(out, call);
  out.number(call.async).number(call.pinned).reference(call.payload).reference(call.allocation);
  out.reference(call.event).number(call.host_gap_ns).list(call.after);
}

void add_graph(Canonical& out, const WorkloadGraph& graph) {
  out.number(graph.nodes.size());
  for (const GraphNode& node : graph.nodes) {
    out.text(graph_node_kind_name(node.kind)).reference(node.launch);
    add_memory(out, node);
    out.reference(node.event).list(node.after);
  }
}

void add_buffer(Canonical& out, const Buffer& buffer) {
  out.text(buffer.name).number(buffer.bytes).number(buffer.align).number(buffer.address).number(buffer.written);
  add_content(out, buffer.content);
  out.raw(buffer.end_hashes.data(), buffer.end_hashes.size() * sizeof(uint64_t));
}

std::string head_of(const Workload& w) {
  Canonical head;
  head.text(w.name).number(w.arrivals == Arrivals::external).number(w.period_ns);
  head.number(w.threads).number(w.events).number(w.blocking_sync);
  const Origin& from = w.origin;
  head.text(from.device).integer(from.arch).integer(from.sm_count).integer(from.driver_version);
  head.text(from.command).text(from.begun).number(from.notes.size());
  for (const std::string& note : from.notes) head.text(note);
  head.number(w.streams.size());
  for (const WorkloadStream& stream : w.streams)
    head.number(static_cast<uint64_t>(stream.kind)).integer(stream.priority);
  return head.bytes();
}

}  // namespace

// What a fidelity check finds about a workload, Workload::addresses and ::fidelity, is no part of what it is.
std::string workload_hash(const Workload& workload) {
  static_assert(std::endian::native == std::endian::little);
  Sha256 hash;
  hash.add("kgate workload 2");
  const auto section = [&](const char* name, const auto& items, auto add) {
    Canonical out;
    out.text(name).number(items.size());
    for (const auto& item : items) {
      add(out, item);
      if (out.bytes().size() < (size_t{1} << 20)) continue;
      hash.add(out.bytes());
      out.clear();
    }
    hash.add(out.bytes());
  };
  hash.add(head_of(workload));
  section("modules", workload.modules, [](Canonical& out, const WorkloadModule& module) {
    out.text(module.name).number(module.image.size()).text(sha256(module.image));
    out.number(module.portable.size()).text(sha256(module.portable));
  });
  section("kernels", workload.kernels, [](Canonical& out, const WorkloadKernel& kernel) {
    out.number(kernel.module).text(kernel.entry).number(kernel.param_bytes).number(kernel.params.size());
    for (const auto& [offset, size] : kernel.params) out.number(offset).number(size);
  });
  section("buffers", workload.buffers, add_buffer);
  section("payloads", workload.payloads, [](Canonical& out, const Payload& payload) {
    out.number(payload.bytes);
    add_content(out, payload.content);
  });
  section("launches", workload.launches, add_launch);
  section("graphs", workload.graphs, add_graph);
  section("calls", workload.calls, add_call);
  section("requests", workload.requests, [](Canonical& out, const Request& request) {
    out.number(request.arrival_ns).number(request.thread).list(request.calls);
  });
  return hash.hex();
}

}  // namespace kgate
