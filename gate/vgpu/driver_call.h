// One exported call, from the caller's first to its last instruction: context check, the lock, the sticky error,
// exceptions turned into codes, and the activity records that CUPTI would write for it.
//
// Every export is a function of its own with its own address and frame (driver.cmake sets the flags), because uprobes
// sit on exported symbols: two names that shared an address would fire each other's probes.
#pragma once

#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "vgpu/cupti_callbacks.h"
#include "vgpu/cupti_records.h"
#include "vgpu/driver_state.h"

// A call as CUPTI shows it: its exported name and its parameters in order; or its name alone.
#define KGATE_API(name, ...) cupti::ApiOf<CUPTI_DRIVER_TRACE_CBID_##name>({__VA_ARGS__})
#define KGATE_API_ID(name) \
  cupti::Api { CUPTI_DRIVER_TRACE_CBID_##name, nullptr, nullptr }

#define KGATE_EXPORT extern "C" __attribute__((visibility("default"), noinline))

namespace kgate::vgpu {

// What a call's body works with. Records and news left here are written and told after the lock is released, since that
// can run the client's callbacks.
struct Call {
  State& state;
  Context& context;
  uint32_t correlation;
  std::unique_lock<std::mutex>& lock;  // released around a host function, which may take its time
  std::vector<cupti::Record> records{};
  std::string_view image{};  // of the module that this call loaded; empty: none
  std::vector<std::pair<uint32_t, CUpti_GraphData>> graph_news{};  // CUPTI_CBID_RESOURCE_GRAPH*
};

template <typename Body>
CUresult guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

// A call that needs no context. body(State&) runs under the lock.
template <typename Body>
CUresult global_call(Body&& body) noexcept {
  return guarded([&] {
    State& s = state();
    std::lock_guard lock(s.mutex);
    return s.initialised ? body(s) : CUDA_ERROR_NOT_INITIALIZED;
  });
}

// Any call with its callbacks and its record; body() runs without a lock.
template <typename Body>
CUresult traced(const cupti::Api& api, Body&& body) noexcept {
  cupti::ApiCall call(api);
  CUresult result = guarded(body);
  call.finish(result);
  return result;
}

// A call in the current context; body(Call&) runs under the lock.
template <typename Body>
CUresult context_call(const cupti::Api& traced, Body&& body) noexcept {
  cupti::ApiCall api(traced);
  CUresult result = guarded([&] {
    State& s = state();
    std::unique_lock lock(s.mutex);
    if (!s.initialised) return CUDA_ERROR_NOT_INITIALIZED;
    CUcontext handle = current_handle();
    if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    Context* context = s.contexts.find(handle);
    if (context == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (context->poison != CUDA_SUCCESS) return context->poison;
    Call call{s, *context, api.correlation(), lock};
    CUresult code = body(call);
    lock.unlock();
    for (const cupti::Record& record : call.records) cupti::write(record);
    if (!call.image.empty()) cupti::module_loaded(handle, call.image);
    for (auto& [cbid, graph] : call.graph_news) cupti::graph_changed(handle, cbid, graph);
    return code;
  });
  api.finish(result);
  return result;
}

}  // namespace kgate::vgpu
