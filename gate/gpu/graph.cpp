#include "gpu/graph.h"

#include "gpu/driver_state.h"

namespace kgate::gpu {

Graph::Graph(Driver& driver) : driver_(driver) { KGATE_OPTIONAL_CALL(driver_.state(), cuGraphCreate, &graph_, 0); }

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
  KGATE_OPTIONAL_CALL(driver_.state(), cuGraphAddKernelNode_v2, &made, graph_, after.data(), after.size(), &node);
  CUlaunchAttribute attributes[kMaxLaunchAttributes];
  unsigned count = launch_attributes(l, attributes);
  for (unsigned i = 0; i < count; ++i)
    KGATE_OPTIONAL_CALL(driver_.state(), cuGraphKernelNodeSetAttribute, made, attributes[i].id, &attributes[i].value);
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
  KGATE_OPTIONAL_CALL(driver_.state(), cuGraphAddMemcpyNode, &made, graph_, after.data(), after.size(), &copy,
                      driver_.state().context);
  return made;
}

CUgraphNode Graph::add_memset(const Fill& f, GraphNodes after) {
  CUDA_MEMSET_NODE_PARAMS node{f.to, f.rows > 1 ? f.pitch : 0, f.value, f.unit, f.count, f.rows};
  CUgraphNode made = nullptr;
  KGATE_OPTIONAL_CALL(driver_.state(), cuGraphAddMemsetNode, &made, graph_, after.data(), after.size(), &node,
                      driver_.state().context);
  return made;
}

CUgraphNode Graph::add_event_record(CUevent event, GraphNodes after) {
  CUgraphNode made = nullptr;
  KGATE_OPTIONAL_CALL(driver_.state(), cuGraphAddEventRecordNode, &made, graph_, after.data(), after.size(), event);
  return made;
}

CUgraphNode Graph::add_event_wait(CUevent event, GraphNodes after) {
  CUgraphNode made = nullptr;
  KGATE_OPTIONAL_CALL(driver_.state(), cuGraphAddEventWaitNode, &made, graph_, after.data(), after.size(), event);
  return made;
}

CUgraphNode Graph::add_host_function(GraphNodes after) {
  CUDA_HOST_NODE_PARAMS node{&empty_host_function, nullptr};
  CUgraphNode made = nullptr;
  KGATE_OPTIONAL_CALL(driver_.state(), cuGraphAddHostNode, &made, graph_, after.data(), after.size(), &node);
  return made;
}

CUgraphNode Graph::add_empty(GraphNodes after) {
  CUgraphNode made = nullptr;
  KGATE_OPTIONAL_CALL(driver_.state(), cuGraphAddEmptyNode, &made, graph_, after.data(), after.size());
  return made;
}

CUgraphExec Graph::instantiate() {
  CUgraphExec executable = nullptr;
  KGATE_OPTIONAL_CALL(driver_.state(), cuGraphInstantiateWithFlags, &executable, graph_, 0);
  return executable;
}

void Driver::launch(CUgraphExec graph, CUstream stream) { KGATE_OPTIONAL_CALL(*state_, cuGraphLaunch, graph, stream); }

}  // namespace kgate::gpu
