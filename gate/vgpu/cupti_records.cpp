// The record stream: what is enabled, the clock, and one writer behind every driver call.
#include "vgpu/cupti_records.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <mutex>

#include "vgpu/cupti_buffers.h"

namespace kgate::vgpu::cupti {

namespace {

std::atomic<uint64_t> enabled_mask{0};
std::atomic<uint32_t> last_correlation{0};
std::atomic<bool> system_thread_ids{false};
std::atomic<CUpti_TimestampCallbackFunc> timestamp_callback{nullptr};

Buffers& buffers() {
  static Buffers* const instance = new Buffers;  // never destroyed: threads may outlive main
  return *instance;
}

std::mutex injection_mutex;
Injection injection;  // counts down

bool take(uint64_t& count) {
  if (count == 0) return false;
  if (count != UINT64_MAX) --count;
  return true;
}

// Applies the planted faults. False: the record is not written.
bool inject(CUpti_ActivityKernel10& kernel, bool& extra) {
  std::lock_guard lock(injection_mutex);
  extra = take(injection.kernel_without_launch);
  if (take(injection.drop_records)) {
    buffers().count_dropped();
    return false;
  }
  if (take(injection.lose_records)) return false;
  if (take(injection.zero_times)) kernel.start = kernel.end = kernel.completed = 0;
  if (take(injection.end_before_start)) kernel.end = kernel.start - 1;
  return true;
}

// The time that the client took to hand out a buffer lies inside the call that needed it.
std::optional<CUpti_ActivityOverhead3> overhead_of(uint64_t start, uint64_t end) {
  if (!enabled(CUPTI_ACTIVITY_KIND_OVERHEAD)) return std::nullopt;
  CUpti_ActivityOverhead3 overhead{};
  overhead.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST;
  overhead.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  overhead.objectId[0] = static_cast<uint32_t>(getpid());
  overhead.objectId[1] = thread_id();
  overhead.start = start;
  overhead.end = end;
  return overhead;
}

template <typename T>
void append(const T& record) {
  buffers().append(&record, sizeof record, &now, &overhead_of);
}

}  // namespace

CUpti_ActivityKind Record::kind() const {
  return std::visit(
      [](const auto& record) {
        if constexpr (std::is_same_v<std::decay_t<decltype(record)>, std::monostate>) {
          return CUPTI_ACTIVITY_KIND_INVALID;
        } else {
          return record.kind;
        }
      },
      value);
}

bool enabled(CUpti_ActivityKind kind) {
  return (enabled_mask.load(std::memory_order_relaxed) >> static_cast<unsigned>(kind)) & 1;
}

CUpti_ActivityKind kernel_kind() {
  if (enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) return CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  return enabled(CUPTI_ACTIVITY_KIND_KERNEL) ? CUPTI_ACTIVITY_KIND_KERNEL : CUPTI_ACTIVITY_KIND_INVALID;
}

uint64_t now() {
  if (auto callback = timestamp_callback.load(std::memory_order_acquire)) return callback();
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

uint32_t thread_id() {
  thread_local const uint32_t system = static_cast<uint32_t>(gettid());
  return system_thread_ids.load(std::memory_order_relaxed) ? system : static_cast<uint32_t>(pthread_self());
}

void write(const Record& record) {
  std::visit(
      [](auto copy) {
        using T = decltype(copy);
        if constexpr (std::is_same_v<T, CUpti_ActivityKernel10>) {
          bool extra = false;
          bool keep = inject(copy, extra);
          if (keep) append(copy);
          if (extra) {
            copy.correlationId = ~copy.correlationId;
            append(copy);
          }
        } else if constexpr (!std::is_same_v<T, std::monostate>) {
          append(copy);
        }
      },
      record.value);
}

ApiCall::ApiCall(const Api& api)
    : api_(api),
      correlation_(last_correlation.fetch_add(1, std::memory_order_relaxed) + 1),
      recorded_(api.cbid != 0 && enabled(CUPTI_ACTIVITY_KIND_DRIVER)) {
  if (driver_callbacks.load(std::memory_order_relaxed) && api.cbid != 0)
    told_ = driver_call(api_, correlation_, nullptr, &subscribers_word_);
  if (recorded_) start_ = now();
}

void ApiCall::finish(CUresult result) {
  if (recorded_) record(result);
  if (told_) driver_call(api_, correlation_, &result, &subscribers_word_);
}

void ApiCall::record(CUresult result) {
  CUpti_ActivityAPI api{};
  api.kind = CUPTI_ACTIVITY_KIND_DRIVER;
  api.cbid = api_.cbid;
  api.start = start_;
  api.end = now();
  api.processId = static_cast<uint32_t>(getpid());
  api.threadId = thread_id();
  api.correlationId = correlation_;
  api.returnValue = static_cast<uint32_t>(result);
  append(api);
}

CUptiResult enable(CUpti_ActivityKind kind) {
  // Kinds that exist but cannot occur here (no runtime API, no traces of whole graphs) are accepted: nothing to record is the truth.
  bool known = false;
#define KGATE_KNOWN(name, value) known = known || kind == name;
  KGATE_CUPTI_KINDS(KGATE_KNOWN)
#undef KGATE_KNOWN
  if (!known || kind == CUPTI_ACTIVITY_KIND_INVALID) return CUPTI_ERROR_INVALID_KIND;
  if (enabled_mask.load() == 0) {
    auto read = read_injection();
    if (!read) return CUPTI_ERROR_INVALID_PARAMETER;
    std::lock_guard lock(injection_mutex);
    injection = *read;
  }
  enabled_mask.fetch_or(uint64_t{1} << static_cast<unsigned>(kind));
  return CUPTI_SUCCESS;
}

CUptiResult disable(CUpti_ActivityKind kind) {
  if (kind <= CUPTI_ACTIVITY_KIND_INVALID || static_cast<unsigned>(kind) >= 64) return CUPTI_ERROR_INVALID_KIND;
  enabled_mask.fetch_and(~(uint64_t{1} << static_cast<unsigned>(kind)));
  return CUPTI_SUCCESS;
}

void set_callbacks(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete) {
  buffers().set_callbacks(request, complete);
}
bool has_callbacks() { return buffers().has_callbacks(); }
void set_timestamp(CUpti_TimestampCallbackFunc timestamp) { timestamp_callback.store(timestamp); }
void set_thread_id_type(bool system) { system_thread_ids.store(system); }
void flush(bool forced) { buffers().flush(forced); }
uint64_t take_dropped() { return buffers().take_dropped(); }

size_t record_size(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return sizeof(CUpti_ActivitySynchronization2);
    default:
      return 0;
  }
}

}  // namespace kgate::vgpu::cupti
