// Calls, graph nodes and requests. What a kind does not use must be unset, so that equal calls have equal fields.
#include <algorithm>
#include <vector>

#include "workload/limits.h"
#include "workload/validate_parts.h"

namespace kgate::validation {

using namespace cap;

namespace {

// What copies and fills of calls and of graph nodes have in common.
struct Transfer {
  bool to_buffer = false, from_buffer = false, fill = false;
  bool host = false;  // the other side is host memory
  uint32_t dst = kNone, src = kNone;
  uint64_t dst_offset = 0, src_offset = 0, bytes = 0;
  Pitch pitch;
  uint32_t value = 0;
  uint8_t unit = 1;
};

// First to last byte of `rows` rows; ~0: more than any buffer has.
uint64_t extent(uint64_t bytes, uint64_t rows, uint64_t pitch) {
  if (rows <= 1) return bytes;
  const auto all = static_cast<unsigned __int128>(rows - 1) * pitch + bytes;
  return all > kMaxBufferBytes ? ~uint64_t{0} : static_cast<uint64_t>(all);
}

std::string range_problem(const Workload& w, const char* side, bool used, uint32_t buffer, uint64_t offset,
                          uint64_t bytes) {
  if (!used) return buffer == kNone && offset == 0 ? "" : std::string("has a ") + side + " that its kind does not take";
  if (buffer >= w.buffers.size()) return std::string(side) + " buffer " + str(buffer) + " does not exist";
  const uint64_t size = w.buffers[buffer].bytes;
  if (offset > size || bytes > size - offset) return "leaves its " + std::string(side) + " buffer " + str(buffer);
  return "";
}

std::string pitch_problem(const Transfer& t) {
  const bool moves = t.to_buffer || t.from_buffer;
  if (!moves || t.pitch.rows == 1)
    return t.pitch.rows == 1 && t.pitch.dst == 0 && t.pitch.src == 0 ? "" : "has a pitch that it does not take";
  if (t.pitch.rows < 1 || t.pitch.rows > kMaxBufferBytes) return "has " + str(t.pitch.rows) + " rows";
  if (t.pitch.dst < t.bytes) return "the rows of its destination overlap";
  if (t.fill) return t.pitch.src == 0 ? "" : "has a source pitch that its kind does not take";
  if (t.pitch.src < t.bytes) return "the rows of its source overlap";
  // On the host rows lie one behind the other: payloads are packed.
  if (t.host && (t.to_buffer ? t.pitch.src : t.pitch.dst) != t.bytes) return "the rows of its host side are not packed";
  return "";
}

std::string fill_problem(const Transfer& t) {
  if (!t.fill) return t.value == 0 && t.unit == 1 ? "" : "has a value or a unit that its kind does not take";
  if (t.unit != 1 && t.unit != 2 && t.unit != 4) return "its unit of " + str(t.unit) + " bytes is not 1, 2 or 4";
  if (t.bytes % t.unit != 0) return "its size is not a whole number of units";
  if (t.unit < 4 && t.value >> (8 * t.unit) != 0) return "its value does not fit its unit";
  return "";
}

std::string transfer_problem(const Workload& w, const Transfer& t) {
  if (t.bytes > kMaxBufferBytes) return "its size of " + str(t.bytes) + " bytes is out of range";
  if ((t.to_buffer || t.from_buffer) && t.bytes == 0) return "its size of 0 bytes does not fit its kind";
  if (std::string p = pitch_problem(t); !p.empty()) return p;
  if (std::string p = fill_problem(t); !p.empty()) return p;
  const uint64_t to = extent(t.bytes, t.pitch.rows, t.pitch.dst), from = extent(t.bytes, t.pitch.rows, t.pitch.src);
  if (std::string p = range_problem(w, "destination", t.to_buffer, t.dst, t.dst_offset, to); !p.empty()) return p;
  if (std::string p = range_problem(w, "source", t.from_buffer, t.src, t.src_offset, from); !p.empty()) return p;
  if (t.to_buffer && !w.buffers[t.dst].written)
    return "writes buffer " + str(t.dst) + ", which is marked as never written";
  if (t.fill && (t.dst_offset % t.unit != 0 || t.pitch.dst % t.unit != 0))
    return "its place is not aligned to its unit";
  if (t.to_buffer && t.from_buffer && t.dst == t.src && t.pitch.rows == 1 && t.dst_offset < t.src_offset + t.bytes &&
      t.src_offset < t.dst_offset + t.bytes)
    return "copies between overlapping ranges";
  return "";
}

bool uses_event(CallKind kind) {
  return kind == CallKind::event_record || kind == CallKind::event_wait || kind == CallKind::event_sync;
}

std::string flags_problem(const Call& call) {
  const CallKind kind = call.kind;
  const bool host = kind == CallKind::upload || kind == CallKind::download;
  const bool memory = host || kind == CallKind::copy || kind == CallKind::memset;
  if (call.async && !memory && kind != CallKind::alloc && kind != CallKind::free)
    return "is marked async, which its kind does not take";
  return call.pinned && !host ? "is marked pinned, which its kind does not take" : "";
}

std::string own_problem(const char* what, bool uses, uint32_t index, size_t count) {
  if (uses ? index < count : index == kNone) return "";
  return std::string(what) + " " + str(index) + " does not exist or is not its own";
}

std::string call_problem(const Workload& w, const Call& call) {
  const CallKind kind = call.kind;
  if (kind > kLastCallKind) return "is of an unknown kind";
  if (call.thread >= w.threads) return "thread " + str(call.thread) + " does not exist";
  if (call.stream >= w.streams.size()) return "stream " + str(call.stream) + " does not exist";
  if (call.host_gap_ns > kMaxTime) return "its host gap is out of range";
  const bool upload = kind == CallKind::upload, allocates = kind == CallKind::alloc || kind == CallKind::free;
  for (const std::string& problem :
       {own_problem("launch", kind == CallKind::launch, call.launch, w.launches.size()),
        own_problem("graph", kind == CallKind::graph_launch, call.graph, w.graphs.size()),
        own_problem("event", uses_event(kind), call.event, w.events),
        own_problem("payload", upload && call.payload != kNone, call.payload, w.payloads.size()),
        own_problem("allocation", allocates, call.allocation, kMaxCalls), flags_problem(call)})
    if (!problem.empty()) return problem;
  Transfer t;
  t.fill = kind == CallKind::memset;
  t.host = upload || kind == CallKind::download;
  t.to_buffer = upload || t.fill || kind == CallKind::copy;
  t.from_buffer = kind == CallKind::copy || kind == CallKind::download;
  t.dst = call.dst, t.src = call.src, t.dst_offset = call.dst_offset, t.src_offset = call.src_offset;
  t.bytes = call.bytes, t.pitch = call.pitch, t.value = call.value, t.unit = call.unit;
  if (std::string problem = transfer_problem(w, t); !problem.empty()) return problem;
  if (!t.to_buffer && !t.from_buffer && (kind == CallKind::alloc) != (call.bytes > 0))
    return "its size of " + str(call.bytes) + " bytes does not fit its kind";
  if (upload && call.payload != kNone &&
      w.payloads[call.payload].bytes != static_cast<unsigned __int128>(call.bytes) * call.pitch.rows)
    return "payload " + str(call.payload) + " has another size";
  return "";
}

// Each thread keeps its calls in index order and every edge points backwards, so there can be no cycle.
std::string after_problem(const Workload& w, size_t index) {
  const Call& call = w.calls[index];
  if (call.after.size() > kMaxAfter) return "waits for too many calls";
  for (size_t k = 0; k < call.after.size(); ++k) {
    const uint32_t before = call.after[k];
    if (before >= index) return "waits for call " + str(before) + ", which is not before it";
    if (w.calls[before].thread == call.thread) return "waits for call " + str(before) + " of its own thread";
    if (k > 0 && call.after[k - 1] >= before) return "its waits are not in ascending order";
  }
  return "";
}

// Allocations are made once before they are freed, and freed once.
class Allocations {
 public:
  std::string problem(const Call& call) {
    if (call.kind != CallKind::alloc && call.kind != CallKind::free) return "";
    if (call.allocation >= living_.size()) living_.resize(call.allocation + 1);
    const bool before = living_[call.allocation];
    living_[call.allocation] = call.kind == CallKind::alloc;
    if (call.kind == CallKind::alloc) return before ? "allocation " + str(call.allocation) + " is there already" : "";
    return before ? "" : "frees allocation " + str(call.allocation) + ", which is not there";
  }

 private:
  std::vector<bool> living_;
};

// Streams that the driver keeps for a thread are used by that thread alone.
class ThreadStreams {
 public:
  explicit ThreadStreams(const Workload& w) : w_(w), owner_(w.streams.size(), kNone) {}
  std::string problem(const Call& call) {
    if (w_.streams[call.stream].kind != StreamKind::per_thread) return "";
    if (owner_[call.stream] == kNone) owner_[call.stream] = call.thread;
    return owner_[call.stream] == call.thread ? "" : "uses the default stream of another thread";
  }

 private:
  const Workload& w_;
  std::vector<uint32_t> owner_;
};

std::string node_problem(const Workload& w, const WorkloadGraph& graph, size_t index) {
  using Kind = GraphNode::Kind;
  const GraphNode& node = graph.nodes[index];
  if (node.kind > Kind::empty) return "is of an unknown kind";
  const bool event = node.kind == Kind::event_record || node.kind == Kind::event_wait;
  for (const std::string& problem : {own_problem("launch", node.kind == Kind::kernel, node.launch, w.launches.size()),
                                     own_problem("event", event, node.event, w.events)})
    if (!problem.empty()) return problem;
  Transfer t;
  t.fill = node.kind == Kind::memset;
  t.to_buffer = t.fill || node.kind == Kind::copy;
  t.from_buffer = node.kind == Kind::copy;
  t.dst = node.dst, t.src = node.src, t.dst_offset = node.dst_offset, t.src_offset = node.src_offset;
  t.bytes = node.bytes, t.pitch = node.pitch, t.value = node.value, t.unit = node.unit;
  if (std::string problem = transfer_problem(w, t); !problem.empty()) return problem;
  if (!t.to_buffer && node.bytes != 0) return "its size of " + str(node.bytes) + " bytes does not fit its kind";
  if (node.after.size() > kMaxNodeAfter) return "depends on too many nodes";
  for (size_t k = 0; k < node.after.size(); ++k) {
    if (node.after[k] >= index) return "depends on node " + str(node.after[k]) + ", which is not before it";
    if (k > 0 && node.after[k - 1] >= node.after[k]) return "its dependencies are not in ascending order";
  }
  return "";
}

}  // namespace

Check check_graphs(const Workload& w) {
  size_t nodes = 0, edges = 0;
  for (size_t g = 0; g < w.graphs.size(); ++g) {
    const WorkloadGraph& graph = w.graphs[g];
    nodes += graph.nodes.size();
    if (graph.nodes.empty()) return at("graphs", g, "has no nodes");
    if (nodes > kMaxAllNodes) return at("graphs", g, "the graphs have too many nodes together");
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      if (std::string problem = node_problem(w, graph, n); !problem.empty())
        return at("graphs", g, "node " + str(n) + " " + problem);
      edges += graph.nodes[n].after.size();
      if (edges > kMaxAllNodeAfter) return at("graphs", g, "the graphs have too many edges together");
    }
  }
  return {};
}

Check check_calls(const Workload& w) {
  size_t edges = 0;
  Allocations allocations;
  ThreadStreams thread_streams(w);
  for (size_t i = 0; i < w.calls.size(); ++i) {
    const Call& call = w.calls[i];
    if (std::string problem = call_problem(w, call); !problem.empty()) return at("calls", i, problem);
    if (std::string problem = thread_streams.problem(call); !problem.empty()) return at("calls", i, problem);
    if (std::string problem = allocations.problem(call); !problem.empty()) return at("calls", i, problem);
    if (std::string problem = after_problem(w, i); !problem.empty()) return at("calls", i, problem);
    edges += call.after.size();
    if (edges > kMaxAllAfter) return at("calls", i, "too many `after` edges");
  }
  return {};
}

Check check_requests(const Workload& w) {
  uint64_t last_arrival = 0;
  std::vector<bool> taken(w.calls.size());
  for (size_t i = 0; i < w.requests.size(); ++i) {
    const Request& request = w.requests[i];
    if (request.thread >= w.threads) return at("requests", i, "thread " + str(request.thread) + " does not exist");
    if (request.calls.empty()) return at("requests", i, "has no calls");
    for (size_t k = 0; k < request.calls.size(); ++k) {
      const uint32_t c = request.calls[k];
      if (c >= w.calls.size()) return at("requests", i, "call " + str(c) + " does not exist");
      if (k > 0 && request.calls[k - 1] >= c) return at("requests", i, "its calls are not in ascending order");
      if (w.calls[c].thread != request.thread) return at("requests", i, "call " + str(c) + " is on another thread");
      if (taken[c]) return at("requests", i, "call " + str(c) + " belongs to another request");
      taken[c] = true;
    }
    if (w.arrivals == Arrivals::closed && request.arrival_ns != 0)
      return at("requests", i, "has an arrival though arrivals are closed");
    if (request.arrival_ns < last_arrival) return at("requests", i, "arrives before the request before it");
    last_arrival = request.arrival_ns;
  }
  if (const auto free = std::find(taken.begin(), taken.end(), false); free != taken.end())
    return at("calls", static_cast<size_t>(free - taken.begin()), "belongs to no request");
  if (last_arrival > w.period_ns) return Failure{"the period ends before the last arrival", "workload", {}};
  if (w.arrivals == Arrivals::external && w.period_ns == 0)
    return Failure{"external arrivals need a period", "workload", {}};
  return {};
}

}  // namespace kgate::validation
