// A process of a traced application. What a worker says of itself (rounds, requests, launches) is made here out of the
// driver calls, and then goes the same way.
#include <algorithm>

#include "support/text.h"
#include "trace/driver_calls.h"
#include "trace/ingest.h"
#include "trace/requests.h"

namespace kgate::trace {

using namespace wire;

namespace {

constexpr uint64_t kForEver = uint64_t{1} << 62;

// Of a process that did not come to its end: the last time that it wrote.
uint64_t last_time(const Records& records) {
  uint64_t latest = 0;
  auto see = [&](const auto& all) {
    for (const auto& one : all) latest = std::max(latest, one.end);
  };
  see(records.kernels), see(records.apis), see(records.syncs), see(records.memories), see(records.overheads);
  return latest;
}

uint64_t first_time(const Records& records) {
  uint64_t earliest = kForEver;
  auto see = [&](const auto& all) {
    for (const auto& one : all)
      if (one.end != 0) earliest = std::min(earliest, one.start);
  };
  see(records.kernels), see(records.apis), see(records.syncs), see(records.memories), see(records.overheads);
  return earliest == kForEver ? 0 : earliest;
}

CollectorHealth health_of(const CollectorRecord& record) {
  CollectorHealth health;
  health.cupti_version = static_cast<uint32_t>(record.cupti_version);
  health.dropped = record.dropped, health.forced = record.forced, health.invalid_times = record.invalid_times;
  health.unknown_records = record.unknown_records, health.buffers_exhausted = record.buffers_exhausted;
  health.clock_offset_begin = record.clock_offset_begin, health.clock_offset_end = record.clock_offset_end;
  health.clock_half_width = record.clock_half_width;
  return health;
}

// What only a worker may write, and what a process writes once.
void remove_foreign(Records* records) {
  uint64_t foreign =
      records->rounds.size() + records->requests.size() + records->launches.size() + records->counters.size();
  foreign += records->processes.size() > 1 ? records->processes.size() - 1 : 0;
  foreign += records->collectors.size() > 1 ? records->collectors.size() - 1 : 0;
  if (foreign != 0 && records->bad == 0) records->first_bad = "an application wrote records of a worker";
  records->bad += foreign;
  records->rounds.clear(), records->requests.clear(), records->launches.clear(), records->counters.clear();
}

}  // namespace

void Ingest::add_process(const ProcessTrace& process) {
  bool recorded = !process.records.empty();
  Records records = recorded ? read_records(process.records) : Records();
  remove_foreign(&records);
  const ProcessRecord* self = records.processes.empty() ? nullptr : &records.processes.front();
  uint32_t number = rounds_.empty() ? 0 : *rounds_.rbegin() + 1;
  uint64_t begin = self ? self->begin : first_time(records);
  uint64_t end = self && self->end != 0 ? self->end : std::max(begin, last_time(records));
  if (recorded) {
    records.rounds.push_back({head<RoundRecord>(Kind::round, number), begin, end, 0, number});
    records.requests = requests_of(records.apis, number);
  }
  std::optional<CollectorHealth> collector;
  if (!records.collectors.empty()) collector = health_of(records.collectors.front());
  Block block{.records = records,
              .host_events = process.host_events,
              .symbols = process.symbols,
              .probes = process.probes ? &*process.probes : nullptr,
              .collector = collector ? &*collector : nullptr,
              .join = join_records(records, process.host_events, process.symbols),
              .timeline = Timeline(records),
              .process = process.process,
              .api_request = {}};
  bool finished = recorded && self && self->end != 0 && collector;
  processes_.push_back(
      {process.process, process.parent, recorded || process.uses_cuda, recorded, process.probes.has_value(), finished});
  writer_.add(tables_.process, process.process, process.parent != 0 ? Cell{process.parent} : kNull,
              texts_.cell(sanitize(process.command, 4096)), self ? static_cast<Cell>(begin) : kNull,
              self && self->end != 0 ? static_cast<Cell>(end) : kNull, recorded || process.uses_cuda, recorded,
              process.probes.has_value(), recorded ? Cell{number} : kNull);
  judge_clock(&block);
  if (recorded) judge_records(block);
  write_rounds(block);
  write_requests(block);
  write_api_calls(&block);
  write_process_kernels(block, process);
  write_device_calls(block);
  write_modules_and_graphs(block);
  write_host_events(block);
  write_names();
  if (recorded) {
    judge_kernel_times(block);
    judge_graphs(block);
    judge_calls(block);
  }
  judge_probes(block);
  note_facts(block);
  note_processes();
  writer_.flush();
  ++block_;
}

// The class of each kernel of the block.
std::vector<uint32_t> Ingest::process_classes(const Block& block, const ProcessTrace& process) {
  std::map<LaunchShape, uint32_t> known;
  std::vector<std::pair<LaunchShape, uint64_t>> shapes;
  struct Key {
    uint32_t name;
    Cell shape;
    bool operator<(const Key& other) const { return std::tie(name, shape) < std::tie(other.name, other.shape); }
  };
  std::map<Key, uint32_t> by_key;  // → index into shapes: two keys may be one shape with other registers
  std::vector<uint32_t> of_kernel;
  of_kernel.reserve(block.records.kernels.size());
  for (uint32_t i = 0; i < block.records.kernels.size(); ++i) {
    const KernelRecord& record = block.records.kernels[i];
    auto [at, added] = by_key.try_emplace({record.name, shape_of(record)}, 0);
    if (added) {
      const std::string& name = name_of(block, i);
      auto id = process.kernel_ids.find(name);
      LaunchShape shape{
          name, id != process.kernel_ids.end() ? id->second : std::string(), {}, {}, record.dynamic_shared, {}};
      std::copy_n(record.grid, 3, shape.grid.begin());
      std::copy_n(record.block, 3, shape.block.begin());
      std::copy_n(record.cluster, 3, shape.cluster.begin());
      auto [same, fresh] = known.try_emplace(shape, static_cast<uint32_t>(shapes.size()));
      if (fresh) shapes.push_back({shape, 0});
      at->second = same->second;
    }
    ++shapes[at->second].second;
    of_kernel.push_back(at->second);
  }
  std::vector<uint32_t> classes = classes_.assign(shapes);
  for (uint32_t& one : of_kernel) one = classes[one];
  return of_kernel;
}

void Ingest::write_process_kernels(const Block& block, const ProcessTrace& process) {
  const Records& records = block.records;
  if (records.kernels.empty()) return;
  std::vector<uint32_t> classes = process_classes(block, process);
  std::unordered_map<uint32_t, Cell> rows;  // by name id
  const RoundRecord& round = records.rounds.front();
  for (uint32_t i = 0; i < records.kernels.size(); ++i) {
    const KernelRecord& kernel = records.kernels[i];
    KernelPlace place;
    place.round = round.head.round, place.arm = round.arm, place.item = 0, place.launch_class = classes[i];
    place.phase = phase_cell(Phase::measured), place.judged = true, place.process = block.process;
    auto [row, added] = rows.try_emplace(kernel.name, 0);
    if (added) {
      const std::string& name = name_of(block, i);
      auto id = process.kernel_ids.find(name);
      row->second = kernel_row(name, id != process.kernel_ids.end() ? id->second : std::string());
    }
    place.kernel = row->second;
    uint32_t api = block.join.kernel_api[i];
    bool many = api != kNoIndex && driver_call(records.apis[api].cbid).brings_many;
    if (api == kNoIndex || (!many && block.join.api_kernel[api] != i)) {
      health_.add({"unmatched_kernels", 1, 0, "first seen: " + sanitize(name_of(block, i), 80)});
      api = kNoIndex;
    }
    if (api != kNoIndex) {
      const ApiRecord& call = records.apis[api];
      place.launch_begin = call.start, place.launch_end = call.end, place.source = from_cupti_;
      place.thread = call.thread;
      if (Cell request = block.api_request[api]; request != kNull)
        place.sequence = place.request = records.requests[static_cast<size_t>(request)].sequence;
    }
    write_kernel(block, place, i);
  }
}

// What the processes say of each other; judged anew with each, because they come in any order.
void Ingest::note_processes() {
  double unfinished = 0, unprobed = 0;
  std::string first_unfinished, first_unprobed;
  for (const Process& one : processes_) {
    if (one.cuda && !one.finished && unfinished++ == 0) first_unfinished = std::to_string(one.process);
    if (one.cuda && !one.probed && tier_ == "T0" && unprobed++ == 0) first_unprobed = std::to_string(one.process);
  }
  health_.set({"unfinished_processes", unfinished, 0,
               unfinished ? "first seen: process " + first_unfinished + ", which did not write its last records" : ""});
  if (tier_ == "T0")
    health_.set({"unprobed_children", unprobed, 0,
                 unprobed ? "first seen: process " + first_unprobed + ", which used CUDA and was not probed" : ""});
}

}  // namespace kgate::trace
