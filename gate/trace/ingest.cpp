// Order: rounds first (they give every other row its arm), then requests, launches, and what belongs to neither.
// A record that refers to something that does not exist is dropped and counted in record_stream_bad.
#include "trace/ingest.h"

#include <algorithm>

#include "support/text.h"
#include "trace/demangle.h"
#include "trace/driver_calls.h"

namespace kgate::trace {

using namespace wire;

namespace {

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

Cell or_null(uint64_t ns) { return ns != 0 ? static_cast<Cell>(ns) : kNull; }

}  // namespace

Ingest::Ingest(const Database& database, const ArmKernels& plan, const RunInfo& info)
    : database_(database), plan_(plan), tier_(info.tier), writer_(database), tables_(&writer_) {
  phases_[static_cast<size_t>(Phase::setup)] = texts_.cell("setup");
  phases_[static_cast<size_t>(Phase::warmup)] = texts_.cell("warmup");
  phases_[static_cast<size_t>(Phase::measured)] = texts_.cell("measured");
  from_cupti_ = texts_.cell("cupti"), from_probe_ = texts_.cell("probe"), from_worker_ = texts_.cell("worker");
}

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

Cell Ingest::kernel_row(const std::string& name, const std::string& id) {
  auto [at, added] = kernel_rows_[name].try_emplace(id, static_cast<uint32_t>(kernels_.size()));
  if (added) kernels_.push_back({name, id});
  return at->second;
}

const std::string& Ingest::name_of(const Block& block, uint32_t kernel) const {
  static const std::string kNone;
  auto at = block.records.names.find(block.records.kernels[kernel].name);
  return at != block.records.names.end() ? at->second : kNone;
}

void Ingest::write_names() {
  std::vector<std::string> names;
  for (size_t i = written_names_; i < kernels_.size(); ++i) names.push_back(kernels_[i].name);
  std::vector<std::string> plain = demangle(names);
  for (const std::string& demangled : plain) {
    const NamedKernel& kernel = kernels_[written_names_];
    writer_.add(tables_.kernel_name, written_names_++, texts_.cell(kernel.name), texts_.cell(kernel.id),
                texts_.cell(demangled));
  }
}

void Ingest::add_block(std::span<const std::byte> memfd, const std::vector<HostEvent>& host_events,
                       const std::vector<ProbeSymbol>& symbols, const ProbeHealth* probes,
                       const CollectorHealth* collector) {
  const Records records = read_records(memfd);
  Block block{.records = records,
              .host_events = host_events,
              .symbols = symbols,
              .probes = probes,
              .collector = collector,
              .join = join_records(records, host_events, symbols),
              .timeline = Timeline(records),
              .api_request = {}};
  if (!records.processes.empty() || !records.collectors.empty()) reject("a worker writes no process records");
  judge_clock(&block);
  judge_records(block);
  write_rounds(block);
  write_requests(block);
  assign_classes(block);
  write_api_calls(&block);
  write_launches(block);
  write_free_kernels(block);
  write_counters(block);
  write_device_calls(block);
  write_modules_and_graphs(block);
  write_host_events(block);
  write_names();
  judge_kernel_times(block);
  judge_graphs(block);
  judge_probes(block);
  note_facts(block);
  writer_.flush();
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
    writer_.add(tables_.round, round.head.round, round.arm, round.pair, block_, round.begin, round.end);
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
    writer_.add(tables_.request, request.head.round, block.records.rounds[round].arm, request.sequence, request.request,
                request.thread, phase_cell(request.phase), or_null(request.arrival), request.due, request.issue,
                request.end, request.lag, quarantined);
  }
}

void Ingest::assign_classes(const Block& block) {
  struct Chosen {
    uint32_t arm;
    LaunchClasses::Seen seen;
  };
  std::unordered_map<uint32_t, Chosen> by_launch;
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
    LaunchShape shape{kernel->name, kernel->kernel_id, {}, {}, 0, {}};
    if (uint32_t match = block.join.launches[i].kernel; match != kNoIndex) {
      const KernelRecord& record = block.records.kernels[match];
      std::copy_n(record.grid, 3, shape.grid.begin());
      std::copy_n(record.block, 3, shape.block.begin());
      std::copy_n(record.cluster, 3, shape.cluster.begin());
      shape.shared = record.dynamic_shared;
    }
    at->second.arm = arm;
    at->second.seen.shape = std::move(shape);
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
  bool seen = match.kernel != kNoIndex;
  if (launch.head.round == kNoRound && !seen) return;  // set-up before the collector began
  KernelPlace place;
  place.sequence = launch.sequence, place.request = launch.request, place.launch = launch.launch;
  place.item = launch.item, place.phase = phase_cell(Phase::setup), place.replaced = launch.replaced != 0;
  place.thread = launch.thread, place.stream = launch.stream;
  if (launch.head.round != kNoRound) {
    uint32_t at = block.timeline.round_index(launch.head.round);
    if (at == kNoIndex || !block_rounds_.contains(launch.head.round))
      return reject("a launch in round " + std::to_string(launch.head.round) + ", which did not end");
    place.round = launch.head.round;
    place.arm = block.records.rounds[at].arm;
    const Kernel* plan = planned(launch, block.records.rounds[at].arm);
    if (plan == nullptr) return reject("a launch names a kernel or a workload launch that does not exist");
    place.launch_class = classes_.class_of(launch.launch);
    place.phase = phase_cell(launch.phase);
    place.judged = plan_.judged_launch[launch.launch];
    place.kernel = kernel_row(plan->name, plan->kernel_id);
    if (!seen && block.collector != nullptr) health_.add({"unmatched_launches", 1, 0, {}});
    if (seen)
      if (const std::string& name = name_of(block, match.kernel);
          name != plan->name && name != sanitize(plan->name, kMaxNameBytes))
        health_.add({"kernel_name_mismatch", 1, 0,
                     "planned " + sanitize(plan->name, 80) + ", the device ran " + sanitize(name, 80)});
  } else {
    place.kernel = kernel_row(name_of(block, match.kernel), {});
  }
  place.launch_begin = launch.begin, place.launch_end = launch.end, place.source = from_worker_;
  if (match.api != kNoIndex) {
    const ApiRecord& api = block.records.apis[match.api];
    place.launch_begin = api.start, place.launch_end = api.end, place.source = from_cupti_;
  } else if (match.host != kNoIndex) {
    const HostEvent& call = block.host_events[match.host];
    place.launch_begin = call.begin, place.launch_end = call.end, place.source = from_probe_;
  }
  write_kernel(block, place, match.kernel);
}

// Kernels that no launch of the worker explains: outside rounds they are set-up, inside they are a finding, unless a
// graph launch brought them.
void Ingest::write_free_kernels(const Block& block) {
  for (uint32_t index : block.join.free_kernels) {
    const KernelRecord& kernel = block.records.kernels[index];
    KernelPlace place;
    Place at = place_of(block, kernel.start);
    place.round = at.round, place.arm = at.arm, place.phase = phase_cell(Phase::setup);
    if (kernel.start == 0 && block.timeline.round_index(kernel.head.round) != kNoIndex) place.round = kernel.head.round;
    const std::string& name = name_of(block, index);
    place.kernel = kernel_row(name, {});
    uint32_t api = block.join.kernel_api[index];
    if (api != kNoIndex && driver_call(block.records.apis[api].cbid).is_graph_launch) {
      const ApiRecord& call = block.records.apis[api];
      place.launch_begin = call.start, place.launch_end = call.end, place.source = from_cupti_;
      place.thread = call.thread, place.item = 0;
      if (Cell request = block.api_request[api]; request != kNull) {
        const RequestRecord& record = block.records.requests[static_cast<size_t>(request)];
        place.sequence = record.sequence, place.request = record.request, place.phase = phase_cell(record.phase);
      }
    } else if (place.round != kNull) {
      health_.add({"unmatched_kernels", 1, 0, "first seen: " + sanitize(name, 80)});
    }
    write_kernel(block, place, index);
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
    writer_.add(tables_.counters, launch.head.round, arm, launch.sequence, launch.launch, launch.item,
                classes_.class_of(launch.launch), phase_cell(launch.phase),
                static_cast<bool>(plan_.judged_launch[launch.launch]), kernel_row(plan->name, plan->kernel_id),
                c.warp_instructions, c.thread_instructions, c.global_load_sectors, c.global_store_sectors,
                c.global_requests, c.bank_conflicts, c.divergent_branches, c.barriers, c.atomics);
  }
}

void Ingest::finish() {
  writer_.flush();
  Statement row(database_, "INSERT INTO launch_classes VALUES(?,?,?,?)");
  uint32_t index = 0;
  for (const LaunchClass& one : classes_.classes()) row.run(index++, one.kernel_name, one.label, one.pooled);
  Statement resource(database_, "INSERT INTO resources VALUES(?,?,?,?,?,?,?,?)");
  for (const auto& [key, use] : uses_) {
    const NamedKernel& kernel = kernels_[static_cast<size_t>(key.second)];
    resource.run(key.first, kernel.name, kernel.id, use.launches, use.registers, use.static_shared, use.dynamic_shared,
                 use.local);
  }
}

}  // namespace kgate::trace
