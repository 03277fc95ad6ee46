#include "gpu/graph.h"

#include "gpu/driver_state.h"

namespace kgate::gpu {

namespace {

void nothing(void*) {}

}  // namespace

#define KGATE_GRAPH_CALL(name, ...)                                               \
  do {                                                                            \
    Driver::State& state = driver_.state();                                       \
    if (state.calls.name == nullptr) state.fail(CUDA_ERROR_NOT_SUPPORTED, #name); \
    state.check(state.calls.name(__VA_ARGS__), #name);                            \
  } while (false)

Graph::Graph(Driver& driver) : driver_(driver) { KGATE_GRAPH_CALL(cuGraphCreate, &graph_, 0); }

Graph::~Graph() {
  if (driver_.state().calls.cuGraphDestroy != nullptr) driver_.state().calls.cuGraphDestroy(graph_);
}

CUgraphNode Graph::add_kernel(const Launch& l, std::span<const std::byte> params, GraphNodes after) {
  size_t size = params.size();
  void* extra[] = {kLaunchParamBufferPointer, const_cast<std::byte*>(params.data()), kLaunchParamBufferSize, &size,
                   kLaunchParamEnd};
  CUDA_KERNEL_NODE_PARAMS node{};
  node.func = l.function;
  node.gridDimX = l.grid.x, node.gridDimY = l.grid.y, node.gridDimZ = l.grid.z;
  node.blockDimX = l.block.x, node.blockDimY = l.block.y, node.blockDimZ = l.block.z;
  node.sharedMemBytes = l.shared;
  node.extra = size != 0 ? extra : nullptr;
  CUgraphNode made = nullptr;
  KGATE_GRAPH_CALL(cuGraphAddKernelNode_v2, &made, graph_, after.data(), after.size(), &node);
  CUlaunchAttribute attributes[kMaxLaunchAttributes];
  unsigned count = launch_attributes(l, attributes);
  for (unsigned i = 0; i < count; ++i)
    KGATE_GRAPH_CALL(cuGraphKernelNodeSetAttribute, made, attributes[i].id, &attributes[i].value);
  return made;
}

CUgraphNode Graph::add_copy(const Rectangle& r, GraphNodes after) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = r.from;
  copy.dstDevice = r.to;
  copy.srcPitch = r.rows > 1 ? r.from_pitch : r.bytes;
  copy.dstPitch = r.rows > 1 ? r.to_pitch : r.bytes;
  copy.srcHeight = copy.dstHeight = copy.Height = r.rows;
  copy.WidthInBytes = r.bytes;
  copy.Depth = 1;
  CUgraphNode made = nullptr;
  KGATE_GRAPH_CALL(cuGraphAddMemcpyNode, &made, graph_, after.data(), after.size(), &copy, driver_.state().context);
  return made;
}

CUgraphNode Graph::add_memset(const Fill& f, GraphNodes after) {
  CUDA_MEMSET_NODE_PARAMS node{f.to, f.rows > 1 ? f.pitch : 0, f.value, f.unit, f.count, f.rows};
  CUgraphNode made = nullptr;
  KGATE_GRAPH_CALL(cuGraphAddMemsetNode, &made, graph_, after.data(), after.size(), &node, driver_.state().context);
  return made;
}

CUgraphNode Graph::add_event_record(CUevent event, GraphNodes after) {
  CUgraphNode made = nullptr;
  KGATE_GRAPH_CALL(cuGraphAddEventRecordNode, &made, graph_, after.data(), after.size(), event);
  return made;
}

CUgraphNode Graph::add_event_wait(CUevent event, GraphNodes after) {
  CUgraphNode made = nullptr;
  KGATE_GRAPH_CALL(cuGraphAddEventWaitNode, &made, graph_, after.data(), after.size(), event);
  return made;
}

CUgraphNode Graph::add_host_function(GraphNodes after) {
  CUDA_HOST_NODE_PARAMS node{&nothing, nullptr};
  CUgraphNode made = nullptr;
  KGATE_GRAPH_CALL(cuGraphAddHostNode, &made, graph_, after.data(), after.size(), &node);
  return made;
}

CUgraphNode Graph::add_empty(GraphNodes after) {
  CUgraphNode made = nullptr;
  KGATE_GRAPH_CALL(cuGraphAddEmptyNode, &made, graph_, after.data(), after.size());
  return made;
}

CUgraphExec Graph::instantiate() {
  CUgraphExec executable = nullptr;
  KGATE_GRAPH_CALL(cuGraphInstantiateWithFlags, &executable, graph_, 0);
  return executable;
}

void Driver::launch(CUgraphExec graph, CUstream stream) {
  if (state_->calls.cuGraphLaunch == nullptr) state_->fail(CUDA_ERROR_NOT_SUPPORTED, "cuGraphLaunch");
  state_->check(state_->calls.cuGraphLaunch(graph, stream), "cuGraphLaunch");
}

}  // namespace kgate::gpu
