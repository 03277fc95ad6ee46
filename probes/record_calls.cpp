// From a callback to what it is about: entry and exit of a call; contexts, and notes.
#include <sys/personality.h>

#include "probes/record_call_table.h"
#include "probes/record_recorder.h"

namespace kgate::record {

using namespace gpu;
using namespace recording;

#define KGATE_ID(name) CUPTI_DRIVER_TRACE_CBID_##name

namespace {

uint64_t number(const void* handle) { return reinterpret_cast<uint64_t>(handle); }

// Null is the legacy default stream, or with a twin of the call the thread's own.
uint64_t stream_of(uint32_t cbid, CUstream stream) {
  return stream == nullptr && kWatchedCalls[cbid].per_thread ? kStreamPerThread : number(stream);
}

bool is_poll(uint32_t cbid) {
  return cbid == KGATE_ID(cuStreamQuery) || cbid == KGATE_ID(cuStreamQuery_ptsz) || cbid == KGATE_ID(cuEventQuery);
}

int result_of(const CUpti_CallbackData& data) {
  return data.functionReturnValue != nullptr ? *static_cast<const int*>(data.functionReturnValue) : CUDA_SUCCESS;
}

}  // namespace

Recorder::Recorder(Options options, std::unique_ptr<Output> output, const DriverCalls& driver)
    : options_(std::move(options)),
      output_(std::move(output)),
      driver_(driver),
      threads_(*output_),
      modules_(*output_, threads_, driver_, sequence_) {}

Head Recorder::head(const Thread& thread, Kind kind, int result) const {
  const OpenCall& call = thread.call;
  return {
      kind,    static_cast<uint16_t>(call.captured ? kCaptured : 0), 0, thread.id, result, call.sequence, call.begin,
      call.end};
}

// ---- entry and exit ------------------------------------------------------------------------------------------------

void Recorder::on_driver_call(uint32_t cbid, const CUpti_CallbackData& data) {
  if (cbid >= kWatchedCalls.size() || kWatchedCalls[cbid].sort == Sort::none || !recording()) return;
  Thread& thread = threads_.mine();
  if (thread.inside) return;
  if (data.callbackSite == CUPTI_API_ENTER) {
    if (thread.depth++ == 0) enter(thread, cbid, data);
    return;
  }
  if (thread.depth == 0 || --thread.depth != 0) return;  // begun before it was watched, or inside another call
  exit(thread, cbid, data);
  thread.busy.store(0, std::memory_order_release);
}

void Recorder::enter(Thread& thread, uint32_t cbid, const CUpti_CallbackData& data) {
  const WatchedCall& call = kWatchedCalls[cbid];
  const uint32_t busy = call.sort == Sort::wait ? 2 : 1;
  thread.call = {};
  thread.call.work = call.is_work();
  for (hold(thread, busy);;) {
    const bool begin = begin_is_due(thread), end = end_is_due();
    if (!begin && !end) break;
    if (!claim(thread)) {
      thread.busy = 0;
      hold(thread, busy);
      continue;
    }
    if (begin)
      begin_slice(thread);
    else if (captures_ == 0)
      end_slice(thread);
    release();
    break;
  }
  if (!recording()) return;
  thread.call.sequence = sequence_.fetch_add(1, std::memory_order_relaxed);
  thread.call.begin = monotonic_ns();
  switch (call.sort) {
    case Sort::load:
    case Sort::code:
      return enter_code(thread, cbid, data);
    case Sort::free:
      return enter_free(thread, cbid, data);
    case Sort::context:
      if (cbid == KGATE_ID(cuCtxDestroy_v2) || cbid == KGATE_ID(cuDevicePrimaryCtxReset_v2)) end_slice_now(thread);
      if (cbid == KGATE_ID(cuDevicePrimaryCtxRelease_v2)) {
        const auto& params = params_of<KGATE_ID(cuDevicePrimaryCtxRelease_v2)>(data);
        bool last = false;
        {
          std::lock_guard lock(mutex_);
          uint32_t& retained = retained_[params.dev];
          last = retained <= 1;
          retained -= retained != 0;
        }
        if (last) end_slice_now(thread);
      }
      return;
    case Sort::noted:
      return note(thread, std::string(driver_cbid_name(cbid)) + " is left out of the replay", false);
    case Sort::refused:
    case Sort::refused_object: {
      const std::string text =
          std::string(call.refusal) + " (" + driver_cbid_name(cbid) + "), which cannot be replayed";
      if (call.sort == Sort::refused_object) {
        std::lock_guard lock(mutex_);
        lasting_.insert(text);
      }
      return note(thread, text);
    }
    default:
      if (thread.call.work) enter_work(thread, cbid, data);
  }
}

void Recorder::exit(Thread& thread, uint32_t cbid, const CUpti_CallbackData& data) {
  if (thread.call.sequence == 0) return;  // entered when recording had ended
  thread.call.end = monotonic_ns();
  if (!is_poll(cbid)) ++thread.records;
  const int result = result_of(data);
  const bool in_slice = slice_ == Slice::inside;
  switch (kWatchedCalls[cbid].sort) {
    case Sort::launch:
      // The first of all tells that there was one, in the slice or not.
      if (in_slice || thread.call.first) exit_launch(thread, cbid, data, result);
      return;
    case Sort::copy: {
      Copy copy{};
      if (in_slice && describe(cbid, data, copy)) exit_copy(thread, copy, result);
      return;
    }
    case Sort::fill: {
      Fill fill{};
      if (in_slice && describe(cbid, data, fill)) exit_fill(thread, fill, result);
      return;
    }
    case Sort::other_work:
    case Sort::wait:
    case Sort::stream:
      return exit_event_or_stream(thread, cbid, data, result);
    case Sort::graph:
    case Sort::graph_change:
      return exit_graph(thread, cbid, data, result);
    case Sort::free:
    case Sort::allocation:
      return exit_memory(thread, cbid, data, result);
    case Sort::load:
    case Sort::code:
      return exit_code(thread, cbid, data, result);
    case Sort::context:
      return exit_context(thread, cbid, data, result);
    default:
      return;
  }
}

// What needs doing before a call that makes the device work.
void Recorder::enter_work(Thread& thread, uint32_t cbid, const CUpti_CallbackData& data) {
  if (!device_noted_.load(std::memory_order_relaxed)) note_device(thread, data.context);
  check_context(thread, data.context);
  const auto captured = [&](CUstream stream) { thread.call.captured = is_capturing(thread, stream_of(cbid, stream)); };
  switch (kWatchedCalls[cbid].sort) {
    case Sort::launch:
      return enter_launch(thread, cbid, data);
    case Sort::copy: {
      Copy copy{};
      if (describe(cbid, data, copy)) enter_copy(thread, copy);
      return;
    }
    case Sort::fill: {
      Fill fill{};
      if (describe(cbid, data, fill)) thread.call.captured = is_capturing(thread, fill.stream);
      return;
    }
    default:
      break;
  }
  switch (cbid) {
    case KGATE_ID(cuGraphLaunch):
    case KGATE_ID(cuGraphLaunch_ptsz): {
      const auto& params = params_of<KGATE_ID(cuGraphLaunch)>(data);
      captured(params.hStream);
      check_graph(thread, params.hGraph);
      if (first_launch_ == 0) thread.call.first = first_launch_.exchange(thread.call.begin) == 0;
      return;
    }
    case KGATE_ID(cuLaunchHostFunc):
    case KGATE_ID(cuLaunchHostFunc_ptsz):
      captured(params_of<KGATE_ID(cuLaunchHostFunc)>(data).hStream);
      return note(thread, "host functions in streams are replayed as functions that do nothing", false);
    default:
      captured(params_of<KGATE_ID(cuStreamAddCallback)>(data).hStream);
      return note(thread, "callbacks of streams are replayed as host functions that do nothing", false);
  }
}

// ---- contexts ------------------------------------------------------------------------------------------------------

void Recorder::exit_context(Thread&, uint32_t cbid, const CUpti_CallbackData& data, int result) {
  if (result != CUDA_SUCCESS) return;
  if (cbid == KGATE_ID(cuDevicePrimaryCtxRetain)) {
    std::lock_guard lock(mutex_);
    ++retained_[params_of<KGATE_ID(cuDevicePrimaryCtxRetain)>(data).dev];
  }
}

void Recorder::on_context_created(CUcontext context) {
  std::lock_guard lock(mutex_);
  contexts_.insert(context);
}

void Recorder::on_context_destroyed(CUcontext context) {
  memory_.forget_context(context);
  std::lock_guard lock(mutex_);
  contexts_.erase(context);
}

// Not at the creation of the context, inside which the driver is not to be called.
void Recorder::note_device(Thread& thread, CUcontext context) {
  if (context == nullptr || device_noted_.exchange(true)) return;
  Inside inside(thread);
  DeviceRecord record{};
  record.head = {Kind::device, 0, 0, thread.id, 0, sequence_++, thread.call.begin, thread.call.begin};
  CUdevice device = 0;
  ask(driver_.cuCtxGetDevice, &device);
  ask(driver_.cuDeviceGetName, record.name, static_cast<int>(sizeof record.name), device);
  ask(driver_.cuDeviceGetAttribute, &record.cc_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  ask(driver_.cuDeviceGetAttribute, &record.cc_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  ask(driver_.cuDeviceGetAttribute, &record.sm_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  ask(driver_.cuDriverGetVersion, &record.driver_version);
  unsigned flags = 0;
  if (ask(driver_.cuCtxGetFlags, &flags) == CUDA_SUCCESS) record.sched_flags = flags & CU_CTX_SCHED_MASK;
  const int persona = ::personality(0xffffffff);
  record.aslr = persona == -1 || (persona & ADDR_NO_RANDOMIZE) == 0;
  thread.add(record);
}

void Recorder::check_context(Thread& thread, CUcontext context) {
  CUcontext known = context_.load(std::memory_order_relaxed);
  if (known == context || context == nullptr) return;
  if (known == nullptr && context_.compare_exchange_strong(known, context)) return;
  if (known != context) note(thread, "work in more than one context, or on more than one device");
}

// ---- notes ---------------------------------------------------------------------------------------------------------

void Recorder::note(Thread& thread, const std::string& text, bool refused) {
  const bool in_slice = slice_ == Slice::inside;
  if (!in_slice && refused) return;  // said when the slice meets it
  {
    std::lock_guard lock(mutex_);
    if (!said_.insert(text).second) return;
  }
  NoteRecord record{};
  record.head = {Kind::note, 0, 0, thread.id, 0, sequence_++, monotonic_ns(), 0};
  record.head.end = record.head.begin;
  record.length = static_cast<uint32_t>(text.size()), record.refused = refused;
  thread.add(record, {std::as_bytes(std::span(text))});
}

}  // namespace kgate::record
