// A small CUPTI client on the virtual GPU's library: collects records as a real collector would.
#pragma once

#include <dlfcn.h>

#include <cstring>
#include <ctime>
#include <mutex>
#include <vector>

#include "gpu/cupti_abi.h"
#include "samples.h"

namespace kgate {

using namespace gpu;

struct Cupti {
#define KGATE_CUPTI(X)                                                                                             \
  X(cuptiGetVersion, (uint32_t*))                                                                                  \
  X(cuptiGetTimestamp, (uint64_t*))                                                                                \
  X(cuptiGetResultString, (CUptiResult, const char**))                                                             \
  X(cuptiSetThreadIdType, (unsigned))                                                                              \
  X(cuptiSubscribe_v2, (CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*, CUpti_SubscriberParams*))              \
  X(cuptiUnsubscribe, (CUpti_SubscriberHandle))                                                                    \
  X(cuptiActivityRegisterCallbacks, (CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc))         \
  X(cuptiActivityRegisterTimestampCallback, (CUpti_TimestampCallbackFunc))                                         \
  X(cuptiActivityEnable, (CUpti_ActivityKind))                                                                     \
  X(cuptiActivityDisable, (CUpti_ActivityKind))                                                                    \
  X(cuptiActivityEnableAllSyncRecords, (uint8_t))                                                                  \
  X(cuptiActivitySetAttribute, (CUpti_ActivityAttribute, size_t*, void*))                                          \
  X(cuptiActivityGetAttribute, (CUpti_ActivityAttribute, size_t*, void*))                                          \
  X(cuptiActivityFlushAll, (uint32_t))                                                                             \
  X(cuptiActivityGetNumDroppedRecords, (CUcontext, uint32_t, size_t*))                                             \
  X(cuptiActivityGetNextRecord, (uint8_t*, size_t, CUpti_Activity**))
#define KGATE_MEMBER(name, params) CUptiResult(*name) params;
  KGATE_CUPTI(KGATE_MEMBER)
#undef KGATE_MEMBER
  explicit Cupti(const Driver& driver) {
#define KGATE_RESOLVE(name, params) name = reinterpret_cast<decltype(name)>(driver.symbol(#name));
    KGATE_CUPTI(KGATE_RESOLVE)
#undef KGATE_RESOLVE
  }
};

inline uint64_t monotonic() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

// The session is the library's, hence static: callbacks take no user data.
struct Collector {
  static inline Cupti* cupti = nullptr;
  static inline std::mutex mutex;
  static inline size_t buffer_bytes = 1 << 16, max_records = 0;
  static inline bool decline = false;
  static inline int requested = 0, completed = 0;
  static inline std::vector<CUpti_ActivityKernel10> kernels;
  static inline std::vector<CUpti_ActivityAPI> calls;
  static inline std::vector<CUpti_ActivitySynchronization2> syncs;
  static inline std::vector<CUpti_ActivityMemcpy6> copies;
  static inline std::vector<CUpti_ActivityMemset4> fills;
  static inline std::vector<CUpti_ActivityOverhead3> overheads;
  static inline size_t dropped = 0;

  static void request(uint8_t** buffer, size_t* size, size_t* records) {
    std::lock_guard lock(mutex);
    ++requested;
    *buffer = decline ? nullptr : static_cast<uint8_t*>(std::aligned_alloc(8, buffer_bytes));
    *size = buffer_bytes;
    *records = max_records;
  }
  static void complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
    CUpti_Activity* record = nullptr;
    while (cupti->cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
      std::lock_guard lock(mutex);
      switch (record->kind) {
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: keep(kernels, record); break;
        case CUPTI_ACTIVITY_KIND_DRIVER: keep(calls, record); break;
        case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: keep(syncs, record); break;
        case CUPTI_ACTIVITY_KIND_MEMCPY: keep(copies, record); break;
        case CUPTI_ACTIVITY_KIND_MEMSET: keep(fills, record); break;
        case CUPTI_ACTIVITY_KIND_OVERHEAD: keep(overheads, record); break;
        default: ADD_FAILURE() << "kind " << record->kind;
      }
    }
    size_t lost = 0;  // read in the callback, as NVIDIA's samples do: must not deadlock
    cupti->cuptiActivityGetNumDroppedRecords(nullptr, 0, &lost);
    std::lock_guard lock(mutex);
    dropped += lost;
    ++completed;
    std::free(buffer);
  }
  template <typename T>
  static void keep(std::vector<T>& records, const CUpti_Activity* record) {
    T copy;
    std::memcpy(&copy, record, sizeof copy);
    records.push_back(copy);
  }
};

// Each test has a session of its own on a fresh context.
class CuptiTest : public ::testing::Test {
 protected:
  CuptiTest() : driver(start_virtual()), cupti(*driver) {
    Collector::cupti = &cupti;
    Collector::buffer_bytes = 1 << 16;
    Collector::max_records = 0;
    Collector::decline = false;
    cupti.cuptiActivityRegisterCallbacks(&Collector::request, &Collector::complete);
    cupti.cuptiActivityRegisterTimestampCallback(&monotonic);
    cupti.cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    clear();
  }
  ~CuptiTest() override {
    for (CUpti_ActivityKind kind : kKinds) cupti.cuptiActivityDisable(kind);
    cupti.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  }
  void enable() {
    for (CUpti_ActivityKind kind : kKinds) ASSERT_EQ(cupti.cuptiActivityEnable(kind), CUPTI_SUCCESS);
  }
  void flush() {
    ASSERT_EQ(cupti.cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    size_t lost = 0;
    cupti.cuptiActivityGetNumDroppedRecords(nullptr, 0, &lost);
    Collector::dropped += lost;
  }
  void clear() {
    size_t lost = 0;
    cupti.cuptiActivityGetNumDroppedRecords(nullptr, 0, &lost);
    Collector::requested = Collector::completed = 0;
    Collector::dropped = 0;
    Collector::kernels.clear();
    Collector::calls.clear();
    Collector::syncs.clear();
    Collector::copies.clear();
    Collector::fills.clear();
    Collector::overheads.clear();
  }
  static constexpr CUpti_ActivityKind kKinds[] = {
      CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
      CUPTI_ACTIVITY_KIND_MEMCPY,            CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_OVERHEAD};

  std::unique_ptr<Driver> driver;
  Cupti cupti;
};

}  // namespace kgate
