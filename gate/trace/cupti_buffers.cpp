// Buffers are handed out zeroed (CUPTI is told so and spares its own memset); only what CUPTI wrote is cleared again.
#include "trace/cupti_buffers.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace kgate::trace {

static_assert(CuptiBuffers::kCount % 64 == 0 && CuptiBuffers::kMaxCount % 64 == 0, "a bit of a word a buffer");

CuptiBuffers::CuptiBuffers(size_t count, size_t bytes, bool touch) : count_(count), bytes_(bytes) {
  size_t total = count * bytes + kDiscards * kDiscardBytes;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | (touch ? MAP_POPULATE : MAP_NORESERVE);
  void* memory = mmap(nullptr, total, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (memory == MAP_FAILED) return;
  memory_ = static_cast<uint8_t*>(memory);
  for (size_t at = 0; touch && at < total; at += 4096) static_cast<volatile uint8_t*>(memory_)[at] = 0;
  for (size_t word = 0; word < count_ / 64; ++word) free_[word] = ~uint64_t{0};
}

void CuptiBuffers::request(uint8_t** buffer, size_t* size) {
  if (!asked_.load(std::memory_order_relaxed)) asked_.store(true, std::memory_order_relaxed);
  for (size_t word = 0; word < count_ / 64; ++word) {
    uint64_t free = free_[word].load(std::memory_order_acquire);
    while (free != 0) {
      if (!free_[word].compare_exchange_weak(free, free & (free - 1), std::memory_order_acq_rel)) continue;
      *buffer = memory_ + (word * 64 + static_cast<size_t>(__builtin_ctzll(free))) * bytes_;
      *size = bytes_;
      return;
    }
  }
  uint64_t number = exhausted_.fetch_add(1, std::memory_order_relaxed);
  *buffer = memory_ + count_ * bytes_ + number % kDiscards * kDiscardBytes;
  *size = kDiscardBytes;
}

void CuptiBuffers::complete(gpu::CUcontext context, uint32_t stream, uint8_t* buffer, size_t valid) {
  if (buffer < memory_ || buffer >= memory_ + count_ * bytes_) return;  // a discard buffer
  size_t index = static_cast<size_t>(buffer - memory_) / bytes_;
  slots_[index] = {std::min(valid, bytes_), context, stream};
  completed_[index / 64].fetch_or(uint64_t{1} << index % 64, std::memory_order_release);
}

void CuptiBuffers::recycle(size_t index) {
  std::memset(memory_ + index * bytes_, 0, slots_[index].valid);
  free_[index / 64].fetch_or(uint64_t{1} << index % 64, std::memory_order_release);
}

}  // namespace kgate::trace
