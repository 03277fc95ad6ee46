// NVTX ranges, which say where requests begin and end. Ranges outside of the slice matter only if they are named as
// requests.
#include "probes/record_recorder.h"

namespace kgate::record {

using namespace recording;

bool Recorder::keeps_range(const std::string& name) const {
  return slice_ == Slice::inside || (!options_.request_range.empty() && name == options_.request_range);
}

void Recorder::put_range(Thread& thread, Kind kind, const std::string& name, uint64_t id) {
  RangeRecord record{};
  const uint64_t now = monotonic_ns();
  record.head = {kind, 0, 0, thread.id, 0, sequence_++, now, now};
  record.id = id, record.length = static_cast<uint32_t>(name.size());
  thread.add(record, {std::as_bytes(std::span(name))});
}

void Recorder::on_range_push(const std::string& name) {
  if (!recording()) return;
  Thread& thread = threads_.mine();
  const bool keeps = keeps_range(name);
  thread.ranges.push_back({keeps, keeps && name == options_.request_range && !name.empty()});
  if (!keeps) return;
  if (thread.ranges.back().request) ++thread.request_depth;
  put_range(thread, Kind::range_push, name, 0);
}

void Recorder::on_range_pop() {
  if (!recording()) return;
  Thread& thread = threads_.mine();
  if (thread.ranges.empty()) return;
  const auto range = thread.ranges.back();
  thread.ranges.pop_back();
  if (!range.kept) return;
  const uint64_t now = monotonic_ns();
  Head record{Kind::range_pop, 0, 0, thread.id, 0, sequence_++, now, now};
  thread.add(record);
  if (range.request && --thread.request_depth == 0) request_ended(thread);
}

void Recorder::on_range_start(const std::string& name, uint64_t id) {
  if (!recording() || !keeps_range(name)) return;
  Thread& thread = threads_.mine();
  put_range(thread, Kind::range_start, name, id);
  if (name != options_.request_range) return;
  std::lock_guard lock(mutex_);
  started_ranges_.insert(id);
}

void Recorder::on_range_end(uint64_t id) {
  if (!recording()) return;
  Thread& thread = threads_.mine();
  put_range(thread, Kind::range_end, {}, id);
  bool request = false;
  {
    std::lock_guard lock(mutex_);
    request = started_ranges_.erase(id) != 0;
  }
  if (request) request_ended(thread);
}

}  // namespace kgate::record
