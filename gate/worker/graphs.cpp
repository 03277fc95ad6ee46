#include "worker/graphs.h"

#include "gpu/graph.h"

namespace kgate::worker {

namespace {

class Builder {
 public:
  Builder(gpu::Driver& driver, const PreparedArm& arm, uint32_t arm_index, const DeviceBuffers& buffers,
          const std::vector<gpu::CUevent>& events)
      : graph_(driver), arm_(arm), arm_index_(arm_index), buffers_(buffers), events_(events) {}

  gpu::CUgraphExec build(const WorkloadGraph& workload_graph) {
    for (const GraphNode& node : workload_graph.nodes) {
      std::vector<gpu::CUgraphNode> after;
      for (uint32_t before : node.after) after.push_back(last_[before]);
      last_.push_back(add(node, after));
    }
    return graph_.instantiate();
  }

  // What each kernel became; to be asked once the graph has been instantiated.
  void describe(uint32_t graph, const CuptiCollector& collector, RecordWriter& writer) const {
    for (const Kernel& kernel : kernels_) {
      wire::GraphPlanRecord record{};
      record.head = wire::head<wire::GraphPlanRecord>(wire::Kind::graph_plan, wire::kNoRound);
      record.node = collector.node_id(kernel.node);
      record.arm = arm_index_;
      record.graph = graph;
      record.launch = kernel.launch;
      record.kernel = kernel.kernel;
      record.item = kernel.item;
      record.replaced = kernel.replaced;
      if (record.node == 0) throw WorkerError("unknown node", "CUPTI did not name a node of an executable graph");
      writer.append(record);
    }
  }

 private:
  struct Kernel {
    gpu::CUgraphNode node;
    uint32_t launch, kernel;
    uint16_t item;
    bool replaced;
  };

  gpu::CUgraphNode add(const GraphNode& node, gpu::GraphNodes after) {
    auto at = [&](uint32_t buffer, uint64_t offset) { return buffers_.address(buffer, arm_index_) + offset; };
    switch (node.kind) {
      case GraphNode::Kind::kernel:
        return add_launch(node.launch, after);
      case GraphNode::Kind::copy: {
        gpu::Rectangle copy;
        copy.bytes = node.bytes, copy.rows = node.pitch.rows;
        copy.to_pitch = node.pitch.dst, copy.from_pitch = node.pitch.src;
        copy.to = at(node.dst, node.dst_offset), copy.from = at(node.src, node.src_offset);
        return graph_.add_copy(copy, after);
      }
      case GraphNode::Kind::memset:
        return graph_.add_memset({at(node.dst, node.dst_offset), node.value, node.unit, node.bytes / node.unit,
                                  node.pitch.rows, node.pitch.dst},
                                 after);
      case GraphNode::Kind::event_record:
        return graph_.add_event_record(events_[node.event], after);
      case GraphNode::Kind::event_wait:
        return graph_.add_event_wait(events_[node.event], after);
      case GraphNode::Kind::host_function:
        return graph_.add_host_function(after);
      case GraphNode::Kind::empty:
        return graph_.add_empty(after);
    }
    return nullptr;
  }

  // The items of a launch follow each other; a launch that goes away leaves its place in the order.
  gpu::CUgraphNode add_launch(uint32_t launch, gpu::GraphNodes after) {
    const PreparedCall& call = arm_.launches[launch];
    if (call.items.empty()) return graph_.add_empty(after);
    gpu::CUgraphNode last = nullptr;
    uint16_t launches = 0;
    for (const PreparedStep& step : call.items) {
      gpu::GraphNodes before = last ? gpu::GraphNodes(&last, 1) : after;
      gpu::CUgraphNode made = nullptr;
      if (step.legacy || step.kind == ArmItem::Kind::sync || step.kind == ArmItem::Kind::allocate)
        throw WorkerError("internal", "an item that no graph can hold");
      if (step.kind == ArmItem::Kind::launch) {
        made = graph_.add_kernel(step.launch, step.params, before);
        kernels_.push_back({made, launch, step.kernel, launches++, call.replaced});
      } else {
        made = graph_.add_memset({step.address, step.value, 1, step.bytes, 1, 0}, before);
      }
      last = made;
    }
    return last;
  }

  gpu::Graph graph_;
  const PreparedArm& arm_;
  const uint32_t arm_index_;
  const DeviceBuffers& buffers_;
  const std::vector<gpu::CUevent>& events_;
  std::vector<gpu::CUgraphNode> last_;  // by workload node: what comes after it comes after this
  std::vector<Kernel> kernels_;
};

}  // namespace

std::vector<std::vector<gpu::CUgraphExec>> build_graphs(gpu::Driver& driver, const Workload& workload,
                                                        const std::vector<PreparedArm>& arms,
                                                        const DeviceBuffers& buffers,
                                                        const std::vector<gpu::CUevent>& events,
                                                        const CuptiCollector* collector, RecordWriter& writer,
                                                        Position& position) {
  std::vector<std::vector<gpu::CUgraphExec>> all;
  for (uint32_t a = 0; a < arms.size(); ++a) {
    position = {.stage = "bind", .arm = a};
    auto& own = all.emplace_back();
    for (uint32_t g = 0; g < workload.graphs.size(); ++g) {
      Builder builder(driver, arms[a], a, buffers, events);
      own.push_back(builder.build(workload.graphs[g]));
      if (collector) builder.describe(g, *collector, writer);
    }
  }
  return all;
}

}  // namespace kgate::worker
