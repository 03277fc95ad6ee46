// What a stream or a graph can be asked to do, apart from who asks: a call that runs it now, a capture that keeps it as
// a node, or a launch of an executable graph.
#pragma once

#include <variant>

#include "gpu/graph_abi.h"
#include "vgpu/driver_stream.h"

namespace kgate::vgpu {

struct KernelWork {
  CUfunction function = nullptr;
  Dim3 grid, block;
  uint32_t shared = 0;
  bool cooperative = false;
  std::vector<CUlaunchAttribute> attributes;  // all that were given, the cooperative one included
  std::vector<std::byte> params;              // the packed block
};

// CU_MEMORYTYPE_UNIFIED is an end that tells by its address. One row needs no pitch, one layer no height.
using CopyWork = CUDA_MEMCPY3D;
using FillWork = CUDA_MEMSET_NODE_PARAMS;

struct HostWork {
  CUhostFn function = nullptr;
  void* user = nullptr;
};

struct EventWork {
  CUevent event = nullptr;
  bool record = false;  // else: wait
};

struct ChildWork {
  CUgraph graph = nullptr;  // owned by the node
};

using Work = std::variant<std::monostate, KernelWork, CopyWork, FillWork, HostWork, EventWork, ChildWork>;

// Where records say that work ran.
struct Place {
  uint32_t stream = 0;
  bool asynchronous = true;
  uint64_t node = 0;  // of an executable graph; 0: none
  uint32_t graph = 0;
};

CUresult run(Call& call, const Work& work, const Place& place);
CUresult run(Call& call, const KernelWork& kernel, const Place& place);
CUresult run(Call& call, const CopyWork& copy, const Place& place);
CUresult run(Call& call, const FillWork& fill, const Place& place);

// What can be told without running it.
CUresult check(Call& call, const KernelWork& kernel);
CUresult check(Call& call, const CopyWork& copy);
CUresult check(Call& call, const FillWork& fill);

// The packed block from either form of a launch's arguments, into `kernel.params`.
CUresult pack(Call& call, KernelWork& kernel, void** params, void** extra);
// Attributes that change nothing where blocks run in order are accepted; the rest is refused by name.
CUresult add_attribute(Call& call, KernelWork& kernel, const CUlaunchAttribute& attribute);

// Runs the work, or makes it a node of the graph that the stream captures.
CUresult submit(Call& call, StreamArg stream, Work work, bool asynchronous);

CUresult refuse(State& state, CUresult code, std::string_view kind, std::string_view why);
inline CUresult unsupported(Call& call, std::string_view what) {
  return refuse(call.state, CUDA_ERROR_NOT_SUPPORTED, "unsupported", what);
}

}  // namespace kgate::vgpu
