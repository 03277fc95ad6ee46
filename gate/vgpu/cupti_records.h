// Activity records of the virtual GPU, with CUPTI's layouts and buffer protocol: the client is asked for buffers, they
// are filled, and handed back when they are full or flushed. A client that gives no buffer loses the record, and is
// told how many it lost.
//
// Times are the client's timestamp callback or CLOCK_REALTIME, read around the execution: host time of a CPU that
// interprets a kernel. They are real, and say nothing about a GPU.
#pragma once

#include <cstdint>
#include <variant>

#include "gpu/cupti_abi.h"
#include "vgpu/cupti_callbacks.h"
#include "vgpu/cupti_inject.h"

namespace kgate::vgpu::cupti {

using namespace gpu;

// One activity record of any kind that the virtual GPU writes.
struct Record {
  std::variant<std::monostate, CUpti_ActivityKernel10, CUpti_ActivityMemcpy6, CUpti_ActivityMemset4,
               CUpti_ActivitySynchronization2>
      value;
  CUpti_ActivityKind kind() const;
};

bool enabled(CUpti_ActivityKind kind);
// The kind under which kernels are recorded, INVALID when they are not.
CUpti_ActivityKind kernel_kind();
uint64_t now();  // ns
uint32_t thread_id();

void write(const Record& record);  // call it without locks: it may run the client's callbacks

// One driver call: takes the correlation id and tells the subscriber at entry, tells it again and writes the DRIVER
// record at the end. A callback's own time lies outside the record.
class ApiCall {
 public:
  explicit ApiCall(const Api& api);
  uint32_t correlation() const { return correlation_; }
  void finish(CUresult result);

 private:
  void record(CUresult result);

  const Api& api_;
  uint32_t correlation_;
  bool recorded_, told_ = false;
  uint64_t start_ = 0;
  uint64_t subscribers_word_ = 0;
};

// The session, as the cupti* exports drive it.
CUptiResult enable(CUpti_ActivityKind kind);
CUptiResult disable(CUpti_ActivityKind kind);
void set_callbacks(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete);
bool has_callbacks();
void set_timestamp(CUpti_TimestampCallbackFunc timestamp);
void set_thread_id_type(bool system);
void flush(bool forced);                      // forced: also buffers without a record
uint64_t take_dropped();                      // reads and resets
size_t record_size(CUpti_ActivityKind kind);  // 0: not a kind that is written here

}  // namespace kgate::vgpu::cupti
