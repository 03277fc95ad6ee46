// One pass gathers what each launch brought; only then is it known what the largest launch of a graph was.
#include "trace/graphs.h"

#include <algorithm>
#include <map>
#include <set>

#include "trace/driver_calls.h"

namespace kgate::trace {

using namespace wire;

namespace {

struct Launch {
  uint32_t api = 0, graph = 0;
  uint64_t kernels = 0;
  std::vector<uint64_t> nodes;
};

// Kernels by graph launch, in the order of their calls.
std::vector<Launch> graph_launches(const Records& records, const Join& join) {
  std::vector<std::pair<uint32_t, uint32_t>> brought;  // (call, kernel)
  for (uint32_t i = 0; i < records.kernels.size(); ++i)
    if (uint32_t api = join.kernel_api[i]; api != kNoIndex && driver_call(records.apis[api].cbid).is_graph_launch)
      brought.push_back({api, i});
  std::sort(brought.begin(), brought.end());
  std::vector<Launch> launches;
  for (auto [api, index] : brought) {
    if (launches.empty() || launches.back().api != api) launches.push_back({api, 0, 0, {}});
    Launch& launch = launches.back();
    const KernelRecord& kernel = records.kernels[index];
    if (launch.graph == 0) launch.graph = kernel.graph;
    ++launch.kernels;
    launch.nodes.push_back(graph_node(kernel));
  }
  for (Launch& launch : launches) {
    std::sort(launch.nodes.begin(), launch.nodes.end());
    launch.nodes.erase(std::unique(launch.nodes.begin(), launch.nodes.end()), launch.nodes.end());
  }
  return launches;
}

// Instantiations by (graph, time).
class Generations {
 public:
  explicit Generations(const Records& records) : records_(records) {
    for (uint32_t i = 0; i < records.graphs.size(); ++i)
      by_time_.emplace(std::pair(records.graphs[i].graph, records.graphs[i].time), i);
  }
  // The latest one of `graph` that is not after `time`; kNoIndex: none was recorded.
  uint32_t at(uint32_t graph, uint64_t time) const {
    auto after = by_time_.upper_bound({graph, time});
    if (after == by_time_.begin()) return kNoIndex;
    --after;
    return after->first.first == graph ? after->second : kNoIndex;
  }
  const GraphRecord& record(uint32_t index) const { return records_.graphs[index]; }

 private:
  const Records& records_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> by_time_;
};

uint64_t launches_without_kernels(const Records& records, const Join& join) {
  bool some_graph_has_none = std::any_of(records.graphs.begin(), records.graphs.end(), [](const GraphRecord& graph) {
    return graph.kernels == 0 || graph.open != 0;
  });
  if (some_graph_has_none) return 0;  // which graph a launch is of is only known from its kernels
  std::set<uint32_t> copied;
  for (const MemoryRecord& memory : records.memories) copied.insert(memory.correlation);
  uint64_t count = 0;
  for (uint32_t i = 0; i < records.apis.size(); ++i) {
    const ApiRecord& api = records.apis[i];
    count += driver_call(api.cbid).is_graph_launch && api.result == 0 && join.api_kernel[i] == kNoIndex &&
             !copied.contains(api.correlation);
  }
  return count;
}

}  // namespace

uint64_t graph_node(const KernelRecord& kernel) { return uint64_t{kernel.graph_node_hi} << 32 | kernel.graph_node_lo; }

GraphCheck check_graphs(const Records& records, const Join& join) {
  GraphCheck check;
  std::vector<Launch> launches = graph_launches(records, join);
  Generations generations(records);
  using Key = std::pair<uint32_t, uint32_t>;  // graph, generation
  std::map<Key, uint64_t> largest;
  auto key_of = [&](const Launch& launch) {
    return Key(launch.graph, generations.at(launch.graph, records.apis[launch.api].start));
  };
  for (const Launch& launch : launches) {
    uint64_t& most = largest[key_of(launch)];
    most = std::max<uint64_t>(most, launch.nodes.size());
  }
  std::set<Key> uncountable;
  for (const Launch& launch : launches) {
    ++check.launches;
    Key key = key_of(launch);
    const GraphRecord* record = key.second != kNoIndex ? &generations.record(key.second) : nullptr;
    if (key.first == 0 || (record && record->open != 0)) {
      uncountable.insert(key);
      continue;
    }
    uint64_t expected = record ? record->kernels : largest[key];
    if (launch.nodes.size() < expected) check.missing += expected - launch.nodes.size();
    if (launch.kernels > expected) check.surplus += launch.kernels - expected;
  }
  check.uncountable = uncountable.size();
  check.without = launches_without_kernels(records, join);
  return check;
}

}  // namespace kgate::trace
