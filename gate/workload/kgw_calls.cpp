// The long tables: launches, graphs, calls.
#include <cstring>

#include "workload/kgw_names.h"
#include "workload/kgw_schema.h"
#include "workload/kgw_tables.h"
#include "workload/limits.h"

namespace kgate::kgw {

using namespace cap;

namespace {

using Check = std::optional<Failure>;

// Rows of launch_data as one stream of bytes: what a launch takes lies in one row whole.
class LaunchData {
 public:
  LaunchData(const SqliteReader& reader, Unpacker& unpacker)
      : unpacker_(unpacker),
        cursor_(reader, "launch_data", "SELECT id, raw_bytes, zstd FROM launch_data ORDER BY id") {}

  // Null once it fails; `bytes` may be 0.
  const char* take(size_t bytes) {
    if (bytes == 0) return "";
    if (at_ == raw_.size() && !advance()) {
      cursor_.fail("there are fewer bytes than the launches need");
      return nullptr;
    }
    if (bytes > raw_.size() - at_) cursor_.fail("a launch does not end where its row ends");
    if (cursor_.failure()) return nullptr;
    at_ += bytes;
    return raw_.data() + (at_ - bytes);
  }
  Check end() {
    if (!cursor_.failure() && (at_ != raw_.size() || advance()))
      cursor_.fail("there are more bytes than the launches need");
    return cursor_.failure();
  }
  const Check& failure() const { return cursor_.failure(); }

 private:
  bool advance() {
    if (!cursor_.next()) return false;
    if (cursor_.u63(0) != cursor_.row()) cursor_.fail("id is not the row's number");
    unpacker_.frame(cursor_, 1, kMaxLaunchDataRow, raw_);
    at_ = 0;
    if (!cursor_.failure() && raw_.empty()) cursor_.fail("it is empty");
    return !cursor_.failure();
  }

  Unpacker& unpacker_;
  SqliteCursor cursor_;
  std::string raw_;
  size_t at_ = 0;
};

void read_relocations(const char* from, std::vector<Relocation>& relocations) {
  for (Relocation& relocation : relocations) {
    std::memcpy(&relocation.param_offset, from, 4);
    std::memcpy(&relocation.buffer, from + 4, 4);
    std::memcpy(&relocation.delta, from + 8, 8);
    from += kRelocationBytes;
  }
}

Check read_edges(const SqliteReader& reader, Workload& w) {
  SqliteCursor row(reader, "graph_edges", "SELECT * FROM graph_edges ORDER BY graph, node, position");
  while (row.next()) {
    if (row.row() >= kMaxAllNodeAfter) row.fail("there are too many rows");
    const uint32_t graph = row.u32(0), node = row.u32(1), position = row.u32(2), after = row.u32(3);
    if (row.failure()) break;
    if (graph >= w.graphs.size() || node >= w.graphs[graph].nodes.size()) {
      row.fail("node " + std::to_string(node) + " of graph " + std::to_string(graph) + " does not exist");
      break;
    }
    std::vector<uint32_t>& edges = w.graphs[graph].nodes[node].after;
    if (position != edges.size()) row.fail("position is not the next one");
    if (!row.failure()) edges.push_back(after);
  }
  return row.failure();
}

}  // namespace

Check read_launches(const OpenedKgw& file, Unpacker& unpacker, Workload& w) {
  LaunchData data(file.reader, unpacker);
  uint64_t param_bytes = 0, relocations = 0;
  Check failed = each_row(file.reader, "launches", kMaxLaunches, [&](SqliteCursor& row) {
    LaunchSpec launch;
    launch.kernel = row.u32(1);
    launch.grid = {row.u32(2), row.u32(3), row.u32(4)};
    launch.block = {row.u32(5), row.u32(6), row.u32(7)};
    launch.cluster = {row.u32(8), row.u32(9), row.u32(10)};
    launch.shared = row.u32(11);
    launch.cooperative = row.flag(12);
    launch.programmatic = row.flag(13);
    const auto count = static_cast<size_t>(row.integer(14, 0, kMaxParamBytes / 8));
    if (row.failure()) return;
    if (launch.kernel >= w.kernels.size())
      return row.fail("kernel " + std::to_string(launch.kernel) + " does not exist");
    const uint32_t bytes = w.kernels[launch.kernel].param_bytes;
    if (bytes > kMaxParamBytes) return row.fail("its kernel has too many parameter bytes");
    param_bytes += bytes;
    relocations += count;
    if (param_bytes > kMaxAllParamBytes || relocations > kMaxAllRelocations)
      return row.fail("the parameter blocks or relocations are too large together");
    const char* packed = data.take(bytes + count * kRelocationBytes);
    if (!packed) return row.fail("its parameters: " + data.failure()->what);
    launch.params.resize(bytes);
    if (bytes != 0) std::memcpy(launch.params.data(), packed, bytes);
    launch.relocations.resize(count);
    read_relocations(packed + bytes, launch.relocations);
    w.launches.push_back(std::move(launch));
  });
  return failed ? failed : data.end();
}

Check read_graphs(const OpenedKgw& file, Workload& w) {
  std::vector<uint32_t> sizes;
  Check failed = each_row(file.reader, "graphs", kMaxGraphs, [&](SqliteCursor& row) { sizes.push_back(row.u32(1)); });
  if (failed) return failed;
  w.graphs.resize(sizes.size());
  failed = each_child(file.reader, "graph_nodes", "graph", w.graphs.size(), kMaxAllNodes,
                      [&](SqliteCursor& row, uint32_t graph) {
                        GraphNode node;
                        const auto kind = node_kind_named(row.text(2, 32));
                        if (!kind) return row.fail("kind is unknown");
                        node.kind = *kind;
                        node.launch = row.reference(3);
                        node.dst = row.reference(4), node.src = row.reference(5);
                        node.dst_offset = row.u63(6), node.src_offset = row.u63(7), node.bytes = row.u63(8);
                        node.pitch = {row.u63(9), row.u63(10), row.u63(11)};
                        node.value = row.u32(12);
                        node.unit = static_cast<uint8_t>(row.integer(13, 0, 255));
                        node.event = row.reference(14);
                        w.graphs[graph].nodes.push_back(std::move(node));
                      });
  if (failed) return failed;
  for (size_t g = 0; g < sizes.size(); ++g)
    if (w.graphs[g].nodes.size() != sizes[g])
      return Failure{"has " + std::to_string(w.graphs[g].nodes.size()) + " nodes, not " + std::to_string(sizes[g]),
                     "graphs " + std::to_string(g),
                     {}};
  return read_edges(file.reader, w);
}

Check read_calls(const OpenedKgw& file, Workload& w) {
  Check failed = each_row(file.reader, "requests", kMaxCalls, [&](SqliteCursor& row) {
    w.requests.push_back({row.u63(1), row.u32(2), {}});
  });
  if (failed) return failed;
  failed = each_row(file.reader, "calls", kMaxCalls, [&](SqliteCursor& row) {
    Call call;
    const uint32_t request = row.u32(1);
    if (request >= w.requests.size()) return row.fail("request " + std::to_string(request) + " does not exist");
    const auto kind = call_kind_named(row.text(2, 32));
    if (!kind) return row.fail("kind is unknown");
    call.kind = *kind;
    call.thread = row.u32(3);
    call.stream = row.u32(4);
    call.launch = row.reference(5);
    call.graph = row.reference(6);
    call.dst = row.reference(7), call.src = row.reference(8);
    call.dst_offset = row.u63(9), call.src_offset = row.u63(10), call.bytes = row.u63(11);
    call.pitch = {row.u63(12), row.u63(13), row.u63(14)};
    call.value = row.u32(15);
    call.unit = static_cast<uint8_t>(row.integer(16, 0, 255));
    call.async = row.flag(17);
    call.pinned = row.flag(18);
    call.payload = row.reference(19);
    call.allocation = row.reference(20);
    call.event = row.reference(21);
    call.host_gap_ns = row.u63(22);
    w.requests[request].calls.push_back(static_cast<uint32_t>(w.calls.size()));
    w.calls.push_back(std::move(call));
  });
  if (failed) return failed;
  return each_child(file.reader, "after_edges", "call", w.calls.size(), kMaxAllAfter,
                    [&](SqliteCursor& row, uint32_t call) { w.calls[call].after.push_back(row.u32(2)); });
}

}  // namespace kgate::kgw
