// Work, run or captured.
#include "vgpu/driver_work.h"

#include "vgpu/driver_capture.h"

namespace kgate::vgpu {

namespace {

// The function may do anything but call CUDA, and may take its time: other threads' calls go on.
CUresult run(Call& call, const HostWork& host) {
  HostWork copy = host;
  call.lock.unlock();
  copy.function(copy.user);
  call.lock.lock();
  return call.state.contexts.find(current_handle()) == &call.context ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult run(Call& call, const EventWork& work) {
  Event* event = call.state.events.find(work.event);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!work.record) return CUDA_SUCCESS;
  event->recorded_ns = monotonic_ns();
  ++event->sync_id;
  event->capture.reset();
  event->tips.clear();
  return CUDA_SUCCESS;
}

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

}  // namespace

CUresult run(Call& call, const Work& work, const Place& place) {
  return std::visit(Overloaded{[](const std::monostate&) { return CUDA_SUCCESS; },
                               [](const ChildWork&) { return CUDA_SUCCESS; },  // its nodes run on their own
                               [&](const HostWork& host) { return run(call, host); },
                               [&](const EventWork& event) { return run(call, event); },
                               [&](const auto& other) { return run(call, other, place); }},
                    work);
}

CUresult submit(Call& call, StreamArg on, Work work, bool asynchronous) {
  uint32_t id = 0;
  if (CUresult code = stream_id(call, on, id); code != CUDA_SUCCESS) return code;
  if (Stream* stream = capturing(call, on)) {
    bool waits = !asynchronous;  // a call that waits for its stream
    return waits ? break_capture(*stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
                 : capture(call, *stream, std::move(work));
  }
  if (CUresult code = implicit_sync(call, on); code != CUDA_SUCCESS) return code;
  return run(call, work, {id, asynchronous});
}

}  // namespace kgate::vgpu
