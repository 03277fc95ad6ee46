// Calls, launches and graphs of the workload, made from records. Buffers are numbered as DeviceMemory numbers them;
// whoever drops some renumbers afterwards.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "workload/assemble_code.h"
#include "workload/assemble_memory.h"
#include "workload/assemble_timeline.h"

namespace kgate::assembly {

class Scene {
 public:
  Scene(std::shared_ptr<const RecordFile> file, const Timeline& timeline, DeviceMemory& memory, Chunks& chunks,
        Workload& workload, Notes& notes);

  // Appends to Workload::calls; its index. Records that have no place in a workload are remembered as refusals.
  void add(const RawCall& call);
  // Throws Error{environment} with every refusal.
  void throw_refusals() const;

  const std::vector<uint64_t>& kernel_launches() const { return kernel_launches_; }  // by kernel, in the slice
  // Buffers that the slice reads or writes by name or by a pointer among parameters or host data.
  struct Reach {
    std::set<uint32_t> any, written;
    std::set<uint32_t> filled;  // destinations of copies, uploads and memsets
  };
  const Reach& reach() const { return reach_; }

 private:
  struct Extents {
    Dim3 grid, block, cluster;
    uint32_t shared = 0;
    bool cooperative = false, programmatic = false;
  };
  struct Rectangle {
    uint64_t address = 0, bytes = 0, rows = 1, pitch = 0;
  };

  uint32_t thread(uint32_t os_thread);
  uint32_t stream(uint32_t of_timeline);
  uint32_t event(uint64_t handle);
  uint32_t launch(uint64_t function, uint64_t time, const Extents& extents, std::string_view params);
  void relocate(LaunchSpec& spec, const WorkloadKernel& kernel);
  uint32_t graph(const Record& record);
  void node(const recording::Node& node, std::string_view params, uint64_t time, GraphNode& out);
  void copy(const Record& record, Call& call);
  void memset(const Record& record, Call& call);
  uint32_t payload(const recording::CopyRecord& copy);
  bool place(const Rectangle& rectangle, bool written, const char* what, uint32_t& buffer, uint64_t& offset);
  void refuse(std::string what) { refusals_.insert(std::move(what)); }

  std::shared_ptr<const RecordFile> file_;
  const Timeline& timeline_;
  DeviceMemory& memory_;
  Chunks& chunks_;
  Workload& workload_;
  Notes& notes_;
  Code code_;
  std::map<uint32_t, uint32_t> threads_, streams_;
  std::map<uint64_t, uint32_t> events_;
  std::map<std::string, uint32_t> launches_;  // by content
  std::map<const Record*, uint32_t> graphs_;
  std::map<std::string, uint32_t> payloads_;  // by SHA-256
  std::map<uint32_t, uint32_t> allocations_;
  std::vector<uint64_t> kernel_launches_;
  Reach reach_;
  std::set<std::string> refusals_;
};

}  // namespace kgate::assembly
