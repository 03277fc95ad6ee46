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

bool Buffers::Buffer::append(const void* record, size_t bytes) {
  if (!fits(bytes)) return false;
  std::memcpy(data + used, record, bytes);
  used += bytes;
  ++records;
  return true;
}

void Buffers::append(const void* record, size_t size, uint64_t (*clock)(), OverheadOf overhead) {
  std::unique_lock lock(mutex_);
  if (current_.append(record, size)) return;
  if (request_ == nullptr) {
    ++dropped_;
    return;
  }
  while (current_.data != nullptr || !spare_.empty()) {
    Buffer full = std::exchange(current_, {});
    if (!spare_.empty()) {
      current_ = spare_.back();
      spare_.pop_back();
    }
    lock.unlock();
    complete(full);
    lock.lock();
    if (current_.append(record, size)) return;
  }
  lock.unlock();
  Buffer fresh;
  uint64_t start = clock();
  request_(&fresh.data, &fresh.size, &fresh.max_records);
  uint64_t end = clock();
  bool aligned = reinterpret_cast<uintptr_t>(fresh.data) % kAlignment == 0;
  bool lost = !aligned || !fresh.append(record, size), overhead_lost = false;
  if (lost) {
    complete(fresh);
  } else if (auto spent = overhead(start, end)) {
    overhead_lost = !fresh.append(&*spent, sizeof *spent);
  }
  lock.lock();
  if (lost) {
    ++dropped_;
    return;
  }
  if (overhead_lost) ++dropped_;
  if (current_.data == nullptr) {
    current_ = fresh;
  } else {
    spare_.push_back(fresh);
  }
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
  std::vector<Buffer> done;
  auto take = [&](Buffer& buffer) {
    if (forced || buffer.used != 0) done.push_back(std::exchange(buffer, {}));
  };
  take(current_);
  for (Buffer& buffer : spare_) take(buffer);
  std::erase_if(spare_, [](const Buffer& buffer) { return buffer.data == nullptr; });
  lock.unlock();
  for (const Buffer& buffer : done) complete(buffer);
}

}  // namespace kgate::vgpu::cupti
