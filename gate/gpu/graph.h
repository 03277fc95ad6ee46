// A CUDA graph in the making: nodes are added in order, each after some earlier ones, and the whole becomes executable
// once. Node handles stay valid as long as the Graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/driver.h"
#include "gpu/graph_abi.h"

namespace kgate::gpu {

using GraphNodes = std::span<const CUgraphNode>;

class Graph {
 public:
  explicit Graph(Driver& driver);  // throws GpuError "not supported" where the driver has no graphs
  Graph(const Graph&) = delete;
  ~Graph();

  CUgraphNode add_kernel(const Launch& launch, std::span<const std::byte> params, GraphNodes after);
  // Device memory, `rows` rows of `bytes`.
  CUgraphNode add_copy(const Rectangle& rectangle, GraphNodes after);
  CUgraphNode add_memset(const Fill& fill, GraphNodes after);
  CUgraphNode add_event_record(CUevent event, GraphNodes after);
  CUgraphNode add_event_wait(CUevent event, GraphNodes after);
  CUgraphNode add_host_function(GraphNodes after);  // does nothing
  CUgraphNode add_empty(GraphNodes after);

  // The executable graph lives as long as the process: it may still run when the Graph goes.
  CUgraphExec instantiate();

 private:
  Driver& driver_;
  CUgraph graph_ = nullptr;
};

}  // namespace kgate::gpu
