#include "workload/describe_summary.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace kgate {

namespace {

auto key(const Dim3& d) { return std::tuple(d.x, d.y, d.z); }

void count_calls(const Workload& w, WorkloadSummary& s, std::vector<uint64_t>& uses) {
  s.graph_launches.resize(w.graphs.size());
  for (const Call& call : w.calls) {
    const auto kind = static_cast<size_t>(call.kind);
    ++s.calls[kind];
    s.edges += call.after.size();
    s.traffic[kind].calls += 1;
    s.traffic[kind].bytes += call.bytes * call.pitch.rows;
    if (call.kind == CallKind::launch) ++uses[call.launch];
    if (call.kind == CallKind::graph_launch) ++s.graph_launches[call.graph];
  }
  for (size_t g = 0; g < w.graphs.size(); ++g)
    for (const GraphNode& node : w.graphs[g].nodes) {
      if (node.kind != GraphNode::Kind::kernel) continue;
      uses[node.launch] += s.graph_launches[g];
      s.launches_in_graphs += s.graph_launches[g];
    }
}

void count_classes(const Workload& w, WorkloadSummary& s, const std::vector<uint64_t>& uses) {
  s.kernel_launches.resize(w.kernels.size());
  using Key = std::tuple<uint32_t, std::tuple<uint32_t, uint32_t, uint32_t>, std::tuple<uint32_t, uint32_t, uint32_t>,
                         std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t>;
  std::map<Key, size_t> known;
  for (size_t i = 0; i < w.launches.size(); ++i) {
    const LaunchSpec& launch = w.launches[i];
    s.kernel_launches[launch.kernel] += uses[i];
    s.launches += uses[i];
    const Key of{launch.kernel, key(launch.grid), key(launch.block), key(launch.cluster), launch.shared};
    const auto [at, fresh] = known.try_emplace(of, s.classes.size());
    if (fresh) s.classes.push_back({launch.kernel, launch.grid, launch.block, launch.cluster, launch.shared});
    s.classes[at->second].launches += uses[i];
    ++s.classes[at->second].distinct;
  }
  std::stable_sort(s.classes.begin(), s.classes.end(),
                   [](const LaunchClass& a, const LaunchClass& b) { return a.launches > b.launches; });
}

void count_memory(const Workload& w, WorkloadSummary& s) {
  std::set<Sha256Digest> stored;
  const auto add = [&](const Content& content, uint64_t bytes) {
    if (const auto* held = std::get_if<ContentBytes>(&content)) {
      s.recorded_bytes += held->bytes.size();
      s.stored_bytes += held->bytes.size();
    } else if (const auto* list = std::get_if<ContentChunks>(&content)) {
      for (size_t k = 0; k < list->chunks.size(); ++k) {
        if (list->chunks[k] == Sha256Digest{}) continue;
        const uint64_t size = std::min(kChunkBytes, bytes - k * kChunkBytes);
        s.recorded_bytes += size;
        if (stored.insert(list->chunks[k]).second) s.stored_bytes += size;
      }
    }
  };
  for (const Buffer& buffer : w.buffers) {
    s.written_bytes += buffer.written ? buffer.bytes : 0;
    s.placed_buffers += buffer.address != 0;
    s.hashed_buffers += !buffer.end_hashes.empty();
    add(buffer.content, buffer.bytes);
  }
  for (const Payload& payload : w.payloads) add(payload.content, payload.bytes);
}

}  // namespace

WorkloadSummary summarise(const Workload& w) {
  WorkloadSummary s;
  std::vector<uint64_t> uses(w.launches.size());
  count_calls(w, s, uses);
  count_classes(w, s, uses);
  count_memory(w, s);
  for (size_t i = 0; i < w.requests.size(); ++i) {
    const size_t count = w.requests[i].calls.size();
    s.min_calls = i == 0 ? count : std::min(s.min_calls, count);
    s.max_calls = std::max(s.max_calls, count);
    if (i > 0) s.gaps.push_back(w.requests[i].arrival_ns - w.requests[i - 1].arrival_ns);
    s.last_arrival = w.requests[i].arrival_ns;
  }
  std::sort(s.gaps.begin(), s.gaps.end());
  return s;
}

std::vector<uint32_t> kernels_by_launches(const WorkloadSummary& s) {
  std::vector<uint32_t> order;
  for (uint32_t k = 0; k < s.kernel_launches.size(); ++k)
    if (s.kernel_launches[k] != 0) order.push_back(k);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return s.kernel_launches[a] > s.kernel_launches[b]; });
  return order;
}

}  // namespace kgate
