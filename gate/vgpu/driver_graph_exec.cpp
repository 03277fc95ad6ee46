// Exports: executable graphs. Instantiation copies: the graph may change or go. Nodes of an executable graph have
// handles and ids of their own, which records carry, as CUPTI's do.
#include "vgpu/driver_capture.h"
#include "vgpu/driver_graph.h"

namespace kgate::vgpu {

namespace {

constexpr unsigned kAutoFree = 1, kUpload = 2, kDeviceLaunch = 4, kNodePriority = 8;  // CUDA_GRAPH_INSTANTIATE_FLAG_*

void append(Call& call, CUgraph handle, uint32_t id, std::vector<ExecutableNode>& out, uint32_t& count) {
  for (CUgraphNode original : call.state.graphs.find(handle)->nodes) {
    GraphNode* from = call.state.nodes.find(original);
    auto made = std::make_unique<GraphNode>();
    made->context = from->context;
    made->id = uint64_t{id} << 32 | ++count;
    made->type = from->type;
    ExecutableNode node{nullptr, original, made->id, from->type, from->work};
    node.node = call.state.nodes.add(std::move(made));
    CUpti_GraphData data{};
    data.graph = data.originalGraph = handle;
    data.node = node.node;
    data.originalNode = original;
    data.nodeType = node.type;
    call.graph_news.push_back({CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, data});
    const auto* child = std::get_if<ChildWork>(&node.work);
    CUgraph inner = child != nullptr ? child->graph : nullptr;
    out.push_back(std::move(node));
    if (inner != nullptr) append(call, inner, id, out, count);
  }
}

CUresult instantiate(Call& call, CUgraphExec* out, CUgraph graph, uint64_t flags) {
  State& s = call.state;
  if (out == nullptr || s.graphs.find(graph) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & ~uint64_t{kAutoFree | kUpload | kDeviceLaunch | kNodePriority}) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & kDeviceLaunch) != 0) return unsupported(call, "a graph that kernels launch");
  CUpti_GraphData data{};
  data.graph = graph;
  call.graph_news.push_back({CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING, data});
  auto executable = std::make_unique<Executable>();
  executable->context = call.context.id;
  executable->id = s.next_graph++;
  std::vector<ExecutableNode> nodes;
  uint32_t count = 0;
  append(call, graph, executable->id, nodes, count);
  executable->nodes = std::make_shared<const std::vector<ExecutableNode>>(std::move(nodes));
  data.graphExec = *out = s.executables.add(std::move(executable));
  call.graph_news.push_back({CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED, data});
  return CUDA_SUCCESS;
}

CUresult instantiate_with(const cupti::Api& api, CUgraphExec* out, CUgraph graph,
                          CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return context_call(api, [&](Call& call) {
    if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUresult code = instantiate(call, out, graph, params->flags);
    params->hErrNode_out = nullptr;
    params->result_out = code == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    return code;
  });
}

CUresult launch(const cupti::Api& api, CUgraphExec handle, StreamArg on) {
  return context_call(api, [&](Call& call) {
    uint32_t stream = 0;
    Executable* executable = call.state.executables.find(handle);
    if (executable == nullptr || executable->context != call.context.id) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult code = not_capturing(call, on, "a launch of a graph while its stream captures"); code != CUDA_SUCCESS)
      return code;
    if (CUresult code = implicit_sync(call, on); code != CUDA_SUCCESS) return code;
    if (CUresult code = stream_id(call, on, stream); code != CUDA_SUCCESS) return code;
    auto nodes = executable->nodes;  // a host function may take so long that another thread destroys the graph
    uint32_t id = executable->id;
    for (const ExecutableNode& node : *nodes) {
      CUresult code = run(call, node.work, {stream, true, node.id, id});
      if (code != CUDA_SUCCESS) return code;
      if (call.context.poison != CUDA_SUCCESS) return CUDA_SUCCESS;  // the next call tells
    }
    return CUDA_SUCCESS;
  });
}

CUresult upload(const cupti::Api& api, CUgraphExec handle, StreamArg on) {
  return context_call(api, [&](Call& call) {
    uint32_t stream = 0;
    if (call.state.executables.find(handle) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return stream_id(call, on, stream);
  });
}

}  // namespace

KGATE_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, uint64_t flags) {
  return context_call(KGATE_API(cuGraphInstantiateWithFlags, out, graph, flags), [&](Call& call) {
    return (flags & kUpload) != 0 ? CUDA_ERROR_INVALID_VALUE : instantiate(call, out, graph, flags);
  });
}

KGATE_EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec* out, CUgraph graph, CUgraphNode* bad_node, char* log,
                                            size_t log_bytes) {
  return context_call(KGATE_API(cuGraphInstantiate_v2, out, graph, bad_node, log, log_bytes), [&](Call& call) {
    if (bad_node != nullptr) *bad_node = nullptr;
    if (log != nullptr && log_bytes != 0) *log = '\0';
    return instantiate(call, out, graph, 0);
  });
}

KGATE_EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec* out, CUgraph graph,
                                                   CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return instantiate_with(KGATE_API(cuGraphInstantiateWithParams, out, graph, params), out, graph, params);
}
KGATE_EXPORT CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* out, CUgraph graph,
                                                        CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return instantiate_with(KGATE_API(cuGraphInstantiateWithParams_ptsz, out, graph, params), out, graph, params);
}

KGATE_EXPORT CUresult cuGraphExecDestroy(CUgraphExec handle) {
  return context_call(KGATE_API(cuGraphExecDestroy, handle), [&](Call& call) {
    Executable* executable = call.state.executables.find(handle);
    if (executable == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (const ExecutableNode& node : *executable->nodes) call.state.nodes.erase(node.node);
    call.state.executables.erase(handle);
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  return launch(KGATE_API(cuGraphLaunch, graph, stream), graph, {stream, false});
}
KGATE_EXPORT CUresult cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream) {
  return launch(KGATE_API(cuGraphLaunch_ptsz, graph, stream), graph, {stream, true});
}

KGATE_EXPORT CUresult cuGraphUpload(CUgraphExec graph, CUstream stream) {
  return upload(KGATE_API(cuGraphUpload, graph, stream), graph, {stream, false});
}
KGATE_EXPORT CUresult cuGraphUpload_ptsz(CUgraphExec graph, CUstream stream) {
  return upload(KGATE_API(cuGraphUpload_ptsz, graph, stream), graph, {stream, true});
}

// `node` is the graph's, as it was when the executable graph was made of it.
KGATE_EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec handle, CUgraphNode node,
                                                        const CUDA_KERNEL_NODE_PARAMS* params) {
  return context_call(KGATE_API(cuGraphExecKernelNodeSetParams_v2, handle, node, params), [&](Call& call) {
    Executable* executable = call.state.executables.find(handle);
    if (executable == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto changed = std::make_shared<std::vector<ExecutableNode>>(*executable->nodes);
    for (ExecutableNode& mine : *changed) {
      KernelWork* old = std::get_if<KernelWork>(&mine.work);
      if (mine.original != node || old == nullptr) continue;
      KernelWork kernel = kernel_of(*params);
      kernel.attributes = old->attributes;
      kernel.cooperative = old->cooperative;
      CUresult code = check(call, kernel);
      if (code == CUDA_SUCCESS) code = pack(call, kernel, params->kernelParams, params->extra);
      if (code != CUDA_SUCCESS) return code == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : code;
      mine.work = std::move(kernel);
      executable->nodes = std::move(changed);
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

KGATE_EXPORT CUptiResult cuptiGetGraphExecId(CUgraphExec graph, uint32_t* id) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  Executable* found = s.executables.find(graph);
  if (found == nullptr || id == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *id = found->id;
  return CUPTI_SUCCESS;
}

}  // namespace kgate::vgpu
