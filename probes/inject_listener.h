// What CUPTI tells while the application runs: contexts, modules with their machine code, graphs with their nodes. The
// callbacks run in the application's threads, inside its calls, so they copy what will be gone afterwards and leave the
// rest to the draining thread. No lock is held over a call to the driver or to CUPTI.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "probes/inject_driver.h"
#include "trace/collector.h"

namespace kgate::inject {

class Listener {
 public:
  // `stem`: images become STEM-N.cubin. `driver` outlives the listener. `first_context` is called once, when the driver
  // has made its first context.
  Listener(const Driver& driver, std::string stem, void (*first_context)())
      : driver_(driver), stem_(std::move(stem)), first_context_(first_context) {}

  ResourceListener subscription();
  void set_collector(CuptiCollector* collector);

  // From the draining thread: records of what came since the last call; images are written to their files.
  void drain(RecordWriter& writer);
  std::vector<gpu::CUcontext> contexts();

 private:
  static constexpr uint64_t kMaxImageBytes = 256 << 20;  // of one process, all images together

  struct Module {
    wire::ModuleRecord record{};
    std::string image;  // empty: no room for it
  };
  static void on_callback(void* self, int domain, uint32_t cbid, const void* data);
  void on_module(const gpu::CUpti_ModuleResourceData& module);
  void on_node(const gpu::CUpti_GraphData& graph);
  void on_graph(const gpu::CUpti_GraphData& graph);
  void count_nodes(gpu::CUgraph graph, int depth, wire::GraphRecord& record) const;
  uint32_t keep(const std::string& image);

  const Driver& driver_;
  const std::string stem_;
  const pid_t process_ = getpid();
  void (*const first_context_)();
  std::once_flag context_made_;
  std::mutex mutex_;  // of what follows
  CuptiCollector* collector_ = nullptr;
  std::set<gpu::CUcontext> contexts_;
  std::vector<Module> modules_;
  std::vector<wire::GraphRecord> graphs_;
  std::vector<wire::GraphNodeRecord> nodes_;
  uint64_t waiting_bytes_ = 0, kept_bytes_ = 0;

  struct Key {
    uint64_t a, b, size;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const { return key.a ^ key.size; }
  };
  static Key key_of(const std::string& image);
  std::unordered_map<Key, uint32_t, KeyHash> images_;  // of the draining thread
};

}  // namespace kgate::inject
