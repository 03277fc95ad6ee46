// The one subscriber and its callbacks: driver calls at their begin and end, and contexts, modules and graphs as they
// come and go.
//
// Callbacks run in the thread whose call caused them, before that call returns, and without a lock: the subscriber may
// call the driver, and those calls have callbacks too.
#pragma once

#include <atomic>
#include <string_view>

#include "gpu/cupti_callback_abi.h"

namespace kgate::vgpu::cupti {

using namespace gpu;

// `params` (may be null) names the subscriber and takes the name of the one that is in the way.
CUptiResult subscribe(CUpti_SubscriberHandle* out, CUpti_CallbackFunc callback, void* user,
                      CUpti_SubscriberParams* params);
CUptiResult unsubscribe(CUpti_SubscriberHandle subscriber);
// Of the domains DRIVER_API and RESOURCE; others are not supported here.
CUptiResult enable_callback(bool on, CUpti_SubscriberHandle subscriber, int domain, uint32_t cbid);
CUptiResult enable_domain(bool on, CUpti_SubscriberHandle subscriber, int domain);

// A driver call as its callbacks show it.
struct Api {
  uint32_t cbid = 0;  // 0: no callback and no record
  const void* params = nullptr;
  CUfunction launches = nullptr;  // whose name the callbacks carry
};

// With its parameters. It lives in the caller's frame while the call runs.
template <uint32_t id>
struct ApiOf : Api {
  typename DriverParams<id>::type values;

  explicit ApiOf(const typename DriverParams<id>::type& v) : Api{id, nullptr, nullptr}, values(v) {
    params = &values;
    if constexpr (requires { v.f; }) launches = v.f;
  }
  ApiOf(const ApiOf&) = delete;
};

extern std::atomic<bool> driver_callbacks;  // any is enabled
// Calls the subscriber; false: it does not want this call. `result` is null at the begin. `data` is the word that the
// subscriber keeps from begin to end.
bool driver_call(const Api& api, uint32_t correlation, CUresult* result, uint64_t* data);

void context_created(CUcontext context);
void context_destroyed(CUcontext context);                      // about to be
void module_loaded(CUcontext context, std::string_view image);  // PTX: there is no cubin
void graph_changed(CUcontext context, uint32_t cbid, CUpti_GraphData& graph);

}  // namespace kgate::vgpu::cupti
