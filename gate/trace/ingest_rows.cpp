// Rows that are written as they were recorded: kernels, driver calls, copies, host events. Each is given the round and,
// where its thread is known, the request that it lies in.
#include <algorithm>

#include "trace/driver_calls.h"
#include "trace/ingest.h"
#include "trace/splits.h"

namespace kgate::trace {

using namespace wire;

namespace {

Cell or_null(uint64_t ns) { return ns != 0 ? static_cast<Cell>(ns) : kNull; }
Cell or_null(uint32_t value, uint32_t none) { return value != none ? Cell{value} : kNull; }

// start − max(launch end, previous end on the stream), at least 0. Device times among themselves are exact; where the
// launch's end is what the kernel waited for, the wait is known only as far as the two clocks are (docs/tracing.md).
Cell queue_wait(const KernelRecord& kernel, const KernelPlace& place, double uncertainty) {
  if (kernel.end == 0 || place.launch_end == 0) return kNull;
  uint64_t ready = std::max(place.launch_end, place.previous_end);
  double wait = static_cast<double>(kernel.start) - static_cast<double>(ready);
  if (place.launch_end > place.previous_end && std::abs(wait) < uncertainty) return kNull;
  return kernel.start > ready ? static_cast<Cell>(kernel.start - ready) : 0;
}

}  // namespace

size_t Ingest::ShapeHash::operator()(const Shape& shape) const {
  uint64_t hash = 0;
  for (uint32_t value : shape) hash = (hash ^ value) * 0x9e3779b97f4a7c15u, hash ^= hash >> 29;
  return hash;
}

Cell Ingest::shape_of(const KernelRecord& k) {
  Shape shape{k.registers, k.static_shared, k.dynamic_shared, k.local_per_thread, k.grid[0],    k.grid[1],   k.grid[2],
              k.block[0],  k.block[1],      k.block[2],       k.cluster[0],       k.cluster[1], k.cluster[2]};
  auto [at, added] = shapes_.try_emplace(shape, static_cast<uint32_t>(shapes_.size()));
  if (added)
    writer_.add(tables_.shape, at->second, shape[0], shape[1], shape[2], shape[3], shape[4], shape[5], shape[6],
                shape[7], shape[8], shape[9], shape[10], shape[11], shape[12]);
  return at->second;
}

Cell Ingest::call_name(uint32_t cbid) {
  constexpr uint32_t kRemembered = 1024;
  uint32_t id = cbid & ~(kRuntimeCall | kNestedCall);
  if (id >= kRemembered) return texts_.cell(driver_call(cbid).name);
  if (call_names_.empty()) call_names_.assign(2 * kRemembered, kNull);
  Cell& name = call_names_[(cbid & kRuntimeCall) != 0 ? kRemembered + id : id];
  if (name == kNull) name = texts_.cell(driver_call(cbid).name);
  return name;
}

Ingest::Place Ingest::place_of(const Block& block, uint64_t time) {
  uint32_t index = block.timeline.round_at(time);
  if (index == kNoIndex) return {};
  return {block.records.rounds[index].head.round, block.records.rounds[index].arm};
}

void Ingest::write_kernel(const Block& block, const KernelPlace& place, uint32_t index) {
  bool counts = place.arm != kNull && place.phase != phase_cell(Phase::setup);
  Use* use = counts ? &uses_[{place.arm, place.kernel}] : nullptr;
  if (use) ++use->launches;
  if (index == kNoIndex) {
    writer_.add(tables_.kernel, place.round, place.arm, place.sequence, place.request, place.launch, place.item,
                place.launch_class, place.phase, place.judged, place.replaced, place.kernel, kNull, kNull, kNull,
                or_null(place.launch_begin), or_null(place.launch_end), place.source, kNull, kNull, place.process,
                place.thread, place.stream, kNull, kNull, kNull, kNull, kNull);
    return;
  }
  const KernelRecord& k = block.records.kernels[index];
  KernelPlace full = place;
  full.previous_end = block.join.previous_end[index];
  Cell queue = queue_wait(k, full, block.clock_uncertainty);
  if (counts && k.end != 0 && place.launch_end != 0) {
    ++totals_.launches;
    totals_.unknown_waits += queue == kNull;
  }
  if (use) {
    use->registers = std::max<uint32_t>(use->registers, k.registers);
    use->static_shared = std::max(use->static_shared, k.static_shared);
    use->dynamic_shared = std::max(use->dynamic_shared, k.dynamic_shared);
    use->local = std::max(use->local, k.local_per_thread);
  }
  Cell duration = k.end != 0 ? static_cast<Cell>(k.end - k.start) : kNull;
  Cell node = graph_node(k) != 0 ? static_cast<Cell>(graph_node(k)) : kNull;
  writer_.add(tables_.kernel, place.round, place.arm, place.sequence, place.request, place.launch, place.item,
              place.launch_class, place.phase, place.judged, place.replaced, place.kernel, shape_of(k),
              or_null(k.start), duration, or_null(place.launch_begin), or_null(place.launch_end), place.source,
              or_null(full.previous_end), queue, place.process, place.thread, place.stream, k.stream, k.context,
              k.correlation, or_null(k.graph, 0), node);
}

void Ingest::write_api_calls(Block* block) {
  const Records& records = block->records;
  block->api_request.assign(records.apis.size(), kNull);
  for (size_t i = 0; i < records.apis.size(); ++i) {
    const ApiRecord& api = records.apis[i];
    Place place = place_of(*block, api.start);
    Cell sequence = kNull;
    // What an application does between its requests is measured, too.
    Phase phase = block->process != kNull && place.round != kNull ? Phase::measured : Phase::setup;
    uint32_t request = place.round != kNull
                           ? block->timeline.request_at(static_cast<uint32_t>(place.round), api.thread, api.start)
                           : kNoIndex;
    if (request != kNoIndex) {
      block->api_request[i] = request;
      sequence = records.requests[request].sequence;
      phase = records.requests[request].phase;
    }
    const DriverCall& call = driver_call(api.cbid);
    writer_.add(tables_.api, place.round, place.arm, sequence, block->process, api.thread, phase_cell(phase),
                call_name(api.cbid), api.start, api.end, api.correlation, api.result, call.is_launch, call.is_sync,
                call.is_alloc);
  }
}

void Ingest::write_device_calls(const Block& block) {
  const Records& records = block.records;
  for (size_t i = 0; i < records.syncs.size(); ++i) {
    const SyncRecord& sync = records.syncs[i];
    Place place = place_of(block, sync.start);
    Cell sequence = kNull, thread = kNull;
    Phase phase = block.process != kNull && place.round != kNull ? Phase::measured : Phase::setup;
    if (uint32_t api = block.join.sync_api[i]; api != kNoIndex) {
      thread = records.apis[api].thread;
      if (Cell request = block.api_request[api]; request != kNull) {
        sequence = records.requests[static_cast<size_t>(request)].sequence;
        phase = records.requests[static_cast<size_t>(request)].phase;
      }
    }
    writer_.add(tables_.sync, place.round, place.arm, sequence, block.process, thread, phase_cell(phase), sync.type,
                sync.start, sync.end, sync.correlation, or_null(sync.stream, kNoIndex), sync.context);
  }
  for (const MemoryRecord& memory : records.memories) {
    Place place = place_of(block, memory.start);
    writer_.add(tables_.copy, place.round, place.arm, block.process, or_null(memory.copy_kind, kNoIndex), memory.bytes,
                memory.start, memory.end, memory.correlation, memory.stream, memory.context);
  }
  for (const OverheadRecord& overhead : records.overheads) {
    Place place = place_of(block, overhead.start);
    writer_.add(tables_.overhead, place.round, place.arm, block.process, overhead.kind, overhead.thread, overhead.start,
                overhead.end);
  }
}

void Ingest::write_modules_and_graphs(const Block& block) {
  for (const GraphRecord& graph : block.records.graphs)
    writer_.add(tables_.graph, block.process, graph.graph, graph.time, graph.kernels, graph.copies, graph.memsets,
                graph.others, graph.open);
  for (const ModuleRecord& module : block.records.modules)
    writer_.add(tables_.module, block.process, module.module, module.time, module.bytes,
                or_null(module.image, kNoIndex));
}

void Ingest::write_host_events(const Block& block) {
  std::vector<std::pair<Cell, Cell>> names;  // by symbol: name, use
  for (const ProbeSymbol& symbol : block.symbols)
    names.push_back({texts_.cell(symbol.name), texts_.cell(use_name(symbol.use))});
  std::vector<Split> splits = split_calls(block.host_events);
  for (size_t i = 0; i < block.host_events.size(); ++i) {
    const HostEvent& event = block.host_events[i];
    // A span belongs to the round that holds its middle: the spans of tier T2 reach a little past their round at both
    // ends.
    bool span = event.kind == HostEventKind::off_cpu && event.end > event.begin;
    Place place = place_of(block, span ? event.begin + (event.end - event.begin) / 2 : event.begin);
    if (event.kind == HostEventKind::off_cpu) {
      writer_.add(tables_.off_cpu, place.round, place.arm, block.process, event.thread, event.begin, event.end,
                  event.state, event.run_queue_ns);
    } else if (event.kind == HostEventKind::api && event.symbol < names.size()) {
      auto [name, use] = names[event.symbol];
      writer_.add(tables_.host_call, place.round, place.arm, block.process, event.thread, name, use, event.begin,
                  event.end, splits[i].blocked, splits[i].preempted, splits[i].run_queue);
    }
  }
}

}  // namespace kgate::trace
