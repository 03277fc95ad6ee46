#include "workload/assemble_timeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "support/text.h"
#include "workload/limits.h"

namespace kgate::assembly {

using namespace recording;

void Notes::add(std::string note) {
  if (known_.size() >= kMaxNotes || !known_.insert(note).second) return;
  if (known_.size() == kMaxNotes) note = "more is noted in the recording than a workload keeps";
  notes_.push_back(std::move(note));
}

namespace {

bool is_call(Kind kind) {
  switch (kind) {
    case Kind::alloc:
    case Kind::free:
    case Kind::launch:
    case Kind::copy:
    case Kind::memset:
    case Kind::event_record:
    case Kind::event_wait:
    case Kind::event_sync:
    case Kind::event_query:
    case Kind::stream_sync:
    case Kind::stream_query:
    case Kind::context_sync:
    case Kind::host_function:
    case Kind::graph_launch:
      return true;
    default:
      return false;
  }
}

class Walk {
 public:
  Walk(const RecordFile& file, const std::string& request_range, Notes& notes)
      : file_(file), request_range_(request_range), notes_(notes) {}

  Timeline run() {
    find_slice();
    read_notes();
    std::vector<const Record*> order;
    order.reserve(file_.records().size());
    for (const Record& record : file_.records())
      if (record.position <= out_.slice_end) order.push_back(&record);
    std::stable_sort(order.begin(), order.end(),
                     [](const Record* a, const Record* b) { return a->head.sequence < b->head.sequence; });
    for (const Record* record : order) visit(*record);
    finish();
    return std::move(out_);
  }

 private:
  struct Living {
    Allocation allocation;
    uint32_t call = kNone;  // allocation of the alloc call, when it is one of the slice
  };
  struct Poll {
    uint64_t begin = 0;
    uint64_t calls = 0;  // that its thread had made before
  };
  struct Thread {
    bool called = false;
    uint64_t last_end = 0, calls = 0;
    std::map<std::pair<Kind, uint64_t>, Poll> polls;  // unsuccessful so far
    std::vector<bool> ranges;                         // those pushed; true: it opened a span
    std::optional<size_t> span;                       // open, of out_.spans
  };

  bool in_slice(const Record& record) const {
    return record.position > out_.slice_begin && record.position < out_.slice_end;
  }

  void find_slice() {
    bool begun = false;
    out_.slice_end = static_cast<uint32_t>(file_.records().size());
    for (const Record& record : file_.records()) {
      if (record.head.kind == Kind::slice_begin && !begun) {
        out_.slice_begin = record.position;
        begun = true;
      } else if (record.head.kind == Kind::slice_end && begun && !out_.ended) {
        out_.slice_end = record.position;
        out_.ended = true;
      }
    }
    if (!begun)
      throw Error(Exit::environment, "the slice to record never began: the application ended before it", {},
                  "check --kernel and --from against what the application does, for instance with kgate trace");
    if (!file_.complete())
      notes_.add("the application did not end in order (killed, or left by _exit): its last calls may be missing");
    if (!out_.ended)
      notes_.add("the application ended before the slice did: what its buffers held at the end is not known");
  }

  void read_notes() {
    std::vector<std::string> refusals;
    for (const Record& record : file_.records()) {
      if (record.head.kind != Kind::note) continue;
      std::string text = sanitize(RecordFile::name(record));
      if (RecordFile::as<NoteRecord>(record).refused != 0 && in_slice(record))
        refusals.push_back(std::move(text));
      else
        notes_.add(std::move(text));
    }
    if (refusals.empty()) return;
    std::string all = "the slice holds what cannot be replayed:";
    for (const std::string& refusal : refusals) all += "\n  " + refusal;
    throw Error(Exit::environment, all, {}, "record a part of the run without it: --from, --for, --requests");
  }

  void visit(const Record& record) {
    const Head& head = record.head;
    switch (head.kind) {
      case Kind::stream:
        if (head.result == 0) {
          const auto stream = RecordFile::as<StreamRecord>(record);
          stream_of_[stream.stream] =
              stream_like({stream.flags & 1 ? StreamKind::non_blocking : StreamKind::blocking, stream.priority});
        }
        return;
      case Kind::stream_destroyed:
        return destroy_stream(RecordFile::as<HandleRecord>(record).handle);
      case Kind::graph:
        if (head.result == 0) graphs_[RecordFile::as<GraphRecord>(record).graph] = &record;
        return;
      case Kind::graph_destroyed:
        graphs_.erase(RecordFile::as<HandleRecord>(record).handle);
        return;
      case Kind::range_push:
      case Kind::range_pop:
      case Kind::range_start:
      case Kind::range_end:
        return visit_range(record);
      default:
        if (is_call(head.kind)) visit_call(record);
    }
  }

  // ---- streams -----------------------------------------------------------------------------------------------------

  // A stream that was destroyed serves again for the next of its kind: it only orders more.
  uint32_t stream_like(const WorkloadStream& stream) {
    auto& free = free_streams_[{stream.kind, stream.priority}];
    if (!free.empty()) {
      const uint32_t index = free.back();
      free.pop_back();
      return index;
    }
    out_.streams.push_back(stream);
    return static_cast<uint32_t>(out_.streams.size() - 1);
  }

  void destroy_stream(uint64_t handle) {
    const auto at = stream_of_.find(handle);
    if (at == stream_of_.end()) return;
    const WorkloadStream& stream = out_.streams[at->second];
    free_streams_[{stream.kind, stream.priority}].push_back(at->second);
    stream_of_.erase(at);
  }

  // 0 and 1 are the legacy default stream, 2 the default stream of the calling thread (CU_STREAM_LEGACY,
  // CU_STREAM_PER_THREAD).
  uint32_t stream(uint64_t handle, uint32_t thread) {
    if (handle <= 1) {
      if (legacy_ == kNone) legacy_ = stream_like({StreamKind::legacy, 0});
      return legacy_;
    }
    if (handle == 2) {
      const auto [at, fresh] = per_thread_.try_emplace(thread, 0);
      if (fresh) at->second = stream_like({StreamKind::per_thread, 0});
      return at->second;
    }
    const auto at = stream_of_.find(handle);
    if (at != stream_of_.end()) return at->second;
    notes_.add("a stream is used that was not seen being created: replayed as a non-blocking one of priority 0");
    return stream_of_[handle] = stream_like({StreamKind::non_blocking, 0});
  }

  // ---- memory ------------------------------------------------------------------------------------------------------

  static Allocation allocation_of(const AllocRecord& record, bool in_slice) {
    return {record.address, record.size, record.memory, in_slice};
  }

  // True: a call of the workload.
  bool visit_alloc(const Record& record, RawCall& call) {
    const auto alloc = RecordFile::as<AllocRecord>(record);
    if (alloc.size == 0) return false;
    if (alloc.address > cap::kMaxAddress || alloc.size > cap::kMaxAddress - alloc.address)
      throw Error(Exit::bad_input, "holds an allocation outside of any address space", file_.path());
    const bool made_here = in_slice(record) && alloc.existing == 0;
    Living living{allocation_of(alloc, made_here), kNone};
    const bool counts = made_here && living.allocation.is_buffer() && living.allocation.memory != Memory::mapped;
    if (counts) living.call = call.allocation = allocations_++;
    if (made_here) out_.allocations.push_back(living.allocation);
    if (const auto before = living_.find(alloc.address); before != living_.end() && made_here) finish(before->second);
    living_[alloc.address] = living;
    call.kind = CallKind::alloc;
    if (counts)
      call.stream = alloc.memory == Memory::async ? stream(alloc.stream, call.thread) : any_stream(call.thread);
    return counts;
  }

  bool visit_free(const Record& record, RawCall& call) {
    const auto free = RecordFile::as<FreeRecord>(record);
    const auto at = living_.find(free.address);
    if (at == living_.end()) return false;
    const Living living = at->second;
    living_.erase(at);
    if (!in_slice(record)) return false;
    finish(living);
    if (!living.allocation.is_buffer() || living.allocation.memory == Memory::mapped) return false;
    call.allocation = living.call;
    if (living.call != kNone) {
      call.kind = CallKind::free;
      call.stream = free.async != 0 ? stream(free.stream, call.thread) : any_stream(call.thread);
      return true;
    }
    // Memory from before the slice stays in a replay; cuMemFree waits for the device all the same.
    call.kind = CallKind::context_sync;
    call.stream = any_stream(call.thread);
    return free.async == 0;
  }

  // For calls that name no stream.
  uint32_t any_stream(uint32_t thread) { return out_.streams.empty() ? stream(0, thread) : 0; }

  // ---- calls -------------------------------------------------------------------------------------------------------

  bool visit_copy(const Record& record, RawCall& call) {
    const auto copy = RecordFile::as<CopyRecord>(record);
    call.stream = stream(copy.stream, call.thread);
    const bool to_device = copy.dst_side == Side::device, from_device = copy.src_side == Side::device;
    call.kind = to_device && from_device ? CallKind::copy : to_device ? CallKind::upload : CallKind::download;
    if (!to_device && !from_device) notes_.add("copies from host memory to host memory are left out");
    return (to_device || from_device) && copy.bytes > 0 && copy.rows > 0;
  }

  // A program that polls waits by polling: the poll that succeeds after others did not is replayed as a wait that
  // begins with the first of them; other polls cost next to nothing and are left out.
  bool visit_poll(const Record& record, uint64_t handle, uint64_t& begin) {
    Thread& thread = threads_[record.head.thread];
    const auto key = std::pair(record.head.kind, handle);
    const auto at = thread.polls.find(key);
    if (record.head.result == static_cast<int32_t>(kStillNotReady)) {
      if (at == thread.polls.end() || at->second.calls != thread.calls)
        thread.polls[key] = {record.head.begin, thread.calls};
      return false;
    }
    if (at == thread.polls.end()) return false;
    if (at->second.calls == thread.calls) begin = at->second.begin;
    thread.polls.erase(at);
    return record.head.result == 0;
  }

  // True: it is a call of the workload.
  bool read_call(const Record& record, RawCall& call, uint64_t& begin) {
    switch (record.head.kind) {
      case Kind::launch:
        call.kind = CallKind::launch;
        call.stream = stream(RecordFile::as<LaunchRecord>(record).stream, call.thread);
        return true;
      case Kind::copy:
        return visit_copy(record, call);
      case Kind::memset: {
        const auto fill = RecordFile::as<MemsetRecord>(record);
        call.kind = CallKind::memset;
        call.stream = stream(fill.stream, call.thread);
        return fill.count > 0 && fill.rows > 0;
      }
      case Kind::event_record:
      case Kind::event_wait:
      case Kind::event_sync:
      case Kind::event_query: {
        const auto event = RecordFile::as<EventRecord>(record);
        call.event = event.event;
        call.kind = record.head.kind == Kind::event_record ? CallKind::event_record
                    : record.head.kind == Kind::event_wait ? CallKind::event_wait
                                                           : CallKind::event_sync;
        const bool on_stream = call.kind != CallKind::event_sync;
        call.stream = on_stream ? stream(event.stream, call.thread) : any_stream(call.thread);
        return record.head.kind != Kind::event_query || visit_poll(record, event.event, begin);
      }
      case Kind::stream_sync:
      case Kind::stream_query:
      case Kind::host_function: {
        const auto on = RecordFile::as<StreamCallRecord>(record);
        call.kind = record.head.kind == Kind::host_function ? CallKind::host_function : CallKind::stream_sync;
        call.stream = stream(on.stream, call.thread);
        return record.head.kind != Kind::stream_query || visit_poll(record, on.stream, begin);
      }
      case Kind::context_sync:
        call.kind = CallKind::context_sync;
        call.stream = any_stream(call.thread);
        return true;
      case Kind::graph_launch: {
        const auto launch = RecordFile::as<GraphLaunchRecord>(record);
        const auto at = graphs_.find(launch.graph);
        if (at == graphs_.end())
          throw Error(Exit::environment, "a CUDA graph is launched whose instantiation was not recorded");
        call.kind = CallKind::graph_launch;
        call.stream = stream(launch.stream, call.thread);
        call.graph = at->second;
        return true;
      }
      default:
        return false;
    }
  }

  void visit_call(const Record& record) {
    const Head& head = record.head;
    const bool poll = head.kind == Kind::event_query || head.kind == Kind::stream_query;
    if (head.flags & kCaptured) return;
    if (head.result != 0 && !poll) {
      if (in_slice(record)) notes_.add("a call that failed with error " + std::to_string(head.result) + " is left out");
      return;
    }
    RawCall call;
    call.record = &record;
    call.thread = head.thread;
    uint64_t begin = head.begin;
    const bool alloc = head.kind == Kind::alloc, free = head.kind == Kind::free;
    if (!in_slice(record) && !alloc && !free) return;
    const bool kept = alloc  ? visit_alloc(record, call)
                      : free ? visit_free(record, call)
                             : read_call(record, call, begin);
    if (!kept) return;
    Thread& thread = threads_[head.thread];
    if (thread.called && begin > thread.last_end) call.host_gap_ns = std::min(begin - thread.last_end, cap::kMaxTime);
    thread.called = true;
    thread.last_end = std::max(thread.last_end, head.end);
    ++thread.calls;
    out_.calls.push_back(call);
  }

  // ---- ranges ------------------------------------------------------------------------------------------------------

  // The outermost range of the name is the request.
  bool open_span(const Record& record) {
    Thread& thread = threads_[record.head.thread];
    if (request_range_.empty() || thread.span || RecordFile::name(record) != request_range_) return false;
    thread.span = out_.spans.size();
    out_.spans.push_back({record.head.thread, record.head.sequence});
    return true;
  }
  void close_span(Thread& thread, const Record& record) {
    if (thread.span) out_.spans[*thread.span].end = record.head.sequence;
    thread.span.reset();
  }
  void visit_range(const Record& record) {
    Thread& thread = threads_[record.head.thread];
    switch (record.head.kind) {
      case Kind::range_push:
        thread.ranges.push_back(open_span(record));
        return;
      case Kind::range_pop:
        if (thread.ranges.empty()) return;
        if (thread.ranges.back()) close_span(thread, record);
        thread.ranges.pop_back();
        return;
      case Kind::range_start:
        if (open_span(record)) started_[RecordFile::as<RangeRecord>(record).id] = record.head.thread;
        return;
      default: {
        const auto at = started_.find(RecordFile::as<RangeRecord>(record).id);
        if (at == started_.end()) return;
        close_span(threads_[at->second], record);
        started_.erase(at);
      }
    }
  }

  // What was there when the slice began.
  void finish(const Living& living) {
    if (!living.allocation.in_slice) out_.allocations.push_back(living.allocation);
  }
  void finish() {
    for (const auto& [address, living] : living_) finish(living);
  }

  const RecordFile& file_;
  const std::string& request_range_;
  Notes& notes_;
  Timeline out_;
  std::map<uint64_t, uint32_t> stream_of_;
  std::map<std::pair<StreamKind, int32_t>, std::vector<uint32_t>> free_streams_;
  std::map<uint32_t, uint32_t> per_thread_;
  uint32_t legacy_ = kNone;
  std::map<uint64_t, const Record*> graphs_;
  std::map<uint64_t, Living> living_;
  uint32_t allocations_ = 0;
  std::map<uint32_t, Thread> threads_;
  std::map<uint64_t, uint32_t> started_;
};

}  // namespace

Timeline read_timeline(const RecordFile& file, const std::string& request_range, Notes& notes) {
  return Walk(file, request_range, notes).run();
}

}  // namespace kgate::assembly
