// The order of CUPTI's calls is the point of this file: each step that comes too late or twice has lost somebody's
// records (docs/tracing.md says which). Attributes and the timestamp callback come before the buffer callbacks, those
// before the kinds, and all of it before cuInit. There is no finalize: the worker flushes, counts and _exits.
#include "trace/collector.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "support/text.h"
#include "trace/cupti_buffers.h"
#include "trace/cupti_library.h"

namespace kgate {

using namespace gpu;
using trace::CuptiBuffers;
using trace::CuptiLibrary;

namespace {

// Two calls of the runtime that every <<<>>> makes around its launch: they move its configuration through a stack.
bool is_half_of_a_launch(uint32_t cbid) {
  constexpr uint32_t kPushCallConfiguration = 502, kPopCallConfiguration = 503;
  return cbid == kPushCallConfiguration || cbid == kPopCallConfiguration;
}

// CUPTI's callbacks carry no user pointer. One session a process; what they use is never freed.
std::atomic<CuptiBuffers*> active_buffers{nullptr};
std::atomic<pid_t> owner{0};
std::atomic<bool> started{false};
uint8_t forked_buffer[CuptiBuffers::kDiscardBytes];

uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// A forked child inherits CUPTI's state but not its threads: it must not touch the parent's buffers.
bool forked() { return getpid() != owner.load(std::memory_order_relaxed); }

void on_request(uint8_t** buffer, size_t* size, size_t* max_records) {
  *max_records = 0;
  if (forked()) {
    *buffer = forked_buffer;
    *size = sizeof forked_buffer;
  } else {
    active_buffers.load(std::memory_order_acquire)->request(buffer, size);
  }
}

void on_complete(CUcontext context, uint32_t stream, uint8_t* buffer, size_t, size_t valid) {
  if (!forked()) active_buffers.load(std::memory_order_acquire)->complete(context, stream, buffer, valid);
}

// An executable graph has nodes of its own, cloned from the graph's; kernels carry the clone's id.
struct ClonedNodes {
  CuptiLibrary cupti;
  std::mutex mutex;
  std::unordered_map<CUgraphNode, uint64_t> id;  // by the graph's node
};

void on_callback(void* user, int domain, uint32_t id, const void* data) {
  if (user == nullptr || domain != CUPTI_CB_DOMAIN_RESOURCE || id != CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) return;
  auto& cloned = *static_cast<ClonedNodes*>(user);
  const auto* graph =
      static_cast<const CUpti_GraphData*>(static_cast<const CUpti_ResourceData*>(data)->resourceDescriptor);
  uint64_t node = 0;
  if (cloned.cupti.cuptiGetGraphNodeId(graph->node, &node) != CUPTI_SUCCESS) return;
  std::lock_guard lock(cloned.mutex);
  cloned.id[graph->originalNode] = node;
}

// Another tool in this process or attached to it (nsys, ncu, compute-sanitizer) would take our records or we its. A
// worker only asks whether there is one; a listener stays.
std::optional<Failure> subscribe(const CuptiLibrary& cupti, const ResourceListener* listener) {
  bool can_ask = cupti.cuptiSubscribe_v2 != nullptr && cupti.cuptiUnsubscribe != nullptr;
  if (listener == nullptr && !can_ask) return {};
  if (listener != nullptr && (!can_ask || cupti.cuptiEnableCallback == nullptr))
    return Failure{"this CUPTI has no callbacks (cuptiSubscribe_v2, cuptiEnableCallback)", cupti.path, {}};
  char other[256] = {};
  CUpti_SubscriberParams parameters{sizeof parameters, "kgate", other, sizeof other};
  CUpti_SubscriberHandle handle = nullptr;
  CUptiResult result = cupti.cuptiSubscribe_v2(&handle, listener ? listener->callback : on_callback,
                                               listener ? listener->user : nullptr, &parameters);
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
    return Failure{"another tool uses CUPTI in this process: " +
                       (other[0] ? sanitize(other, 100) : std::string("it gives no name")),
                   cupti.path, "Run kgate outside of other profilers and debuggers."};
  if (result != CUPTI_SUCCESS) return Failure{"cuptiSubscribe_v2: " + cupti.describe(result), cupti.path, {}};
  if (listener == nullptr) {
    cupti.cuptiUnsubscribe(handle);
    return {};
  }
  for (uint32_t id : listener->wanted)
    if (CUptiResult r = cupti.cuptiEnableCallback(1, handle, CUPTI_CB_DOMAIN_RESOURCE, id))
      return Failure{"cuptiEnableCallback(" + std::to_string(id) + "): " + cupti.describe(r), cupti.path, {}};
  return {};
}

std::optional<Failure> set_up(const CuptiLibrary& cupti, const Collect& collect) {
  auto failed = [&](const std::string& call, CUptiResult result) {
    return Failure{call + ": " + cupti.describe(result), cupti.path,
                   "Run kgate doctor; tracing needs the driver's CUPTI support."};
  };
  if (CUptiResult r = cupti.cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM))
    return failed("cuptiSetThreadIdType", r);
  if (CUptiResult r = cupti.cuptiActivityRegisterTimestampCallback(monotonic_ns))
    return failed("cuptiActivityRegisterTimestampCallback", r);
  for (CUpti_ActivityAttribute attribute :
       {CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER}) {
    uint8_t on = 1;
    size_t size = sizeof on;
    if (CUptiResult r = cupti.cuptiActivitySetAttribute(attribute, &size, &on))
      return failed("cuptiActivitySetAttribute", r);
  }
  if (CUptiResult r = cupti.cuptiActivityRegisterCallbacks(on_request, on_complete))
    return failed("cuptiActivityRegisterCallbacks", r);
  struct Wanted {
    CUpti_ActivityKind kind;
    bool wanted;
  };
  for (auto [kind, wanted] :
       {Wanted{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, collect.kernels},
        Wanted{CUPTI_ACTIVITY_KIND_DRIVER, collect.driver}, Wanted{CUPTI_ACTIVITY_KIND_RUNTIME, collect.runtime},
        Wanted{CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, collect.sync},
        Wanted{CUPTI_ACTIVITY_KIND_OVERHEAD, collect.overhead}, Wanted{CUPTI_ACTIVITY_KIND_MEMCPY, collect.memory},
        Wanted{CUPTI_ACTIVITY_KIND_MEMSET, collect.memory}})
    if (CUptiResult r = wanted ? cupti.cuptiActivityEnable(kind) : CUPTI_SUCCESS)
      return failed("cuptiActivityEnable(" + std::to_string(kind) + ")", r);
  if (collect.sync && cupti.cuptiActivityEnableAllSyncRecords != nullptr)
    if (CUptiResult r = cupti.cuptiActivityEnableAllSyncRecords(1))
      return failed("cuptiActivityEnableAllSyncRecords", r);
  return {};
}

struct Bracket {
  int64_t offset = 0;
  uint64_t half_width = 0;
};

// The tightest of 100: CUPTI's clock read between two of ours.
Bracket bracket_clock(const CuptiLibrary& cupti) {
  Bracket best{0, UINT64_MAX};
  for (int i = 0; i < 100; ++i) {
    uint64_t before = monotonic_ns(), theirs = 0;
    if (cupti.cuptiGetTimestamp(&theirs) != CUPTI_SUCCESS) continue;
    uint64_t half = (monotonic_ns() - before + 1) / 2;
    if (half < best.half_width) best = {static_cast<int64_t>(theirs - (before + half)), half};
  }
  return best;
}

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

}  // namespace

struct CuptiCollector::State {
  CuptiLibrary cupti;
  CuptiBuffers* buffers = nullptr;
  CollectorHealth health;
  std::optional<Bracket> begin;
  ClonedNodes* cloned = nullptr;
  std::unordered_map<std::string, uint32_t, TextHash, std::equal_to<>> names;
  RecordWriter::Stage stage{2 * CuptiBuffers::kBytes};  // a wire record is no longer than CUPTI's
  struct Hidden {
    uint32_t thread;
    uint64_t begin, end;
  };
  std::mutex hidden_mutex;  // never held over a call to CUPTI
  std::vector<Hidden> hidden;
  std::atomic<bool> hiding{false};
  std::unordered_set<uint32_t> hidden_calls;  // correlation ids
  std::vector<wire::SyncRecord> held;         // while something is hidden: their calls may come after them
  uint64_t forced_candidates = 0;             // records that describe the application's work
  bool finished = false;

  void flush(RecordWriter& writer, uint32_t round, uint32_t flag);
  void take(RecordWriter& writer, uint32_t round, const CUpti_Activity* record);
  void count_dropped(CUcontext context, uint32_t stream);
  bool hides(const CUpti_ActivityAPI& call);
  void forget_hidden();
  void release_held(RecordWriter& writer, uint32_t round);
  uint32_t name_id(RecordWriter& writer, const char* name);
  template <typename Record>
  void put(wire::Kind kind, uint32_t round, Record& record) {
    record.head = wire::head<Record>(kind, round);
    health.invalid_times += record.end < record.start || record.end == 0;
    stage.append(record);
    forced_candidates += kind != wire::Kind::overhead;
  }
};

// The text is copied at once: it belongs to CUPTI, and to a module that may go away. Known by content, since a reloaded
// module may have another name at the same address.
uint32_t CuptiCollector::State::name_id(RecordWriter& writer, const char* name) {
  if (name == nullptr) return 0;
  std::string_view text(name, strnlen(name, wire::kMaxNameBytes));
  if (auto at = names.find(text); at != names.end()) return at->second;
  auto id = static_cast<uint32_t>(names.size() + 1);
  names.emplace(text, id);
  writer.append_name(id, text);
  return id;
}

void CuptiCollector::State::take(RecordWriter& writer, uint32_t round, const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& k = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
      auto u32 = [](int32_t value) { return static_cast<uint32_t>(value); };
      wire::KernelRecord out{{},
                             k.start,
                             k.end,
                             k.correlationId,
                             name_id(writer, k.name),
                             {u32(k.gridX), u32(k.gridY), u32(k.gridZ)},
                             {u32(k.blockX), u32(k.blockY), u32(k.blockZ)},
                             u32(k.staticSharedMemory),
                             u32(k.dynamicSharedMemory),
                             k.localMemoryPerThread,
                             k.registersPerThread,
                             0,
                             k.streamId,
                             k.contextId,
                             static_cast<uint32_t>(k.graphNodeId),
                             static_cast<uint32_t>(k.graphNodeId >> 32),
                             k.graphId,
                             {k.clusterX, k.clusterY, k.clusterZ}};
      return put(wire::Kind::kernel, round, out);
    }
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME: {
      const auto& a = *reinterpret_cast<const CUpti_ActivityAPI*>(record);
      bool runtime = record->kind == CUPTI_ACTIVITY_KIND_RUNTIME;
      if (hides(a) || (runtime && is_half_of_a_launch(a.cbid))) return;
      uint32_t cbid = runtime ? a.cbid | wire::kRuntimeCall : a.cbid;
      wire::ApiRecord out{{}, a.start, a.end, cbid, a.correlationId, a.threadId, a.returnValue};
      return put(wire::Kind::api, round, out);
    }
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
      const auto& s = *reinterpret_cast<const CUpti_ActivitySynchronization2*>(record);
      wire::SyncRecord out{{}, s.start, s.end, s.type, s.correlationId, s.streamId, s.contextId};
      if (hiding.load(std::memory_order_acquire)) return held.push_back(out);
      return put(wire::Kind::sync, round, out);
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& m = *reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
      wire::MemoryRecord out{{}, m.start, m.end, m.bytes, m.correlationId, m.streamId, m.copyKind, m.contextId};
      return put(wire::Kind::memory, round, out);
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& m = *reinterpret_cast<const CUpti_ActivityMemset4*>(record);
      wire::MemoryRecord out{{}, m.start, m.end, m.bytes, m.correlationId, m.streamId, 0xffffffff, m.contextId};
      return put(wire::Kind::memory, round, out);
    }
    case CUPTI_ACTIVITY_KIND_OVERHEAD: {
      const auto& o = *reinterpret_cast<const CUpti_ActivityOverhead3*>(record);
      wire::OverheadRecord out{{}, o.start, o.end, o.overheadKind, o.objectId[1]};
      return put(wire::Kind::overhead, round, out);
    }
    default:
      ++health.unknown_records;
  }
}

bool CuptiCollector::State::hides(const CUpti_ActivityAPI& call) {
  if (!hiding.load(std::memory_order_acquire)) return false;
  std::lock_guard lock(hidden_mutex);
  for (const Hidden& h : hidden) {
    if (h.thread != call.threadId || call.start < h.begin || call.end > h.end) continue;
    hidden_calls.insert(call.correlationId);
    return true;
  }
  return false;
}

void CuptiCollector::State::release_held(RecordWriter& writer, uint32_t round) {
  for (wire::SyncRecord& record : std::exchange(held, {})) {
    if (hidden_calls.contains(record.correlation)) continue;
    put(wire::Kind::sync, round, record);
    if (stage.used() > CuptiBuffers::kBytes) writer.merge(stage);
  }
  writer.merge(stage);
}

// Records of calls that ended this long ago have been handed over.
void CuptiCollector::State::forget_hidden() {
  constexpr uint64_t kLong = 10'000'000'000;
  if (!hiding.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(hidden_mutex);
  uint64_t now = monotonic_ns();
  std::erase_if(hidden, [&](const Hidden& h) { return h.end < now && now - h.end > kLong; });
  if (!hidden.empty()) return;
  hidden_calls.clear();
  hiding = false;
}

void CuptiCollector::State::count_dropped(CUcontext context, uint32_t stream) {
  size_t dropped = 0;  // reading resets CUPTI's count
  if (cupti.cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS) health.dropped += dropped;
}

void CuptiCollector::State::flush(RecordWriter& writer, uint32_t round, uint32_t flag) {
  cupti.cuptiActivityFlushAll(flag);
  buffers->drain([&](uint8_t* data, size_t valid, CUcontext context, uint32_t stream) {
    CUpti_Activity* record = nullptr;
    while (cupti.cuptiActivityGetNextRecord(data, valid, &record) == CUPTI_SUCCESS) take(writer, round, record);
    writer.merge(stage);
    if (context != nullptr) count_dropped(context, stream);
  });
  release_held(writer, round);
  forget_hidden();
  count_dropped(nullptr, 0);
}

CuptiCollector::CuptiCollector(std::unique_ptr<State> state) : state_(std::move(state)) {}
CuptiCollector::~CuptiCollector() = default;

Result<std::unique_ptr<CuptiCollector>> CuptiCollector::start(const std::string& library, const Collect& collect) {
  return start(library, collect, nullptr);
}

Result<std::unique_ptr<CuptiCollector>> CuptiCollector::start(const std::string& library,
                                                              const ResourceListener& listener) {
  Collect everything;
  everything.runtime = true;
  return start(library, everything, &listener);
}

Result<std::unique_ptr<CuptiCollector>> CuptiCollector::start(const std::string& library, const Collect& collect,
                                                              const ResourceListener* listener) {
  auto cupti = trace::load_cupti(library);
  if (!cupti) return cupti.failure();
  ClonedNodes* cloned = nullptr;
  ResourceListener nodes{on_callback, nullptr, {CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED}};
  bool application = listener != nullptr;
  if (listener == nullptr && collect.graph_nodes) {
    if (cupti->cuptiGetGraphNodeId == nullptr) return Failure{"this CUPTI does not name graph nodes", cupti->path, {}};
    nodes.user = cloned = new ClonedNodes{*cupti, {}, {}};  // never freed: callbacks may come until the end
    listener = &nodes;
  }
  if (started.load())
    return Failure{"this process has had a CUPTI session already", library,
                   "Use a fresh worker: records of a second session are wrong."};
  if (auto problem = subscribe(*cupti, listener)) return *problem;
  started = true;
  auto* buffers = application ? new CuptiBuffers(256, 256 << 10, false) : new CuptiBuffers;
  if (!buffers->mapped()) return Failure{"no memory for CUPTI's buffers", library, {}};
  owner = getpid();
  active_buffers = buffers;
  auto state = std::make_unique<State>();
  state->cupti = *cupti;
  state->buffers = buffers;
  state->cloned = cloned;
  state->health.library = cupti->path;
  state->health.cupti_version = cupti->version;
  if (auto problem = set_up(*cupti, collect)) return *problem;
  return std::unique_ptr<CuptiCollector>(new CuptiCollector(std::move(state)));
}

void CuptiCollector::drain(RecordWriter& writer, uint32_t round) {
  if (forked() || state_->finished) return;
  // Not in start(): before CUDA is initialised CUPTI's clock has been seen to be another one.
  if (!state_->begin) state_->begin = bracket_clock(state_->cupti);
  state_->flush(writer, round, 0);
}

CollectorHealth CuptiCollector::health() const {
  CollectorHealth health = state_->health;
  health.buffers_exhausted = state_->buffers->exhausted();
  if (state_->begin) {
    health.clock_offset_begin = state_->begin->offset;
    health.clock_half_width = state_->begin->half_width;
  }
  return health;
}

bool CuptiCollector::active() const { return state_->buffers->asked(); }

void CuptiCollector::hide(uint32_t thread, uint64_t begin, uint64_t end) {
  std::lock_guard lock(state_->hidden_mutex);
  state_->hidden.push_back({thread, begin, end});
  state_->hiding = true;
}

std::optional<uint32_t> CuptiCollector::graph_id(gpu::CUgraphExec graph) const {
  uint32_t id = 0;
  if (state_->cupti.cuptiGetGraphExecId == nullptr || state_->cupti.cuptiGetGraphExecId(graph, &id) != CUPTI_SUCCESS)
    return {};
  return id;
}

uint64_t CuptiCollector::node_id(CUgraphNode node) const {
  if (state_->cloned == nullptr) return 0;
  std::lock_guard lock(state_->cloned->mutex);
  auto found = state_->cloned->id.find(node);
  return found == state_->cloned->id.end() ? 0 : found->second;
}

CollectorHealth CuptiCollector::finish(RecordWriter& writer) {
  State& s = *state_;
  if (forked() || s.finished) return s.health;
  drain(writer, wire::kNoRound);
  s.forced_candidates = 0;
  s.flush(writer, wire::kNoRound, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  s.health.forced = s.forced_candidates;
  s.health.buffers_exhausted = s.buffers->exhausted();
  Bracket end = bracket_clock(s.cupti);
  s.health.clock_offset_begin = s.begin->offset;
  s.health.clock_offset_end = end.offset;
  s.health.clock_half_width = std::max(s.begin->half_width, end.half_width);
  s.finished = true;
  return s.health;
}

}  // namespace kgate
