#include "worker/replayer.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "worker/clock.h"
#include "worker/counters.h"

namespace kgate::worker {

Shared::Shared(gpu::Driver& driver, const Workload& workload, const ReplayPlan& plan, DeviceBuffers& buffers)
    : driver(driver),
      workload(workload),
      plan(plan),
      buffers(buffers),
      request_of(workload.calls.size()),
      awaited(workload.calls.size()),
      returned(new Returned[workload.calls.size()]) {
  for (size_t i = 0; i < workload.streams.size(); ++i) streams.push_back(driver.create_stream());
  for (uint32_t i = 0; i < workload.events; ++i) events.push_back(driver.create_event());
  for (const Call& call : workload.calls)
    for (uint32_t other : call.after) awaited[other] = true;
  for (uint32_t r = 0; r < workload.requests.size(); ++r) {
    const Request& request = workload.requests[r];
    for (uint32_t c : request.calls) request_of[c] = r;
  }
}

void Shared::begin_round() {
  for (size_t i = 0; i < workload.calls.size(); ++i) {
    returned[i].times.store(0, std::memory_order_relaxed);
    returned[i].at.store(0, std::memory_order_relaxed);
  }
}

Replayer::Replayer(Shared& shared, uint32_t thread)
    : shared_(shared),
      paced_(shared.plan.honour_arrivals && shared.plan.mode == ReplayMode::timing),
      follows_edges_(shared.plan.mode == ReplayMode::timing),
      is_virtual_(shared.driver.is_virtual()),
      span_(round_span(shared.plan, shared.workload)),
      stage_(stage_bytes(shared.plan, shared.workload, thread, shared.driver.is_virtual())) {
  uint64_t largest = 0;
  for (uint32_t r = 0; r < shared.workload.requests.size(); ++r)
    if (shared.workload.requests[r].thread == thread || shared.plan.mode != ReplayMode::timing) requests_.push_back(r);
  for (const Call& call : shared.workload.calls)
    if (call.kind == CallKind::download) largest = std::max(largest, call.bytes);
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

void Replayer::play_request(uint32_t index, uint64_t loop) {
  const Workload& w = shared_.workload;
  const Request& request = w.requests[index];
  uint64_t sequence = loop * w.requests.size() + index;
  wire::RequestRecord record{};
  record.head = wire::head<wire::RequestRecord>(wire::Kind::request, start_->round);
  record.request = index;
  record.sequence = static_cast<uint32_t>(sequence);
  record.thread = os_thread_;
  record.phase = sequence < span_.warmup ? wire::Phase::warmup : wire::Phase::measured;
  if (paced_ && w.arrivals == Arrivals::external)
    record.arrival = start_->origin + request.arrival_ns + loop * w.period_ns;
  request_begun_ = false;
  launched_ = 0;
  position_.request = index;

  for (uint32_t c : request.calls) {
    const Call& call = w.calls[c];
    uint64_t due = wait_for(call, record.arrival, loop);
    if (shared_.stop.load(std::memory_order_relaxed)) return;
    if (call.kind == CallKind::launch) {
      launch_all(c, due, record);
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
  if (!request_begun_)
    note(record, std::max(record.arrival, previous_return_), std::max(record.arrival, previous_return_));
  record.end = std::max(previous_return_, record.issue);
  stage_.append(record);
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
  bool left_out = call.kind == CallKind::launch && start_->arm->launches[call.launch].items.empty();
  if (paced_) owed_gap_ += call.host_gap_ns;
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

void Replayer::launch_all(uint32_t call, uint64_t due, wire::RequestRecord& record) {
  uint32_t index = shared_.workload.calls[call].launch;
  const PreparedCall& prepared = start_->arm->launches[index];
  position_.launch = index;
  for (size_t item = 0; item < prepared.items.size(); ++item) {
    note(record, item == 0 ? due : previous_return_, now_ns());
    const PreparedStep& step = prepared.items[item];
    if (step.kind == ArmItem::Kind::launch) {
      launch(call, static_cast<uint16_t>(item), record);
    } else {
      perform(step, shared_.streams[shared_.workload.calls[call].stream]);
      previous_return_ = now_ns();
    }
  }
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

void Replayer::launch(uint32_t c, uint16_t item, const wire::RequestRecord& record) {
  const Call& call = shared_.workload.calls[c];
  const PreparedCall& prepared = start_->arm->launches[call.launch];
  const PreparedStep& ready = prepared.items[item];
  gpu::Launch launch = ready.launch;
  launch.stream = ready.legacy ? nullptr : shared_.streams[call.stream];

  std::unique_lock<std::mutex> counting;
  if (is_virtual_) counting = std::unique_lock(shared_.counting);
  bool sampled = shared_.sampler != nullptr && shared_.sampler->before(call.launch, item);
  wire::LaunchRecord out{};
  out.begin = now_ns();
  shared_.driver.launch(launch, ready.params);
  out.end = now_ns();
  if (sampled) shared_.sampler->after();
  ++launched_;
  last_launch_ = call.launch;
  out.head = wire::head<wire::LaunchRecord>(wire::Kind::launch, start_->round);
  out.sequence = record.sequence;
  out.request = record.request;
  out.call = c;
  out.launch = call.launch;
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

// Synchronous copies know no stream: what is queued on the call's stream has to be waited for first.
void Replayer::perform(const Call& call) {
  gpu::Driver& driver = shared_.driver;
  gpu::CUstream stream = shared_.streams[call.stream];
  auto at = [&](uint32_t buffer, uint64_t offset) { return shared_.buffers.address(buffer, start_->arm_index) + offset; };
  bool waits =
      call.kind == CallKind::stream_sync || call.kind == CallKind::event_sync || call.kind == CallKind::context_sync;
  position_.stage = waits ? "sync" : "launch";
  position_.launch = suspect();
  switch (call.kind) {
    case CallKind::launch:
      break;
    case CallKind::copy:
      driver.copy_async(at(call.dst, call.dst_offset), at(call.src, call.src_offset), call.bytes, stream);
      break;
    case CallKind::upload:
      driver.synchronize(stream);
      driver.upload(at(call.dst, call.dst_offset), shared_.buffers.upload_source(call.dst) + call.dst_offset,
                    call.bytes);
      break;
    case CallKind::download:
      driver.synchronize(stream);
      driver.download(scratch_.data(), at(call.src, call.src_offset), call.bytes);
      break;
    case CallKind::memset:
      driver.fill(at(call.dst, call.dst_offset), call.value, call.bytes, stream);
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
    case CallKind::graph_launch:
    case CallKind::alloc:
    case CallKind::free:
    case CallKind::host_function:
      throw WorkerError("unsupported call", call_kind_name(call.kind));
  }
  position_.stage = "launch";
}

}  // namespace kgate::worker
