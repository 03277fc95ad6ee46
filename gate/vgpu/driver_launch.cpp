// Exports: launches. A launch runs here and now; a fault poisons the context and is reported by the *next* call, as on
// a GPU, where the launch itself only says whether its configuration is valid.
#include <cstring>

#include "vgpu/driver_stream.h"

namespace kgate::vgpu {

namespace {

struct LaunchArgs {
  CUfunction function;
  Dim3 grid, block;
  uint32_t shared;
  StreamArg stream;
  void** params;
  void** extra;
  bool cooperative = false;
};

CUresult refuse(State& s, CUresult code, std::string_view kind, std::string_view why) {
  record_fault(s, code, kind, why);
  return code;
}

// Null when the configuration is valid.
const char* bad_configuration(const LoadedFunction& f, const LaunchArgs& a) {
  const FunctionInfo& info = *f.info;
  if (a.grid.x == 0 || a.grid.y == 0 || a.grid.z == 0) return "a grid extent is 0";
  if (a.grid.x > 0x7fffffff || a.grid.y > 65535 || a.grid.z > 65535) return "the grid is larger than the device takes";
  if (a.block.x == 0 || a.block.y == 0 || a.block.z == 0) return "a block extent is 0";
  if (a.block.x > 1024 || a.block.y > 1024 || a.block.z > 64 || a.block.count() > kMaxThreads) {
    return "the block is larger than the device takes";
  }
  if (a.block.count() > info.max_threads) return "the block has more threads than the entry's .maxntid or .reqntid";
  if (info.reqntid && !(*info.reqntid == a.block)) return "the block is not the entry's .reqntid";
  if (a.shared > f.max_dynamic_shared) {
    return "more dynamic shared memory than allowed (set MAX_DYNAMIC_SHARED_SIZE_BYTES)";
  }
  return nullptr;
}

// The packed parameter block from either form of arguments; an error text, or null.
const char* pack(const FunctionInfo& info, const LaunchArgs& a, std::vector<std::byte>& block) {
  if (a.params != nullptr && a.extra != nullptr) return "both kernelParams and extra are given";
  block.resize(info.param_bytes);
  if (info.param_bytes == 0) return nullptr;
  if (a.params != nullptr) {
    for (size_t i = 0; i < info.params.size(); ++i) {
      if (a.params[i] == nullptr) return "a kernel parameter is a null pointer";
      std::memcpy(block.data() + info.params[i].offset, a.params[i], info.params[i].size);
    }
    return nullptr;
  }
  if (a.extra == nullptr) return "the entry has parameters, but none are given";
  const void* buffer = nullptr;
  size_t size = 0;
  for (void** item = a.extra; *item != kLaunchParamEnd; item += 2) {
    if (*item == kLaunchParamBufferPointer) {
      buffer = item[1];
    } else if (*item == kLaunchParamBufferSize) {
      if (item[1] == nullptr) return "the size of the parameter buffer is a null pointer";
      std::memcpy(&size, item[1], sizeof size);
    } else {
      return "an unknown key in extra";
    }
  }
  if (buffer == nullptr || size < info.param_bytes) return "the parameter buffer is too small";
  std::memcpy(block.data(), buffer, info.param_bytes);
  return nullptr;
}

void record_kernel(Call& call, const LoadedFunction& f, const LaunchArgs& a, uint32_t stream, uint64_t start) {
  CUpti_ActivityKernel10 r{};
  r.end = cupti::now();
  r.kind = cupti::kernel_kind();
  r.start = start;
  r.completed = r.end;
  r.contextId = call.context.id;
  r.streamId = stream;
  r.gridX = static_cast<int32_t>(a.grid.x);
  r.gridY = static_cast<int32_t>(a.grid.y);
  r.gridZ = static_cast<int32_t>(a.grid.z);
  r.blockX = static_cast<int32_t>(a.block.x);
  r.blockY = static_cast<int32_t>(a.block.y);
  r.blockZ = static_cast<int32_t>(a.block.z);
  r.staticSharedMemory = static_cast<int32_t>(f.info->static_shared);
  r.dynamicSharedMemory = static_cast<int32_t>(a.shared);
  r.localMemoryPerThread = f.info->local_bytes;
  r.correlationId = call.correlation;
  r.gridId = static_cast<int64_t>(call.state.counters.launches);
  r.name = f.name;
  r.launchType =
      a.cooperative ? CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE : CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR;
  call.record.value = r;
}

void keep_counters(State& s, const Counters& c) {
  s.counters = {s.counters.launches + 1,
                c.warp_instructions,
                c.thread_instructions,
                c.global_load_sectors,
                c.global_store_sectors,
                c.global_requests,
                c.bank_conflicts,
                c.divergent_branches,
                c.barriers,
                c.atomics};
  s.has_counters = true;
}

CUresult launch(Call& call, const LaunchArgs& a) {
  State& s = call.state;
  LoadedFunction* f = s.functions.find(a.function);
  if (f == nullptr || f->context != call.context.id) return CUDA_ERROR_INVALID_HANDLE;
  uint32_t stream = 0;
  if (CUresult code = stream_id(call, a.stream, stream); code != CUDA_SUCCESS) return code;
  if (f->info == nullptr) {
    return refuse(s, CUDA_ERROR_NOT_SUPPORTED, "unsupported", "static only: SASS is not executed");
  }
  if (const char* why = bad_configuration(*f, a)) return refuse(s, CUDA_ERROR_INVALID_VALUE, "bad launch", why);
  if (a.cooperative && a.grid.count() != 1) {
    return refuse(s, CUDA_ERROR_NOT_SUPPORTED, "unsupported",
                  "a cooperative launch of several blocks: blocks run one after another here");
  }
  std::vector<std::byte> params;
  if (const char* why = pack(*f->info, a, params)) return refuse(s, CUDA_ERROR_INVALID_VALUE, "bad launch", why);

  bool recorded = cupti::kernel_kind() != CUPTI_ACTIVITY_KIND_INVALID;
  uint64_t start = recorded ? cupti::now() : 0;
  LaunchRequest request{a.grid, a.block, a.shared, params, s.settings.budget};
  LaunchOutcome outcome = f->program->launch(f->entry, request);
  if (outcome.fault) {
    CUresult code = result_of(*outcome.fault);
    record_fault(s, code, *outcome.fault);
    if (outcome.fault->kind == FaultKind::bad_launch) return code;
    call.context.poison = code;
  }
  keep_counters(s, outcome.counters);
  if (recorded) record_kernel(call, *f, a, stream, start);
  return CUDA_SUCCESS;
}

// Attributes that change nothing where blocks run in order are accepted; the rest is refused by name.
CUresult read_attributes(Call& call, const CUlaunchConfig& config, LaunchArgs& args) {
  if (config.numAttrs != 0 && config.attrs == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        args.cooperative = attribute.value.cooperative != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
        const CUdim3& cluster = attribute.value.clusterDim;
        if (cluster.x == 1 && cluster.y == 1 && cluster.z == 1) break;
        return refuse(call.state, CUDA_ERROR_NOT_SUPPORTED, "unsupported", "a launch in clusters of several blocks");
      }
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
      case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        return refuse(call.state, CUDA_ERROR_NOT_SUPPORTED, "unsupported",
                      "launch attribute " + std::to_string(static_cast<int>(attribute.id)));
      default:
        if (attribute.id < 0 || attribute.id > CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING) {
          return CUDA_ERROR_INVALID_VALUE;
        }
    }
  }
  return CUDA_SUCCESS;
}

CUresult launch_ex(const cupti::Api& api, const CUlaunchConfig* config, CUfunction function, void** params,
                   void** extra, bool per_thread) {
  return context_call(api, [&](Call& call) {
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    LaunchArgs args{function,
                    {config->gridDimX, config->gridDimY, config->gridDimZ},
                    {config->blockDimX, config->blockDimY, config->blockDimZ},
                    config->sharedMemBytes,
                    {config->hStream, per_thread},
                    params,
                    extra};
    CUresult code = read_attributes(call, *config, args);
    return code == CUDA_SUCCESS ? launch(call, args) : code;
  });
}

}  // namespace

KGATE_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                     CUstream stream, void** params, void** extra) {
  return context_call(
      KGATE_API(cuLaunchKernel, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, params,
                extra),
      [&](Call& call) {
        return launch(
            call,
            {function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, {stream, false}, params, extra});
      });
}

KGATE_EXPORT CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                          CUstream stream, void** params, void** extra) {
  return context_call(
      KGATE_API(cuLaunchKernel_ptsz, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                params, extra),
      [&](Call& call) {
        return launch(
            call,
            {function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, {stream, true}, params, extra});
      });
}

KGATE_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** params, void** extra) {
  return launch_ex(KGATE_API(cuLaunchKernelEx, config, function, params, extra), config, function, params, extra,
                   false);
}

KGATE_EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function, void** params,
                                            void** extra) {
  return launch_ex(KGATE_API(cuLaunchKernelEx_ptsz, config, function, params, extra), config, function, params, extra,
                   true);
}

KGATE_EXPORT CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                                unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                                CUstream stream, void** params) {
  return context_call(KGATE_API(cuLaunchCooperativeKernel, function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                shared, stream, params),
                      [&](Call& call) {
                        return launch(call, {function,
                                             {grid_x, grid_y, grid_z},
                                             {block_x, block_y, block_z},
                                             shared,
                                             {stream, false},
                                             params,
                                             nullptr,
                                             true});
                      });
}

KGATE_EXPORT CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y,
                                                     unsigned grid_z, unsigned block_x, unsigned block_y,
                                                     unsigned block_z, unsigned shared, CUstream stream,
                                                     void** params) {
  return context_call(KGATE_API(cuLaunchCooperativeKernel_ptsz, function, grid_x, grid_y, grid_z, block_x, block_y,
                                block_z, shared, stream, params),
                      [&](Call& call) {
                        return launch(call, {function,
                                             {grid_x, grid_y, grid_z},
                                             {block_x, block_y, block_z},
                                             shared,
                                             {stream, true},
                                             params,
                                             nullptr,
                                             true});
                      });
}

}  // namespace kgate::vgpu
