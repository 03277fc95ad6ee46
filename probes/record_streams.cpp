// Streams and events: what is made, waited for, asked about and captured.
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

// A program that polls without a pause leaves the first of its unsuccessful polls, and the last one.
bool is_news(Thread& thread, uint64_t polled, int result) {
  if (result != CUDA_ERROR_NOT_READY) {
    thread.polled = 0;
    return true;
  }
  const bool again = thread.polled == polled && thread.polled_at == thread.records;
  thread.polled = polled, thread.polled_at = thread.records;
  return !again;
}

}  // namespace

template <typename Record>
void Recorder::put_on_stream(Thread& thread, Kind kind, int result, uint64_t stream) {
  Record record{};
  record.head = head(thread, kind, result);
  record.stream = stream;
  thread.add(record);
}

void Recorder::put_event(Thread& thread, Kind kind, int result, CUevent event, uint64_t stream) {
  EventRecord record{};
  record.head = head(thread, kind, result);
  record.event = number(event), record.stream = stream;
  thread.add(record);
}

bool Recorder::is_capturing(Thread& thread, uint64_t stream) {
  if (captures_.load(std::memory_order_relaxed) == 0 || stream <= kStreamLegacy) return false;
  Inside inside(thread);
  int status = 0;
  return ask(driver_.cuStreamIsCapturing, reinterpret_cast<CUstream>(stream), &status) == CUDA_SUCCESS && status != 0;
}

// A host sync after work ends a request.
void Recorder::host_sync(Thread& thread) {
  if (std::exchange(thread.launches, 0) != 0 && options_.request_range.empty()) request_ended(thread);
}

// True: the call is one of those, recorded in the slice or not.
bool Recorder::exit_stream_life(Thread& thread, uint32_t cbid, const CUpti_CallbackData& data, int result) {
  switch (cbid) {
    case KGATE_ID(cuStreamCreate):
    case KGATE_ID(cuStreamCreateWithPriority): {
      StreamRecord record{};
      record.head = head(thread, Kind::stream, result);
      if (cbid == KGATE_ID(cuStreamCreate)) {
        const auto& params = params_of<KGATE_ID(cuStreamCreate)>(data);
        if (result == CUDA_SUCCESS) record.stream = number(*params.phStream);
        record.flags = params.Flags;
      } else {
        const auto& params = params_of<KGATE_ID(cuStreamCreateWithPriority)>(data);
        if (result == CUDA_SUCCESS) record.stream = number(*params.phStream);
        record.flags = params.flags, record.priority = params.priority;
      }
      thread.add(record);
      return true;
    }
    case KGATE_ID(cuStreamDestroy_v2):
    case KGATE_ID(cuEventDestroy_v2): {
      HandleRecord record{};
      const bool stream = cbid == KGATE_ID(cuStreamDestroy_v2);
      record.head = head(thread, stream ? Kind::stream_destroyed : Kind::event_destroyed, result);
      record.handle = stream ? number(params_of<KGATE_ID(cuStreamDestroy_v2)>(data).hStream)
                             : number(params_of<KGATE_ID(cuEventDestroy_v2)>(data).hEvent);
      if (stream) {
        std::lock_guard lock(mutex_);
        if (capturing_.erase(record.handle) != 0) --captures_;
      }
      if (stream || slice_ == Slice::inside) thread.add(record);
      return true;
    }
    case KGATE_ID(cuStreamBeginCapture_v2):
    case KGATE_ID(cuStreamBeginCapture_v2_ptsz):
    case KGATE_ID(cuStreamBeginCaptureToGraph):
    case KGATE_ID(cuStreamBeginCaptureToGraph_ptsz): {
      // The stream is the first parameter of both.
      const uint64_t stream = stream_of(cbid, params_of<KGATE_ID(cuStreamBeginCapture_v2)>(data).hStream);
      std::lock_guard lock(mutex_);
      if (result == CUDA_SUCCESS && capturing_.insert(stream).second) ++captures_;
      return true;
    }
    case KGATE_ID(cuStreamEndCapture):
    case KGATE_ID(cuStreamEndCapture_ptsz): {
      const uint64_t stream = stream_of(cbid, params_of<KGATE_ID(cuStreamEndCapture)>(data).hStream);
      std::lock_guard lock(mutex_);
      if (capturing_.erase(stream) != 0) --captures_;
      return true;
    }
    default:
      return false;
  }
}

bool Recorder::exit_wait(Thread& thread, uint32_t cbid, const CUpti_CallbackData& data, int result) {
  switch (cbid) {
    case KGATE_ID(cuStreamSynchronize):
    case KGATE_ID(cuStreamSynchronize_ptsz):
      put_on_stream<StreamCallRecord>(thread, Kind::stream_sync, result,
                                      stream_of(cbid, params_of<KGATE_ID(cuStreamSynchronize)>(data).hStream));
      host_sync(thread);
      return true;
    case KGATE_ID(cuEventSynchronize):
      put_event(thread, Kind::event_sync, result, params_of<KGATE_ID(cuEventSynchronize)>(data).hEvent, 0);
      host_sync(thread);
      return true;
    case KGATE_ID(cuCtxSynchronize):
    case KGATE_ID(cuCtxSynchronize_v2): {
      Head record = head(thread, Kind::context_sync, result);
      thread.add(record);
      host_sync(thread);
      return true;
    }
    case KGATE_ID(cuStreamQuery):
    case KGATE_ID(cuStreamQuery_ptsz): {
      const uint64_t stream = stream_of(cbid, params_of<KGATE_ID(cuStreamQuery)>(data).hStream);
      const bool waited = thread.polled == stream;
      if (!is_news(thread, stream, result)) return true;
      put_on_stream<StreamCallRecord>(thread, Kind::stream_query, result, stream);
      if (waited && result == CUDA_SUCCESS) host_sync(thread);
      return true;
    }
    case KGATE_ID(cuEventQuery): {
      const CUevent handle = params_of<KGATE_ID(cuEventQuery)>(data).hEvent;
      const bool waited = thread.polled == number(handle);
      if (!is_news(thread, number(handle), result)) return true;
      put_event(thread, Kind::event_query, result, handle, 0);
      if (waited && result == CUDA_SUCCESS) host_sync(thread);
      return true;
    }
    default:
      return false;
  }
}

void Recorder::exit_event_or_stream(Thread& thread, uint32_t cbid, const CUpti_CallbackData& data, int result) {
  const bool in_slice = slice_ == Slice::inside;
  if (exit_stream_life(thread, cbid, data, result)) return;
  if (!in_slice && !thread.call.first) return;
  if (exit_wait(thread, cbid, data, result)) return;
  switch (cbid) {
    case KGATE_ID(cuStreamWaitEvent):
    case KGATE_ID(cuStreamWaitEvent_ptsz): {
      const auto& params = params_of<KGATE_ID(cuStreamWaitEvent)>(data);
      const uint64_t stream = stream_of(cbid, params.hStream);
      thread.call.captured = is_capturing(thread, stream);  // only now: this may be what brings it into a capture
      return put_event(thread, Kind::event_wait, result, params.hEvent, stream);
    }
    case KGATE_ID(cuEventRecord):
    case KGATE_ID(cuEventRecord_ptsz):
    case KGATE_ID(cuEventRecordWithFlags):
    case KGATE_ID(cuEventRecordWithFlags_ptsz): {
      // Both begin with event and stream.
      const auto& params = params_of<KGATE_ID(cuEventRecord)>(data);
      const uint64_t stream = stream_of(cbid, params.hStream);
      thread.call.captured = is_capturing(thread, stream);
      return put_event(thread, Kind::event_record, result, params.hEvent, stream);
    }
    case KGATE_ID(cuLaunchHostFunc):
    case KGATE_ID(cuLaunchHostFunc_ptsz):
    case KGATE_ID(cuStreamAddCallback):
    case KGATE_ID(cuStreamAddCallback_ptsz):
      // The stream is the first parameter of both.
      return put_on_stream<StreamCallRecord>(thread, Kind::host_function, result,
                                             stream_of(cbid, params_of<KGATE_ID(cuLaunchHostFunc)>(data).hStream));
    case KGATE_ID(cuGraphLaunch):
    case KGATE_ID(cuGraphLaunch_ptsz): {
      const auto& params = params_of<KGATE_ID(cuGraphLaunch)>(data);
      GraphLaunchRecord record{};
      record.head = head(thread, Kind::graph_launch, result);
      record.graph = number(params.hGraph), record.stream = stream_of(cbid, params.hStream);
      if (in_slice && !thread.call.captured) ++thread.launches;
      return thread.add(record);
    }
    default:
      return;
  }
}

}  // namespace kgate::record
