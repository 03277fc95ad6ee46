// CUPTI's buffer protocol: request a buffer from the client, fill it, hand it back. No lock is held while the client's
// callbacks run: they may call back into CUPTI (the drop count is usually read there).
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "gpu/cupti_abi.h"

namespace kgate::vgpu::cupti {

// The record of the time that the client took to hand out a buffer; none where such records are not enabled.
using OverheadOf = std::optional<gpu::CUpti_ActivityOverhead3> (*)(uint64_t start, uint64_t end);

class Buffers {
 public:
  void set_callbacks(gpu::CUpti_BuffersCallbackRequestFunc request, gpu::CUpti_BuffersCallbackCompleteFunc complete);
  bool has_callbacks();

  // Appends one record; a record that finds no room is counted as dropped. The overhead of a buffer that had to be
  // asked for goes into that buffer, before another thread can fill it.
  void append(const void* record, size_t size, uint64_t (*clock)(), OverheadOf overhead);
  void count_dropped();
  uint64_t take_dropped();
  // Hands back the buffers that hold a record; `forced` hands back the empty ones too.
  void flush(bool forced);

 private:
  struct Buffer {
    uint8_t* data = nullptr;
    size_t size = 0, used = 0;
    size_t max_records = 0, records = 0;  // 0: no limit
    bool fits(size_t bytes) const {
      return data != nullptr && size - used >= bytes && (max_records == 0 || records < max_records);
    }
    bool append(const void* record, size_t bytes);  // false: no room
  };
  void complete(const Buffer& buffer);

  std::mutex mutex_;
  gpu::CUpti_BuffersCallbackRequestFunc request_ = nullptr;
  gpu::CUpti_BuffersCallbackCompleteFunc complete_ = nullptr;
  Buffer current_;
  std::vector<Buffer> spare_;  // asked for by two threads at once
  uint64_t dropped_ = 0;
};

}  // namespace kgate::vgpu::cupti
