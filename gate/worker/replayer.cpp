#include "worker/replayer.h"

#include <sched.h>

#include <algorithm>
#include <map>
#include <utility>

#include "worker/clock.h"
#include "worker/counters.h"
#include "worker/live.h"
#include "workload/content.h"

namespace kgate::worker {

namespace {

gpu::CUstream make_stream(gpu::Driver& driver, const WorkloadStream& stream) {
  switch (stream.kind) {
    case StreamKind::legacy:
      return nullptr;
    case StreamKind::per_thread:
      return reinterpret_cast<gpu::CUstream>(gpu::kStreamPerThread);
    case StreamKind::blocking:
      return driver.create_stream(false, stream.priority);
    case StreamKind::non_blocking:
      break;
  }
  return stream.priority == 0 ? driver.create_stream() : driver.create_stream(true, stream.priority);
}

uint64_t host_bytes(const Call& call) { return call.bytes * call.pitch.rows; }

// What a program's host memory holds, and where its downloads go.
void prepare_host_memory(Shared& shared) {
  const Workload& w = shared.workload;
  shared.payloads.resize(w.payloads.size());
  uint64_t sink = 0;
  uint32_t allocations = 0;
  for (const Call& call : w.calls) {
    if (call.kind == CallKind::download && call.pinned) sink = std::max(sink, host_bytes(call));
    if (call.allocation != kNone) allocations = std::max(allocations, call.allocation + 1);
    if (call.kind != CallKind::upload || call.payload == kNone) continue;
    Shared::HostData& data = shared.payloads[call.payload];
    uint64_t bytes = w.payloads[call.payload].bytes;
    if (call.pinned && data.pinned == nullptr) {
      auto* pinned = static_cast<std::byte*>(shared.driver.allocate_host(bytes));
      materialise(w.payloads[call.payload].content, {pinned, bytes}, w.source);
      data.pinned = pinned;
    } else if (!call.pinned && data.pageable.empty()) {
      data.pageable.resize(bytes);
      materialise(w.payloads[call.payload].content, data.pageable, w.source);
    }
  }
  if (sink != 0) shared.pinned_sink = static_cast<std::byte*>(shared.driver.allocate_host(sink));
  shared.scratch.resize(allocations);
}

}  // namespace

Shared::Shared(gpu::Driver& driver, const Workload& workload, const ReplayPlan& plan, DeviceBuffers& buffers)
    : driver(driver),
      workload(workload),
      plan(plan),
      buffers(buffers),
      request_of(workload.calls.size()),
      awaited(workload.calls.size()),
      returned(new Returned[workload.calls.size()]) {
  for (const WorkloadStream& stream : workload.streams) streams.push_back(make_stream(driver, stream));
  for (uint32_t i = 0; i < workload.events; ++i) events.push_back(driver.create_event());
  for (const Call& call : workload.calls)
    for (uint32_t other : call.after) awaited[other] = true;
  for (uint32_t r = 0; r < workload.requests.size(); ++r) {
    const Request& request = workload.requests[r];
    for (uint32_t c : request.calls) request_of[c] = r;
  }
  prepare_host_memory(*this);
}

void Shared::free_scratch() {
  for (gpu::CUdeviceptr& address : scratch)
    if (address != 0) driver.free(std::exchange(address, 0));
}

void Shared::begin_round() {
  for (size_t i = 0; i < workload.calls.size(); ++i) {
    returned[i].times.store(0, std::memory_order_relaxed);
    returned[i].at.store(0, std::memory_order_relaxed);
  }
}

Replayer::Replayer(Shared& shared, uint32_t thread)
    : shared_(shared),
      paced_(shared.plan.honour_arrivals && on_threads(shared.plan.mode)),
      follows_edges_(on_threads(shared.plan.mode)),
      is_virtual_(shared.driver.is_virtual()),
      span_(round_span(shared.plan, shared.workload)),
      stage_(stage_bytes(shared.plan, shared.workload, thread, shared.driver.is_virtual())) {
  uint64_t largest = 0;
  for (uint32_t r = 0; r < shared.workload.requests.size(); ++r)
    if (shared.workload.requests[r].thread == thread || !on_threads(shared.plan.mode)) requests_.push_back(r);
  for (const Call& call : shared.workload.calls)
    if (call.kind == CallKind::download && !call.pinned) largest = std::max(largest, host_bytes(call));
  scratch_.assign(largest, std::byte{0});
}

void Replayer::begin(const RoundStart& start) {
  start_ = &start;
  os_thread_ = os_thread_id();
  previous_return_ = start.origin;
  owed_gap_ = 0;
  position_ = {.stage = "launch", .arm = start.arm_index};
}

void Replayer::play(const RoundStart& start) {
  begin(start);
  if (requests_.empty()) return;
  for (uint64_t loop = 0;; ++loop) {
    for (uint32_t request : requests_) {
      if (loop * shared_.workload.requests.size() + request >= span_.total) return;
      if (shared_.stop.load(std::memory_order_relaxed)) return;
      play_request(request, loop);
    }
  }
}

wire::RequestRecord Replayer::open_request(uint32_t index, uint64_t loop) {
  const Workload& w = shared_.workload;
  uint64_t sequence = loop * w.requests.size() + index;
  wire::RequestRecord record{};
  record.head = wire::head<wire::RequestRecord>(wire::Kind::request, start_->round);
  record.request = index;
  record.sequence = static_cast<uint32_t>(sequence);
  record.thread = os_thread_;
  record.phase = sequence < span_.warmup ? wire::Phase::warmup : wire::Phase::measured;
  if (paced_ && w.arrivals == Arrivals::external)
    record.arrival = start_->origin + paced(w.requests[index].arrival_ns + loop * w.period_ns);
  request_begun_ = false;
  launched_ = 0;
  position_.request = index;
  return record;
}

void Replayer::close_request(wire::RequestRecord& record) {
  if (!request_begun_)
    note(record, std::max(record.arrival, previous_return_), std::max(record.arrival, previous_return_));
  record.end = std::max(previous_return_, record.issue);
  stage_.append(record);
}

void Replayer::play_request(uint32_t index, uint64_t loop) {
  wire::RequestRecord record = open_request(index, loop);
  for (uint32_t c : shared_.workload.requests[index].calls) {
    play_call(c, record, loop);
    if (shared_.stop.load(std::memory_order_relaxed)) return;
  }
  close_request(record);
}

void Replayer::play_in_order(const std::function<void(uint32_t request)>& after) {
  const Workload& w = shared_.workload;
  struct Open {
    wire::RequestRecord record;
    bool begun;
  };
  std::map<uint32_t, Open> open;  // requests of several threads may interleave
  for (uint32_t c = 0; c < w.calls.size(); ++c) {
    uint32_t request = shared_.request_of[c];
    auto [at, fresh] = open.try_emplace(request);
    if (fresh) at->second.record = open_request(request, 0);
    request_begun_ = !fresh && at->second.begun;
    position_.request = request;
    play_call(c, at->second.record, 0);
    at->second.begun = request_begun_;
    if (w.requests[request].calls.back() != c) continue;
    close_request(at->second.record);
    open.erase(at);
    after(request);
    launched_ = 0;
  }
}

void Replayer::play_call(uint32_t c, wire::RequestRecord& record, uint64_t loop) {
  const Call& call = shared_.workload.calls[c];
  uint64_t due = wait_for(call, record.arrival, loop);
  if (shared_.stop.load(std::memory_order_relaxed)) return;
  if (call.kind == CallKind::launch) {
    launch_all({c, call.launch}, due, record);
  } else if (call.kind == CallKind::graph_launch) {
    launch_graph(c, due, record);
  } else {
    note(record, due, now_ns());
    perform(call);
    previous_return_ = now_ns();
  }
  if (shared_.awaited[c]) {
    shared_.returned[c].at.store(previous_return_, std::memory_order_relaxed);
    shared_.returned[c].times.fetch_add(1, std::memory_order_release);
  }
}

// The first call of a request gives its due and issue times; every call may raise its lag.
void Replayer::note(wire::RequestRecord& record, uint64_t due, uint64_t issue) {
  if (!request_begun_) {
    record.due = due;
    record.issue = issue;
    request_begun_ = true;
  }
  record.lag = std::max(record.lag, issue > due ? issue - due : 0);
}

// Returns when the call was due, at or after that moment.
uint64_t Replayer::wait_for(const Call& call, uint64_t arrival, uint64_t loop) {
  bool left_out =
      call.kind == CallKind::launch && shared_.live == nullptr && start_->arm->launches[call.launch].items.empty();
  if (paced_) owed_gap_ += paced(call.host_gap_ns);
  uint64_t others = follows_edges_ && !call.after.empty() ? await_others(call, loop) : 0;
  if (left_out) return previous_return_ = std::max(previous_return_, others);
  uint64_t due = std::max({previous_return_ + std::exchange(owed_gap_, 0), arrival, others});
  wait_until(due, shared_.stop);
  return due;
}

// Returns when the last of the calls that `call` comes after has returned. A loop that is cut short by the end of the
// round leaves some of them out: nobody waits for those.
uint64_t Replayer::await_others(const Call& call, uint64_t loop) {
  constexpr int kSpins = 4096;  // some 100 us: after that the other thread may need this CPU
  uint64_t last = 0;
  for (uint32_t other : call.after) {
    if (loop * shared_.workload.requests.size() + shared_.request_of[other] >= span_.total) continue;
    const auto& returned = shared_.returned[other];
    for (int spins = 0; returned.times.load(std::memory_order_acquire) <= loop; ++spins) {
      if (shared_.stop.load(std::memory_order_relaxed)) return last;
      spins < kSpins ? relax() : static_cast<void>(::sched_yield());
    }
    last = std::max(last, returned.at.load(std::memory_order_relaxed));
  }
  return last;
}

void Replayer::launch_all(const Site& site, uint64_t due, wire::RequestRecord& record) {
  position_.launch = site.launch;
  const PreparedCall& own = start_->arm->launches[site.launch];
  if (shared_.live == nullptr) return run_steps(site, own, due, record);
  const PreparedCall& recorded = shared_.recorded.launches[site.launch];
  auto sample = shared_.live->sample_at(site.call, site.node);
  if (!sample) return run_steps(site, recorded, due, record);
  shared_.live->take(
      *sample, !own.replaced, [&] { run_steps(site, own, due, record); },
      [&] { run_steps(site, recorded, due, record); });
}

// Items are numbered among the launches: the other steps leave no kernel.
void Replayer::run_steps(const Site& site, const PreparedCall& prepared, uint64_t due, wire::RequestRecord& record) {
  uint16_t item = 0;
  for (const PreparedStep& step : prepared.items) {
    note(record, &step == prepared.items.data() ? due : previous_return_, now_ns());
    if (step.kind == ArmItem::Kind::launch) {
      launch(site, prepared, step, item++, record);
    } else {
      perform(step, shared_.streams[shared_.workload.calls[site.call].stream]);
      previous_return_ = now_ns();
    }
  }
}

// As one call, or node by node.
void Replayer::launch_graph(uint32_t c, uint64_t due, wire::RequestRecord& record) {
  const Call& call = shared_.workload.calls[c];
  gpu::CUstream stream = shared_.streams[call.stream];
  position_.launch = suspect();
  if (shared_.graphs.empty()) {
    const auto& nodes = shared_.workload.graphs[call.graph].nodes;
    for (uint32_t n = 0; n < nodes.size(); ++n) {
      if (nodes[n].kind == GraphNode::Kind::kernel) {
        launch_all({c, nodes[n].launch, n}, n == 0 ? due : previous_return_, record);
      } else {
        note(record, n == 0 ? due : previous_return_, now_ns());
        perform(nodes[n], stream);
        previous_return_ = now_ns();
      }
    }
    return;
  }
  note(record, due, now_ns());
  wire::GraphCallRecord out{};
  out.begin = now_ns();
  shared_.driver.launch(shared_.graphs[start_->arm_index][call.graph], stream);
  out.end = previous_return_ = now_ns();
  out.head = wire::head<wire::GraphCallRecord>(wire::Kind::graph_call, start_->round);
  out.sequence = record.sequence;
  out.request = record.request;
  out.call = c;
  out.graph = call.graph;
  out.thread = os_thread_;
  out.stream = call.stream;
  out.phase = record.phase;
  stage_.append(out);
}

// What a candidate's host side does beside launching. The null stream is the legacy default stream.
void Replayer::perform(const PreparedStep& step, gpu::CUstream stream) {
  gpu::Driver& driver = shared_.driver;
  if (step.legacy) stream = nullptr;
  switch (step.kind) {
    case ArmItem::Kind::launch:
      break;
    case ArmItem::Kind::memset:
      driver.fill(step.address, step.value, step.bytes, stream);
      break;
    case ArmItem::Kind::sync:
      driver.synchronize(stream);
      break;
    case ArmItem::Kind::allocate:
      driver.free(driver.allocate(step.bytes));
      break;
  }
}

void Replayer::launch(const Site& site, const PreparedCall& prepared, const PreparedStep& ready, uint16_t item,
                      const wire::RequestRecord& record) {
  const Call& call = shared_.workload.calls[site.call];
  gpu::Launch launch = ready.launch;
  launch.stream = ready.legacy ? nullptr : shared_.streams[call.stream];

  std::unique_lock<std::mutex> counting;
  if (is_virtual_) counting = std::unique_lock(shared_.counting);
  bool sampled = shared_.sampler != nullptr && shared_.sampler->before(site.launch, item);
  wire::LaunchRecord out{};
  out.begin = now_ns();
  shared_.driver.launch(launch, ready.params);
  out.end = now_ns();
  if (sampled) shared_.sampler->after();
  ++launched_;
  last_launch_ = site.launch;
  out.head = wire::head<wire::LaunchRecord>(wire::Kind::launch, start_->round);
  out.sequence = record.sequence;
  out.request = record.request;
  out.call = site.call;
  out.launch = site.launch;
  out.item = item;
  out.phase = record.phase;
  out.replaced = prepared.replaced;
  out.thread = os_thread_;
  out.kernel = ready.kernel;
  out.stream = call.stream;
  stage_.append(out);
  previous_return_ = out.end;
  if (!is_virtual_) return;

  // The kernel has run, but like a real one its fault shows at the next call: ask now, while it is known whose it is.
  if (shared_.driver.last_fault()) shared_.driver.synchronize_context();
  auto counts = shared_.driver.last_launch_counters();
  if (!counts) throw WorkerError("no counts", "the virtual GPU did not count a launch");
  wire::VirtualCountersRecord counters{};
  counters.head = wire::head<wire::VirtualCountersRecord>(wire::Kind::virtual_counters, start_->round);
  counters.launch_begin = out.begin;
  counters.thread = os_thread_;
  counters.warp_instructions = counts->warp_instructions;
  counters.thread_instructions = counts->thread_instructions;
  counters.global_load_sectors = counts->global_load_sectors;
  counters.global_store_sectors = counts->global_store_sectors;
  counters.global_requests = counts->global_requests;
  counters.bank_conflicts = counts->bank_conflicts;
  counters.divergent_branches = counts->divergent_branches;
  counters.barriers = counts->barriers;
  counters.atomics = counts->atomics;
  stage_.append(counters);
}

// Host memory is packed: rows follow each other.
void Replayer::upload(const Call& call, gpu::CUstream stream) {
  gpu::Driver& driver = shared_.driver;
  gpu::CUdeviceptr to = at(call.dst, call.dst_offset);
  const std::byte* from = nullptr;
  if (call.payload == kNone) {
    from = shared_.buffers.upload_source(call.dst) + call.dst_offset;
  } else {
    const Shared::HostData& data = shared_.payloads[call.payload];
    from = call.pinned ? data.pinned : data.pageable.data();
  }
  if (call.pitch.rows > 1) {
    gpu::Rectangle copy{call.bytes, call.pitch.rows, call.pitch.dst, call.bytes, to, 0, nullptr, from};
    return driver.copy(copy, call.async ? std::optional(stream) : std::nullopt);
  }
  if (call.async) return driver.upload_async(to, from, call.bytes, stream);
  driver.upload(to, from, call.bytes);
}

void Replayer::download(const Call& call, gpu::CUstream stream) {
  gpu::Driver& driver = shared_.driver;
  gpu::CUdeviceptr from = at(call.src, call.src_offset);
  std::byte* to = call.pinned ? shared_.pinned_sink : scratch_.data();
  if (call.pitch.rows > 1) {
    gpu::Rectangle copy{call.bytes, call.pitch.rows, call.bytes, call.pitch.src, 0, from, to, nullptr};
    return driver.copy(copy, call.async ? std::optional(stream) : std::nullopt);
  }
  if (call.async) return driver.download_async(to, from, call.bytes, stream);
  driver.download(to, from, call.bytes);
}

void Replayer::perform(const GraphNode& node, gpu::CUstream stream) {
  gpu::Driver& driver = shared_.driver;
  switch (node.kind) {
    case GraphNode::Kind::kernel:
    case GraphNode::Kind::empty:
      break;
    case GraphNode::Kind::copy:
      if (node.pitch.rows > 1)
        driver.copy({node.bytes, node.pitch.rows, node.pitch.dst, node.pitch.src, at(node.dst, node.dst_offset),
                     at(node.src, node.src_offset), nullptr, nullptr},
                    stream);
      else
        driver.copy_async(at(node.dst, node.dst_offset), at(node.src, node.src_offset), node.bytes, stream);
      break;
    case GraphNode::Kind::memset:
      driver.fill({at(node.dst, node.dst_offset), node.value, node.unit, node.bytes / node.unit, node.pitch.rows,
                   node.pitch.dst},
                  stream);
      break;
    case GraphNode::Kind::event_record:
      driver.record_event(shared_.events[node.event], stream);
      break;
    case GraphNode::Kind::event_wait:
      driver.wait_event(stream, shared_.events[node.event]);
      break;
    case GraphNode::Kind::host_function:
      driver.host_function(stream);
      break;
  }
}

// A built workload's copies to and from the host know no stream: what is queued on the call's stream has to be waited
// for first. A recording's were made on the stream that they name.
void Replayer::perform(const Call& call) {
  gpu::Driver& driver = shared_.driver;
  gpu::CUstream stream = shared_.streams[call.stream];
  bool waits =
      call.kind == CallKind::stream_sync || call.kind == CallKind::event_sync || call.kind == CallKind::context_sync;
  bool recorded = shared_.workload.origin.recorded();
  position_.stage = waits ? "sync" : "launch";
  position_.launch = suspect();
  switch (call.kind) {
    case CallKind::launch:
    case CallKind::graph_launch:
      break;
    case CallKind::copy:
      if (call.pitch.rows > 1)
        driver.copy({call.bytes, call.pitch.rows, call.pitch.dst, call.pitch.src, at(call.dst, call.dst_offset),
                     at(call.src, call.src_offset), nullptr, nullptr},
                    stream);
      else
        driver.copy_async(at(call.dst, call.dst_offset), at(call.src, call.src_offset), call.bytes, stream);
      break;
    case CallKind::upload:
      if (!recorded) driver.synchronize(stream);
      upload(call, stream);
      break;
    case CallKind::download:
      if (!recorded) driver.synchronize(stream);
      download(call, stream);
      break;
    case CallKind::memset:
      driver.fill({at(call.dst, call.dst_offset), call.value, call.unit, call.bytes / call.unit, call.pitch.rows,
                   call.pitch.dst},
                  stream);
      break;
    case CallKind::event_record:
      driver.record_event(shared_.events[call.event], stream);
      break;
    case CallKind::event_wait:
      driver.wait_event(stream, shared_.events[call.event]);
      break;
    case CallKind::stream_sync:
      driver.synchronize(stream);
      break;
    case CallKind::event_sync:
      driver.synchronize_event(shared_.events[call.event]);
      break;
    case CallKind::context_sync:
      driver.synchronize_context();
      break;
    case CallKind::alloc:
      shared_.scratch[call.allocation] =
          call.async ? driver.allocate_async(call.bytes, stream) : driver.allocate(call.bytes);
      break;
    case CallKind::free:
      if (gpu::CUdeviceptr address = std::exchange(shared_.scratch[call.allocation], 0); address != 0)
        call.async ? driver.free_async(address, stream) : driver.free(address);
      break;
    case CallKind::host_function:
      driver.host_function(stream);
      break;
  }
  position_.stage = "launch";
}

}  // namespace kgate::worker
