// The one subscriber and its resource callbacks: contexts and modules as they come and go. Graphs do not exist here.
//
// Callbacks run in the thread whose call caused them, before that call returns, and without a lock: the subscriber may
// call the driver.
#pragma once

#include <string_view>

#include "gpu/cupti_abi.h"

namespace kgate::vgpu::cupti {

using namespace gpu;

// `params` (may be null) names the subscriber and takes the name of the one that is in the way.
CUptiResult subscribe(CUpti_SubscriberHandle* out, CUpti_CallbackFunc callback, void* user,
                      CUpti_SubscriberParams* params);
CUptiResult unsubscribe(CUpti_SubscriberHandle subscriber);
// Of the domain RESOURCE; others are not supported here.
CUptiResult enable_callback(bool on, CUpti_SubscriberHandle subscriber, int domain, uint32_t cbid);

void context_created(CUcontext context);
void context_destroyed(CUcontext context);                      // about to be
void module_loaded(CUcontext context, std::string_view image);  // PTX: there is no cubin

}  // namespace kgate::vgpu::cupti
