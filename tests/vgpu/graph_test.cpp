// CUDA graphs on the virtual GPU: made by hand, read back, made executable, launched, and how records name their nodes.
#include <map>

#include "collector.h"
#include "gpu/graph_abi.h"

namespace kgate {
namespace {

// The driver's calls by their exported names.
class Graphs : public CuptiTest {
 protected:
  template <typename... Args>
  CUresult call(const char* name, Args... args) {
    auto function = reinterpret_cast<CUresult (*)(Args...)>(driver->symbol(name));
    EXPECT_NE(function, nullptr) << name;
    return function != nullptr ? function(args...) : CUDA_ERROR_NOT_FOUND;
  }
  CUgraph make() {
    CUgraph graph = nullptr;
    EXPECT_EQ(call("cuGraphCreate", &graph, 0u), CUDA_SUCCESS);
    return graph;
  }
  static CUDA_KERNEL_NODE_PARAMS kernel(VectorAdd& add, void** params) {
    CUDA_KERNEL_NODE_PARAMS node{};
    node.func = add.launch.function;
    node.gridDimX = add.launch.grid.x, node.gridDimY = node.gridDimZ = 1;
    node.blockDimX = add.launch.block.x, node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = params;
    return node;
  }
  CUgraphNode add_kernel(CUgraph graph, VectorAdd& add, std::vector<CUgraphNode> after = {}) {
    void* params[] = {&add.params.a, &add.params.b, &add.params.c, &add.params.n};
    CUDA_KERNEL_NODE_PARAMS node = kernel(add, params);
    CUgraphNode made = nullptr;
    EXPECT_EQ(call("cuGraphAddKernelNode_v2", &made, graph, (const CUgraphNode*)after.data(), after.size(),
                   (const CUDA_KERNEL_NODE_PARAMS*)&node),
              CUDA_SUCCESS);
    return made;
  }
  CUgraphNode add_empty(CUgraph graph, std::vector<CUgraphNode> after = {}) {
    CUgraphNode made = nullptr;
    EXPECT_EQ(call("cuGraphAddEmptyNode", &made, graph, (const CUgraphNode*)after.data(), after.size()), CUDA_SUCCESS);
    return made;
  }
  CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec executable = nullptr;
    EXPECT_EQ(call("cuGraphInstantiateWithFlags", &executable, graph, uint64_t{0}), CUDA_SUCCESS);
    return executable;
  }
  uint64_t node_id(CUgraphNode node) {
    uint64_t id = 0;
    auto ask = reinterpret_cast<CUptiResult (*)(CUgraphNode, uint64_t*)>(driver->symbol("cuptiGetGraphNodeId"));
    EXPECT_EQ(ask(node, &id), CUPTI_SUCCESS);
    return id;
  }
};

TEST_F(Graphs, a_graph_runs_its_nodes_after_those_that_they_follow) {
  VectorAdd add(*driver, 64);
  CUgraph graph = make();
  CUDA_MEMSET_NODE_PARAMS fill{add.params.b, 0, 0, 4, 64, 1};
  CUgraphNode cleared = nullptr, summed = nullptr, copied = nullptr;
  ASSERT_EQ(call("cuGraphAddMemsetNode", &cleared, graph, (const CUgraphNode*)nullptr, size_t{0},
                 (const CUDA_MEMSET_NODE_PARAMS*)&fill, CUcontext{nullptr}),
            CUDA_SUCCESS);
  summed = add_kernel(graph, add, {cleared});
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = add.params.c, copy.dstDevice = add.params.b;
  copy.WidthInBytes = 256, copy.Height = copy.Depth = 1;
  ASSERT_EQ(call("cuGraphAddMemcpyNode", &copied, graph, (const CUgraphNode*)&summed, size_t{1},
                 (const CUDA_MEMCPY3D*)&copy, CUcontext{nullptr}),
            CUDA_SUCCESS);
  CUgraphExec executable = instantiate(graph);
  ASSERT_EQ(call("cuGraphDestroy", graph), CUDA_SUCCESS);  // the executable graph is a copy
  ASSERT_EQ(call("cuGraphLaunch", executable, CUstream{nullptr}), CUDA_SUCCESS);
  std::vector<float> b(64);
  driver->download(b.data(), add.params.b, 256);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(b[i], static_cast<float>(i));
  EXPECT_EQ(call("cuGraphExecDestroy", executable), CUDA_SUCCESS);
  EXPECT_EQ(call("cuGraphLaunch", executable, CUstream{nullptr}), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Graphs, nodes_edges_and_parameters_can_be_read_back) {
  VectorAdd add(*driver, 64);
  CUgraph graph = make();
  CUgraphNode first = add_empty(graph), second = add_kernel(graph, add, {first}),
              third = add_empty(graph, {first, second});
  size_t count = 0;
  ASSERT_EQ(call("cuGraphGetNodes", graph, (CUgraphNode*)nullptr, &count), CUDA_SUCCESS);
  EXPECT_EQ(count, 3u);
  CUgraphNode nodes[4] = {third, third, third, third};
  count = 4;
  ASSERT_EQ(call("cuGraphGetNodes", graph, &nodes[0], &count), CUDA_SUCCESS);
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(nodes[1], second);
  EXPECT_EQ(nodes[3], nullptr);

  CUgraphNode from[3], to[3];
  CUgraphEdgeData data[3];
  std::memset(data, 0xff, sizeof data);
  count = 3;
  ASSERT_EQ(call("cuGraphGetEdges", graph, &from[0], &to[0], &count), CUDA_SUCCESS);
  ASSERT_EQ(call("cuGraphGetEdges_v2", graph, &from[0], &to[0], &data[0], &count), CUDA_SUCCESS);
  ASSERT_EQ(count, 3u);
  std::multimap<CUgraphNode, CUgraphNode> edges;
  for (int i = 0; i < 3; ++i) edges.emplace(from[i], to[i]);
  EXPECT_EQ(edges, (std::multimap<CUgraphNode, CUgraphNode>{{first, second}, {first, third}, {second, third}}));
  EXPECT_EQ(data[2].type, 0);

  count = 1;
  ASSERT_EQ(call("cuGraphNodeGetDependencies", second, &from[0], &count), CUDA_SUCCESS);
  EXPECT_EQ(from[0], first);
  CUgraphNodeType type{};
  ASSERT_EQ(call("cuGraphNodeGetType", second, &type), CUDA_SUCCESS);
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_KERNEL);

  VectorAddParams before = add.params;
  add.params = {};  // the node has copies of its own
  CUDA_KERNEL_NODE_PARAMS read{};
  ASSERT_EQ(call("cuGraphKernelNodeGetParams_v2", second, &read), CUDA_SUCCESS);
  EXPECT_EQ(read.func, add.launch.function);
  EXPECT_EQ(read.blockDimX, 128u);
  EXPECT_EQ(*static_cast<uint64_t*>(read.kernelParams[2]), before.c);
  EXPECT_EQ(*static_cast<uint32_t*>(read.kernelParams[3]), before.n);
  CUDA_MEMCPY3D copy{};
  EXPECT_EQ(call("cuGraphMemcpyNodeGetParams", second, &copy), CUDA_ERROR_INVALID_VALUE);  // another kind of node
}

TEST_F(Graphs, child_graphs_run_in_their_parents_place_and_are_copies) {
  VectorAdd add(*driver, 64);
  CUgraph child = make(), parent = make();
  add_kernel(child, add);
  CUgraphNode node = nullptr;
  ASSERT_EQ(call("cuGraphAddChildGraphNode", &node, parent, (const CUgraphNode*)nullptr, size_t{0}, child),
            CUDA_SUCCESS);
  EXPECT_EQ(call("cuGraphAddChildGraphNode", &node, parent, (const CUgraphNode*)nullptr, size_t{0}, parent),
            CUDA_ERROR_INVALID_VALUE);
  CUgraph inner = nullptr;
  ASSERT_EQ(call("cuGraphChildGraphNodeGetGraph", node, &inner), CUDA_SUCCESS);
  EXPECT_NE(inner, child);
  EXPECT_EQ(call("cuGraphDestroy", inner), CUDA_ERROR_INVALID_VALUE);  // the node's own
  ASSERT_EQ(call("cuGraphDestroy", child), CUDA_SUCCESS);
  CUgraphExec executable = instantiate(parent);
  ASSERT_EQ(call("cuGraphLaunch", executable, CUstream{nullptr}), CUDA_SUCCESS);
  add.expect_right();
}

TEST_F(Graphs, host_functions_and_events_are_nodes) {
  CUgraph graph = make();
  CUevent event = driver->create_event();
  static int ran = 0;
  ran = 0;
  CUDA_HOST_NODE_PARAMS host{[](void* user) { *static_cast<int*>(user) += 1; }, &ran};
  CUgraphNode node = nullptr, recorded = nullptr;
  ASSERT_EQ(call("cuGraphAddHostNode", &node, graph, (const CUgraphNode*)nullptr, size_t{0},
                 (const CUDA_HOST_NODE_PARAMS*)&host),
            CUDA_SUCCESS);
  ASSERT_EQ(call("cuGraphAddEventRecordNode", &recorded, graph, (const CUgraphNode*)&node, size_t{1}, event),
            CUDA_SUCCESS);
  ASSERT_EQ(call("cuGraphAddEventWaitNode", &node, graph, (const CUgraphNode*)&recorded, size_t{1}, event),
            CUDA_SUCCESS);
  CUevent read = nullptr;
  EXPECT_EQ(call("cuGraphEventWaitNodeGetEvent", node, &read), CUDA_SUCCESS);
  EXPECT_EQ(read, event);
  EXPECT_EQ(call("cuGraphEventWaitNodeGetEvent", recorded, &read), CUDA_ERROR_INVALID_VALUE);
  CUgraphExec executable = instantiate(graph);
  EXPECT_EQ(ran, 0);
  ASSERT_EQ(call("cuGraphLaunch", executable, CUstream{nullptr}), CUDA_SUCCESS);
  EXPECT_EQ(ran, 1);
}

struct News {
  static inline std::vector<std::pair<uint32_t, CUpti_GraphData>> seen;
  static void callback(void*, int, uint32_t cbid, const void* data) {
    seen.push_back(
        {cbid, *static_cast<const CUpti_GraphData*>(static_cast<const CUpti_ResourceData*>(data)->resourceDescriptor)});
  }
};

TEST_F(Graphs, kernels_of_a_launch_name_the_clones_that_were_told_of_at_instantiation) {
  VectorAdd add(*driver, 64);
  News::seen.clear();
  CUpti_SubscriberHandle subscriber = nullptr;
  CUpti_SubscriberParams params{sizeof params, "test", nullptr, 0};
  ASSERT_EQ(cupti.cuptiSubscribe_v2(&subscriber, &News::callback, nullptr, &params), CUPTI_SUCCESS);
  auto enable_one = reinterpret_cast<CUptiResult (*)(uint32_t, CUpti_SubscriberHandle, int, uint32_t)>(
      driver->symbol("cuptiEnableCallback"));
  for (uint32_t id : {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
                      CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED})
    ASSERT_EQ(enable_one(1, subscriber, static_cast<int>(CUPTI_CB_DOMAIN_RESOURCE), id), CUPTI_SUCCESS);
  CUgraph graph = make();
  CUgraphNode one = add_kernel(graph, add), two = add_kernel(graph, add, {one});
  CUgraphExec executable = instantiate(graph);
  cupti.cuptiUnsubscribe(subscriber);
  ASSERT_EQ(News::seen.size(), 5u);
  EXPECT_EQ(News::seen[0].first, unsigned{CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED});
  EXPECT_EQ(News::seen[0].second.node, one);
  EXPECT_EQ(News::seen[0].second.nodeType, CU_GRAPH_NODE_TYPE_KERNEL);
  EXPECT_EQ(News::seen[2].first, unsigned{CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED});
  EXPECT_EQ(News::seen[2].second.originalNode, one);
  EXPECT_EQ(News::seen[3].second.originalNode, two);
  EXPECT_EQ(News::seen[4].first, unsigned{CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED});
  EXPECT_EQ(News::seen[4].second.graphExec, executable);
  uint64_t first = node_id(News::seen[2].second.node), second = node_id(News::seen[3].second.node);
  EXPECT_NE(first, second);
  EXPECT_NE(first, node_id(one));

  enable();
  ASSERT_EQ(call("cuGraphLaunch", executable, CUstream{nullptr}), CUDA_SUCCESS);
  add.run();
  flush();
  ASSERT_EQ(Collector::kernels.size(), 3u);
  ASSERT_EQ(Collector::calls.size(), 2u);
  uint32_t graph_id = 0;
  auto ask = reinterpret_cast<CUptiResult (*)(CUgraphExec, uint32_t*)>(driver->symbol("cuptiGetGraphExecId"));
  ASSERT_EQ(ask(executable, &graph_id), CUPTI_SUCCESS);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Collector::kernels[i].correlationId, Collector::calls[0].correlationId);
    EXPECT_EQ(Collector::kernels[i].graphId, graph_id);
  }
  EXPECT_EQ(Collector::kernels[0].graphNodeId, first);
  EXPECT_EQ(Collector::kernels[1].graphNodeId, second);
  EXPECT_EQ(Collector::kernels[2].graphNodeId, 0u);
  EXPECT_EQ(Collector::calls[0].cbid, unsigned{CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch});
}

TEST_F(Graphs, a_kernel_node_of_an_executable_graph_takes_new_parameters) {
  VectorAdd add(*driver, 64);
  CUgraph graph = make();
  CUgraphNode node = add_kernel(graph, add);
  CUgraphExec executable = instantiate(graph);
  CUdeviceptr other = driver->allocate(256);
  void* params[] = {&add.params.a, &add.params.b, &other, &add.params.n};
  CUDA_KERNEL_NODE_PARAMS changed = kernel(add, params);
  ASSERT_EQ(call("cuGraphExecKernelNodeSetParams_v2", executable, node, (const CUDA_KERNEL_NODE_PARAMS*)&changed),
            CUDA_SUCCESS);
  ASSERT_EQ(call("cuGraphLaunch", executable, CUstream{nullptr}), CUDA_SUCCESS);
  float last = 0;
  driver->download(&last, other + 252, 4);
  EXPECT_EQ(last, 63.5f);
  changed.blockDimX = 2000;
  EXPECT_EQ(call("cuGraphExecKernelNodeSetParams_v2", executable, node, (const CUDA_KERNEL_NODE_PARAMS*)&changed),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Graphs, attributes_of_a_kernel_node_are_kept_and_clusters_refused) {
  VectorAdd add(*driver, 64);
  CUgraph graph = make();
  CUgraphNode node = add_kernel(graph, add);
  CUlaunchAttributeValue value{}, read{};
  value.priority = -3;
  ASSERT_EQ(
      call("cuGraphKernelNodeSetAttribute", node, CU_LAUNCH_ATTRIBUTE_PRIORITY, (const CUlaunchAttributeValue*)&value),
      CUDA_SUCCESS);
  ASSERT_EQ(call("cuGraphKernelNodeGetAttribute", node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &read), CUDA_SUCCESS);
  EXPECT_EQ(read.priority, -3);
  value.clusterDim = {2, 1, 1};
  EXPECT_EQ(call("cuGraphKernelNodeSetAttribute", node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                 (const CUlaunchAttributeValue*)&value),
            CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(Graphs, what_cannot_be_a_graph_is_refused_and_leaves_no_node) {
  VectorAdd add(*driver, 64);
  CUgraph graph = make(), other = make();
  CUgraphNode foreign = add_empty(other), node = nullptr, twice[2];
  EXPECT_EQ(call("cuGraphAddEmptyNode", &node, graph, (const CUgraphNode*)&foreign, size_t{1}),
            CUDA_ERROR_INVALID_VALUE);
  twice[0] = twice[1] = add_empty(graph);
  EXPECT_EQ(call("cuGraphAddEmptyNode", &node, graph, (const CUgraphNode*)twice, size_t{2}), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(call("cuGraphAddEmptyNode", &node, (CUgraph)0x99, (const CUgraphNode*)nullptr, size_t{0}),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(call("cuGraphAddEmptyNode", &node, graph, (const CUgraphNode*)nullptr, size_t{1}),
            CUDA_ERROR_INVALID_VALUE);
  CUDA_MEMSET_NODE_PARAMS wild{0x1234, 0, 0, 4, 64, 1};
  EXPECT_EQ(call("cuGraphAddMemsetNode", &node, graph, (const CUgraphNode*)nullptr, size_t{0},
                 (const CUDA_MEMSET_NODE_PARAMS*)&wild, CUcontext{nullptr}),
            CUDA_ERROR_INVALID_VALUE);
  CUDA_KERNEL_NODE_PARAMS none{};
  EXPECT_EQ(call("cuGraphAddKernelNode_v2", &node, graph, (const CUgraphNode*)nullptr, size_t{0},
                 (const CUDA_KERNEL_NODE_PARAMS*)&none),
            CUDA_ERROR_INVALID_VALUE);
  size_t count = 0;
  EXPECT_EQ(call("cuGraphGetNodes", graph, (CUgraphNode*)nullptr, &count), CUDA_SUCCESS);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(call("cuGraphDestroy", graph), CUDA_SUCCESS);
  EXPECT_EQ(call("cuGraphDestroy", graph), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(call("cuGraphGetNodes", graph, (CUgraphNode*)nullptr, &count), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Graphs, a_fault_in_a_graph_ends_it_and_is_told_by_the_next_call) {
  CUmodule module = driver->load_module(image(kMisbehaving));
  VectorAdd add(*driver, 64);
  CUgraph graph = make();
  CUDA_KERNEL_NODE_PARAMS trap{};
  trap.func = driver->function(module, "trapping");
  trap.gridDimX = trap.gridDimY = trap.gridDimZ = trap.blockDimX = trap.blockDimY = trap.blockDimZ = 1;
  CUgraphNode node = nullptr;
  ASSERT_EQ(call("cuGraphAddKernelNode_v2", &node, graph, (const CUgraphNode*)nullptr, size_t{0},
                 (const CUDA_KERNEL_NODE_PARAMS*)&trap),
            CUDA_SUCCESS);
  add_kernel(graph, add, {node});
  CUgraphExec executable = instantiate(graph);
  EXPECT_EQ(call("cuGraphLaunch", executable, CUstream{nullptr}), CUDA_SUCCESS);
  EXPECT_EQ(call("cuCtxSynchronize"), CUDA_ERROR_LAUNCH_FAILED);
}

}  // namespace
}  // namespace kgate
