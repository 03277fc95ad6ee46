#include "probes/record_thread.h"

#include <time.h>
#include <unistd.h>

#include <cstring>

namespace kgate::record {

using namespace recording;

uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// ---- one thread ----------------------------------------------------------------------------------------------------

void Thread::add_bytes(std::span<const std::byte> record, std::initializer_list<std::span<const std::byte>> tails) {
  const size_t size = reinterpret_cast<const Head*>(record.data())->bytes;
  std::lock_guard lock(mutex);
  if (size > kChunkBytes - chunk.used) {  // the draining thread is behind
    output.append(chunk.bytes.get(), chunk.used);
    chunk.used = 0;
  }
  const auto place = [&](std::byte* at) {
    std::memcpy(at, record.data(), record.size());
    size_t used = record.size();
    for (auto tail : tails) {
      if (!tail.empty()) std::memcpy(at + used, tail.data(), tail.size());
      used += tail.size();
    }
    std::memset(at + used, 0, size - used);
  };
  if (size > kChunkBytes) {
    std::unique_ptr<std::byte[]> large(new std::byte[size]);
    place(large.get());
    output.append(large.get(), size);
    return;
  }
  place(chunk.bytes.get() + chunk.used);
  chunk.used += size;
}

void Thread::write_blobs() {
  if (blobs.used != 0) output.write_blob(blobs_at, blobs.bytes.get(), blobs.used);
  blobs_at += blobs.used, blobs_left -= blobs.used;
  blobs.used = 0;
}

BlobRef Thread::add_blob(const void* bytes, size_t size) {
  if (size == 0) return {};
  if (size > kSmallBlobBytes) return output.add_blob(bytes, size);
  const size_t room = (size + 7) / 8 * 8;
  std::lock_guard lock(mutex);
  if (room > blobs_left - blobs.used) {
    write_blobs();
    blobs_at = output.reserve_blob(kChunkBytes);
    blobs_left = kChunkBytes;
  }
  const BlobRef ref{blobs_at + blobs.used, size};
  std::memcpy(blobs.bytes.get() + blobs.used, bytes, size);
  std::memset(blobs.bytes.get() + blobs.used + size, 0, room - size);
  blobs.used += room;
  return ref;
}

void Thread::flush(Chunk& spare) {
  size_t used = 0;
  {
    std::lock_guard lock(mutex);
    write_blobs();
    if (chunk.used == 0) return;
    std::swap(chunk, spare);
    used = std::exchange(spare.used, 0);
  }
  output.append(spare.bytes.get(), used);
}

// ---- all of them ---------------------------------------------------------------------------------------------------

namespace {

thread_local Thread* current = nullptr;

// Gives the place back when the thread ends. Calls that come even later, from other destructors, find `current` empty
// and take a place that stays theirs.
struct Leaver {
  Threads* threads = nullptr;
  pid_t process = 0;
  // A forked child has a copy of the lock, as it was held by whoever held it.
  ~Leaver() {
    if (threads != nullptr && current != nullptr && process == getpid())
      threads->leave(std::exchange(current, nullptr));
  }
};
thread_local Leaver leaver;

}  // namespace

Thread& Threads::mine() {
  if (current != nullptr) return *current;
  std::lock_guard lock(mutex_);
  if (free_.empty()) {
    all_.push_back(std::make_unique<Thread>(output_));
    current = all_.back().get();
  } else {
    current = free_.back();
    free_.pop_back();
  }
  current->id = static_cast<uint32_t>(gettid());
  leaver.threads = this;
  leaver.process = getpid();
  return *current;
}

void Threads::leave(Thread* thread) {
  thread->busy = 0;
  thread->depth = 0;
  thread->inside = false;
  thread->launches = thread->request_depth = 0;
  thread->load = thread->module_library = thread->polled = 0;
  thread->ranges.clear();
  std::lock_guard lock(mutex_);
  free_.push_back(thread);
}

std::vector<Thread*> Threads::all() {
  std::lock_guard lock(mutex_);
  std::vector<Thread*> threads;
  for (const auto& thread : all_) threads.push_back(thread.get());
  return threads;
}

void Threads::flush_all() {
  std::lock_guard lock(flush_);
  for (Thread* thread : all()) thread->flush(spare_);
}

}  // namespace kgate::record
