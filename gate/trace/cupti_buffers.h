// The buffers that CUPTI fills. All of them exist, and are touched, before the first kind is enabled: CUPTI asks for
// one in the middle of the application's call, and whatever that costs is charged to the launch that is being measured.
//
// Taking and giving is one atomic operation on a bit a buffer; no lock, no allocation. CUPTI is never given a null
// buffer (versions crash on it): when the pool is empty it gets one whose content is thrown away, and that is counted.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "gpu/cupti_abi.h"

namespace kgate::trace {

class CuptiBuffers {
 public:
  static constexpr size_t kCount = 64, kBytes = 1 << 20, kDiscardBytes = 64 << 10, kDiscards = 8;
  static constexpr size_t kMaxCount = 256;

  // `count`: a multiple of 64, at most kMaxCount. CUPTI keeps one buffer a thread, so that an application of many
  // threads needs many, of which most hold little: their memory is touched only if `touch`.
  explicit CuptiBuffers(size_t count = kCount, size_t bytes = kBytes, bool touch = true);
  bool mapped() const { return memory_ != nullptr; }

  // From CUPTI's callbacks, any thread.
  void request(uint8_t** buffer, size_t* size);
  void complete(gpu::CUcontext context, uint32_t stream, uint8_t* buffer, size_t valid);

  // From the draining thread: calls `take(data, valid bytes, context, stream)` for each completed buffer and makes it
  // free again.
  template <typename Take>
  void drain(Take take) {
    for (size_t word = 0; word < count_ / 64; ++word)
      for (uint64_t ready = completed_[word].exchange(0, std::memory_order_acquire); ready != 0; ready &= ready - 1) {
        size_t index = word * 64 + static_cast<size_t>(__builtin_ctzll(ready));
        const Slot& slot = slots_[index];
        take(memory_ + index * bytes_, slot.valid, slot.context, slot.stream);
        recycle(index);
      }
  }
  bool asked() const { return asked_.load(std::memory_order_relaxed); }  // CUPTI is at work
  size_t bytes() const { return bytes_; }
  uint64_t exhausted() const { return exhausted_.load(std::memory_order_relaxed); }

 private:
  struct Slot {
    size_t valid = 0;
    gpu::CUcontext context = nullptr;
    uint32_t stream = 0;
  };
  void recycle(size_t index);

  const size_t count_, bytes_;
  uint8_t* memory_ = nullptr;  // count * bytes, then the discard buffers; never unmapped: CUPTI may come late
  std::array<std::atomic<uint64_t>, kMaxCount / 64> free_{}, completed_{};
  std::array<Slot, kMaxCount> slots_;
  std::atomic<bool> asked_{false};
  std::atomic<uint64_t> exhausted_{0};
};

}  // namespace kgate::trace
