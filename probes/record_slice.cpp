// The begin and the end of the slice, where the application stands still and its device memory is read.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "probes/record_recorder.h"
#include "support/text.h"
#include "workload/block_hash.h"

namespace kgate::record {

using namespace gpu;
using namespace recording;

namespace {

constexpr size_t kPieceBytes = 16 << 20;
constexpr uint64_t kHashBlockBytes = 4096;
constexpr uint64_t kOpenCallsLimit = 10'000'000'000;  // ns: a call may wait for a thread that is held

bool all_zero(const std::byte* bytes, size_t size) {
  return size == 0 || (bytes[0] == std::byte{0} && std::memcmp(bytes, bytes + 1, size - 1) == 0);
}

}  // namespace

// ---- holding everybody ---------------------------------------------------------------------------------------------

void Recorder::hold(Thread& thread, uint32_t busy) {
  for (;;) {
    thread.busy.store(busy);  // in one order with held_: either we see that we are held, or it is seen that we go on
    if (held_.load() == 0) return;
    thread.busy.store(0);
    held_.wait(1);
  }
}

bool Recorder::claim(Thread& thread) {
  uint32_t nobody = 0;
  if (!held_.compare_exchange_strong(nobody, 1)) return false;
  wait_for_open_calls(thread);
  return true;
}

void Recorder::release() {
  held_ = 0;
  held_.notify_all();
}

void Recorder::wait_for_open_calls(Thread& self) {
  const uint64_t limit = monotonic_ns() + kOpenCallsLimit;
  for (Thread* thread : threads_.all()) {
    while (thread != &self && thread->busy == 1) {
      if (monotonic_ns() > limit) return;
      ::usleep(20);
    }
  }
}

void Recorder::synchronise() {
  std::set<CUcontext> contexts;
  {
    std::lock_guard lock(mutex_);
    contexts = contexts_;
  }
  for (CUcontext context : contexts)
    if (InContext current{driver_, context}) ask(driver_.cuCtxSynchronize);
}

// ---- memory --------------------------------------------------------------------------------------------------------

void Recorder::snapshot(const Allocation& allocation, bool at_end, std::vector<std::byte>& piece, uint64_t& lost) {
  InContext current(driver_, allocation.context != nullptr ? allocation.context : context_.load());
  SnapshotRecord record{};
  const uint64_t now = monotonic_ns();
  record.head = {Kind::snapshot, 0, sizeof record, static_cast<uint32_t>(gettid()), 0, sequence_++, now, now};
  record.address = allocation.address, record.size = allocation.size, record.at_end = at_end;
  std::vector<uint64_t> hashes;
  if (!at_end) record.content = {output_->reserve_blob(allocation.size), allocation.size};
  for (uint64_t at = 0; at < allocation.size; at += kPieceBytes) {
    const size_t size = std::min<uint64_t>(kPieceBytes, allocation.size - at);
    if (ask(driver_.cuMemcpyDtoH_v2, static_cast<void*>(piece.data()), allocation.address + at, size) != CUDA_SUCCESS) {
      lost += allocation.size;
      return;
    }
    if (at_end) {
      const auto some = block_hashes({piece.data(), size}, kHashBlockBytes);
      hashes.insert(hashes.end(), some.begin(), some.end());
    } else if (!all_zero(piece.data(), size)) {
      output_->write_blob(record.content.offset + at, piece.data(), size);
    } else {  // a hole, which reads as zeros
      output_->write_blob(record.content.offset + at + size - 1, piece.data(), 1);
    }
    ++progress_;
  }
  if (at_end) record.content = output_->add_blob(hashes.data(), hashes.size() * sizeof(uint64_t));
  output_->append(&record, sizeof record);
}

// ---- begin and end -------------------------------------------------------------------------------------------------

bool Recorder::begin_is_due(const Thread& thread) const {
  if (slice_.load(std::memory_order_relaxed) != Slice::before || !thread.call.work) return false;
  if (captures_ != 0) return false;  // waiting for the device would break a capture
  if (options_.from_ns == 0) return true;
  const uint64_t first = first_launch_;
  return first != 0 && monotonic_ns() - first >= options_.from_ns;
}

bool Recorder::end_is_due() const {
  if (options_.for_ns == 0 || slice_.load(std::memory_order_relaxed) != Slice::inside || captures_ != 0) return false;
  return monotonic_ns() - slice_began_ >= options_.for_ns;
}

void Recorder::begin_slice(Thread& thread) {
  if (slice_ != Slice::before || captures_ != 0) return;  // both may have changed before all were held
  Inside inside(thread);
  synchronise();
  threads_.flush_all();
  SliceRecord record{};
  std::vector<Allocation> allocations = memory_.all();
  std::vector<Allocation> others;
  std::erase_if(allocations, [&](const Allocation& allocation) {
    if (!allocation.is_snapshotted()) others.push_back(allocation);
    return !allocation.is_snapshotted();
  });
  for (const Allocation& allocation : allocations) record.bytes += allocation.size;
  too_large_ = record.bytes > options_.max_bytes;
  const std::string all = format_bytes(static_cast<double>(record.bytes));
  if (too_large_) allocations.clear(), record.bytes = 0;
  record.allocations = allocations.size();
  const uint64_t now = monotonic_ns();
  record.head = {Kind::slice_begin, 0, sizeof record, thread.id, 0, sequence_++, now, now};
  output_->append(&record, sizeof record);
  std::vector<std::byte> piece(allocations.empty() ? 0 : kPieceBytes);
  uint64_t lost = 0;
  for (const Allocation& allocation : allocations) snapshot(allocation, false, piece, lost);
  slice_ = Slice::inside;
  slice_began_ = monotonic_ns();
  if (too_large_)
    note(thread, "the application holds " + all + " of device memory where the slice begins, more than the " +
                     format_bytes(static_cast<double>(options_.max_bytes)) +
                     " that a recording may take (allow more with --max-size)");
  if (lost != 0) note(thread, format_bytes(static_cast<double>(lost)) + " of device memory could not be read", false);
  for (const Allocation& allocation : others) note_memory(thread, allocation);
  std::set<std::string> lasting;
  {
    std::lock_guard lock(mutex_);
    lasting = lasting_;
  }
  for (const std::string& text : lasting) note(thread, text);
  for (const std::string& call : unwatched_)
    note(thread, "this CUPTI does not show calls of " + call + ": they are left out", false);
}

void Recorder::end_slice(Thread& thread) {
  if (slice_ != Slice::inside) return;
  Inside inside(thread);
  const bool readable = captures_ == 0;
  if (readable) synchronise();
  threads_.flush_all();
  std::vector<Allocation> allocations = memory_.all();
  std::erase_if(allocations, [&](const Allocation& a) { return !a.is_snapshotted() || too_large_ || !readable; });
  SliceRecord record{};
  record.allocations = allocations.size();
  for (const Allocation& allocation : allocations) record.bytes += allocation.size;
  const uint64_t now = monotonic_ns();
  record.head = {Kind::slice_end, 0, sizeof record, thread.id, 0, sequence_++, now, now};
  output_->append(&record, sizeof record);
  std::vector<std::byte> piece(allocations.empty() ? 0 : kPieceBytes);
  uint64_t lost = 0;
  for (const Allocation& allocation : allocations) snapshot(allocation, true, piece, lost);
  slice_ = Slice::after;
  output_->complete();
}

void Recorder::end_slice_now(Thread& thread, bool whole) {
  if (slice_ != Slice::inside || !claim(thread)) return;
  if (!whole || captures_ == 0) end_slice(thread);
  release();
}

void Recorder::request_ended(Thread& thread) {
  if (slice_ != Slice::inside) return;
  const uint64_t ended = ++requests_;
  if (options_.requests != 0 && ended >= options_.requests) end_slice_now(thread, true);
}

void Recorder::finish() {
  Thread& thread = threads_.mine();
  Inside inside(thread);
  while (!claim(thread)) held_.wait(1);
  end_slice(thread);
  if (slice_ == Slice::before) {
    threads_.flush_all();
    slice_ = Slice::after;
    output_->complete();
  }
  release();
}

}  // namespace kgate::record
