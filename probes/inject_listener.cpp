// See the header.
#include "probes/inject_listener.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

namespace kgate::inject {

using namespace gpu;

namespace {

constexpr uint32_t kNoImage = 0xffffffff;
constexpr int kMaxDepth = 16;  // of graphs in graphs

uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

bool write_image(const std::string& path, const std::string& image) {
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return false;
  for (size_t at = 0; at < image.size();) {
    ssize_t written = ::write(file.get(), image.data() + at, image.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      ::unlink(path.c_str());
      return false;
    }
    at += static_cast<size_t>(written);
  }
  return true;
}

}  // namespace

ResourceListener Listener::subscription() {
  return {on_callback,
          this,
          {CUPTI_CBID_RESOURCE_CONTEXT_CREATED, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING,
           CUPTI_CBID_RESOURCE_MODULE_LOADED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
           CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED}};
}

void Listener::set_collector(CuptiCollector* collector) {
  std::lock_guard lock(mutex_);
  collector_ = collector;
}

// A callback may lead to another one, through the calls that it makes itself.
void Listener::on_callback(void* self, int domain, uint32_t cbid, const void* data) {
  thread_local bool inside = false;
  auto& listener = *static_cast<Listener*>(self);
  if (inside || data == nullptr || domain != static_cast<int>(CUPTI_CB_DOMAIN_RESOURCE)) return;
  if (getpid() != listener.process_) return;
  inside = true;
  const auto& resource = *static_cast<const CUpti_ResourceData*>(data);
  try {
    if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) {
      std::call_once(listener.context_made_, listener.first_context_);
      std::lock_guard lock(listener.mutex_);
      listener.contexts_.insert(resource.context);
    } else if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING) {
      std::lock_guard lock(listener.mutex_);
      listener.contexts_.erase(resource.context);
    } else if (resource.resourceDescriptor != nullptr && cbid == CUPTI_CBID_RESOURCE_MODULE_LOADED) {
      listener.on_module(*static_cast<const CUpti_ModuleResourceData*>(resource.resourceDescriptor));
    } else if (resource.resourceDescriptor != nullptr && cbid == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) {
      listener.on_node(*static_cast<const CUpti_GraphData*>(resource.resourceDescriptor));
    } else if (resource.resourceDescriptor != nullptr && cbid == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED) {
      listener.on_graph(*static_cast<const CUpti_GraphData*>(resource.resourceDescriptor));
    }
  } catch (...) {  // no memory: the application goes on, and what is missing shows in the trace
  }
  inside = false;
}

void Listener::on_module(const CUpti_ModuleResourceData& module) {
  Module loaded;
  loaded.record.head = wire::head<wire::ModuleRecord>(wire::Kind::module, wire::kNoRound);
  loaded.record.time = monotonic_ns();
  loaded.record.bytes = module.cubinSize;
  loaded.record.module = module.moduleId;
  loaded.record.image = kNoImage;
  bool room = false;
  {
    std::lock_guard lock(mutex_);
    room = module.pCubin != nullptr && module.cubinSize <= kMaxImageBytes - waiting_bytes_ - kept_bytes_;
    if (room) waiting_bytes_ += module.cubinSize;
  }
  if (room) loaded.image.assign(module.pCubin, module.cubinSize);
  std::lock_guard lock(mutex_);
  modules_.push_back(std::move(loaded));
}

void Listener::on_node(const CUpti_GraphData& graph) {
  wire::GraphNodeRecord record{};
  record.head = wire::head<wire::GraphNodeRecord>(wire::Kind::graph_node, wire::kNoRound);
  record.time = monotonic_ns();
  record.thread = static_cast<uint32_t>(gettid());
  record.kernel = graph.nodeType == CU_GRAPH_NODE_TYPE_KERNEL;
  std::lock_guard lock(mutex_);
  nodes_.push_back(record);
}

void Listener::count_nodes(CUgraph graph, int depth, wire::GraphRecord& record) const {
  size_t count = 0;
  if (depth == kMaxDepth || driver_.cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS) {
    record.open = 1;
    return;
  }
  std::vector<CUgraphNode> nodes(count);
  if (count != 0 && driver_.cuGraphGetNodes(graph, nodes.data(), &count) != CUDA_SUCCESS) count = 0, record.open = 1;
  nodes.resize(std::min(count, nodes.size()));
  for (CUgraphNode node : nodes) {
    CUgraphNodeType type{};
    if (driver_.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS) {
      record.open = 1;
      continue;
    }
    CUgraph child = nullptr;
    switch (type) {
      case CU_GRAPH_NODE_TYPE_KERNEL:
        ++record.kernels;
        break;
      case CU_GRAPH_NODE_TYPE_MEMCPY:
        ++record.copies;
        break;
      case CU_GRAPH_NODE_TYPE_MEMSET:
        ++record.memsets;
        break;
      case CU_GRAPH_NODE_TYPE_GRAPH:
        if (driver_.cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS)
          count_nodes(child, depth + 1, record);
        else
          record.open = 1;
        break;
      case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        record.open = 1;
        break;
      default:
        ++record.others;
    }
  }
}

void Listener::on_graph(const CUpti_GraphData& graph) {
  CuptiCollector* collector = nullptr;
  {
    std::lock_guard lock(mutex_);
    collector = collector_;
  }
  if (collector == nullptr) return;
  wire::GraphRecord record{};
  record.head = wire::head<wire::GraphRecord>(wire::Kind::graph, wire::kNoRound);
  record.time = monotonic_ns();
  auto id = collector->graph_id(graph.graphExec);
  if (!id) return;
  record.graph = *id;
  if (driver_.cuGraphGetNodes && driver_.cuGraphNodeGetType && driver_.cuGraphChildGraphNodeGetGraph && graph.graph)
    count_nodes(graph.graph, 0, record);
  else
    record.open = 1;
  collector->hide(static_cast<uint32_t>(gettid()), record.time, monotonic_ns());
  std::lock_guard lock(mutex_);
  graphs_.push_back(record);
}

std::vector<CUcontext> Listener::contexts() {
  std::lock_guard lock(mutex_);
  return {contexts_.begin(), contexts_.end()};
}

// Two sums with different multipliers, word by word: the same image loaded again is met often (one load a device, or
// each time a module is reloaded), and a false match would take a coincidence in 128 bits and the size.
Listener::Key Listener::key_of(const std::string& image) {
  Key key{0xcbf29ce484222325, 0x9e3779b97f4a7c15, image.size()};
  for (size_t at = 0; at < image.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, image.data() + at, std::min<size_t>(8, image.size() - at));
    key.a = (key.a ^ word) * 0x100000001b3;
    key.a ^= key.a >> 29;
    key.b = (key.b + word) * 0xd6e8feb86659fd93;
    key.b ^= key.b >> 32;
  }
  return key;
}

uint32_t Listener::keep(const std::string& image) {
  if (image.empty()) return kNoImage;
  Key key = key_of(image);
  if (auto at = images_.find(key); at != images_.end()) return at->second;
  auto number = static_cast<uint32_t>(images_.size());
  if (!write_image(stem_ + "-" + std::to_string(number) + ".cubin", image)) return kNoImage;
  images_.emplace(key, number);
  std::lock_guard lock(mutex_);
  kept_bytes_ += image.size();
  return number;
}

void Listener::drain(RecordWriter& writer) {
  std::vector<Module> modules;
  std::vector<wire::GraphRecord> graphs;
  std::vector<wire::GraphNodeRecord> nodes;
  {
    std::lock_guard lock(mutex_);
    modules.swap(modules_);
    graphs.swap(graphs_);
    nodes.swap(nodes_);
  }
  for (Module& module : modules) {
    module.record.image = keep(module.image);
    {
      std::lock_guard lock(mutex_);
      waiting_bytes_ -= module.image.size();
    }
    writer.append(module.record);
  }
  for (const wire::GraphRecord& graph : graphs) writer.append(graph);
  RecordWriter::Stage stage(nodes.empty() ? 64 : nodes.size() * sizeof(wire::GraphNodeRecord));
  for (const wire::GraphNodeRecord& node : nodes) stage.append(node);
  writer.merge(stage);
}

}  // namespace kgate::inject
