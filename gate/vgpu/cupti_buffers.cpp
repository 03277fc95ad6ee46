// See the header.
#include "vgpu/cupti_buffers.h"

#include <cstring>
#include <utility>

namespace kgate::vgpu::cupti {

namespace {
constexpr uintptr_t kAlignment = 8;  // ACTIVITY_RECORD_ALIGNMENT
}

void Buffers::set_callbacks(gpu::CUpti_BuffersCallbackRequestFunc request,
                            gpu::CUpti_BuffersCallbackCompleteFunc complete) {
  std::lock_guard lock(mutex_);
  request_ = request;
  complete_ = complete;
}

bool Buffers::has_callbacks() {
  std::lock_guard lock(mutex_);
  return request_ != nullptr;
}

void Buffers::complete(const Buffer& buffer) {
  if (buffer.data != nullptr) complete_(nullptr, 0, buffer.data, buffer.size, buffer.used);
}

BufferRequest Buffers::append(const void* record, size_t size, uint64_t (*clock)()) {
  BufferRequest request;
  std::unique_lock lock(mutex_);
  for (;;) {
    if (current_.fits(size)) {
      std::memcpy(current_.data + current_.used, record, size);
      current_.used += size;
      ++current_.records;
      return request;
    }
    if (request_ == nullptr) {
      ++dropped_;
      return request;
    }
    Buffer full = std::exchange(current_, {});
    if (!spare_.empty()) {
      current_ = spare_.back();
      spare_.pop_back();
      lock.unlock();
      complete(full);
      lock.lock();
      continue;
    }
    lock.unlock();
    complete(full);
    Buffer fresh;
    request.happened = true;
    request.start = clock();
    request_(&fresh.data, &fresh.size, &fresh.max_records);
    request.end = clock();
    bool usable = fresh.fits(size) && reinterpret_cast<uintptr_t>(fresh.data) % kAlignment == 0;
    if (!usable) complete(fresh);
    lock.lock();
    if (!usable) {
      ++dropped_;
      return request;
    }
    if (current_.data == nullptr) {
      current_ = fresh;
    } else {
      spare_.push_back(fresh);
    }
  }
}

void Buffers::append_if_room(const void* record, size_t size) {
  std::lock_guard lock(mutex_);
  if (!current_.fits(size)) {
    ++dropped_;
    return;
  }
  std::memcpy(current_.data + current_.used, record, size);
  current_.used += size;
  ++current_.records;
}

void Buffers::count_dropped() {
  std::lock_guard lock(mutex_);
  ++dropped_;
}

uint64_t Buffers::take_dropped() {
  std::lock_guard lock(mutex_);
  return std::exchange(dropped_, 0);
}

void Buffers::flush(bool forced) {
  std::unique_lock lock(mutex_);
  Buffer current;
  std::vector<Buffer> spare;
  if (forced || current_.used != 0) current = std::exchange(current_, {});
  if (forced) spare = std::exchange(spare_, {});
  lock.unlock();
  complete(current);
  for (const Buffer& buffer : spare) complete(buffer);
}

}  // namespace kgate::vgpu::cupti
