// See the header.
#include "vgpu/cupti_callbacks.h"

#include <bitset>
#include <mutex>
#include <string>

#include "vgpu/cupti_inject.h"
#include "vgpu/driver_state.h"

namespace kgate::vgpu::cupti {

namespace {

struct Subscriber {
  CUpti_CallbackFunc callback = nullptr;  // null: nobody
  void* user = nullptr;
  std::string name;
  uint32_t enabled = 0;  // a bit a RESOURCE callback id
  std::bitset<kDriverCbidLimit> driver;
};

std::mutex mutex;
Subscriber subscriber;
std::atomic<uint32_t> modules{0};

CUpti_SubscriberHandle handle() { return reinterpret_cast<CUpti_SubscriberHandle>(&subscriber); }

void call(uint32_t cbid, CUcontext context, void* descriptor) {
  CUpti_CallbackFunc callback = nullptr;
  void* user = nullptr;
  {
    std::lock_guard lock(mutex);
    if (subscriber.callback == nullptr || (subscriber.enabled >> cbid & 1) == 0) return;
    callback = subscriber.callback;
    user = subscriber.user;
  }
  CUpti_ResourceData data{context, nullptr, descriptor};
  callback(user, CUPTI_CB_DOMAIN_RESOURCE, cbid, &data);
}

// The context and the kernel's name, which a callback carries beside the parameters.
void describe(const Api& api, CUpti_CallbackData& data) {
  data.context = current_handle();
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (const Context* context = s.contexts.find(data.context)) data.contextUid = context->id;
  if (const LoadedFunction* function = s.functions.find(api.launches)) data.symbolName = function->name;
}

}  // namespace

std::atomic<bool> driver_callbacks{false};

CUptiResult subscribe(CUpti_SubscriberHandle* out, CUpti_CallbackFunc callback, void* user,
                      CUpti_SubscriberParams* params) {
  if (out == nullptr || callback == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  auto injection = read_injection();
  if (!injection) return CUPTI_ERROR_INVALID_PARAMETER;
  std::lock_guard lock(mutex);
  if (subscriber.callback != nullptr || injection->other_subscriber) {
    std::string other = subscriber.callback != nullptr ? subscriber.name : "CUPTI for injected tool";
    if (params != nullptr && params->oldSubscriberName != nullptr && params->oldSubscriberSize != 0) {
      size_t length = other.copy(params->oldSubscriberName, params->oldSubscriberSize - 1);
      params->oldSubscriberName[length] = '\0';
    }
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  const char* name = params != nullptr && params->subscriberName != nullptr ? params->subscriberName : "unnamed";
  subscriber = {callback, user, std::string("CUPTI for ") + name, 0, {}};
  *out = handle();
  return CUPTI_SUCCESS;
}

CUptiResult unsubscribe(CUpti_SubscriberHandle who) {
  std::lock_guard lock(mutex);
  if (subscriber.callback == nullptr || who != handle()) return CUPTI_ERROR_INVALID_PARAMETER;
  subscriber = {};
  driver_callbacks = false;
  return CUPTI_SUCCESS;
}

CUptiResult enable_callback(bool on, CUpti_SubscriberHandle who, int domain, uint32_t cbid) {
  std::lock_guard lock(mutex);
  if (subscriber.callback == nullptr || who != handle()) return CUPTI_ERROR_INVALID_PARAMETER;
  if (domain == static_cast<int>(CUPTI_CB_DOMAIN_DRIVER_API)) {
    if (cbid == 0 || cbid >= kDriverCbidLimit) return CUPTI_ERROR_INVALID_PARAMETER;
    subscriber.driver.set(cbid, on);
    driver_callbacks = subscriber.driver.any();
    return CUPTI_SUCCESS;
  }
  if (domain != static_cast<int>(CUPTI_CB_DOMAIN_RESOURCE)) return CUPTI_ERROR_NOT_SUPPORTED;
  if (cbid == 0 || cbid >= CUPTI_CBID_RESOURCE_SIZE) return CUPTI_ERROR_INVALID_PARAMETER;
  subscriber.enabled = (subscriber.enabled & ~(1u << cbid)) | (on ? 1u << cbid : 0u);
  return CUPTI_SUCCESS;
}

CUptiResult enable_domain(bool on, CUpti_SubscriberHandle who, int domain) {
  std::lock_guard lock(mutex);
  if (subscriber.callback == nullptr || who != handle()) return CUPTI_ERROR_INVALID_PARAMETER;
  if (domain == static_cast<int>(CUPTI_CB_DOMAIN_DRIVER_API)) {
    on ? subscriber.driver.set() : subscriber.driver.reset();
    driver_callbacks = on;
    return CUPTI_SUCCESS;
  }
  if (domain != static_cast<int>(CUPTI_CB_DOMAIN_RESOURCE)) return CUPTI_ERROR_NOT_SUPPORTED;
  subscriber.enabled = on ? (1u << CUPTI_CBID_RESOURCE_SIZE) - 2 : 0;
  return CUPTI_SUCCESS;
}

bool driver_call(const Api& api, uint32_t correlation, CUresult* result, uint64_t* data) {
  CUpti_CallbackFunc callback = nullptr;
  void* user = nullptr;
  {
    std::lock_guard lock(mutex);
    if (subscriber.callback == nullptr || !subscriber.driver.test(api.cbid)) return false;
    callback = subscriber.callback;
    user = subscriber.user;
  }
  CUpti_CallbackData call{};
  call.callbackSite = result == nullptr ? CUPTI_API_ENTER : CUPTI_API_EXIT;
  call.functionName = driver_cbid_name(api.cbid);
  call.functionParams = api.params;
  call.functionReturnValue = result;
  call.correlationData = data;
  call.correlationId = correlation;
  describe(api, call);
  callback(user, CUPTI_CB_DOMAIN_DRIVER_API, api.cbid, &call);
  return true;
}

void context_created(CUcontext context) { call(CUPTI_CBID_RESOURCE_CONTEXT_CREATED, context, nullptr); }

void context_destroyed(CUcontext context) { call(CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, context, nullptr); }

void graph_changed(CUcontext context, uint32_t cbid, CUpti_GraphData& graph) { call(cbid, context, &graph); }

void module_loaded(CUcontext context, std::string_view image) {
  CUpti_ModuleResourceData module{modules.fetch_add(1) + 1, image.size(), image.data()};
  call(CUPTI_CBID_RESOURCE_MODULE_LOADED, context, &module);
}

}  // namespace kgate::vgpu::cupti
