// The virtual GPU's driver state: contexts, handles, allocations, the last fault. One lock guards all of it, and a
// launch holds it for as long as the kernel runs: work runs where it is issued, in order, so every stream is idle
// between calls.
//
// Handles are numbers that never repeat, not addresses of objects: a handle that was destroyed, or invented, is found
// out instead of being followed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "gpu/cupti_abi.h"
#include "gpu/vgpu_abi.h"
#include "vgpu/driver_settings.h"
#include "vgpu/machine.h"

namespace kgate::vgpu {

using namespace gpu;  // the ABI declarations

inline constexpr int kDriverVersion = 13000;
inline constexpr uint32_t kMaxThreads = 1024;
inline constexpr uint32_t kSharedDefault = 48 << 10;   // dynamic shared bytes without opting in
inline constexpr uint32_t kSharedOptIn = 227 << 10;    // as on compute capability 9.0

// Owns objects of one type behind never repeating handles. `Handle` is CUDA's opaque pointer type.
template <typename Handle, typename T>
class Handles {
 public:
  Handle add(std::unique_ptr<T> object) {
    uintptr_t value = (next_ += 16);
    objects_.emplace(value, std::move(object));
    return reinterpret_cast<Handle>(value);
  }
  T* find(Handle handle) const {
    auto it = objects_.find(reinterpret_cast<uintptr_t>(handle));
    return it == objects_.end() ? nullptr : it->second.get();
  }
  bool erase(Handle handle) { return objects_.erase(reinterpret_cast<uintptr_t>(handle)) != 0; }
  template <typename Predicate>
  void erase_if(Predicate predicate) {
    std::erase_if(objects_, [&](const auto& item) { return predicate(*item.second); });
  }
  template <typename Visit>
  void for_each(Visit visit) {
    for (auto& [value, object] : objects_) visit(*object);
  }
  bool empty() const { return objects_.empty(); }

 private:
  static constexpr uintptr_t kFirst = uintptr_t{1} << 44;  // far from small constants and from mapped memory's low end
  uintptr_t next_ = kFirst;
  std::unordered_map<uintptr_t, std::unique_ptr<T>> objects_;
};

struct Context {
  uint32_t id = 0;
  unsigned flags = 0;
  CUresult poison = CUDA_SUCCESS;  // after a fault: what every later call returns
};

struct LoadedModule {
  uint32_t context = 0;
  std::unique_ptr<Program> program;  // null: a cubin, which is not executed
  std::vector<CUfunction> functions;  // of a program: by entry index
  int target_sm = 0;
};

struct LoadedFunction {
  uint32_t context = 0;
  CUmodule module = nullptr;
  Program* program = nullptr;          // null: static only
  size_t entry = 0;
  const FunctionInfo* info = nullptr;  // null: static only
  const char* name = nullptr;          // interned: outlives the module, as activity records point to it
  uint32_t max_dynamic_shared = 0;
  int target_sm = 0;
};

struct Capture;
struct Graph;
struct GraphNode;
struct Executable;

struct Stream {
  uint32_t context = 0, id = 0;
  unsigned flags = 0;
  int priority = 0;
  std::shared_ptr<Capture> capture;   // null: does not capture
  std::vector<CUgraphNode> tips;      // what the next node comes after
};

struct Event {
  uint32_t context = 0, id = 0;
  unsigned flags = 0;
  uint64_t recorded_ns = 0;  // CLOCK_MONOTONIC; 0: never recorded
  uint64_t sync_id = 0;      // counts records
  std::shared_ptr<Capture> capture;  // last recorded in a capture: where it was
  std::vector<CUgraphNode> tips;
};

// Memory of cuMemCreate: as long as its handle or a mapping needs it.
struct Physical {
  void* pages = nullptr;
  uint64_t bytes = 0;
  uint32_t mappings = 0;
  bool released = false;
};

struct MappedMemory {
  uint64_t bytes = 0;
  CUmemGenericAllocationHandle physical = 0;
  bool exposed = false;  // cuMemSetAccess
};

struct State {
  std::mutex mutex;
  bool initialised = false;
  Settings settings;
  std::unique_ptr<DeviceMemory> memory;  // while any context exists
  uint64_t lowest = UINT64_MAX, highest = 0;  // addresses ever handed out: what lies between is never host memory
  std::unordered_map<CUdeviceptr, uint32_t> allocations;  // start -> context id
  std::unordered_map<void*, size_t> pinned;               // cuMemAllocHost
  std::map<uintptr_t, size_t> registered;                 // cuMemHostRegister
  std::map<CUmemGenericAllocationHandle, Physical> physical;
  std::map<CUdeviceptr, MappedMemory> mapped;
  CUmemGenericAllocationHandle next_physical = 1;

  Handles<CUcontext, Context> contexts;
  Handles<CUmodule, LoadedModule> modules;
  Handles<CUfunction, LoadedFunction> functions;
  Handles<CUstream, Stream> streams;
  Handles<CUevent, Event> events;
  Handles<CUgraph, Graph> graphs;
  Handles<CUgraphNode, GraphNode> nodes;
  Handles<CUgraphExec, Executable> executables;
  std::vector<std::shared_ptr<Capture>> captures;  // under way
  CUcontext primary = nullptr;
  unsigned primary_references = 0, primary_flags = 0;
  uint32_t next_context = 1, next_stream = 13, next_event = 1, next_graph = 1;
  uint64_t next_capture = 1;

  kgate_vgpu_fault fault{};
  bool has_fault = false;
  kgate_vgpu_counters counters{};
  bool has_counters = false;

  std::unordered_set<std::string> names;  // interned, never shrinks

  State();
  ~State();
  // Creates the device memory when this is the first context. Null and a recorded fault when settings are bad.
  CUcontext create_context(unsigned flags);
  void destroy_context(CUcontext handle);  // and everything that it owns
};

State& state();                       // made on first use, never destroyed: threads may outlive main
CUcontext current_handle();           // of this thread; null: none
std::vector<CUcontext>& context_stack();  // of this thread; the last one is current
uint64_t monotonic_ns();

// What Driver::last_fault reads. `code` is the CUresult that the caller will see.
void record_fault(State& state, CUresult code, const Fault& fault);
void record_fault(State& state, CUresult code, std::string_view kind, std::string_view message, uint32_t line = 0);
CUresult result_of(const Fault& fault);

}  // namespace kgate::vgpu
