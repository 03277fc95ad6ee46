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

  CuptiBuffers();
  bool mapped() const { return memory_ != nullptr; }

  // From CUPTI's callbacks, any thread.
  void request(uint8_t** buffer, size_t* size);
  void complete(gpu::CUcontext context, uint32_t stream, uint8_t* buffer, size_t valid);

  // From the draining thread: calls `take(data, valid bytes, context, stream)` for each completed buffer and makes it
  // free again.
  template <typename Take>
  void drain(Take take) {
    for (uint64_t ready = completed_.exchange(0, std::memory_order_acquire); ready != 0; ready &= ready - 1) {
      auto index = static_cast<size_t>(__builtin_ctzll(ready));
      const Slot& slot = slots_[index];
      take(memory_ + index * kBytes, slot.valid, slot.context, slot.stream);
      recycle(index);
    }
  }
  uint64_t exhausted() const { return exhausted_.load(std::memory_order_relaxed); }

 private:
  struct Slot {
    size_t valid = 0;
    gpu::CUcontext context = nullptr;
    uint32_t stream = 0;
  };
  void recycle(size_t index);

  uint8_t* memory_ = nullptr;  // kCount * kBytes, then the discard buffers; never unmapped: CUPTI may come late
  std::atomic<uint64_t> free_{~uint64_t{0}}, completed_{0};
  std::array<Slot, kCount> slots_;
  std::atomic<uint64_t> exhausted_{0};
};

}  // namespace kgate::trace
