// What `kgate inspect --json` prints of a workload: nothing is cut.
#include <nlohmann/json.hpp>

#include "workload/build.h"
#include "workload/describe_summary.h"
#include "workload/kgw_names.h"

namespace kgate {

namespace {

using nlohmann::json;

json list(const Dim3& dim) { return {dim.x, dim.y, dim.z}; }

json origin_json(const Origin& o) {
  if (!o.recorded()) return nullptr;
  return {{"device", o.device},   {"arch", o.arch},   {"sm_count", o.sm_count}, {"driver_version", o.driver_version},
          {"command", o.command}, {"begun", o.begun}, {"notes", o.notes}};
}

json fidelity_json(const Workload& w) {
  json rows = json::array();
  for (const Fidelity& f : w.fidelity)
    rows.push_back({{"device", f.device},
                    {"blocks", f.blocks},
                    {"equal", f.equal},
                    {"buffers", f.buffers},
                    {"exact", f.exact},
                    {"shifted_equal", f.shifted_equal}});
  return rows;
}

json graphs_json(const Workload& w, const WorkloadSummary& s) {
  json graphs = json::array();
  for (size_t g = 0; g < w.graphs.size(); ++g) {
    json kinds = json::object();
    for (const GraphNode& node : w.graphs[g].nodes) {
      json& count = kinds[graph_node_kind_name(node.kind)];
      count = count.is_null() ? 1 : count.get<uint64_t>() + 1;
    }
    graphs.push_back({{"nodes", w.graphs[g].nodes.size()}, {"kinds", kinds}, {"launches", s.graph_launches[g]}});
  }
  return graphs;
}

void add_code(json& j, const Workload& w, const WorkloadSummary& s) {
  for (const WorkloadModule& module : w.modules)
    j["modules"].push_back({{"name", module.name},
                            {"bytes", module.image.size()},
                            {"sha256", module.sha256},
                            {"portable_bytes", module.portable.size()}});
  for (size_t i = 0; i < w.kernels.size(); ++i)
    j["kernels"].push_back({{"entry", w.kernels[i].entry},
                            {"module", w.kernels[i].module},
                            {"param_bytes", w.kernels[i].param_bytes},
                            {"launches", s.kernel_launches[i]}});
  for (const LaunchClass& c : s.classes)
    j["launch_classes"].push_back({{"kernel", w.kernels[c.kernel].entry},
                                   {"grid", list(c.grid)},
                                   {"block", list(c.block)},
                                   {"cluster", c.cluster.x == 0 ? json() : list(c.cluster)},
                                   {"shared", c.shared},
                                   {"launches", c.launches},
                                   {"distinct", c.distinct}});
}

}  // namespace

std::string workload_json(const Workload& w) {
  const WorkloadSummary s = summarise(w);
  const bool external = w.arrivals == Arrivals::external;
  json j = {{"name", w.name},
            {"sha256", w.sha256},
            {"arrivals", external ? "external" : "closed"},
            {"period_ns", w.period_ns},
            {"last_arrival_ns", s.last_arrival},
            {"requests", w.requests.size()},
            {"threads", w.threads},
            {"streams", w.streams.size()},
            {"events", w.events},
            {"blocking_sync", w.blocking_sync},
            {"buffers", w.buffers.size()},
            {"buffer_bytes", total_buffer_bytes(w)},
            {"written_bytes", s.written_bytes},
            {"recorded_bytes", s.recorded_bytes},
            {"distinct_recorded_bytes", s.stored_bytes},
            {"hashed_buffers", s.hashed_buffers},
            {"thread_waits", s.edges},
            {"launches", s.launches},
            {"launches_in_graphs", s.launches_in_graphs},
            {"distinct_launches", w.launches.size()},
            {"addresses", addresses_name(w.addresses)},
            {"recorded", origin_json(w.origin)},
            {"fidelity", fidelity_json(w)},
            {"graphs", graphs_json(w, s)}};
  j["requests_per_second"] = external && w.period_ns != 0
                                 ? json(static_cast<double>(w.requests.size()) * 1e9 / static_cast<double>(w.period_ns))
                                 : json();
  j["calls"] = json::object();
  j["call_bytes"] = json::object();
  for (size_t k = 0; k < s.calls.size(); ++k) {
    const char* name = call_kind_name(static_cast<CallKind>(k));
    if (s.calls[k] != 0) j["calls"][name] = s.calls[k];
    if (s.traffic[k].bytes != 0) j["call_bytes"][name] = s.traffic[k].bytes;
  }
  for (const WorkloadStream& stream : w.streams)
    j["stream_kinds"].push_back({{"kind", kgw::stream_kind_name(stream.kind)}, {"priority", stream.priority}});
  add_code(j, w, s);
  return j.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace kgate
