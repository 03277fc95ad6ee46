// Rows as structs. What is NULL in the file (no round, no class, not collected) is 0xffffffff for indices and 0 for
// times. A trace may be damaged or made up: values are read as they are and only phases are checked, because they
// become an enum.
#include "trace/store_state.h"

namespace kgate {

using trace::Statement;

namespace {

wire::Phase phase_of(const std::string& text) {
  if (text == "measured") return wire::Phase::measured;
  if (text == "warmup") return wire::Phase::warmup;
  if (text == "setup") return wire::Phase::setup;
  throw Error(Exit::bad_input, "damaged trace: phase \"" + text.substr(0, 40) + "\"");
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
    rows.push_back({s.small(0), s.small(1), s.small(2), s.small(3), s.small(4), phase_of(s.text(5)),
                    s.unsigned_integer(6), s.unsigned_integer(7), s.unsigned_integer(8), s.unsigned_integer(9),
                    s.unsigned_integer(10), s.integer(11) != 0});
  return rows;
}

std::vector<KernelRow> TraceStore::kernels() const {
  Statement s(
      *state_->database,
      "SELECT IFNULL(round,-1), IFNULL(arm,-1), IFNULL(sequence,-1), IFNULL(request,-1), IFNULL(launch,-1), "
      "IFNULL(item,-1), "
      "IFNULL(launch_class,-1), phase, judged, replaced, kernel_name, kernel_id, start_ns, end_ns, launch_begin_ns, "
      "launch_end_ns, IFNULL(stream,-1), registers, static_shared, dynamic_shared, local_bytes, grid_x, grid_y, "
      "grid_z, "
      "block_x, block_y, block_z, previous_end_ns FROM kernels JOIN kernel_names USING(kernel) ORDER BY kernels.rowid");
  std::vector<KernelRow> rows;
  while (s.step()) {
    KernelRow k;
    k.round = s.small(0), k.arm = s.small(1), k.sequence = s.small(2), k.request = s.small(3), k.launch = s.small(4);
    k.item = s.small(5), k.launch_class = s.small(6), k.phase = phase_of(s.text(7));
    k.judged = s.integer(8) != 0, k.replaced = s.integer(9) != 0;
    k.name = s.text(10), k.kernel_id = s.text(11);
    k.start = s.unsigned_integer(12), k.end = s.unsigned_integer(13);
    k.launch_begin = s.unsigned_integer(14), k.launch_end = s.unsigned_integer(15), k.stream = s.small(16);
    k.registers = s.small(17), k.static_shared = s.small(18), k.dynamic_shared = s.small(19),
    k.local_per_thread = s.small(20);
    for (int i = 0; i < 3; ++i) k.grid[i] = s.small(21 + i), k.block[i] = s.small(24 + i);
    k.previous_end = s.unsigned_integer(27);
    rows.push_back(std::move(k));
  }
  return rows;
}

std::vector<ApiRow> TraceStore::api_calls() const {
  Statement s(*state_->database,
              "SELECT IFNULL(round,-1), IFNULL(arm,-1), IFNULL(sequence,-1), thread, phase, name, is_launch, is_sync, "
              "is_alloc, "
              "start_ns, end_ns FROM api_calls ORDER BY rowid");
  std::vector<ApiRow> rows;
  while (s.step())
    rows.push_back({s.small(0), s.small(1), s.small(2), s.small(3), phase_of(s.text(4)), s.text(5), s.integer(6) != 0,
                    s.integer(7) != 0, s.integer(8) != 0, s.unsigned_integer(9), s.unsigned_integer(10)});
  return rows;
}

std::vector<OffCpuRow> TraceStore::off_cpu() const {
  Statement s(*state_->database,
              "SELECT IFNULL(round,-1), IFNULL(arm,-1), thread, begin_ns, end_ns, state, run_queue_ns FROM off_cpu "
              "ORDER BY rowid");
  std::vector<OffCpuRow> rows;
  while (s.step())
    rows.push_back({s.small(0), s.small(1), s.small(2), s.unsigned_integer(3), s.unsigned_integer(4), s.small(5),
                    s.unsigned_integer(6)});
  return rows;
}

std::vector<VirtualRow> TraceStore::virtual_counts() const {
  Statement s(*state_->database,
              "SELECT round, arm, sequence, launch, phase, judged, thread_instructions, global_load_sectors + "
              "global_store_sectors, "
              "bank_conflicts, divergent_branches FROM counters ORDER BY rowid");
  std::vector<VirtualRow> rows;
  while (s.step())
    rows.push_back({s.small(0), s.small(1), s.small(2), s.small(3), phase_of(s.text(4)), s.integer(5) != 0,
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
