// Exports: the cupti* functions that the collector uses, so that one collector serves the real GPU and this one.
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "vgpu/cupti_callbacks.h"
#include "vgpu/cupti_records.h"
#include "vgpu/driver_call.h"

namespace kgate::vgpu {

namespace {

// Attributes are kept and given back, and change nothing: there are no device buffers, and host buffers are not
// cleared.
struct AttributeValue {
  size_t bytes;
  uint64_t value;
};

std::mutex session_mutex;
std::map<CUpti_ActivityAttribute, AttributeValue> attributes = {
    {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, {sizeof(size_t), 3200000}},
    {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP, {sizeof(size_t), 8 << 20}},
    {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, {sizeof(size_t), 250}},
    {CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_SIZE, {sizeof(size_t), 25000}},
    {CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_LIMIT, {sizeof(size_t), 250}},
    {CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, {sizeof(uint8_t), 0}},
    {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, {sizeof(size_t), 3}},
    {CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_PRE_ALLOCATE_VALUE, {sizeof(size_t), 3}},
    {CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, {sizeof(uint8_t), 0}},
    {CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, {sizeof(uint8_t), 1}},
};

const char* cupti_result_name(CUptiResult code) {
  switch (code) {
#define KGATE_NAME(name, value) \
  case name:                    \
    return #name;
    KGATE_CUPTI_RESULTS(KGATE_NAME)
#undef KGATE_NAME
  }
  return nullptr;
}

}  // namespace

KGATE_EXPORT CUptiResult cuptiGetVersion(uint32_t* version) {
  if (version == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *version = kCuptiVersion;
  return CUPTI_SUCCESS;
}

KGATE_EXPORT CUptiResult cuptiGetResultString(CUptiResult code, const char** text) {
  if (text == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *text = cupti_result_name(code);
  return *text != nullptr ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

KGATE_EXPORT CUptiResult cuptiGetTimestamp(uint64_t* timestamp) {
  if (timestamp == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *timestamp = cupti::now();
  return CUPTI_SUCCESS;
}

KGATE_EXPORT CUptiResult cuptiSetThreadIdType(unsigned type) {
  if (type > CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM) return CUPTI_ERROR_INVALID_PARAMETER;
  cupti::set_thread_id_type(type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  return CUPTI_SUCCESS;
}

KGATE_EXPORT CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* out, CUpti_CallbackFunc callback, void* user) {
  return cupti::subscribe(out, callback, user, nullptr);
}

KGATE_EXPORT CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle* out, CUpti_CallbackFunc callback, void* user,
                                           CUpti_SubscriberParams* params) {
  if (params != nullptr && params->structSize != sizeof(CUpti_SubscriberParams)) return CUPTI_ERROR_INVALID_PARAMETER;
  return cupti::subscribe(out, callback, user, params);
}

KGATE_EXPORT CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) { return cupti::unsubscribe(subscriber); }

KGATE_EXPORT CUptiResult cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle subscriber, int domain,
                                             uint32_t cbid) {
  return cupti::enable_callback(on != 0, subscriber, domain, cbid);
}

KGATE_EXPORT CUptiResult cuptiEnableDomain(uint32_t on, CUpti_SubscriberHandle subscriber, int domain) {
  return cupti::enable_domain(on != 0, subscriber, domain);
}

KGATE_EXPORT CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                        CUpti_BuffersCallbackCompleteFunc complete) {
  if (request == nullptr || complete == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  cupti::set_callbacks(request, complete);
  return CUPTI_SUCCESS;
}

KGATE_EXPORT CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc timestamp) {
  if (timestamp == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  cupti::set_timestamp(timestamp);
  return CUPTI_SUCCESS;
}

KGATE_EXPORT CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) { return cupti::enable(kind); }
KGATE_EXPORT CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) { return cupti::disable(kind); }

// Synchronization records are always written for every call here: queries never find work that is not done.
KGATE_EXPORT CUptiResult cuptiActivityEnableAllSyncRecords(uint8_t) { return CUPTI_SUCCESS; }

KGATE_EXPORT CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t* size, void* value) {
  if (size == nullptr || value == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  std::lock_guard lock(session_mutex);
  auto it = attributes.find(attribute);
  if (it == attributes.end()) return CUPTI_ERROR_INVALID_PARAMETER;
  if (*size < it->second.bytes) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  it->second.value = 0;
  std::memcpy(&it->second.value, value, it->second.bytes);
  return CUPTI_SUCCESS;
}

KGATE_EXPORT CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute attribute, size_t* size, void* value) {
  if (size == nullptr || value == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  std::lock_guard lock(session_mutex);
  auto it = attributes.find(attribute);
  if (it == attributes.end()) return CUPTI_ERROR_INVALID_PARAMETER;
  if (*size < it->second.bytes) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  std::memcpy(value, &it->second.value, it->second.bytes);
  *size = it->second.bytes;
  return CUPTI_SUCCESS;
}

KGATE_EXPORT CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  if (!cupti::has_callbacks()) return CUPTI_ERROR_INVALID_OPERATION;
  cupti::flush((flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0);
  return CUPTI_SUCCESS;
}

KGATE_EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  if (dropped == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *dropped = cupti::take_dropped();
  return CUPTI_SUCCESS;
}

// Walks any buffer, filled here or not: a kind that is not written here, or a record cut short, ends the walk.
KGATE_EXPORT CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid_bytes, CUpti_Activity** record) {
  if (buffer == nullptr || record == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  size_t at = 0;
  if (*record != nullptr) {
    size_t previous = reinterpret_cast<uintptr_t>(*record) - reinterpret_cast<uintptr_t>(buffer);
    if (previous > valid_bytes || valid_bytes - previous < sizeof(CUpti_Activity)) return CUPTI_ERROR_INVALID_PARAMETER;
    size_t size = cupti::record_size((*record)->kind);
    if (size == 0) return CUPTI_ERROR_INVALID_KIND;
    at = previous + size;
  }
  if (at >= valid_bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  if (valid_bytes - at < sizeof(CUpti_Activity)) return CUPTI_ERROR_INVALID_KIND;
  auto* next = reinterpret_cast<CUpti_Activity*>(buffer + at);
  size_t size = cupti::record_size(next->kind);
  if (size == 0 || size > valid_bytes - at) return CUPTI_ERROR_INVALID_KIND;
  *record = next;
  return CUPTI_SUCCESS;
}

}  // namespace kgate::vgpu
