// A CUPTI of the test's own: it logs the order of calls, and hands over whatever records the test gives it. Loaded with
// dlopen like the real one. FAKE_CUPTI_VERSION, FAKE_CUPTI_OTHER (name of another subscriber) and
// FAKE_CUPTI_NO_CALLBACKS change what it says.
#include "fake_cupti.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

using namespace kgate::gpu;

namespace {

std::string call_log;
CUpti_BuffersCallbackRequestFunc request_buffer;
CUpti_BuffersCallbackCompleteFunc complete_buffer;
CUpti_TimestampCallbackFunc timestamp;
CUpti_CallbackFunc subscriber;
void* subscriber_data;
struct Buffer {
  uint8_t* data = nullptr;
  size_t size = 0, used = 0;
} current;
std::vector<std::vector<uint8_t>> held;
size_t dropped;

size_t size_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    default:
      return 16;
  }
}

void hand_back() {
  if (current.data != nullptr) complete_buffer(nullptr, 0, current.data, current.size, current.used);
  current = {};
}

CUptiResult log(const std::string& call) {
  call_log += call + " ";
  return CUPTI_SUCCESS;
}

}  // namespace

extern "C" {

const char* fake_cupti_log() { return call_log.c_str(); }
void fake_cupti_set_dropped(size_t count) { dropped = count; }
int fake_cupti_call(uint32_t id, const void* data) {
  if (subscriber == nullptr) return 0;
  subscriber(subscriber_data, static_cast<int>(CUPTI_CB_DOMAIN_RESOURCE), id, data);
  return 1;
}
void fake_cupti_hold(const void* record, size_t size) {
  held.emplace_back(static_cast<const uint8_t*>(record), static_cast<const uint8_t*>(record) + size);
}
void fake_cupti_emit(const void* record, size_t size) {
  if (current.data != nullptr && current.used + size > current.size) hand_back();
  size_t max_records = 0;
  if (current.data == nullptr) request_buffer(&current.data, &current.size, &max_records);
  if (current.data == nullptr) std::abort();  // older versions crash here
  std::memcpy(current.data + current.used, record, size);
  current.used += size;
}

CUptiResult cuptiGetVersion(uint32_t* version) {
  const char* text = std::getenv("FAKE_CUPTI_VERSION");
  *version = text ? static_cast<uint32_t>(std::atoi(text)) : kCuptiVersion;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetResultString(CUptiResult, const char** text) {
  *text = "FAKE";
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetTimestamp(uint64_t* time) {
  *time = timestamp();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiSetThreadIdType(unsigned type) { return log("thread_id:" + std::to_string(type)); }
CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback, void* user,
                              CUpti_SubscriberParams* parameters) {
  if (const char* other = std::getenv("FAKE_CUPTI_OTHER")) {
    std::strncpy(parameters->oldSubscriberName, other, parameters->oldSubscriberSize - 1);
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  *handle = reinterpret_cast<CUpti_SubscriberHandle>(&call_log);
  subscriber = callback, subscriber_data = user;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle) {
  subscriber = nullptr;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiEnableCallback(uint32_t, CUpti_SubscriberHandle, int domain, uint32_t id) {
  if (std::getenv("FAKE_CUPTI_NO_CALLBACKS")) return CUPTI_ERROR_NOT_SUPPORTED;
  return log("callback:" + std::to_string(domain) + ":" + std::to_string(id));
}
CUptiResult cuptiGetGraphExecId(CUgraphExec graph, uint32_t* id) {
  *id = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(graph));
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  request_buffer = request, complete_buffer = complete;
  return log("callbacks");
}
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function) {
  timestamp = function;
  return log("timestamp");
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) { return log("enable:" + std::to_string(kind)); }
CUptiResult cuptiActivityEnableAllSyncRecords(uint8_t) { return log("all_sync"); }
CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t*, void*) {
  return log("attribute:" + std::to_string(attribute));
}
CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  if (flag == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED)
    for (const auto& record : held) fake_cupti_emit(record.data(), record.size());
  hand_back();
  return log("flush:" + std::to_string(flag));
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* count) {
  *count = std::exchange(dropped, 0);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  uint8_t* next = *record == nullptr ? buffer : reinterpret_cast<uint8_t*>(*record) + size_of((*record)->kind);
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

}  // extern "C"
