// CUDA graphs: nodes, edges and parameters as they are when the graph is instantiated. Child graphs are flattened into
// their parents. What cannot be replayed is remembered with the graph, and said when the slice launches it.
#include <algorithm>
#include <cstring>
#include <map>

#include "probes/record_call_table.h"
#include "probes/record_recorder.h"

namespace kgate::record {

using namespace gpu;
using namespace recording;

#define KGATE_ID(name) CUPTI_DRIVER_TRACE_CBID_##name

namespace {

constexpr int kMaxDepth = 16;                  // of graphs in graphs
constexpr size_t kMaxNodes = size_t{1} << 20;  // of a recording's one record
constexpr size_t kEdgeDataBytes = 8;           // CUgraphEdgeData

// CUgraphNodeType; those that gpu/cupti_abi.h does not name.
enum : int { kHost = 3, kEmpty = 5, kWaitEvent = 6, kEventRecord = 7, kMemAlloc = 10, kMemFree = 11, kBatchMemOp = 12 };

const char* name_of(int type) {
  switch (type) {
    case 8:
    case 9:
      return "external semaphores";
    case kBatchMemOp:
      return "a batch of memory operations";
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return "a condition";
    default:
      return "a kind that kgate does not know";
  }
}

uint64_t number(const void* handle) { return reinterpret_cast<uint64_t>(handle); }

}  // namespace

class GraphReader {
 public:
  GraphReader(Recorder& recorder, Thread& thread) : recorder_(recorder), driver_(recorder.driver_), thread_(thread) {}

  // Appends the nodes of `graph`, whose first ones come after `before`; what its last ones are.
  std::vector<uint32_t> read(CUgraph graph, const std::vector<uint32_t>& before, int depth) {
    std::vector<CUgraphNode> nodes;
    std::vector<std::pair<size_t, size_t>> edges;
    if (depth > kMaxDepth || !list(graph, nodes, edges)) {
      refuse("a CUDA graph whose nodes the driver does not tell");
      return before;
    }
    std::vector<std::vector<size_t>> from(nodes.size()), to(nodes.size());
    for (const auto& [a, b] : edges) from[b].push_back(a), to[a].push_back(b);
    std::vector<size_t> open(nodes.size()), ready;
    for (size_t i = 0; i < nodes.size(); ++i)
      if ((open[i] = from[i].size()) == 0) ready.push_back(i);
    std::vector<std::vector<uint32_t>> last(nodes.size());  // what comes after node i comes after those
    for (size_t at = 0; at < ready.size(); ++at) {
      const size_t i = ready[at];
      std::vector<uint32_t> after;
      for (const size_t a : from[i]) after.insert(after.end(), last[a].begin(), last[a].end());
      if (from[i].empty()) after = before;
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
      last[i] = node(nodes[i], after, depth);
      for (const size_t b : to[i])
        if (--open[b] == 0) ready.push_back(b);
    }
    std::vector<uint32_t> leaves;
    for (size_t i = 0; i < nodes.size(); ++i)
      if (to[i].empty()) leaves.insert(leaves.end(), last[i].begin(), last[i].end());
    return nodes.empty() ? before : leaves;
  }

  const std::vector<std::string>& refusals() const { return refusals_; }
  uint32_t count() const { return count_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  void refuse(std::string text) {
    if (std::find(refusals_.begin(), refusals_.end(), text) == refusals_.end()) refusals_.push_back(std::move(text));
  }

  bool list(CUgraph graph, std::vector<CUgraphNode>& nodes, std::vector<std::pair<size_t, size_t>>& edges) {
    size_t count = 0;
    if (ask(driver_.cuGraphGetNodes, graph, static_cast<CUgraphNode*>(nullptr), &count) != CUDA_SUCCESS ||
        count > kMaxNodes)
      return false;
    nodes.resize(count);
    if (count != 0 && ask(driver_.cuGraphGetNodes, graph, nodes.data(), &count) != CUDA_SUCCESS) return false;
    std::map<CUgraphNode, size_t> index;
    for (size_t i = 0; i < nodes.size(); ++i) index[nodes[i]] = i;
    std::vector<CUgraphNode> from, to;
    if (!list_edges(graph, from, to)) return false;
    for (size_t i = 0; i < from.size(); ++i) {
      const auto a = index.find(from[i]), b = index.find(to[i]);
      if (a == index.end() || b == index.end()) return false;
      edges.emplace_back(a->second, b->second);
    }
    return true;
  }

  // Edges that say more than "after" are told by the second call alone.
  bool list_edges(CUgraph graph, std::vector<CUgraphNode>& from, std::vector<CUgraphNode>& to) {
    size_t count = 0;
    CUgraphNode* none = nullptr;
    CUresult result = ask(driver_.cuGraphGetEdges, graph, none, none, &count);
    const bool with_data = result != CUDA_SUCCESS && driver_.cuGraphGetEdges_v2 != nullptr;
    std::vector<std::byte> data;
    if (with_data) {
      void* nothing = nullptr;
      result = ask(driver_.cuGraphGetEdges_v2, graph, none, none, nothing, &count);
    }
    if (result != CUDA_SUCCESS || count > kMaxNodes * 16) return false;
    from.resize(count), to.resize(count), data.resize(count * kEdgeDataBytes);
    if (count == 0) return true;
    if (!with_data) {
      result = ask(driver_.cuGraphGetEdges, graph, from.data(), to.data(), &count);
      if (result == CUDA_SUCCESS || driver_.cuGraphGetEdges_v2 == nullptr) return result == CUDA_SUCCESS;
    }
    if (ask(driver_.cuGraphGetEdges_v2, graph, from.data(), to.data(), static_cast<void*>(data.data()), &count) !=
        CUDA_SUCCESS)
      return false;
    const bool plain = std::all_of(data.begin(), data.end(), [](std::byte b) { return b == std::byte{0}; });
    if (!plain)
      recorder_.note(thread_, "kernels of CUDA graphs that may overlap (programmatic edges) are replayed in order",
                     false);
    return true;
  }

  std::vector<uint32_t> node(CUgraphNode handle, const std::vector<uint32_t>& after, int depth) {
    CUgraphNodeType type{};
    if (ask(driver_.cuGraphNodeGetType, handle, &type) != CUDA_SUCCESS) {
      refuse("a CUDA graph whose nodes the driver does not tell");
      return after;
    }
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
      CUgraph child = nullptr;
      if (ask(driver_.cuGraphChildGraphNodeGetGraph, handle, &child) == CUDA_SUCCESS)
        return read(child, after, depth + 1);
      refuse("a CUDA graph whose child graphs the driver does not tell");
      return after;
    }
    Node out{};
    out.kind = NodeKind::empty;
    if (!fill(out, handle, type)) refuse("a node of a CUDA graph that the driver does not tell");
    out.after_count = static_cast<uint32_t>(after.size());
    append(&out, sizeof out);
    append(after.data(), after.size() * sizeof(uint32_t));
    append(thread_.params.get(), out.param_bytes);
    return {count_++};
  }

  // False: the driver refuses to tell.
  bool fill(Node& out, CUgraphNode handle, int type) {
    switch (type) {
      case CU_GRAPH_NODE_TYPE_KERNEL:
        return kernel(out, handle);
      case CU_GRAPH_NODE_TYPE_MEMCPY:
        return copy(out, handle);
      case CU_GRAPH_NODE_TYPE_MEMSET:
        return memset(out, handle);
      case kHost:
        out.kind = NodeKind::host_function;
        recorder_.note(thread_, "host functions of CUDA graphs are replayed as functions that do nothing", false);
        return true;
      case kEmpty:
      case kMemFree:
        return true;
      case kWaitEvent:
      case kEventRecord: {
        CUevent event = nullptr;
        out.kind = type == kWaitEvent ? NodeKind::event_wait : NodeKind::event_record;
        const bool told =
            ask(type == kWaitEvent ? driver_.cuGraphEventWaitNodeGetEvent : driver_.cuGraphEventRecordNodeGetEvent,
                handle, &event) == CUDA_SUCCESS;
        out.event = number(event);
        return told;
      }
      case kMemAlloc: {
        CUDA_MEM_ALLOC_NODE_PARAMS params{};
        if (ask(driver_.cuGraphMemAllocNodeGetParams, handle, &params) != CUDA_SUCCESS) return false;
        const Allocation made{params.dptr, params.bytesize, Memory::async, nullptr, false};
        recorder_.memory_.add(made);
        recorder_.put_alloc(thread_, made, 0, CUDA_SUCCESS, true);
        return true;
      }
      default:
        refuse(std::string("a node of a CUDA graph that is ") + name_of(type));
        return true;
    }
  }

  bool kernel(Node& out, CUgraphNode handle) {
    CUDA_KERNEL_NODE_PARAMS params{};
    if (ask(driver_.cuGraphKernelNodeGetParams_v2, handle, &params) != CUDA_SUCCESS) return false;
    out.kind = NodeKind::kernel;
    out.function = params.func != nullptr ? number(params.func) : number(params.kern);
    if (out.function == 0) return false;
    const unsigned grid[] = {params.gridDimX, params.gridDimY, params.gridDimZ};
    const unsigned block[] = {params.blockDimX, params.blockDimY, params.blockDimZ};
    for (int i = 0; i < 3; ++i) out.grid[i] = grid[i], out.block[i] = block[i];
    out.shared = params.sharedMemBytes;
    CUlaunchAttributeValue value{};
    if (ask(driver_.cuGraphKernelNodeGetAttribute, handle, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) == CUDA_SUCCESS)
      out.cooperative = value.cooperative != 0;
    value = {};
    if (ask(driver_.cuGraphKernelNodeGetAttribute, handle, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value) ==
            CUDA_SUCCESS &&
        value.clusterDim.x > 0) {
      out.cluster[0] = value.clusterDim.x, out.cluster[1] = value.clusterDim.y, out.cluster[2] = value.clusterDim.z;
    }
    const Function& function = recorder_.modules_.function(thread_, out.function, nullptr);
    if (!function.params_known && params.kernelParams != nullptr)
      refuse("a CUDA graph with kernel " + function.name + ", whose parameters this driver does not tell");
    out.param_bytes = recorder_.pack_params(thread_, function, params.kernelParams, params.extra);
    return true;
  }

  // Of a side of a copy: an address on the device, or 0.
  uint64_t device_address(CUmemorytype kind, CUdeviceptr device, const void* host) {
    if (kind == CU_MEMORYTYPE_ARRAY) return 0;
    const uint64_t address = kind == CU_MEMORYTYPE_HOST ? number(host) : device;
    return recorder_.side_of(thread_, kind, address) == Side::device ? address : 0;
  }

  bool copy(Node& out, CUgraphNode handle) {
    CUDA_MEMCPY3D p{};
    if (ask(driver_.cuGraphMemcpyNodeGetParams, handle, &p) != CUDA_SUCCESS) return false;
    const uint64_t dst = device_address(p.dstMemoryType, p.dstDevice, p.dstHost);
    const uint64_t src = device_address(p.srcMemoryType, p.srcDevice, p.srcHost);
    if (dst == 0 || src == 0) {
      refuse("a CUDA graph that copies to or from host memory or an array");
      return true;
    }
    if (p.Depth > 1 && (p.dstHeight != p.Height || p.srcHeight != p.Height)) {
      refuse("a CUDA graph that copies several planes that lie apart");
      return true;
    }
    out.kind = NodeKind::copy;
    out.dst = dst + p.dstXInBytes + (p.dstY + p.dstZ * p.dstHeight) * p.dstPitch;
    out.src = src + p.srcXInBytes + (p.srcY + p.srcZ * p.srcHeight) * p.srcPitch;
    out.bytes = p.WidthInBytes;
    out.rows = std::max<size_t>(p.Height, 1) * std::max<size_t>(p.Depth, 1);
    if (out.rows > 1) out.dst_pitch = p.dstPitch, out.src_pitch = p.srcPitch;
    return true;
  }

  bool memset(Node& out, CUgraphNode handle) {
    CUDA_MEMSET_NODE_PARAMS p{};
    if (ask(driver_.cuGraphMemsetNodeGetParams, handle, &p) != CUDA_SUCCESS) return false;
    out.kind = NodeKind::memset;
    out.dst = p.dst, out.value = p.value, out.unit = p.elementSize;
    out.bytes = p.width * p.elementSize, out.rows = std::max<size_t>(p.height, 1);
    if (out.rows > 1) out.dst_pitch = p.pitch;
    return true;
  }

  void append(const void* bytes, size_t size) {
    const size_t at = bytes_.size();
    bytes_.resize(at + (size + 7) / 8 * 8);
    if (size != 0) std::memcpy(bytes_.data() + at, bytes, size);
  }

  Recorder& recorder_;
  const DriverCalls& driver_;
  Thread& thread_;
  std::vector<std::byte> bytes_;
  uint32_t count_ = 0;
  std::vector<std::string> refusals_;
};

void Recorder::read_graph(Thread& thread, CUgraphExec exec, CUgraph graph) {
  Inside inside(thread);
  GraphReader reader(*this, thread);
  reader.read(graph, {}, 0);
  GraphRecord record{};
  record.head = head(thread, Kind::graph, CUDA_SUCCESS);
  record.graph = number(exec), record.node_count = reader.count();
  thread.add(record, {reader.bytes()});
  std::lock_guard lock(mutex_);
  if (graph_refusals_.erase(record.graph) != 0) --graphs_refused_;
  if (reader.refusals().empty()) return;
  graph_refusals_[record.graph] = reader.refusals();
  ++graphs_refused_;
}

void Recorder::graph_changed(CUgraphExec exec, const char* call) {
  std::lock_guard lock(mutex_);
  auto [at, fresh] = graph_refusals_.try_emplace(number(exec));
  if (fresh) ++graphs_refused_;
  at->second.push_back(std::string("a CUDA graph that was changed after it was instantiated (") + call + ")");
}

void Recorder::check_graph(Thread& thread, CUgraphExec exec) {
  if (graphs_refused_.load(std::memory_order_relaxed) == 0 || slice_ != Slice::inside) return;
  std::vector<std::string> refusals;
  {
    std::lock_guard lock(mutex_);
    if (const auto at = graph_refusals_.find(number(exec)); at != graph_refusals_.end()) refusals = at->second;
  }
  for (const std::string& text : refusals) note(thread, text);
}

void Recorder::exit_graph(Thread& thread, uint32_t cbid, const CUpti_CallbackData& data, int result) {
  if (result != CUDA_SUCCESS) return;
  switch (cbid) {
    case KGATE_ID(cuGraphInstantiate):
    case KGATE_ID(cuGraphInstantiate_v2):
    case KGATE_ID(cuGraphInstantiateWithFlags):
    case KGATE_ID(cuGraphInstantiateWithParams):
    case KGATE_ID(cuGraphInstantiateWithParams_ptsz): {
      // All begin with where the executable graph goes and the graph.
      const auto& params = params_of<KGATE_ID(cuGraphInstantiateWithFlags)>(data);
      return read_graph(thread, *params.phGraphExec, params.hGraph);
    }
    case KGATE_ID(cuGraphExecUpdate):
    case KGATE_ID(cuGraphExecUpdate_v2): {  // nodes and edges are those of before
      const auto& params = params_of<KGATE_ID(cuGraphExecUpdate_v2)>(data);
      return read_graph(thread, params.hGraphExec, params.hGraph);
    }
    case KGATE_ID(cuGraphExecDestroy): {
      HandleRecord record{};
      record.head = head(thread, Kind::graph_destroyed, result);
      record.handle = number(params_of<KGATE_ID(cuGraphExecDestroy)>(data).hGraphExec);
      thread.add(record);
      std::lock_guard lock(mutex_);
      if (graph_refusals_.erase(record.handle) != 0) --graphs_refused_;
      return;
    }
    default:  // all begin with the executable graph
      graph_changed(params_of<KGATE_ID(cuGraphExecDestroy)>(data).hGraphExec, driver_cbid_name(cbid));
  }
}

}  // namespace kgate::record
