// Names, sizes and the identity of a workload. The identity hashes every field in a fixed order and width, so that it
// depends on neither the file's encoding nor on the machine; images and contents enter by their own SHA-256.
#include "workload/workload.h"

#include <bit>

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

uint64_t total_buffer_bytes(const Workload& workload) {
  uint64_t total = 0;
  for (const Buffer& buffer : workload.buffers) total += buffer.bytes;
  return total;
}

namespace {

// One section's fields, little-endian, strings framed by their length.
class Canonical {
 public:
  Canonical& number(uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(value >> shift);
    return *this;
  }
  Canonical& real(double value) { return number(std::bit_cast<uint64_t>(value)); }
  Canonical& text(std::string_view value) {
    number(value.size());
    bytes_ += value;
    return *this;
  }
  Canonical& dim(const Dim3& dim) { return number(dim.x).number(dim.y).number(dim.z); }
  const std::string& bytes() const { return bytes_; }

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
  }
}

void add_launch(Canonical& out, const LaunchSpec& launch) {
  out.number(launch.kernel).dim(launch.grid).dim(launch.block).dim(launch.cluster).number(launch.shared);
  out.text({reinterpret_cast<const char*>(launch.params.data()), launch.params.size()});
  out.number(launch.relocations.size());
  for (const Relocation& relocation : launch.relocations)
    out.number(relocation.param_offset).number(relocation.buffer).number(static_cast<uint64_t>(relocation.delta));
}

void add_call(Canonical& out, const Call& call) {
  out.text(call_kind_name(call.kind)).number(call.thread).number(call.stream).number(call.launch);
  out.number(call.dst).number(call.src).number(call.dst_offset).number(call.src_offset).number(call.bytes);
  out.number(call.value).number(call.event).number(call.host_gap_ns).number(call.after.size());
  for (uint32_t before : call.after) out.number(before);
}

}  // namespace

std::string workload_hash(const Workload& workload) {
  Sha256 hash;
  hash.add("kgate workload 1");
  const auto section = [&](const char* name, const auto& items, auto add) {
    Canonical out;
    out.text(name).number(items.size());
    for (const auto& item : items) {
      add(out, item);
      if (out.bytes().size() < (size_t{1} << 20)) continue;
      hash.add(out.bytes());
      out = Canonical{};
    }
    hash.add(out.bytes());
  };
  Canonical head;
  head.text(workload.name).number(workload.arrivals == Arrivals::external).number(workload.period_ns);
  head.number(workload.threads).number(workload.streams.size()).number(workload.events).number(workload.blocking_sync);
  hash.add(head.bytes());
  section("modules", workload.modules, [](Canonical& out, const WorkloadModule& module) {
    out.text(module.name).number(module.image.size()).text(sha256(module.image));
  });
  section("kernels", workload.kernels, [](Canonical& out, const WorkloadKernel& kernel) {
    out.number(kernel.module).text(kernel.entry).number(kernel.param_bytes).number(kernel.params.size());
    for (const auto& [offset, size] : kernel.params) out.number(offset).number(size);
  });
  section("buffers", workload.buffers, [](Canonical& out, const Buffer& buffer) {
    out.text(buffer.name).number(buffer.bytes).number(buffer.align).number(buffer.address).number(buffer.written);
    add_content(out, buffer.content);
  });
  section("launches", workload.launches, add_launch);
  section("calls", workload.calls, add_call);
  section("requests", workload.requests, [](Canonical& out, const Request& request) {
    out.number(request.arrival_ns).number(request.thread).number(request.calls.size());
    for (uint32_t c : request.calls) out.number(c);
  });
  return hash.hex();
}

}  // namespace kgate
