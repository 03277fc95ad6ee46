// Which call of another thread each call has to wait for: two threads that touched the same stream, event or memory did
// so in an order, and a replay must keep it. Only what had returned before the call was issued can have been waited
// for. Memory that nothing changed (weights) orders nobody.
#include "workload/assemble_edges.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace kgate::assembly {

namespace {

enum class Object : uint64_t { stream, event, buffer };
uint64_t key(Object kind, uint32_t index) { return static_cast<uint64_t>(kind) << 32 | index; }

bool names_stream(const Call& call) {
  switch (call.kind) {
    case CallKind::event_sync:
    case CallKind::context_sync:
      return false;
    case CallKind::alloc:
    case CallKind::free:
      return call.async;
    default:
      return true;
  }
}

template <typename Add>
void add_memory(const Workload& w, uint32_t launch, uint32_t dst, uint32_t src, Add add) {
  if (launch != kNone)
    for (const Relocation& relocation : w.launches[launch].relocations) add(relocation.buffer);
  if (dst != kNone) add(dst);
  if (src != kNone) add(src);
}

std::vector<uint64_t> graph_objects(const Workload& w, const WorkloadGraph& graph, const std::vector<bool>& constant) {
  std::vector<uint64_t> objects;
  for (const GraphNode& node : graph.nodes) {
    if (node.event != kNone) objects.push_back(key(Object::event, node.event));
    add_memory(w, node.launch, node.dst, node.src, [&](uint32_t buffer) {
      if (!constant[buffer]) objects.push_back(key(Object::buffer, buffer));
    });
  }
  std::sort(objects.begin(), objects.end());
  objects.erase(std::unique(objects.begin(), objects.end()), objects.end());
  return objects;
}

}  // namespace

void add_after_edges(Workload& w, const std::vector<CallTime>& times, const std::vector<bool>& constant) {
  if (w.threads < 2) return;
  std::vector<std::vector<uint64_t>> of_graph;
  for (const WorkloadGraph& graph : w.graphs) of_graph.push_back(graph_objects(w, graph, constant));
  std::unordered_map<uint64_t, uint32_t> last;
  std::vector<uint64_t> objects;
  for (uint32_t i = 0; i < w.calls.size(); ++i) {
    Call& call = w.calls[i];
    objects.clear();
    if (call.graph != kNone) objects = of_graph[call.graph];
    if (names_stream(call)) objects.push_back(key(Object::stream, call.stream));
    if (call.event != kNone) objects.push_back(key(Object::event, call.event));
    add_memory(w, call.launch, call.dst, call.src, [&](uint32_t buffer) {
      if (!constant[buffer]) objects.push_back(key(Object::buffer, buffer));
    });
    std::map<uint32_t, uint32_t> latest;  // of each other thread
    for (uint64_t object : objects) {
      const auto [at, fresh] = last.try_emplace(object, i);
      if (fresh) continue;
      const uint32_t before = std::exchange(at->second, i);
      const uint32_t thread = w.calls[before].thread;
      if (before == i || thread == call.thread || times[before].end > times[i].begin) continue;
      uint32_t& known = latest.try_emplace(thread, before).first->second;
      known = std::max(known, before);
    }
    for (const auto& [thread, before] : latest) call.after.push_back(before);
    std::sort(call.after.begin(), call.after.end());
  }
}

}  // namespace kgate::assembly
