// Rows as structs. What is NULL in the file (no round, no class, not collected) is 0xffffffff for indices and 0 for
// times. A trace may be damaged or made up: values are read as they are and only phases are checked, because they
// become an enum.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <unordered_map>

#include "trace/store_state.h"

namespace kgate {

using trace::Statement;

namespace {

wire::Phase phase_of(std::string_view text) {
  if (text == "measured") return wire::Phase::measured;
  if (text == "warmup") return wire::Phase::warmup;
  if (text == "setup") return wire::Phase::setup;
  throw Error(Exit::bad_input, "damaged trace: phase \"" + std::string(text.substr(0, 40)) + "\"");
}

}  // namespace

std::vector<RoundRow> TraceStore::rounds() const {
  Statement s(*state_->database, "SELECT round, arm, pair, begin_ns, end_ns FROM rounds ORDER BY round");
  std::vector<RoundRow> rows;
  while (s.step()) rows.push_back({s.small(0), s.small(1), s.small(2), s.unsigned_integer(3), s.unsigned_integer(4)});
  return rows;
}

std::vector<RequestRow> TraceStore::requests() const {
  Statement s(
      *state_->database,
      "SELECT round, arm, request, sequence, thread, phase, arrival_ns, due_ns, issue_ns, end_ns, lag_ns, quarantined "
      "FROM requests ORDER BY rowid");
  std::vector<RequestRow> rows;
  while (s.step())
    rows.push_back({s.small(0), s.small(1), s.small(2), s.small(3), s.small(4), phase_of(s.view(5)),
                    s.unsigned_integer(6), s.unsigned_integer(7), s.unsigned_integer(8), s.unsigned_integer(9),
                    s.unsigned_integer(10), s.integer(11) != 0});
  return rows;
}

namespace {

constexpr const char* kKernelColumns =
    "SELECT IFNULL(round,-1), IFNULL(arm,-1), IFNULL(sequence,-1), IFNULL(request,-1), IFNULL(launch,-1), "
    "IFNULL(item,-1), IFNULL(launch_class,-1), phase, judged, replaced, kernel, shape, start_ns, end_ns, "
    "launch_begin_ns, launch_end_ns, IFNULL(stream,-1), previous_end_ns, queue_ns, process, thread, device_stream, "
    "context, correlation_id, graph_id, graph_node FROM kernels ORDER BY rowid";

// What a row of `kernels` refers to, each read once.
struct Referred {
  Referred(const trace::Database& database, bool with_names) {
    Statement names_of(database, "SELECT kernel, kernel_name, kernel_id FROM kernel_names");
    while (with_names && names_of.step()) names[names_of.integer(0)] = {names_of.text(1), names_of.text(2)};
    Statement shapes_of(database,
                        "SELECT shape, registers, static_shared, dynamic_shared, local_bytes, grid_x, grid_y, grid_z, "
                        "block_x, block_y, block_z, cluster_x, cluster_y, cluster_z FROM launch_shapes");
    while (shapes_of.step())
      for (int i = 0; i < 13; ++i) shapes[shapes_of.integer(0)][static_cast<size_t>(i)] = shapes_of.small(i + 1);
  }

  void fill(int64_t kernel, int64_t shape, KernelRow* row) {
    if (auto at = names.find(kernel); at != names.end())
      row->name = at->second.first, row->kernel_id = at->second.second;
    const std::array<uint32_t, 13>& s = shapes[shape];  // of a launch without a kernel: zeros
    row->registers = s[0], row->static_shared = s[1], row->dynamic_shared = s[2], row->local_per_thread = s[3];
    for (size_t i = 0; i < 3; ++i) row->grid[i] = s[4 + i], row->block[i] = s[7 + i], row->cluster[i] = s[10 + i];
  }

  std::unordered_map<int64_t, std::pair<std::string, std::string>> names;
  std::unordered_map<int64_t, std::array<uint32_t, 13>> shapes;
};

}  // namespace

std::vector<KernelRow> TraceStore::kernels(bool with_names) const {
  Referred referred(*state_->database, with_names);
  Statement s(*state_->database, kKernelColumns);
  std::vector<KernelRow> rows;
  while (s.step()) {
    KernelRow& k = rows.emplace_back();
    k.round = s.small(0), k.arm = s.small(1), k.sequence = s.small(2), k.request = s.small(3), k.launch = s.small(4);
    k.item = s.small(5), k.launch_class = s.small(6), k.phase = phase_of(s.view(7));
    k.judged = s.integer(8) != 0, k.replaced = s.integer(9) != 0;
    referred.fill(s.integer(10), s.null(11) ? -1 : s.integer(11), &k);
    k.start = s.unsigned_integer(12), k.end = s.unsigned_integer(13);
    k.launch_begin = s.unsigned_integer(14), k.launch_end = s.unsigned_integer(15), k.stream = s.small(16);
    k.previous_end = s.unsigned_integer(17);
    if (!s.null(18)) k.queue_ns = s.unsigned_integer(18);
    k.process = s.small(19), k.thread = s.small(20), k.device_stream = s.small(21), k.context = s.small(22);
    k.correlation = s.small(23), k.graph = s.small(24), k.graph_node = s.unsigned_integer(25);
  }
  return rows;
}

std::vector<ApiRow> TraceStore::api_calls() const {
  Statement s(*state_->database,
              "SELECT IFNULL(round,-1), IFNULL(arm,-1), IFNULL(sequence,-1), thread, phase, name, is_launch, is_sync, "
              "is_alloc, start_ns, end_ns, process, correlation_id, return_value FROM api_calls ORDER BY rowid");
  std::vector<ApiRow> rows;
  while (s.step())
    rows.push_back({s.small(0), s.small(1), s.small(2), s.small(3), phase_of(s.view(4)), s.text(5), s.integer(6) != 0,
                    s.integer(7) != 0, s.integer(8) != 0, s.unsigned_integer(9), s.unsigned_integer(10), s.small(11),
                    s.small(12), s.small(13)});
  return rows;
}

std::vector<SyncRow> TraceStore::syncs() const {
  constexpr uint32_t kStreamWaitsForEvent = 2;
  Statement s(*state_->database,
              "SELECT IFNULL(round,-1), IFNULL(arm,-1), IFNULL(sequence,-1), thread, phase, type, start_ns, end_ns, "
              "process FROM syncs ORDER BY rowid");
  std::vector<SyncRow> rows;
  while (s.step())
    rows.push_back({s.small(0), s.small(1), s.small(2), s.small(3), phase_of(s.view(4)), s.small(5),
                    s.unsigned_integer(6), s.unsigned_integer(7), s.small(8), s.small(5) != kStreamWaitsForEvent});
  return rows;
}

std::vector<CopyRow> TraceStore::copies() const {
  Statement s(*state_->database,
              "SELECT IFNULL(round,-1), IFNULL(arm,-1), start_ns, end_ns, bytes, IFNULL(copy_kind,-1), process, "
              "device_stream, context, correlation_id FROM copies ORDER BY rowid");
  std::vector<CopyRow> rows;
  while (s.step())
    rows.push_back({s.small(0), s.small(1), s.unsigned_integer(2), s.unsigned_integer(3), s.unsigned_integer(4),
                    s.small(5), s.small(6), s.small(7), s.small(8), s.small(9)});
  return rows;
}

std::vector<HostCallRow> TraceStore::host_calls() const {
  Statement s(*state_->database,
              "SELECT IFNULL(round,-1), IFNULL(arm,-1), thread, name, use, begin_ns, end_ns, blocked_ns, preempted_ns, "
              "run_queue_ns, process FROM host_calls ORDER BY rowid");
  std::vector<HostCallRow> rows;
  while (s.step())
    rows.push_back({s.small(0), s.small(1), s.small(2), s.text(3), s.text(4), s.unsigned_integer(5),
                    s.unsigned_integer(6), s.unsigned_integer(7), s.unsigned_integer(8), s.unsigned_integer(9),
                    s.small(10)});
  return rows;
}

std::vector<OffCpuRow> TraceStore::off_cpu() const {
  Statement s(*state_->database,
              "SELECT IFNULL(round,-1), IFNULL(arm,-1), thread, begin_ns, end_ns, state, run_queue_ns, process FROM "
              "off_cpu ORDER BY rowid");
  std::vector<OffCpuRow> rows;
  while (s.step())
    rows.push_back({s.small(0), s.small(1), s.small(2), s.unsigned_integer(3), s.unsigned_integer(4), s.small(5),
                    s.unsigned_integer(6), s.small(7)});
  return rows;
}

std::vector<ProcessRow> TraceStore::processes() const {
  Statement s(*state_->database,
              "SELECT process, parent, command, begin_ns, end_ns, cuda, recorded, probes, IFNULL(round,-1) FROM "
              "processes ORDER BY rowid");
  std::vector<ProcessRow> rows;
  while (s.step())
    rows.push_back({s.small(0), s.small(1), s.text(2), s.unsigned_integer(3), s.unsigned_integer(4), s.integer(5) != 0,
                    s.integer(6) != 0, s.integer(7) != 0, s.small(8)});
  return rows;
}

std::vector<ClassRow> TraceStore::classes() const {
  struct Key {
    uint32_t arm, launch_class;
    int64_t kernel;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, std::vector<uint64_t>> durations;
  Statement s(*state_->database,
              "SELECT arm, launch_class, kernel, duration_ns FROM kernels WHERE phase = 'measured' AND launch_class IS "
              "NOT NULL AND arm IS NOT NULL AND duration_ns IS NOT NULL");
  while (s.step()) durations[{s.small(0), s.small(1), s.integer(2)}].push_back(s.unsigned_integer(3));
  Statement name(*state_->database, "SELECT kernel_name, kernel_id, demangled FROM kernel_names WHERE kernel = ?");
  Statement label(*state_->database, "SELECT label, pooled FROM launch_classes WHERE launch_class = ?");
  std::vector<ClassRow> rows;
  for (auto& [key, values] : durations) {
    ClassRow& row = rows.emplace_back();
    row.arm = key.arm, row.launch_class = key.launch_class, row.launches = values.size();
    name.start(key.kernel);
    if (name.step()) row.kernel_name = name.text(0), row.kernel_id = name.text(1), row.demangled = name.text(2);
    label.start(key.launch_class);
    if (label.step()) row.label = label.text(0), row.pooled = label.integer(1) != 0;
    std::sort(values.begin(), values.end());
    double sum = 0;
    for (uint64_t value : values) sum += static_cast<double>(value);
    row.mean_ns = sum / static_cast<double>(values.size());
    auto rank = [&](double q) {
      return static_cast<double>(
          values[static_cast<size_t>(std::ceil(q * static_cast<double>(values.size()) - 1e-9)) - 1]);
    };
    row.p50_ns = rank(0.50), row.p99_ns = rank(0.99);
  }
  return rows;
}

std::vector<VirtualRow> TraceStore::virtual_counts() const {
  Statement s(*state_->database,
              "SELECT round, arm, sequence, launch, phase, judged, thread_instructions, global_load_sectors + "
              "global_store_sectors, "
              "bank_conflicts, divergent_branches FROM counters ORDER BY rowid");
  std::vector<VirtualRow> rows;
  while (s.step())
    rows.push_back({s.small(0), s.small(1), s.small(2), s.small(3), phase_of(s.view(4)), s.integer(5) != 0,
                    s.unsigned_integer(6), s.unsigned_integer(7), s.unsigned_integer(8), s.unsigned_integer(9)});
  return rows;
}

std::vector<HealthRow> TraceStore::health() const {
  if (state_->ingest) return state_->ingest->health().rows();
  Statement s(*state_->database, "SELECT name, value, \"limit\", note FROM health ORDER BY name");
  std::vector<HealthRow> rows;
  while (s.step()) rows.push_back({s.text(0), s.real(1), s.real(2), s.text(3)});
  return rows;
}

RunInfo TraceStore::info() const {
  Statement s(*state_->database, "SELECT key, value FROM run");
  RunInfo info;
  while (s.step()) {
    if (s.text(0) == "tier")
      info.tier = s.text(1);
    else if (s.text(0) != "finished")
      info.facts[s.text(0)] = s.text(1);
  }
  return info;
}

}  // namespace kgate
