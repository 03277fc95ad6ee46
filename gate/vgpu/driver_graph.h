// Graphs, their nodes, and executable graphs. A node may only follow nodes that exist, so the order in which nodes were
// made is an order in which they may run, and an executable graph is a list.
#pragma once

#include "vgpu/driver_work.h"

namespace kgate::vgpu {

struct GraphNode {
  uint32_t context = 0;
  uint64_t id = 0;          // what cuptiGetGraphNodeId gives: the graph's id above the node's number
  CUgraph graph = nullptr;  // null: of an executable graph
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  Work work;
  std::vector<CUgraphNode> after;
  std::vector<void*> pointers;  // kernelParams into work's block, made when they are asked for
};

struct Graph {
  uint32_t context = 0, id = 0;
  std::vector<CUgraphNode> nodes;
  bool owned = false;  // by a node that it is the child of
};

// Nodes that do something, children's included.
struct ExecutableNode {
  CUgraphNode node = nullptr, original = nullptr;
  uint64_t id = 0;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  Work work;
};

struct Executable {
  uint32_t context = 0, id = 0;
  std::shared_ptr<const std::vector<ExecutableNode>> nodes;  // shared with launches under way
};

CUgraph make_graph(Call& call);
void destroy_graph(Call& call, CUgraph graph);  // and its children
// `after` are nodes of the graph. Null: they are not, or the graph does not exist.
CUgraphNode add_node(Call& call, CUgraph graph, CUgraphNodeType type, Work work, std::vector<CUgraphNode> after);
CUgraphNodeType type_of(const Work& work);
KernelWork kernel_of(const CUDA_KERNEL_NODE_PARAMS& params);  // without its parameters

}  // namespace kgate::vgpu
