// The CUDA driver behind one interface. `Driver::open` loads libcuda.so.1 or libkgate_vgpu.so by path; nothing above
// this folder knows which one it talks to, except through `is_virtual()`.
//
// Enters: a path. Leaves: typed handles, and GpuError for every CUresult that is not success. It must not know about
// workloads, traces or candidates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/cuda_abi.h"
#include "gpu/cupti_abi.h"
#include "support/dim3.h"
#include "support/error.h"

namespace kgate::gpu {

// A driver call that did not succeed. `name` is CUDA's own ("CUDA_ERROR_ILLEGAL_ADDRESS"); `detail` is the virtual
// GPU's description of the fault (address, thread, PTX line) or the JIT log, empty when there is none.
struct GpuError : std::exception {
  int code = 0;             // CUresult
  std::string call;         // "cuLaunchKernel"
  std::string name;
  std::string detail;
  std::string text;         // "cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS (700): detail"
  GpuError(int code, std::string call, std::string name, std::string detail);
  const char* what() const noexcept override { return text.c_str(); }
  bool sticky() const;      // the context is lost: 214, 700, 702, 710, 714-719, ...
};

enum class DeviceKind { real, virtual_gpu };

struct DeviceProperties {
  DeviceKind kind = DeviceKind::real;
  int ordinal = 0;
  std::string name;          // "NVIDIA H200", "kgate virtual GPU"
  std::string uuid;          // hex; empty when unknown
  int cc_major = 0, cc_minor = 0;
  int sm_count = 0;
  int driver_version = 0;    // cuDriverGetVersion: 13000
  uint64_t total_memory = 0;
  uint64_t free_memory = 0;
  int max_shared_per_block_optin = 0;
  int max_threads_per_block = 0;
  std::string library;       // the path that was loaded: uprobes attach to it
  int arch() const { return cc_major * 10 + cc_minor; }
};

// Everything optional about a launch has CUDA's default.
struct Launch {
  CUfunction function = nullptr;
  Dim3 grid, block;
  Dim3 cluster{0, 0, 0};     // 0: no cluster attribute
  uint32_t shared = 0;       // dynamic bytes; the opt-in attribute is set by Function::prepare
  bool cooperative = false;
  bool programmatic = false; // programmatic dependent launch
  CUstream stream = nullptr;
};

// `rows` rows of `bytes`; the pitches count from row to row and say nothing of a single row.
struct Rectangle {
  uint64_t bytes = 0, rows = 1;
  uint64_t to_pitch = 0, from_pitch = 0;
  CUdeviceptr to = 0, from = 0;                        // device side
  void* to_host = nullptr;                             // instead of `to`
  const void* from_host = nullptr;                     // instead of `from`
};

// `rows` rows of `count` elements of `unit` bytes (1, 2 or 4).
struct Fill {
  CUdeviceptr to = 0;
  uint32_t value = 0, unit = 1;
  uint64_t count = 0, rows = 1, pitch = 0;
};

// One loaded driver library with one primary context on one device. One object a process.
class Driver {
 public:
  // `library`: a path, or "libcuda.so.1" to search. The failure says what was tried and how to mend it. Does not call
  // cuInit. The library stays loaded until the process ends (the real one has threads of its own).
  static Result<std::unique_ptr<Driver>> open(const std::string& library);
  ~Driver();

  // cuInit, device `ordinal`, primary context made current on this thread. Throws GpuError, or Error{environment} when
  // cuInit fails or there is no such device.
  void initialise(int ordinal, bool blocking_sync = false);
  void make_current();  // other threads call this once
  const DeviceProperties& properties() const;   // valid after initialise
  uint64_t free_memory();
  bool is_virtual() const;
  // cuGetProcAddress-free symbol address inside the library (for uprobes' canary and tests); nullptr if absent.
  void* symbol(const char* name) const;

  CUdeviceptr allocate(size_t bytes);
  // At exactly `address` through cuMemAddressReserve/cuMemCreate/cuMemMap, in whole granules (2 MiB); nullopt when the
  // driver grants another address, and when `address` is no multiple of the granule.
  std::optional<CUdeviceptr> allocate_at(CUdeviceptr address, size_t bytes);
  void free(CUdeviceptr p);
  // A range of addresses without memory, at exactly `address`; false when the driver grants another.
  bool reserve_at(CUdeviceptr address, size_t bytes);
  // The same, at `wanted` or where the driver likes; the caller compares. Throws GpuError when it grants none.
  CUdeviceptr reserve(CUdeviceptr wanted, size_t bytes);
  void unreserve(CUdeviceptr address, size_t bytes);  // what one of the two granted, whole and unmapped
  // Memory behind whole granules of reserved addresses. It stays until it is unmapped or the process ends.
  void map(CUdeviceptr address, size_t bytes);
  void unmap(CUdeviceptr address, size_t bytes);  // whole mappings
  CUdeviceptr allocate_async(size_t bytes, CUstream stream);  // throws GpuError "not supported" where there is no pool
  void free_async(CUdeviceptr p, CUstream stream);
  void* allocate_host(size_t bytes);                     // page-locked
  void free_host(void* p);
  void upload(CUdeviceptr to, const void* from, size_t bytes);           // synchronous
  void download(void* to, CUdeviceptr from, size_t bytes);               // synchronous
  void copy_async(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
  void fill(CUdeviceptr to, uint8_t value, size_t bytes, CUstream stream);  // cuMemsetD8Async
  void fill(const Fill& fill, CUstream stream);
  void upload_async(CUdeviceptr to, const void* from, size_t bytes, CUstream stream);
  void download_async(void* to, CUdeviceptr from, size_t bytes, CUstream stream);
  void copy(const Rectangle& rectangle, std::optional<CUstream> stream);  // no stream: the call that waits

  // PTX text or a cubin image. GpuError.detail holds the JIT log.
  CUmodule load_module(std::span<const std::byte> image);
  void unload_module(CUmodule module);
  CUfunction function(CUmodule module, const std::string& name);
  int attribute(CUfunction function, CUfunction_attribute attribute);
  void allow_dynamic_shared(CUfunction function, uint32_t bytes);
  int occupancy_blocks_per_sm(CUfunction function, int block_threads, size_t shared);
  // {offset, size} of each parameter as the driver sees it (cuFuncGetParamInfo); nullopt where the driver is too old.
  std::optional<std::vector<std::pair<size_t, size_t>>> parameters(CUfunction function);

  CUstream create_stream();                     // non-blocking
  CUstream create_stream(bool non_blocking, int priority);
  void host_function(CUstream stream);          // one that does nothing
  void destroy_stream(CUstream stream);
  CUevent create_event();                       // timing disabled
  void record_event(CUevent event, CUstream stream);
  void wait_event(CUstream stream, CUevent event);
  void synchronize(CUstream stream);            // cuStreamSynchronize
  void synchronize_event(CUevent event);
  void synchronize_context();                   // cuCtxSynchronize

  // Hot path: one cuLaunchKernel (cuLaunchKernelEx when a cluster is asked for) with the packed parameter block passed
  // by CU_LAUNCH_PARAM_BUFFER_POINTER. Throws GpuError.
  void launch(const Launch& launch, std::span<const std::byte> params);

  void launch(CUgraphExec graph, CUstream stream);  // made by gpu/graph.h

  // Virtual GPU only: exact counts of the last launch of this process (launches run when they are issued there);
  // nullopt on a real one and before the first launch. `launches` counts all of this process, so that a caller can see
  // that the counts belong to its own.
  struct VirtualCounters {
    uint64_t launches, warp_instructions, thread_instructions, global_load_sectors, global_store_sectors,
        global_requests, bank_conflicts, divergent_branches, barriers, atomics;
  };
  std::optional<VirtualCounters> last_launch_counters();

  // Virtual GPU only: what went wrong in the last launch or module load that failed; nullopt on a real one.
  struct VirtualFault {
    int code = 0;              // the CUresult that it became
    std::string kind;          // "out of bounds", "unsupported", ...
    std::string message;       // one line for people
    std::string entry;
    uint32_t line = 0;         // 1-based line of the PTX source; 0: unknown
    std::string statement;     // the PTX statement of that line
    uint64_t address = 0;      // 0: none
    Dim3 block{0, 0, 0}, thread{0, 0, 0};
  };
  std::optional<VirtualFault> last_fault();

  struct State;
  State& state() { return *state_; }            // for the other files of gate/gpu

 private:
  explicit Driver(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Where the virtual GPU's library lies: $KGATE_VGPU_LIB, else ../lib/libkgate_vgpu.so beside the running program. The
// file need not exist.
std::string virtual_library_path();

// --device auto|gpu[:N]|virtual resolved without loading anything heavy: `auto` is gpu when libcuda.so.1 loads, cuInit
// succeeds and a device exists, tried in a child process so that the caller never holds a CUDA context.
// $KGATE_CUDA_LIB names another library than libcuda.so.1.
struct DeviceChoice {
  DeviceKind kind;
  int ordinal = 0;
  std::string library;
  std::string why;  // "no libcuda.so.1 on this machine", ...
  DeviceProperties properties;  // what can be read without a context: free_memory is total_memory
};
Result<DeviceChoice> choose_device(std::string_view option);

}  // namespace kgate::gpu
