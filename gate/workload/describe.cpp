// What `kgate inspect` says of a workload to people: one screen, however large the recording is. Lists are cut and say
// by how much; the JSON (describe_json.cpp) has everything.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "support/text.h"
#include "workload/build.h"
#include "workload/describe_summary.h"
#include "workload/kgw_names.h"

namespace kgate {

namespace {

constexpr size_t kShownModules = 3, kShownGraphs = 3, kShownKernels = 10, kShownClasses = 10, kShownNotes = 5;

std::string bytes(uint64_t count) { return format_bytes(static_cast<double>(count)); }
std::string ns(uint64_t count) { return format_ns(static_cast<double>(count)); }
std::string show(const Dim3& dim) { return fmt::format("{}x{}x{}", dim.x, dim.y, dim.z); }
std::string many(uint64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// Never 0 for a part that is there, never all while something is missing.
std::string share(uint64_t part, uint64_t whole) {
  if (whole == 0 || part == whole) return whole == 0 ? "0 %" : "100 %";
  const double percent = 100 * static_cast<double>(part) / static_cast<double>(whole);
  if (part == 0) return "0 %";
  if (percent < 0.05) return "<0.1 %";
  return percent > 99.95 ? ">99.9 %" : fmt::format("{:.1f} %", percent);
}

// Templates differ in their last arguments as often as in their first.
std::string shorten(const std::string& name, size_t width) {
  const std::string clean = sanitize(name, 4096);
  if (clean.size() <= width) return clean;
  const size_t tail = width / 3;
  return clean.substr(0, width - tail - 3) + "..." + clean.substr(clean.size() - tail);
}

std::string line(const char* label, const std::string& text) { return fmt::format("{:<10}{}\n", label, text); }

std::string cut(size_t shown, size_t all) {
  return all > shown ? fmt::format("  ... and {} more\n", all - shown) : std::string();
}

// ---- lines of the head ---------------------------------------------------------------------------------------------

std::string describe_origin(const Workload& w) {
  const Origin& o = w.origin;
  if (!o.recorded()) return "";
  std::string where = sanitize(o.device, 100);
  std::string details;
  const auto detail = [&](const std::string& text) { details += (details.empty() ? "" : ", ") + text; };
  if (o.arch != 0) detail(fmt::format("sm_{}", o.arch));
  if (o.sm_count != 0) detail(many(static_cast<uint64_t>(o.sm_count), "multiprocessor"));
  if (o.driver_version != 0) detail(fmt::format("driver {}.{}", o.driver_version / 1000, o.driver_version % 1000 / 10));
  if (!details.empty()) where += " (" + details + ")";
  if (!o.begun.empty()) where += ", " + sanitize(o.begun, 40);
  std::string out = line("recorded", "on " + where);
  if (!o.command.empty()) out += line("command", sanitize(o.command, 160));
  return out;
}

uint64_t gap_at(const WorkloadSummary& s, double q) {
  return s.gaps.empty() ? 0 : s.gaps[static_cast<size_t>(q * static_cast<double>(s.gaps.size() - 1))];
}

std::string describe_arrivals(const Workload& w, const WorkloadSummary& s) {
  if (w.arrivals == Arrivals::closed)
    return w.origin.recorded() ? "closed: requests as recorded, each thread's next one follows the last one"
                               : "closed: each thread's next request follows the last one";
  const double rate =
      w.period_ns == 0 ? 0 : static_cast<double>(w.requests.size()) * 1e9 / static_cast<double>(w.period_ns);
  return fmt::format("external: {:.6g} requests/s on average over {}; gap p50 {}, p90 {}, p99 {}", rate,
                     ns(w.period_ns), ns(gap_at(s, 0.5)), ns(gap_at(s, 0.9)), ns(gap_at(s, 0.99)));
}

std::string describe_calls(const Workload& w, const WorkloadSummary& s) {
  std::vector<size_t> kinds;
  for (size_t k = 0; k < s.calls.size(); ++k)
    if (s.calls[k] != 0) kinds.push_back(k);
  std::stable_sort(kinds.begin(), kinds.end(), [&](size_t a, size_t b) { return s.calls[a] > s.calls[b]; });
  std::string list;
  for (size_t k : kinds)
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", s.calls[k], call_kind_name(static_cast<CallKind>(k)));
  return fmt::format("{} ({})", w.calls.size(), list);
}

std::string describe_streams(const Workload& w) {
  std::array<uint64_t, 4> kinds{};
  uint64_t with_priority = 0;
  for (const WorkloadStream& stream : w.streams) {
    ++kinds[static_cast<size_t>(stream.kind)];
    with_priority += stream.priority != 0;
  }
  std::string list;
  for (size_t k = 0; k < kinds.size(); ++k)
    if (kinds[k] != 0)
      list +=
          fmt::format("{}{} {}", list.empty() ? "" : ", ", kinds[k], kgw::stream_kind_name(static_cast<StreamKind>(k)));
  if (with_priority != 0) list += fmt::format("; {} with a priority", with_priority);
  return fmt::format("{} ({})", w.streams.size(), list);
}

std::string describe_memory(const Workload& w, const WorkloadSummary& s) {
  std::string out = fmt::format("{}, {} ({} restored before each round)", w.buffers.size(),
                                bytes(total_buffer_bytes(w)), bytes(s.written_bytes));
  if (s.recorded_bytes != 0) {
    out += fmt::format("; {} of stored content", bytes(s.recorded_bytes));
    if (s.stored_bytes < s.recorded_bytes) out += fmt::format(", {} of it distinct", bytes(s.stored_bytes));
  }
  return out;
}

std::string describe_traffic(const WorkloadSummary& s) {
  std::string list;
  for (CallKind kind : {CallKind::upload, CallKind::download, CallKind::copy, CallKind::memset, CallKind::alloc}) {
    const Traffic& traffic = s.traffic[static_cast<size_t>(kind)];
    if (traffic.calls != 0)
      list += fmt::format("{}{} {}", list.empty() ? "" : ", ", call_kind_name(kind), bytes(traffic.bytes));
  }
  return list;
}

std::string describe_addresses(const Workload& w, const WorkloadSummary& s) {
  switch (w.addresses) {
    case Addresses::free:
      return "free: made to lie anywhere";
    case Addresses::unknown:
      return w.fidelity.empty() ? "unknown: kept as recorded until a replay with all of them shifted tells"
                                : "unknown: kept as recorded, since no replay left memory that could tell";
    case Addresses::relocatable:
      return "relocatable: the same with all addresses shifted, so the buffers may lie anywhere";
    case Addresses::pinned:
      return fmt::format("pinned: needs the recorded addresses of {}", many(s.placed_buffers, "buffer"));
  }
  return "";
}

std::string describe_fidelity(const Workload& w) {
  std::string out;
  for (const Fidelity& f : w.fidelity) {
    std::string text = "on " + sanitize(f.device, 100) + ": ";
    text += f.blocks == 0 ? "no memory to compare"
                          : fmt::format("{} of {} blocks of memory equal", share(f.equal, f.blocks), f.blocks);
    text += fmt::format(", {} of {} at their recorded address", f.exact, many(f.buffers, "buffer"));
    if (f.blocks != 0) text += fmt::format("; {} equal with all addresses shifted", share(f.shifted_equal, f.blocks));
    out += line("replayed", text);
  }
  if (w.fidelity.empty() && w.origin.recorded())
    out += line("replayed", "not yet: the first check does, and keeps the answer in this file");
  return out;
}

// ---- tables --------------------------------------------------------------------------------------------------------

std::string describe_graphs(const Workload& w, const WorkloadSummary& s) {
  if (w.graphs.empty()) return "";
  std::vector<size_t> order(w.graphs.size());
  for (size_t g = 0; g < order.size(); ++g) order[g] = g;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return s.graph_launches[a] > s.graph_launches[b]; });
  std::string out = fmt::format("\ngraphs ({})\n", w.graphs.size());
  for (size_t i = 0; i < std::min(order.size(), kShownGraphs); ++i) {
    const WorkloadGraph& graph = w.graphs[order[i]];
    std::array<uint64_t, 7> kinds{};
    for (const GraphNode& node : graph.nodes) ++kinds[static_cast<size_t>(node.kind)];
    std::string list;
    for (size_t k = 0; k < kinds.size(); ++k)
      if (kinds[k] != 0)
        list += fmt::format("{}{} {}", list.empty() ? "" : ", ", kinds[k],
                            graph_node_kind_name(static_cast<GraphNode::Kind>(k)));
    out += fmt::format("  graph {:<4} {:>8} launches of {} ({})\n", order[i], s.graph_launches[order[i]],
                       many(graph.nodes.size(), "node"), list);
  }
  return out + cut(kShownGraphs, order.size());
}

std::string describe_modules(const Workload& w) {
  std::vector<const WorkloadModule*> modules;
  for (const WorkloadModule& module : w.modules) modules.push_back(&module);
  std::stable_sort(modules.begin(), modules.end(),
                   [](const WorkloadModule* a, const WorkloadModule* b) { return a->image.size() > b->image.size(); });
  std::string out = fmt::format("\nmodules ({})\n", w.modules.size());
  for (size_t i = 0; i < std::min(modules.size(), kShownModules); ++i)
    out += fmt::format("  {:<32} {:>12}  {}{}\n", shorten(modules[i]->name, 32), bytes(modules[i]->image.size()),
                       modules[i]->sha256.substr(0, 16), modules[i]->portable.empty() ? "" : "  with PTX");
  return out + cut(kShownModules, modules.size());
}

std::string describe_kernels(const Workload& w, const WorkloadSummary& s) {
  const std::vector<uint32_t> order = kernels_by_launches(s);
  std::string out = fmt::format("\n{:<52} {:>9} {:>8} {:>10}\n", fmt::format("kernels ({} launched)", order.size()),
                                "launches", "share", "a request");
  for (size_t i = 0; i < std::min(order.size(), kShownKernels); ++i) {
    const uint64_t launches = s.kernel_launches[order[i]];
    out += fmt::format("  {:<50} {:>9} {:>8} {:>10.4g}\n", shorten(w.kernels[order[i]].entry, 50), launches,
                       share(launches, s.launches),
                       static_cast<double>(launches) / static_cast<double>(w.requests.size()));
  }
  return out + cut(kShownKernels, order.size());
}

std::string describe_classes(const Workload& w, const WorkloadSummary& s) {
  std::string out = fmt::format("\nlaunch classes ({}; {} distinct launches)\n", s.classes.size(), w.launches.size());
  for (size_t i = 0; i < std::min(s.classes.size(), kShownClasses); ++i) {
    const LaunchClass& c = s.classes[i];
    const std::string cluster = c.cluster.x == 0 ? "" : ", cluster " + show(c.cluster);
    out += fmt::format("  {:<32} grid {:<12} block {:<10} shared {:<7} {:>8} launches, {} distinct{}\n",
                       shorten(w.kernels[c.kernel].entry, 32), show(c.grid), show(c.block), c.shared, c.launches,
                       c.distinct, cluster);
  }
  return out + cut(kShownClasses, s.classes.size());
}

std::string describe_notes(const Workload& w) {
  const std::vector<std::string>& notes = w.origin.notes;
  if (notes.empty()) return "";
  std::string out = "\nnot as the application had it\n";
  for (size_t i = 0; i < std::min(notes.size(), kShownNotes); ++i) out += "  " + sanitize(notes[i], 200) + "\n";
  return out + cut(kShownNotes, notes.size());
}

}  // namespace

std::string describe_workload(const Workload& w) {
  const WorkloadSummary s = summarise(w);
  std::string out = line("workload", sanitize(w.name, 120)) + describe_origin(w) + line("sha256", w.sha256);
  out += line("arrivals", describe_arrivals(w, s));
  out += line("requests", fmt::format("{} of {} calls, {}, {}{}", w.requests.size(),
                                      s.min_calls == s.max_calls ? std::to_string(s.min_calls)
                                                                 : fmt::format("{} to {}", s.min_calls, s.max_calls),
                                      many(w.threads, "thread"), many(w.events, "event"),
                                      w.blocking_sync ? ", blocking waits" : ""));
  out += line("calls", describe_calls(w, s));
  if (s.edges != 0) out += line("", many(s.edges, "wait") + " of a thread for another thread's call");
  out +=
      line("launches",
           fmt::format("{} of {}{}", s.launches, many(kernels_by_launches(s).size(), "kernel"),
                       s.launches_in_graphs == 0 ? "" : fmt::format(", {} of them by graphs", s.launches_in_graphs)));
  out += line("streams", describe_streams(w));
  out += line("buffers", describe_memory(w, s));
  if (const std::string traffic = describe_traffic(s); !traffic.empty()) out += line("traffic", traffic);
  out += line("addresses", describe_addresses(w, s)) + describe_fidelity(w) + describe_notes(w);
  return out + describe_graphs(w, s) + describe_modules(w) + describe_kernels(w, s) + describe_classes(w, s);
}

}  // namespace kgate
