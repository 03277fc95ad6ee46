// Buffers are handed out zeroed (CUPTI is told so and spares its own memset); only what CUPTI wrote is cleared again.
#include "trace/cupti_buffers.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace kgate::trace {

static_assert(CuptiBuffers::kCount == 64, "one bit of a word a buffer");

CuptiBuffers::CuptiBuffers() {
  size_t bytes = kCount * kBytes + kDiscards * kDiscardBytes;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return;
  memory_ = static_cast<uint8_t*>(memory);
  for (size_t at = 0; at < bytes; at += 4096) static_cast<volatile uint8_t*>(memory_)[at] = 0;
}

void CuptiBuffers::request(uint8_t** buffer, size_t* size) {
  uint64_t free = free_.load(std::memory_order_acquire);
  while (free != 0) {
    if (!free_.compare_exchange_weak(free, free & (free - 1), std::memory_order_acq_rel)) continue;
    *buffer = memory_ + static_cast<size_t>(__builtin_ctzll(free)) * kBytes;
    *size = kBytes;
    return;
  }
  uint64_t number = exhausted_.fetch_add(1, std::memory_order_relaxed);
  *buffer = memory_ + kCount * kBytes + number % kDiscards * kDiscardBytes;
  *size = kDiscardBytes;
}

void CuptiBuffers::complete(gpu::CUcontext context, uint32_t stream, uint8_t* buffer, size_t valid) {
  if (buffer < memory_ || buffer >= memory_ + kCount * kBytes) return;  // a discard buffer
  size_t index = static_cast<size_t>(buffer - memory_) / kBytes;
  slots_[index] = {std::min(valid, kBytes), context, stream};
  completed_.fetch_or(uint64_t{1} << index, std::memory_order_release);
}

void CuptiBuffers::recycle(size_t index) {
  std::memset(memory_ + index * kBytes, 0, slots_[index].valid);
  free_.fetch_or(uint64_t{1} << index, std::memory_order_release);
}

}  // namespace kgate::trace
