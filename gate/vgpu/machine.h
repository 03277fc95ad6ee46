// The virtual GPU's machine: loads PTX, executes grids on the CPU, counts and checks. The driver exports in
// vgpu/driver_*.cpp are a thin C layer over this; they hold no execution logic, and this holds no CUDA API names.
//
// Enters: PTX text, device memory, a launch. Leaves: memory changed, Counters, perhaps a Fault. It must not know about
// contexts, streams, CUPTI or processes. Not thread safe: the driver layer holds one lock around each launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/dim3.h"
#include "support/error.h"

namespace kgate::vgpu {

// Exact counts of one launch. Deterministic for one program, launch and memory content.
struct Counters {
  uint64_t warp_instructions = 0;
  uint64_t thread_instructions = 0;     // active lanes summed over warp instructions
  uint64_t global_load_sectors = 0;     // distinct 32-byte sectors per warp request, as L1 counts them
  uint64_t global_store_sectors = 0;
  uint64_t global_requests = 0;         // warp-level global loads, stores and atomics
  uint64_t bank_conflicts = 0;          // extra shared-memory wavefronts: (max distinct 4-byte words in one of 32 banks) - 1
  uint64_t divergent_branches = 0;      // warp branches whose active lanes took both ways
  uint64_t barriers = 0;                // warp arrivals at CTA barriers
  uint64_t atomics = 0;                 // lane-level atomic operations
  Counters& operator+=(const Counters& other);
};

enum class FaultKind {
  out_of_bounds,        // address outside every allocation (or past one)
  misaligned,
  unsupported,          // an instruction form that this machine does not execute: never a pass
  barrier_misuse,       // divergent aligned barrier, mixed use, ...
  deadlock,             // no warp can make progress
  budget_exhausted,     // more instructions than the launch was granted: a hang
  trap,                 // trap, brkpt, __assertfail
  bad_launch,           // extents, shared memory or parameters that the entry cannot take
  illegal_instruction,  // what the hardware would refuse at run time
};
const char* fault_name(FaultKind kind);  // "out of bounds", ...

// The first thing that went wrong in a launch.
struct Fault {
  FaultKind kind;
  std::string message;      // one line for people: what, the address, by which thread
  std::string entry;
  uint32_t line = 0;        // 1-based line of the PTX source, 0 if unknown
  std::string statement;    // the PTX statement of that line
  uint64_t address = 0;
  Dim3 block{0, 0, 0}, thread{0, 0, 0};
};

// Device memory: real host memory with red zones and a table of live allocations, in its own address range. The device
// address *is* a host address, so that copies are memcpy; addresses are the same from process to process when the
// reserved range is free. Freed memory faults when a kernel touches it.
class DeviceMemory {
 public:
  explicit DeviceMemory(uint64_t capacity_bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;

  uint64_t allocate(uint64_t bytes, uint64_t align = 256);  // 0 when the capacity is exceeded or bytes is 0
  bool free(uint64_t address);                              // false: not the start of a live allocation
  bool contains(uint64_t address, uint64_t bytes) const;    // wholly inside one live allocation
  struct Range { uint64_t base = 0, size = 0; };
  std::optional<Range> find(uint64_t address) const;        // the live allocation that holds it
  uint64_t capacity() const;
  uint64_t used() const;
  bool take(uint64_t bytes);  // counts memory that lies nowhere yet; false: the capacity is exceeded
  void give(uint64_t bytes);

  // Addresses without memory, memory without addresses, and the one put at the other. All in whole kGranule.
  static constexpr uint64_t kGranule = uint64_t{2} << 20;
  uint64_t reserve(uint64_t wanted, uint64_t bytes, uint64_t align);  // elsewhere when `wanted` is not free; 0: no room
  bool unreserve(uint64_t address, uint64_t bytes);                   // false: not a reservation
  bool reserved(uint64_t address, uint64_t bytes) const;              // wholly inside one reservation
  static void* make_physical(uint64_t bytes);                         // null: the system has none
  static void end_physical(void* physical, uint64_t bytes);           // mappings of it stay
  bool map(uint64_t address, uint64_t bytes, void* physical);         // false: the system refuses
  void unmap(uint64_t address, uint64_t bytes);
  void expose(uint64_t address, uint64_t bytes, bool on);             // a mapping is live memory only while exposed

 private:
  struct State;
  std::unique_ptr<State> state_;
  friend class Machine;  // takes the table of live allocations for a launch
};

struct LaunchRequest {
  Dim3 grid, block;
  uint32_t dynamic_shared = 0;               // bytes
  std::span<const std::byte> params;         // the packed parameter block, laid out as the entry declares it
  uint64_t instruction_budget = 0;           // warp instructions; 0: the default of the machine
};

struct LaunchOutcome {
  Counters counters;
  std::optional<Fault> fault;
};

// One entry of a loaded program.
struct FunctionInfo {
  std::string name;
  struct Param { uint32_t offset, size, align; };
  std::vector<Param> params;
  uint32_t param_bytes = 0;
  uint32_t static_shared = 0;
  uint32_t local_bytes = 0;
  std::optional<Dim3> reqntid;
  uint32_t max_threads = 1024;
};

// A program: pre-decoded bytecode of every function of a PTX module plus its globals, which live in DeviceMemory.
class Program {
 public:
  // Parses and decodes. A syntax error or an unsatisfied .version/.target is a Failure with "line N" in `where`.
  // An instruction form that is not supported does *not* fail the load: it faults when it is reached (never a pass).
  static Result<std::unique_ptr<Program>> load(std::string_view ptx, DeviceMemory& memory);
  virtual ~Program() = default;

  virtual const std::vector<FunctionInfo>& entries() const = 0;
  virtual LaunchOutcome launch(size_t entry_index, const LaunchRequest& request) = 0;
  // A .global or .const variable by name: address and size.
  virtual std::optional<DeviceMemory::Range> global(std::string_view name) const = 0;
};

}  // namespace kgate::vgpu
