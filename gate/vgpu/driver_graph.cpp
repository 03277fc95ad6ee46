// Exports: graphs in the making, and what is in them.
#include "vgpu/driver_graph.h"

#include <algorithm>
#include <set>

namespace kgate::vgpu {

namespace {

void tell(Call& call, uint32_t cbid, CUgraph graph, CUgraphNode node, CUgraphNodeType type = {}) {
  CUpti_GraphData data{};
  data.graph = graph;
  data.node = node;
  data.nodeType = type;
  call.graph_news.push_back({cbid, data});
}

// A copy of `graph` that a child node owns. Its nodes are told of as clones. Null: there is no such graph.
CUgraph clone(Call& call, CUgraph from) {
  Graph* original = call.state.graphs.find(from);
  if (original == nullptr) return nullptr;
  std::vector<CUgraphNode> nodes = original->nodes;
  CUgraph copy = make_graph(call);
  call.graph_news.pop_back();  // its making is told by its nodes
  call.state.graphs.find(copy)->owned = true;
  std::unordered_map<CUgraphNode, CUgraphNode> copies;
  for (CUgraphNode handle : nodes) {
    GraphNode* node = call.state.nodes.find(handle);
    std::vector<CUgraphNode> after;
    for (CUgraphNode earlier : node->after) after.push_back(copies[earlier]);
    Work work = node->work;
    CUgraphNodeType type = node->type;
    if (auto* child = std::get_if<ChildWork>(&work)) child->graph = clone(call, child->graph);
    CUgraphNode made = add_node(call, copy, type, std::move(work), std::move(after));
    copies[handle] = made;
    auto& [cbid, data] = call.graph_news.back();
    cbid = CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED;
    data.originalGraph = from;
    data.originalNode = handle;
  }
  return copy;
}

bool contains(Call& call, CUgraph graph, CUgraph wanted, int depth = 0) {
  if (graph == wanted || depth > 64) return true;
  Graph* found = call.state.graphs.find(graph);
  if (found == nullptr) return false;
  for (CUgraphNode handle : found->nodes) {
    auto* child = std::get_if<ChildWork>(&call.state.nodes.find(handle)->work);
    if (child != nullptr && contains(call, child->graph, wanted, depth + 1)) return true;
  }
  return false;
}

// body(Call&, Work&) says what the node does, and whether that can be.
template <typename Body>
CUresult add(const cupti::Api& api, CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count,
             Body&& body) {
  return context_call(api, [&](Call& call) {
    if (out == nullptr || (count != 0 && after == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    Graph* found = call.state.graphs.find(graph);
    if (found == nullptr || count > found->nodes.size()) return CUDA_ERROR_INVALID_VALUE;
    std::set<CUgraphNode> distinct(after, after + count);
    if (distinct.size() != count) return CUDA_ERROR_INVALID_VALUE;
    for (CUgraphNode earlier : distinct) {
      GraphNode* node = call.state.nodes.find(earlier);
      if (node == nullptr || node->graph != graph) return CUDA_ERROR_INVALID_VALUE;
    }
    Work work;
    if (CUresult code = body(call, work); code != CUDA_SUCCESS) return code;
    CUgraphNodeType type = type_of(work);
    *out = add_node(call, graph, type, std::move(work), {after, after + count});
    return CUDA_SUCCESS;
  });
}

// body(GraphNode&, payload) for a node whose work is a `Kind`.
template <typename Kind, typename Body>
CUresult read(const cupti::Api& api, CUgraphNode handle, const void* out, Body&& body) {
  return context_call(api, [&](Call& call) {
    GraphNode* node = call.state.nodes.find(handle);
    if (out == nullptr || node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Kind* work = std::get_if<Kind>(&node->work);
    if (work == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return body(call, *node, *work);
  });
}

CUresult valid_context(Call& call, CUcontext context) {
  Context* found = context == nullptr ? &call.context : call.state.contexts.find(context);
  return found == &call.context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

// Up to `*count` items, the rest of the room nulled; without room only their number.
CUresult list(const std::vector<CUgraphNode>& items, CUgraphNode* out, size_t* count) {
  if (out != nullptr) {
    for (size_t i = 0; i < *count; ++i) out[i] = i < items.size() ? items[i] : nullptr;
    *count = std::min(*count, items.size());
  } else {
    *count = items.size();
  }
  return CUDA_SUCCESS;
}

CUresult edges(const cupti::Api& api, CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
               size_t* count) {
  return context_call(api, [&](Call& call) {
    Graph* found = call.state.graphs.find(graph);
    if (found == nullptr || count == nullptr || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<CUgraphNode> sources, targets;
    for (CUgraphNode node : found->nodes) {
      for (CUgraphNode earlier : call.state.nodes.find(node)->after) {
        sources.push_back(earlier);
        targets.push_back(node);
      }
    }
    if (data != nullptr && from != nullptr) std::fill_n(data, std::min(*count, sources.size()), CUgraphEdgeData{});
    size_t room = *count;
    list(sources, from, count);
    return list(targets, to, &room);
  });
}

CUresult dependencies(const cupti::Api& api, CUgraphNode node, CUgraphNode* out, CUgraphEdgeData* data, size_t* count) {
  return context_call(api, [&](Call& call) {
    GraphNode* found = call.state.nodes.find(node);
    if (found == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (data != nullptr && out != nullptr) std::fill_n(data, std::min(*count, found->after.size()), CUgraphEdgeData{});
    return list(found->after, out, count);
  });
}

}  // namespace

CUgraphNodeType type_of(const Work& work) {
  constexpr CUgraphNodeType kTypes[] = {CU_GRAPH_NODE_TYPE_EMPTY,  CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEMCPY,
                                        CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_HOST,   CU_GRAPH_NODE_TYPE_EMPTY,
                                        CU_GRAPH_NODE_TYPE_GRAPH};
  static_assert(std::size(kTypes) == std::variant_size_v<Work>);
  if (auto* event = std::get_if<EventWork>(&work))
    return event->record ? CU_GRAPH_NODE_TYPE_EVENT_RECORD : CU_GRAPH_NODE_TYPE_WAIT_EVENT;
  return kTypes[work.index()];
}

KernelWork kernel_of(const CUDA_KERNEL_NODE_PARAMS& p) {
  return {p.func,
          {p.gridDimX, p.gridDimY, p.gridDimZ},
          {p.blockDimX, p.blockDimY, p.blockDimZ},
          p.sharedMemBytes,
          false,
          {},
          {}};
}

CUgraph make_graph(Call& call) {
  auto graph = std::make_unique<Graph>();
  graph->context = call.context.id;
  graph->id = call.state.next_graph++;
  CUgraph handle = call.state.graphs.add(std::move(graph));
  tell(call, CUPTI_CBID_RESOURCE_GRAPH_CREATED, handle, nullptr);
  return handle;
}

void destroy_graph(Call& call, CUgraph handle) {
  Graph* graph = call.state.graphs.find(handle);
  if (graph == nullptr) return;
  for (CUgraphNode node : graph->nodes) {
    if (auto* child = std::get_if<ChildWork>(&call.state.nodes.find(node)->work)) destroy_graph(call, child->graph);
    call.state.nodes.erase(node);
  }
  call.state.graphs.erase(handle);
}

CUgraphNode add_node(Call& call, CUgraph handle, CUgraphNodeType type, Work work, std::vector<CUgraphNode> after) {
  Graph* graph = call.state.graphs.find(handle);
  if (graph == nullptr) return nullptr;
  auto node = std::make_unique<GraphNode>();
  node->context = call.context.id;
  node->id = uint64_t{graph->id} << 32 | (graph->nodes.size() + 1);
  node->graph = handle;
  node->type = type;
  node->work = std::move(work);
  node->after = std::move(after);
  CUgraphNode made = call.state.nodes.add(std::move(node));
  graph->nodes.push_back(made);
  tell(call, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, handle, made, type);
  return made;
}

KGATE_EXPORT CUresult cuGraphCreate(CUgraph* out, unsigned flags) {
  return context_call(KGATE_API_ID(cuGraphCreate), [&](Call& call) {
    if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *out = make_graph(call);
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  return context_call(KGATE_API(cuGraphDestroy, graph), [&](Call& call) {
    Graph* found = call.state.graphs.find(graph);
    if (found == nullptr || found->owned) return CUDA_ERROR_INVALID_VALUE;
    destroy_graph(call, graph);
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count,
                                              const CUDA_KERNEL_NODE_PARAMS* params) {
  return add(KGATE_API_ID(cuGraphAddKernelNode_v2), out, graph, after, count, [&](Call& call, Work& work) {
    if (params == nullptr || (params->func == nullptr && params->kern == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    if (params->func == nullptr) return unsupported(call, "a graph node of a context-free kernel");
    KernelWork kernel = kernel_of(*params);
    if (CUresult code = check(call, kernel); code != CUDA_SUCCESS)
      return code == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : code;
    CUresult code = pack(call, kernel, params->kernelParams, params->extra);
    work = std::move(kernel);
    return code;
  });
}

KGATE_EXPORT CUresult cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count,
                                           const CUDA_MEMCPY3D* params, CUcontext context) {
  return add(KGATE_API_ID(cuGraphAddMemcpyNode), out, graph, after, count, [&](Call& call, Work& work) {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    work = *params;
    CUresult code = valid_context(call, context);
    return code == CUDA_SUCCESS ? check(call, *params) : code;
  });
}

KGATE_EXPORT CUresult cuGraphAddMemsetNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count,
                                           const CUDA_MEMSET_NODE_PARAMS* params, CUcontext context) {
  return add(KGATE_API_ID(cuGraphAddMemsetNode), out, graph, after, count, [&](Call& call, Work& work) {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    work = *params;
    CUresult code = valid_context(call, context);
    return code == CUDA_SUCCESS ? check(call, *params) : code;
  });
}

KGATE_EXPORT CUresult cuGraphAddHostNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count,
                                         const CUDA_HOST_NODE_PARAMS* params) {
  return add(KGATE_API_ID(cuGraphAddHostNode), out, graph, after, count, [&](Call&, Work& work) {
    if (params == nullptr || params->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
    work = HostWork{params->fn, params->userData};
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuGraphAddEmptyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count) {
  return add(KGATE_API_ID(cuGraphAddEmptyNode), out, graph, after, count, [](Call&, Work&) { return CUDA_SUCCESS; });
}

KGATE_EXPORT CUresult cuGraphAddChildGraphNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count,
                                               CUgraph child) {
  return add(KGATE_API_ID(cuGraphAddChildGraphNode), out, graph, after, count, [&](Call& call, Work& work) {
    if (call.state.graphs.find(child) == nullptr || contains(call, child, graph)) return CUDA_ERROR_INVALID_VALUE;
    work = ChildWork{clone(call, child)};
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuGraphAddEventRecordNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count,
                                                CUevent event) {
  return add(KGATE_API_ID(cuGraphAddEventRecordNode), out, graph, after, count, [&](Call& call, Work& work) {
    work = EventWork{event, true};
    return call.state.events.find(event) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

KGATE_EXPORT CUresult cuGraphAddEventWaitNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, size_t count,
                                              CUevent event) {
  return add(KGATE_API_ID(cuGraphAddEventWaitNode), out, graph, after, count, [&](Call& call, Work& work) {
    work = EventWork{event, false};
    return call.state.events.find(event) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

KGATE_EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* out, size_t* count) {
  return context_call(KGATE_API_ID(cuGraphGetNodes), [&](Call& call) {
    Graph* found = call.state.graphs.find(graph);
    if (found == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return list(found->nodes, out, count);
  });
}

KGATE_EXPORT CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return edges(KGATE_API_ID(cuGraphGetEdges), graph, from, to, nullptr, count);
}
KGATE_EXPORT CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                                         size_t* count) {
  return edges(KGATE_API_ID(cuGraphGetEdges_v2), graph, from, to, data, count);
}

KGATE_EXPORT CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* out) {
  return context_call(KGATE_API_ID(cuGraphNodeGetType), [&](Call& call) {
    GraphNode* found = call.state.nodes.find(node);
    if (found == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = found->type;
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* out, size_t* count) {
  return dependencies(KGATE_API_ID(cuGraphNodeGetDependencies), node, out, nullptr, count);
}
KGATE_EXPORT CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* out, CUgraphEdgeData* data,
                                                    size_t* count) {
  return dependencies(KGATE_API_ID(cuGraphNodeGetDependencies_v2), node, out, data, count);
}

// The parameters' pointers point into the node, as the driver's do: they hold until the node changes.
KGATE_EXPORT CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS* out) {
  return read<KernelWork>(
      KGATE_API_ID(cuGraphKernelNodeGetParams_v2), handle, out, [&](Call& call, GraphNode& node, KernelWork& kernel) {
        LoadedFunction* function = call.state.functions.find(kernel.function);
        if (function == nullptr || function->info == nullptr) return CUDA_ERROR_INVALID_VALUE;
        node.pointers.clear();
        for (const FunctionInfo::Param& param : function->info->params)
          node.pointers.push_back(kernel.params.data() + param.offset);
        *out = {};
        out->func = kernel.function;
        out->gridDimX = kernel.grid.x, out->gridDimY = kernel.grid.y, out->gridDimZ = kernel.grid.z;
        out->blockDimX = kernel.block.x, out->blockDimY = kernel.block.y, out->blockDimZ = kernel.block.z;
        out->sharedMemBytes = kernel.shared;
        out->kernelParams = node.pointers.empty() ? nullptr : node.pointers.data();
        out->ctx = current_handle();
        return CUDA_SUCCESS;
      });
}

KGATE_EXPORT CUresult cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUlaunchAttributeID id,
                                                    const CUlaunchAttributeValue* value) {
  return read<KernelWork>(KGATE_API_ID(cuGraphKernelNodeSetAttribute), handle, value,
                          [&](Call& call, GraphNode&, KernelWork& kernel) {
                            KernelWork changed = kernel;
                            CUresult code = add_attribute(call, changed, {id, {}, *value});
                            if (code == CUDA_SUCCESS) code = check(call, changed);
                            if (code == CUDA_SUCCESS) kernel = std::move(changed);
                            return code;
                          });
}

KGATE_EXPORT CUresult cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUlaunchAttributeID id,
                                                    CUlaunchAttributeValue* out) {
  return read<KernelWork>(KGATE_API_ID(cuGraphKernelNodeGetAttribute), handle, out,
                          [&](Call&, GraphNode&, KernelWork& kernel) {
                            *out = {};
                            for (const CUlaunchAttribute& attribute : kernel.attributes)
                              if (attribute.id == id) *out = attribute.value;
                            return CUDA_SUCCESS;
                          });
}

#define KGATE_READ(name, type, kind, ...)                                                        \
  KGATE_EXPORT CUresult name(CUgraphNode handle, type* out) {                                    \
    return read<kind>(KGATE_API_ID(name), handle, out, [&](Call&, GraphNode& node, kind& work) { \
      (void)node;                                                                                \
      __VA_ARGS__;                                                                               \
      return CUDA_SUCCESS;                                                                       \
    });                                                                                          \
  }
KGATE_READ(cuGraphMemcpyNodeGetParams, CUDA_MEMCPY3D, CopyWork, *out = work)
KGATE_READ(cuGraphMemsetNodeGetParams, CUDA_MEMSET_NODE_PARAMS, FillWork, *out = work)
KGATE_READ(cuGraphHostNodeGetParams, CUDA_HOST_NODE_PARAMS, HostWork, *out = {work.function, work.user})
KGATE_READ(cuGraphChildGraphNodeGetGraph, CUgraph, ChildWork, *out = work.graph)
KGATE_READ(cuGraphEventRecordNodeGetEvent, CUevent, EventWork, if (!work.record) return CUDA_ERROR_INVALID_VALUE;
           *out = work.event)
KGATE_READ(cuGraphEventWaitNodeGetEvent, CUevent, EventWork, if (work.record) return CUDA_ERROR_INVALID_VALUE;
           *out = work.event)
#undef KGATE_READ

KGATE_EXPORT CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t* id) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  GraphNode* found = s.nodes.find(node);
  if (found == nullptr || id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *id = found->id;
  return CUPTI_SUCCESS;
}

KGATE_EXPORT CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t* id) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  Graph* found = s.graphs.find(graph);
  if (found == nullptr || id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *id = found->id;
  return CUPTI_SUCCESS;
}

}  // namespace kgate::vgpu
