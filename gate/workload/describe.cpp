// What `kgate inspect` says of a workload: one summary, shown as text or as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "support/text.h"
#include "workload/build.h"

namespace kgate {

namespace {

// Launches that agree in kernel, extents and shared memory.
struct LaunchClass {
  uint32_t kernel = 0;
  Dim3 grid, block, cluster;
  uint32_t shared = 0;
  uint64_t calls = 0;
  uint32_t distinct = 0;  // parameter blocks
};

struct Summary {
  std::vector<LaunchClass> classes;       // most calls first
  std::map<std::string, uint64_t> calls;  // by kind
  std::vector<uint64_t> kernel_calls;
  uint64_t written_bytes = 0;
  size_t min_calls = 0, max_calls = 0;  // of a request
  std::vector<uint64_t> gaps;           // between arrivals, sorted
  uint64_t last_arrival = 0;
};

Summary summarise(const Workload& w) {
  Summary s;
  std::vector<uint64_t> uses(w.launches.size());
  for (const Call& call : w.calls) {
    ++s.calls[call_kind_name(call.kind)];
    if (call.kind == CallKind::launch) ++uses[call.launch];
    if (call.kind == CallKind::graph_launch)
      for (const GraphNode& node : w.graphs[call.graph].nodes)
        if (node.kind == GraphNode::Kind::kernel) ++uses[node.launch];
  }
  s.kernel_calls.resize(w.kernels.size());
  for (size_t i = 0; i < w.launches.size(); ++i) {
    const LaunchSpec& launch = w.launches[i];
    s.kernel_calls[launch.kernel] += uses[i];
    const auto same = std::find_if(s.classes.begin(), s.classes.end(), [&](const LaunchClass& c) {
      return c.kernel == launch.kernel && c.grid == launch.grid && c.block == launch.block &&
             c.cluster == launch.cluster && c.shared == launch.shared;
    });
    LaunchClass& c = same != s.classes.end()
                         ? *same
                         : s.classes.emplace_back(
                               LaunchClass{launch.kernel, launch.grid, launch.block, launch.cluster, launch.shared});
    c.calls += uses[i];
    ++c.distinct;
  }
  std::stable_sort(s.classes.begin(), s.classes.end(),
                   [](const LaunchClass& a, const LaunchClass& b) { return a.calls > b.calls; });
  for (const Buffer& buffer : w.buffers) s.written_bytes += buffer.written ? buffer.bytes : 0;
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

double mean_rate(const Workload& w) {
  return w.period_ns == 0 ? 0 : static_cast<double>(w.requests.size()) * 1e9 / static_cast<double>(w.period_ns);
}

uint64_t gap_at(const Summary& s, double q) {
  return s.gaps.empty() ? 0 : s.gaps[static_cast<size_t>(q * static_cast<double>(s.gaps.size() - 1))];
}

std::string show(const Dim3& dim) { return fmt::format("{}x{}x{}", dim.x, dim.y, dim.z); }
nlohmann::json list(const Dim3& dim) { return {dim.x, dim.y, dim.z}; }

std::string describe_arrivals(const Workload& w, const Summary& s) {
  if (w.arrivals == Arrivals::closed) return "closed: each thread's next request follows the last one";
  return fmt::format("external: {:.6g} requests/s on average over {}; gap p50 {}, p90 {}, p99 {}", mean_rate(w),
                     format_ns(static_cast<double>(w.period_ns)), format_ns(static_cast<double>(gap_at(s, 0.5))),
                     format_ns(static_cast<double>(gap_at(s, 0.9))), format_ns(static_cast<double>(gap_at(s, 0.99))));
}

constexpr size_t kShownClasses = 32;

const char* address_words(Addresses addresses) {
  switch (addresses) {
    case Addresses::free:
      return "made for any";
    case Addresses::unknown:
      return "kept as recorded: nobody knows yet whether it runs at others";
    case Addresses::relocatable:
      return "any: it gives the same with all of them shifted";
    case Addresses::pinned:
      return "only the recorded ones: it holds addresses that cannot be moved";
  }
  return "";
}

std::string describe_origin(const Workload& w) {
  if (!w.origin.recorded()) return {};
  std::string out =
      fmt::format("recorded  on {}, driver {}.{}, {}\n", sanitize(w.origin.device, 80), w.origin.driver_version / 1000,
                  w.origin.driver_version % 1000 / 10, sanitize(w.origin.begun, 40));
  out += fmt::format("command   {}\naddresses {}\n", sanitize(w.origin.command, 200), address_words(w.addresses));
  for (const Fidelity& f : w.fidelity)
    out += fmt::format("replayed  on {}: {} of {} blocks of memory as recorded, {} of {} buffers at their address\n",
                       sanitize(f.device, 80), f.equal, f.blocks, f.exact, f.buffers);
  for (const std::string& note : w.origin.notes) out += fmt::format("note      {}\n", sanitize(note, 300));
  return out;
}

}  // namespace

std::string describe_workload(const Workload& w) {
  const Summary s = summarise(w);
  std::string out = fmt::format("workload  {}\nsha256    {}\narrivals  {}\n", sanitize(w.name, 120), w.sha256,
                                describe_arrivals(w, s));
  out += fmt::format(
      "requests  {} of {} calls, {} thread{}, {} stream{}, {} event{}{}\n", w.requests.size(),
      s.min_calls == s.max_calls ? std::to_string(s.min_calls) : fmt::format("{} to {}", s.min_calls, s.max_calls),
      w.threads, w.threads == 1 ? "" : "s", w.streams.size(), w.streams.size() == 1 ? "" : "s", w.events,
      w.events == 1 ? "" : "s", w.blocking_sync ? ", blocking waits" : "");
  std::string kinds;
  for (const auto& [kind, count] : s.calls) kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", count, kind);
  out += fmt::format("calls     {} ({})\n", w.calls.size(), kinds);
  out += fmt::format("buffers   {}, {} ({} restored before each round)\n", w.buffers.size(),
                     format_bytes(static_cast<double>(total_buffer_bytes(w))),
                     format_bytes(static_cast<double>(s.written_bytes)));
  if (!w.graphs.empty()) {
    size_t nodes = 0;
    for (const WorkloadGraph& graph : w.graphs) nodes += graph.nodes.size();
    out += fmt::format("graphs    {} of {} nodes together\n", w.graphs.size(), nodes);
  }
  out += describe_origin(w);
  out += "\nmodules\n";
  for (const WorkloadModule& module : w.modules)
    out += fmt::format("  {:<32} {:>12}  {}\n", sanitize(module.name, 60),
                       format_bytes(static_cast<double>(module.image.size())), module.sha256.substr(0, 16));
  out += fmt::format("\nkernels {:>50} {:>12}\n", "launches", "a request");
  for (size_t i = 0; i < w.kernels.size(); ++i)
    out += fmt::format("  {:<48} {:>8} {:>12.4g}\n", sanitize(w.kernels[i].entry, 120), s.kernel_calls[i],
                       static_cast<double>(s.kernel_calls[i]) / static_cast<double>(w.requests.size()));
  out += fmt::format("\nlaunch classes ({}; {} distinct launches)\n", s.classes.size(), w.launches.size());
  for (size_t i = 0; i < std::min(s.classes.size(), kShownClasses); ++i) {
    const LaunchClass& c = s.classes[i];
    out += fmt::format("  {:<32} grid {:<12} block {:<12} shared {:<7} {:>8} launches, {} distinct\n",
                       sanitize(w.kernels[c.kernel].entry, 60), show(c.grid), show(c.block), c.shared, c.calls,
                       c.distinct);
  }
  if (s.classes.size() > kShownClasses) out += fmt::format("  ... and {} more\n", s.classes.size() - kShownClasses);
  return out;
}

std::string workload_json(const Workload& w) {
  const Summary s = summarise(w);
  nlohmann::json j = {{"name", w.name},
                      {"sha256", w.sha256},
                      {"arrivals", w.arrivals == Arrivals::external ? "external" : "closed"},
                      {"period_ns", w.period_ns},
                      {"last_arrival_ns", s.last_arrival},
                      {"requests", w.requests.size()},
                      {"threads", w.threads},
                      {"streams", w.streams.size()},
                      {"events", w.events},
                      {"blocking_sync", w.blocking_sync},
                      {"calls", s.calls},
                      {"buffers", w.buffers.size()},
                      {"buffer_bytes", total_buffer_bytes(w)},
                      {"written_bytes", s.written_bytes},
                      {"distinct_launches", w.launches.size()}};
  j["graphs"] = w.graphs.size();
  j["addresses"] = addresses_name(w.addresses);
  if (w.origin.recorded())
    j["recorded"] = {
        {"device", w.origin.device},   {"arch", w.origin.arch},   {"driver_version", w.origin.driver_version},
        {"command", w.origin.command}, {"begun", w.origin.begun}, {"notes", w.origin.notes}};
  for (const Fidelity& f : w.fidelity)
    j["fidelity"].push_back({{"device", f.device},
                             {"blocks", f.blocks},
                             {"equal", f.equal},
                             {"buffers", f.buffers},
                             {"exact", f.exact},
                             {"shifted_equal", f.shifted_equal}});
  j["requests_per_second"] = w.arrivals == Arrivals::external ? nlohmann::json(mean_rate(w)) : nlohmann::json();
  for (const WorkloadModule& module : w.modules)
    j["modules"].push_back({{"name", module.name}, {"bytes", module.image.size()}, {"sha256", module.sha256}});
  for (size_t i = 0; i < w.kernels.size(); ++i)
    j["kernels"].push_back({{"entry", w.kernels[i].entry},
                            {"module", w.kernels[i].module},
                            {"param_bytes", w.kernels[i].param_bytes},
                            {"launches", s.kernel_calls[i]}});
  for (const LaunchClass& c : s.classes)
    j["launch_classes"].push_back({{"kernel", w.kernels[c.kernel].entry},
                                   {"grid", list(c.grid)},
                                   {"block", list(c.block)},
                                   {"cluster", c.cluster.x == 0 ? nlohmann::json() : list(c.cluster)},
                                   {"shared", c.shared},
                                   {"launches", c.calls},
                                   {"distinct", c.distinct}});
  return j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace kgate
