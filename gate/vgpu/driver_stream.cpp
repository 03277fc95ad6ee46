// Exports: streams and events. Work runs when it is issued, so every wait is over when it begins; the calls still check
// their handles, report a context's sticky error, and leave their synchronization records.
#include "vgpu/driver_stream.h"

#include "vgpu/driver_capture.h"
#include "vgpu/driver_work.h"

namespace kgate::vgpu {

namespace {

constexpr uint32_t kLegacyStreamId = 7;  // what CUPTI calls the legacy default stream

uint32_t per_thread_id(State& s) {
  thread_local uint32_t id = s.next_stream++;
  return id;
}

// A synchronization record around a wait of no length.
void record_sync(Call& call, uint32_t type, uint32_t stream, const Event* event) {
  if (!cupti::enabled(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) return;
  CUpti_ActivitySynchronization2 r{};
  r.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  r.type = type;
  r.start = cupti::now();
  r.end = cupti::now();
  r.correlationId = call.correlation;
  r.contextId = call.context.id;
  r.streamId = stream;
  r.cudaEventId = event != nullptr ? event->id : kCuptiNotApplicable;
  r.cudaEventSyncId = event != nullptr ? event->sync_id : 0;
  call.records.push_back({r});
}

CUresult make_stream(const cupti::Api& api, CUstream* out, unsigned flags, int priority) {
  return context_call(api, [&](Call& call) {
    if (out == nullptr || (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0) return CUDA_ERROR_INVALID_VALUE;
    auto stream = std::make_unique<Stream>();
    stream->context = call.context.id;
    stream->id = call.state.next_stream++;
    stream->flags = flags;
    stream->priority = priority;
    *out = call.state.streams.add(std::move(stream));
    return CUDA_SUCCESS;
  });
}

// The default streams have the flags and the priority 0.
CUresult stream_flags(StreamArg stream, unsigned* flags) {
  return context_call(stream.per_thread ? KGATE_API_ID(cuStreamGetFlags_ptsz) : KGATE_API_ID(cuStreamGetFlags),
                      [&](Call& call) {
                        uint32_t id = 0;
                        if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
                        if (CUresult code = stream_id(call, stream, id); code != CUDA_SUCCESS) return code;
                        Stream* found = call.state.streams.find(stream.handle);
                        *flags = found != nullptr ? found->flags : unsigned{CU_STREAM_DEFAULT};
                        return CUDA_SUCCESS;
                      });
}

CUresult stream_priority(StreamArg stream, int* priority) {
  return context_call(stream.per_thread ? KGATE_API_ID(cuStreamGetPriority_ptsz) : KGATE_API_ID(cuStreamGetPriority),
                      [&](Call& call) {
                        uint32_t id = 0;
                        if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
                        if (CUresult code = stream_id(call, stream, id); code != CUDA_SUCCESS) return code;
                        Stream* found = call.state.streams.find(stream.handle);
                        *priority = found != nullptr ? found->priority : 0;
                        return CUDA_SUCCESS;
                      });
}

CUresult synchronize(const cupti::Api& api, StreamArg stream) {
  return context_call(api, [&](Call& call) {
    uint32_t id = 0;
    CUresult code = stream_id(call, stream, id);
    if (code == CUDA_SUCCESS) code = not_capturing(call, stream);
    if (code == CUDA_SUCCESS) record_sync(call, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE, id, nullptr);
    return code;
  });
}

CUresult query(const cupti::Api& api, StreamArg stream) {
  return context_call(api, [&](Call& call) {
    uint32_t id = 0;
    CUresult code = stream_id(call, stream, id);
    return code == CUDA_SUCCESS ? not_capturing(call, stream) : code;
  });
}

CUresult wait_event(const cupti::Api& api, StreamArg stream, CUevent handle, unsigned flags) {
  return context_call(api, [&](Call& call) {
    uint32_t id = 0;
    if (CUresult code = stream_id(call, stream, id); code != CUDA_SUCCESS) return code;
    if (flags > CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    Event* event = call.state.events.find(handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    Stream* capturing_stream = capturing(call, stream);
    if (flags == CU_EVENT_WAIT_EXTERNAL) {
      if (capturing_stream == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
      return capture(call, *capturing_stream, EventWork{handle, false});
    }
    if (capturing_stream != nullptr || event->capture) {
      Stream* joining = call.state.streams.find(stream.handle);
      if (joining == nullptr) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
      return capture_wait(*joining, *event);
    }
    record_sync(call, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT, id, event);
    return CUDA_SUCCESS;
  });
}

CUresult record(const cupti::Api& api, CUevent handle, StreamArg stream, unsigned flags) {
  return context_call(api, [&](Call& call) {
    uint32_t id = 0;
    if (CUresult code = stream_id(call, stream, id); code != CUDA_SUCCESS) return code;
    if (flags > CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
    Event* event = call.state.events.find(handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (Stream* capturing_stream = capturing(call, stream)) {
      if (flags == CU_EVENT_RECORD_EXTERNAL) return capture(call, *capturing_stream, EventWork{handle, true});
      return capture_record(*capturing_stream, *event);
    }
    if (flags == CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_ILLEGAL_STATE;
    if (CUresult code = implicit_sync(call, stream); code != CUDA_SUCCESS) return code;
    return run(call, EventWork{handle, true}, {id});
  });
}

CUresult elapsed(const cupti::Api& api, float* milliseconds, CUevent start, CUevent end) {
  return context_call(api, [&](Call& call) {
    if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Event *a = call.state.events.find(start), *b = call.state.events.find(end);
    if (a == nullptr || b == nullptr || a->recorded_ns == 0 || b->recorded_ns == 0 ||
        ((a->flags | b->flags) & CU_EVENT_DISABLE_TIMING) != 0) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    auto ns = static_cast<int64_t>(b->recorded_ns - a->recorded_ns);
    *milliseconds = static_cast<float>(static_cast<double>(ns) / 1e6);
    return CUDA_SUCCESS;
  });
}

CUresult run_host_function(const cupti::Api& api, StreamArg stream, CUhostFn function, void* user_data) {
  return context_call(api, [&](Call& call) {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return submit(call, stream, HostWork{function, user_data}, true);
  });
}

CUresult synchronize_context(const cupti::Api& api, CUcontext handle) {
  return context_call(api, [&](Call& call) {
    Context* context = handle == nullptr ? &call.context : call.state.contexts.find(handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (context->poison != CUDA_SUCCESS) return context->poison;
    if (CUresult code = implicit_sync(call, {}); code != CUDA_SUCCESS) return code;
    record_sync(call, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE, kCuptiNotApplicable, nullptr);
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult stream_id(Call& call, StreamArg stream, uint32_t& id) {
  uintptr_t value = reinterpret_cast<uintptr_t>(stream.handle);
  if (value == kStreamPerThread || (value == 0 && stream.per_thread)) {
    id = per_thread_id(call.state);
    return CUDA_SUCCESS;
  }
  if (value == 0 || value == kStreamLegacy) {
    id = kLegacyStreamId;
    return CUDA_SUCCESS;
  }
  Stream* found = call.state.streams.find(stream.handle);
  if (found == nullptr || found->context != call.context.id) return CUDA_ERROR_INVALID_HANDLE;
  id = found->id;
  return CUDA_SUCCESS;
}

KGATE_EXPORT CUresult cuStreamCreate(CUstream* out, unsigned flags) {
  return make_stream(KGATE_API(cuStreamCreate, out, flags), out, flags, 0);
}

KGATE_EXPORT CUresult cuStreamCreateWithPriority(CUstream* out, unsigned flags, int priority) {
  return make_stream(KGATE_API(cuStreamCreateWithPriority, out, flags, priority), out, flags, priority);
}

KGATE_EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  return context_call(KGATE_API(cuStreamDestroy_v2, stream), [&](Call& call) {
    stream_ends(call, stream);
    return call.state.streams.erase(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}

KGATE_EXPORT CUresult cuStreamGetFlags(CUstream stream, unsigned* flags) {
  return stream_flags({stream, false}, flags);
}
KGATE_EXPORT CUresult cuStreamGetFlags_ptsz(CUstream stream, unsigned* flags) {
  return stream_flags({stream, true}, flags);
}

KGATE_EXPORT CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  return stream_priority({stream, false}, priority);
}
KGATE_EXPORT CUresult cuStreamGetPriority_ptsz(CUstream stream, int* priority) {
  return stream_priority({stream, true}, priority);
}

KGATE_EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  return synchronize(KGATE_API(cuStreamSynchronize, stream), {stream, false});
}
KGATE_EXPORT CUresult cuStreamSynchronize_ptsz(CUstream stream) {
  return synchronize(KGATE_API(cuStreamSynchronize_ptsz, stream), {stream, true});
}

KGATE_EXPORT CUresult cuStreamQuery(CUstream stream) {
  return query(KGATE_API(cuStreamQuery, stream), {stream, false});
}
KGATE_EXPORT CUresult cuStreamQuery_ptsz(CUstream stream) {
  return query(KGATE_API(cuStreamQuery_ptsz, stream), {stream, true});
}

KGATE_EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return wait_event(KGATE_API(cuStreamWaitEvent, stream, event, flags), {stream, false}, event, flags);
}
KGATE_EXPORT CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned flags) {
  return wait_event(KGATE_API(cuStreamWaitEvent_ptsz, stream, event, flags), {stream, true}, event, flags);
}

KGATE_EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* user_data) {
  return run_host_function(KGATE_API(cuLaunchHostFunc, stream, function, user_data), {stream, false}, function,
                           user_data);
}
KGATE_EXPORT CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void* user_data) {
  return run_host_function(KGATE_API(cuLaunchHostFunc_ptsz, stream, function, user_data), {stream, true}, function,
                           user_data);
}

KGATE_EXPORT CUresult cuCtxSynchronize() { return synchronize_context(KGATE_API_ID(cuCtxSynchronize), nullptr); }
KGATE_EXPORT CUresult cuCtxSynchronize_v2(CUcontext context) {
  return synchronize_context(KGATE_API(cuCtxSynchronize_v2, context), context);
}

KGATE_EXPORT CUresult cuEventCreate(CUevent* out, unsigned flags) {
  return context_call(KGATE_API(cuEventCreate, out, flags), [&](Call& call) {
    constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
    if (out == nullptr || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
    auto event = std::make_unique<Event>();
    event->context = call.context.id;
    event->id = call.state.next_event++;
    event->flags = flags;
    *out = call.state.events.add(std::move(event));
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  return context_call(KGATE_API(cuEventDestroy_v2, event), [&](Call& call) {
    return call.state.events.erase(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}

KGATE_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  return record(KGATE_API(cuEventRecord, event, stream), event, {stream, false}, 0);
}
KGATE_EXPORT CUresult cuEventRecord_ptsz(CUevent event, CUstream stream) {
  return record(KGATE_API(cuEventRecord_ptsz, event, stream), event, {stream, true}, 0);
}

KGATE_EXPORT CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  return record(KGATE_API(cuEventRecordWithFlags, event, stream, flags), event, {stream, false}, flags);
}
KGATE_EXPORT CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned flags) {
  return record(KGATE_API(cuEventRecordWithFlags_ptsz, event, stream, flags), event, {stream, true}, flags);
}

KGATE_EXPORT CUresult cuEventQuery(CUevent event) {
  return context_call(KGATE_API(cuEventQuery, event), [&](Call& call) {
    Event* found = call.state.events.find(event);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return found->capture ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuEventSynchronize(CUevent handle) {
  return context_call(KGATE_API(cuEventSynchronize, handle), [&](Call& call) {
    Event* event = call.state.events.find(handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (event->capture) return CUDA_ERROR_CAPTURED_EVENT;
    record_sync(call, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE, kCuptiNotApplicable, event);
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return elapsed({}, milliseconds, start, end);
}
KGATE_EXPORT CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return elapsed(KGATE_API(cuEventElapsedTime_v2, milliseconds, start, end), milliseconds, start, end);
}

}  // namespace kgate::vgpu
