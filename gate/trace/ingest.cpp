// Order: rounds first (they give every other row its arm), then requests, launches, and what belongs to neither.
// A record that refers to something that does not exist is dropped and counted in record_stream_bad.
#include "trace/ingest.h"

#include <algorithm>

#include "support/text.h"
#include "trace/driver_calls.h"

namespace kgate::trace {

using namespace wire;

struct Statements {
  explicit Statements(const Database& db)
      : round(db, "INSERT INTO rounds VALUES(?,?,?,?,?,?)"),
        request(db, "INSERT INTO requests VALUES(?,?,?,?,?,?,?,?,?,?,?,?)"),
        kernel_name(db, "INSERT INTO kernel_names VALUES(?,?,?)"),
        kernel(db, "INSERT INTO kernels VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"),
        counters(db, "INSERT INTO counters VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"),
        api(db, "INSERT INTO api_calls VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)"),
        sync(db, "INSERT INTO syncs VALUES(?,?,?,?,?,?,?,?)"),
        copy(db, "INSERT INTO copies VALUES(?,?,?,?,?,?,?,?)"),
        overhead(db, "INSERT INTO overheads VALUES(?,?,?,?,?,?)"),
        host_call(db, "INSERT INTO host_calls VALUES(?,?,?,?,?,?,?)"),
        off_cpu(db, "INSERT INTO off_cpu VALUES(?,?,?,?,?,?,?)"),
        probe(db, "INSERT INTO probes VALUES(?,?,?,?,?) ON CONFLICT(name) DO UPDATE SET hits = hits + excluded.hits") {}
  Statement round, request, kernel_name, kernel, counters, api, sync, copy, overhead, host_call, off_cpu, probe;
};

namespace {

using Number = std::optional<uint32_t>;
using Time = std::optional<uint64_t>;

Time time_or_null(uint64_t ns) { return ns != 0 ? Time(ns) : std::nullopt; }

// Round number and arm of a time; both NULL outside rounds.
struct Place {
  Number round, arm;
};
Place place_of(const Block& block, uint64_t time) {
  uint32_t index = block.timeline.round_at(time);
  if (index == kNoIndex) return {};
  return {block.records.rounds[index].head.round, block.records.rounds[index].arm};
}

// The union of the collector's own activity.
std::vector<std::pair<uint64_t, uint64_t>> overhead_spans(const std::vector<OverheadRecord>& overheads) {
  std::vector<std::pair<uint64_t, uint64_t>> spans, merged;
  for (const OverheadRecord& one : overheads) spans.push_back({one.start, one.end});
  std::sort(spans.begin(), spans.end());
  for (const auto& span : spans) {
    if (merged.empty() || span.first > merged.back().second)
      merged.push_back(span);
    else
      merged.back().second = std::max(merged.back().second, span.second);
  }
  return merged;
}

bool overlaps(const std::vector<std::pair<uint64_t, uint64_t>>& spans, uint64_t begin, uint64_t end) {
  auto after = std::upper_bound(spans.begin(), spans.end(), std::pair(end, UINT64_MAX));
  return after != spans.begin() && (after - 1)->second >= begin;
}

}  // namespace

const char* phase_name(Phase phase) {
  switch (phase) {
    case Phase::warmup:
      return "warmup";
    case Phase::measured:
      return "measured";
    case Phase::setup:
      break;
  }
  return "setup";
}

Ingest::Ingest(const Database& database, const ArmKernels& plan)
    : database_(database), plan_(plan), statements_(std::make_unique<Statements>(database)) {}

Ingest::~Ingest() = default;

void Ingest::reject(const std::string& why) { health_.add({"record_stream_bad", 1, 0, why}); }

const Ingest::Kernel* Ingest::planned(const LaunchRecord& launch, uint32_t arm) const {
  if (launch.launch >= plan_.judged_launch.size()) return nullptr;
  const std::vector<Kernel>* kernels = &plan_.workload_kernels;
  if (launch.replaced) {
    if (arm >= plan_.arm_kernels.size()) return nullptr;
    kernels = &plan_.arm_kernels[arm];
  }
  return launch.kernel < kernels->size() ? &(*kernels)[launch.kernel] : nullptr;
}

uint32_t Ingest::kernel_row(const Kernel& kernel) {
  auto [at, added] = kernel_rows_[kernel.name].try_emplace(kernel.kernel_id, kernel_row_count_);
  if (added) statements_->kernel_name.run(kernel_row_count_++, kernel.name, kernel.kernel_id);
  return at->second;
}

void Ingest::add_block(std::span<const std::byte> memfd, const std::vector<HostEvent>& host_events,
                       const std::vector<ProbeSymbol>& symbols, const ProbeHealth* probes,
                       const CollectorHealth* collector) {
  const Records records = read_records(memfd);
  Block block{records,          host_events, symbols, probes, collector, join_records(records, host_events, symbols),
              Timeline(records)};
  judge_clock(&block);
  judge_records(block);
  write_rounds(block);
  write_requests(block);
  assign_classes(block);
  write_launches(block);
  write_free_kernels(block);
  write_counters(block);
  write_device_calls(block);
  write_host_events(block);
  judge_kernel_times(block);
  judge_probes(block);
  ++block_;
}

void Ingest::write_rounds(const Block& block) {
  block_rounds_.clear();
  for (const RoundRecord& round : block.records.rounds) {
    if (!rounds_.insert(round.head.round).second) {
      reject("round " + std::to_string(round.head.round) + " is there twice");
      continue;
    }
    block_rounds_.insert(round.head.round);
    statements_->round.run(round.head.round, round.arm, round.pair, block_, round.begin, round.end);
  }
}

void Ingest::write_requests(const Block& block) {
  auto spans = overhead_spans(block.records.overheads);
  for (const RequestRecord& request : block.records.requests) {
    uint32_t round = block.timeline.round_index(request.head.round);
    if (round == kNoIndex || !block_rounds_.contains(request.head.round)) {
      if (request.head.round != kNoRound)
        reject("a request in round " + std::to_string(request.head.round) + ", which did not end");
      continue;
    }
    bool quarantined = overlaps(spans, request.issue, request.end);
    if (request.phase == Phase::measured) {
      ++totals_.requests;
      totals_.quarantined += quarantined;
    }
    statements_->request.run(request.head.round, block.records.rounds[round].arm, request.sequence, request.request,
                             request.thread, phase_name(request.phase), time_or_null(request.arrival), request.due,
                             request.issue, request.end, request.lag, quarantined);
  }
}

void Ingest::assign_classes(const Block& block) {
  struct Chosen {
    uint32_t arm;
    LaunchClasses::Seen seen;
  };
  std::map<uint32_t, Chosen> by_launch;
  for (size_t i = 0; i < block.records.launches.size(); ++i) {
    const LaunchRecord& launch = block.records.launches[i];
    uint32_t round = block.timeline.round_index(launch.head.round);
    if (round == kNoIndex || launch.item != 0) continue;
    uint32_t arm = block.records.rounds[round].arm;
    const Kernel* kernel = planned(launch, arm);
    if (kernel == nullptr) continue;
    auto [at, added] = by_launch.try_emplace(launch.launch, Chosen{arm, {launch.launch, {}, 0}});
    ++at->second.seen.count;
    if (!added && arm >= at->second.arm) continue;
    LaunchShape shape{kernel->name, kernel->kernel_id, {}, {}, 0};
    if (uint32_t match = block.join.launches[i].kernel; match != kNoIndex) {
      const KernelRecord& record = block.records.kernels[match];
      std::copy_n(record.grid, 3, shape.grid.begin());
      std::copy_n(record.block, 3, shape.block.begin());
      shape.shared = record.dynamic_shared;
    }
    at->second = {arm, {launch.launch, std::move(shape), at->second.seen.count}};
  }
  std::vector<LaunchClasses::Seen> seen;
  for (auto& [launch, chosen] : by_launch) seen.push_back(std::move(chosen.seen));
  classes_.assign(seen);
}

void Ingest::write_launches(const Block& block) {
  for (uint32_t i = 0; i < block.records.launches.size(); ++i) write_launch(block, i);
}

void Ingest::write_launch(const Block& block, uint32_t index) {
  const LaunchRecord& launch = block.records.launches[index];
  const LaunchMatch& match = block.join.launches[index];
  const KernelRecord* kernel = match.kernel != kNoIndex ? &block.records.kernels[match.kernel] : nullptr;
  static const std::string kNoName;
  const std::string* seen_name = &kNoName;
  if (kernel != nullptr)
    if (auto at = block.records.names.find(kernel->name); at != block.records.names.end()) seen_name = &at->second;

  Number round, arm, launch_class;
  const Kernel* plan = nullptr;
  if (launch.head.round != kNoRound) {
    uint32_t at = block.timeline.round_index(launch.head.round);
    if (at == kNoIndex || !block_rounds_.contains(launch.head.round))
      return reject("a launch in round " + std::to_string(launch.head.round) + ", which did not end");
    round = launch.head.round;
    arm = block.records.rounds[at].arm;
    plan = planned(launch, *arm);
    if (plan == nullptr) return reject("a launch names a kernel or a workload launch that does not exist");
    launch_class = classes_.class_of(launch.launch);
    if (kernel == nullptr && block.collector != nullptr) health_.add({"unmatched_launches", 1, 0, {}});
    if (kernel != nullptr && *seen_name != plan->name && *seen_name != sanitize(plan->name, kMaxNameBytes))
      health_.add({"kernel_name_mismatch", 1, 0,
                   "planned " + sanitize(plan->name, 80) + ", the device ran " + sanitize(*seen_name, 80)});
  }

  uint64_t begin = launch.begin, end = launch.end;
  const char* source = "worker";
  if (match.api != kNoIndex) {
    begin = block.records.apis[match.api].start, end = block.records.apis[match.api].end, source = "cupti";
  } else if (match.host != kNoIndex) {
    begin = block.host_events[match.host].begin, end = block.host_events[match.host].end, source = "probe";
  }
  Phase phase = round ? launch.phase : Phase::setup;
  bool judged = round && plan_.judged_launch[launch.launch];
  auto field = [&](uint32_t KernelRecord::*member) { return kernel ? Number(kernel->*member) : std::nullopt; };
  auto dim = [&](const uint32_t(KernelRecord::*member)[3], int axis) {
    return kernel ? Number((kernel->*member)[axis]) : std::nullopt;
  };
  statements_->kernel.run(
      round, arm, launch.sequence, launch.request, launch.launch, launch.item, launch_class, phase_name(phase), judged,
      launch.replaced != 0, plan ? kernel_row(*plan) : kernel_row({*seen_name, {}}),
      kernel ? time_or_null(kernel->start) : std::nullopt, kernel ? time_or_null(kernel->end) : std::nullopt, begin,
      end, source, kernel ? time_or_null(block.join.previous_end[match.kernel]) : std::nullopt, launch.thread,
      launch.stream, field(&KernelRecord::stream), field(&KernelRecord::context), field(&KernelRecord::correlation),
      kernel ? Number(kernel->registers) : std::nullopt, field(&KernelRecord::static_shared),
      field(&KernelRecord::dynamic_shared), field(&KernelRecord::local_per_thread), dim(&KernelRecord::grid, 0),
      dim(&KernelRecord::grid, 1), dim(&KernelRecord::grid, 2), dim(&KernelRecord::block, 0),
      dim(&KernelRecord::block, 1), dim(&KernelRecord::block, 2));
}

// Kernels that no launch of the worker explains: outside rounds they are set-up, inside they are a finding.
void Ingest::write_free_kernels(const Block& block) {
  for (uint32_t index : block.join.free_kernels) {
    const KernelRecord& kernel = block.records.kernels[index];
    Place place = place_of(block, kernel.start);
    if (kernel.start == 0 && block.timeline.round_index(kernel.head.round) != kNoIndex) place.round = kernel.head.round;
    auto at = block.records.names.find(kernel.name);
    std::string name = at != block.records.names.end() ? at->second : std::string();
    if (place.round) health_.add({"unmatched_kernels", 1, 0, "first seen: " + sanitize(name, 80)});
    statements_->kernel.run(place.round, place.arm, std::nullopt, std::nullopt, std::nullopt, std::nullopt,
                            std::nullopt, "setup", false, false, kernel_row({name, {}}), time_or_null(kernel.start),
                            time_or_null(kernel.end), std::nullopt, std::nullopt, std::nullopt,
                            time_or_null(block.join.previous_end[index]), std::nullopt, std::nullopt, kernel.stream,
                            kernel.context, kernel.correlation, kernel.registers, kernel.static_shared,
                            kernel.dynamic_shared, kernel.local_per_thread, kernel.grid[0], kernel.grid[1],
                            kernel.grid[2], kernel.block[0], kernel.block[1], kernel.block[2]);
  }
}

void Ingest::write_counters(const Block& block) {
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> launches;  // (thread, begin)
  if (!block.records.counters.empty())
    for (uint32_t i = 0; i < block.records.launches.size(); ++i)
      launches.emplace(std::pair(block.records.launches[i].thread, block.records.launches[i].begin), i);
  for (const VirtualCountersRecord& c : block.records.counters) {
    auto at = launches.find({c.thread, c.launch_begin});
    if (at == launches.end()) {
      reject("counters of a launch that is not there");
      continue;
    }
    const LaunchRecord& launch = block.records.launches[at->second];
    uint32_t round = block.timeline.round_index(launch.head.round);
    if (round == kNoIndex || !block_rounds_.contains(launch.head.round)) continue;
    uint32_t arm = block.records.rounds[round].arm;
    const Kernel* plan = planned(launch, arm);
    if (plan == nullptr) continue;
    statements_->counters.run(launch.head.round, arm, launch.sequence, launch.launch, launch.item,
                              classes_.class_of(launch.launch), phase_name(launch.phase),
                              static_cast<bool>(plan_.judged_launch[launch.launch]), kernel_row(*plan),
                              c.warp_instructions, c.thread_instructions, c.global_load_sectors, c.global_store_sectors,
                              c.global_requests, c.bank_conflicts, c.divergent_branches, c.barriers, c.atomics);
  }
}

void Ingest::write_device_calls(const Block& block) {
  const Records& records = block.records;
  for (const ApiRecord& api : records.apis) {
    Place place = place_of(block, api.start);
    uint32_t request = place.round ? block.timeline.request_at(*place.round, api.thread, api.start) : kNoIndex;
    Number sequence = request != kNoIndex ? Number(records.requests[request].sequence) : std::nullopt;
    Phase phase = request != kNoIndex ? records.requests[request].phase : Phase::setup;
    const DriverCall& call = driver_call(api.cbid);
    statements_->api.run(place.round, place.arm, sequence, api.thread, phase_name(phase), call.name, api.start, api.end,
                         api.correlation, api.result, call.is_launch, call.is_sync, call.is_alloc);
  }
  for (const SyncRecord& sync : records.syncs) {
    Place place = place_of(block, sync.start);
    Number stream = sync.stream != kNoIndex ? Number(sync.stream) : std::nullopt;
    statements_->sync.run(place.round, place.arm, sync.type, sync.start, sync.end, sync.correlation, stream,
                          sync.context);
  }
  for (const MemoryRecord& memory : records.memories) {
    Place place = place_of(block, memory.start);
    Number kind = memory.copy_kind != kNoIndex ? Number(memory.copy_kind) : std::nullopt;
    statements_->copy.run(place.round, place.arm, kind, memory.bytes, memory.start, memory.end, memory.correlation,
                          memory.stream);
  }
  for (const OverheadRecord& overhead : records.overheads) {
    Place place = place_of(block, overhead.start);
    statements_->overhead.run(place.round, place.arm, overhead.kind, overhead.thread, overhead.start, overhead.end);
  }
}

void Ingest::write_host_events(const Block& block) {
  for (const HostEvent& event : block.host_events) {
    // A span belongs to the round that holds its middle: the spans of tier T2 reach a little past their round at both
    // ends.
    bool span = event.kind == HostEventKind::off_cpu && event.end > event.begin;
    Place place = place_of(block, span ? event.begin + (event.end - event.begin) / 2 : event.begin);
    if (event.kind == HostEventKind::off_cpu) {
      statements_->off_cpu.run(place.round, place.arm, event.thread, event.begin, event.end, event.state,
                               event.run_queue_ns);
    } else if (event.kind == HostEventKind::api && event.symbol < block.symbols.size()) {
      const ProbeSymbol& symbol = block.symbols[event.symbol];
      statements_->host_call.run(place.round, place.arm, event.thread, symbol.name, use_name(symbol.use), event.begin,
                                 event.end);
    }
  }
  static constexpr const char* kCosts[] = {"emulated", "emulated_after_endbr", "single_step"};
  for (const ProbeSymbol& symbol : block.symbols)
    statements_->probe.run(symbol.name, use_name(symbol.use), kCosts[static_cast<int>(symbol.cost)], symbol.file_offset,
                           symbol.hits);
}

void Ingest::finish() {
  Statement row(database_, "INSERT INTO launch_classes VALUES(?,?,?,?)");
  uint32_t index = 0;
  for (const LaunchClass& one : classes_.classes()) row.run(index++, one.kernel_name, one.label, one.pooled);
  Statement(database_,
            "INSERT INTO resources SELECT k.arm, n.kernel_name, n.kernel_id, COUNT(*), MAX(k.registers), "
            "MAX(k.static_shared), MAX(k.dynamic_shared), MAX(k.local_bytes) FROM kernels k JOIN kernel_names n "
            "USING(kernel) "
            "WHERE k.arm IS NOT NULL AND k.launch IS NOT NULL GROUP BY k.arm, k.kernel")
      .run();
}

}  // namespace kgate::trace
