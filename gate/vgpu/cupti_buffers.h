// CUPTI's buffer protocol: request a buffer from the client, fill it, hand it back. No lock is held while the client's
// callbacks run: they may call back into CUPTI (the drop count is usually read there).
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "gpu/cupti_abi.h"

namespace kgate::vgpu::cupti {

// Whether append() asked the client for a buffer, and how long the client took.
struct BufferRequest {
  bool happened = false;
  uint64_t start = 0, end = 0;
};

class Buffers {
 public:
  void set_callbacks(gpu::CUpti_BuffersCallbackRequestFunc request, gpu::CUpti_BuffersCallbackCompleteFunc complete);
  bool has_callbacks();

  // Appends one record; a record that finds no room is counted as dropped.
  BufferRequest append(const void* record, size_t size, uint64_t (*clock)());
  void append_if_room(const void* record, size_t size);  // never asks for a buffer
  void count_dropped();
  uint64_t take_dropped();
  // Hands back the buffer in use if it holds a record; `forced` hands back the empty ones too.
  void flush(bool forced);

 private:
  struct Buffer {
    uint8_t* data = nullptr;
    size_t size = 0, used = 0;
    size_t max_records = 0, records = 0;  // 0: no limit
    bool fits(size_t bytes) const {
      return data != nullptr && size - used >= bytes && (max_records == 0 || records < max_records);
    }
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
