// Exports: launches. A launch runs here and now; a fault poisons the context and is reported by the *next* call, as on
// a GPU, where the launch itself only says whether its configuration is valid.
#include <cstring>

#include "vgpu/driver_work.h"

namespace kgate::vgpu {

namespace {

// Null when the configuration is valid.
const char* bad_configuration(const LoadedFunction& f, const KernelWork& k) {
  const FunctionInfo& info = *f.info;
  if (k.grid.x == 0 || k.grid.y == 0 || k.grid.z == 0) return "a grid extent is 0";
  if (k.grid.x > 0x7fffffff || k.grid.y > 65535 || k.grid.z > 65535) return "the grid is larger than the device takes";
  if (k.block.x == 0 || k.block.y == 0 || k.block.z == 0) return "a block extent is 0";
  if (k.block.x > 1024 || k.block.y > 1024 || k.block.z > 64 || k.block.count() > kMaxThreads) {
    return "the block is larger than the device takes";
  }
  if (k.block.count() > info.max_threads) return "the block has more threads than the entry's .maxntid or .reqntid";
  if (info.reqntid && !(*info.reqntid == k.block)) return "the block is not the entry's .reqntid";
  if (k.shared > f.max_dynamic_shared) {
    return "more dynamic shared memory than allowed (set MAX_DYNAMIC_SHARED_SIZE_BYTES)";
  }
  return nullptr;
}

// An error text, or null.
const char* pack_into(const FunctionInfo& info, void** params, void** extra, std::vector<std::byte>& block) {
  if (params != nullptr && extra != nullptr) return "both kernelParams and extra are given";
  block.resize(info.param_bytes);
  if (info.param_bytes == 0) return nullptr;
  if (params != nullptr) {
    for (size_t i = 0; i < info.params.size(); ++i) {
      if (params[i] == nullptr) return "a kernel parameter is a null pointer";
      std::memcpy(block.data() + info.params[i].offset, params[i], info.params[i].size);
    }
    return nullptr;
  }
  if (extra == nullptr) return "the entry has parameters, but none are given";
  const void* buffer = nullptr;
  size_t size = 0;
  for (void** item = extra; *item != kLaunchParamEnd; item += 2) {
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

void record_kernel(Call& call, const LoadedFunction& f, const KernelWork& k, const Place& place, uint64_t start) {
  CUpti_ActivityKernel10 r{};
  r.end = cupti::now();
  r.kind = cupti::kernel_kind();
  r.start = start;
  r.completed = r.end;
  r.contextId = call.context.id;
  r.streamId = place.stream;
  r.gridX = static_cast<int32_t>(k.grid.x);
  r.gridY = static_cast<int32_t>(k.grid.y);
  r.gridZ = static_cast<int32_t>(k.grid.z);
  r.blockX = static_cast<int32_t>(k.block.x);
  r.blockY = static_cast<int32_t>(k.block.y);
  r.blockZ = static_cast<int32_t>(k.block.z);
  r.staticSharedMemory = static_cast<int32_t>(f.info->static_shared);
  r.dynamicSharedMemory = static_cast<int32_t>(k.shared);
  r.localMemoryPerThread = f.info->local_bytes;
  r.correlationId = call.correlation;
  r.gridId = static_cast<int64_t>(call.state.counters.launches);
  r.name = f.name;
  r.graphNodeId = place.node;
  r.graphId = place.graph;
  r.launchType = k.cooperative ? CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE
                               : CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR;
  call.records.push_back({r});
}

void keep_counters(State& s, const Counters& c) {
  s.counters = {s.counters.launches + 1,  c.warp_instructions,   c.thread_instructions, c.global_load_sectors,
                c.global_store_sectors,   c.global_requests,     c.bank_conflicts,      c.divergent_branches,
                c.barriers,               c.atomics};
  s.has_counters = true;
}

LoadedFunction* find_function(Call& call, CUfunction handle) {
  LoadedFunction* f = call.state.functions.find(handle);
  return f != nullptr && f->context == call.context.id ? f : nullptr;
}

// A launch as it was asked for: stream and configuration are looked at before the parameters.
CUresult launch(Call& call, KernelWork kernel, StreamArg stream, void** params, void** extra) {
  if (find_function(call, kernel.function) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  uint32_t id = 0;
  if (CUresult code = stream_id(call, stream, id); code != CUDA_SUCCESS) return code;
  if (CUresult code = check(call, kernel); code != CUDA_SUCCESS) return code;
  if (CUresult code = pack(call, kernel, params, extra); code != CUDA_SUCCESS) return code;
  return submit(call, stream, std::move(kernel), true);
}

CUresult launch_cooperative(Call& call, KernelWork kernel, StreamArg stream, void** params) {
  CUlaunchAttribute attribute{CU_LAUNCH_ATTRIBUTE_COOPERATIVE, {}, {}};
  attribute.value.cooperative = 1;
  CUresult code = add_attribute(call, kernel, attribute);
  return code == CUDA_SUCCESS ? launch(call, std::move(kernel), stream, params, nullptr) : code;
}

CUresult launch_ex(const cupti::Api& api, const CUlaunchConfig* config, CUfunction function, void** params,
                   void** extra, bool per_thread) {
  return context_call(api, [&](Call& call) {
    if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    KernelWork kernel;
    kernel.function = function;
    kernel.grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
    kernel.block = {config->blockDimX, config->blockDimY, config->blockDimZ};
    kernel.shared = config->sharedMemBytes;
    for (unsigned i = 0; i < config->numAttrs; ++i)
      if (CUresult code = add_attribute(call, kernel, config->attrs[i]); code != CUDA_SUCCESS) return code;
    return launch(call, std::move(kernel), {config->hStream, per_thread}, params, extra);
  });
}

}  // namespace

CUresult refuse(State& s, CUresult code, std::string_view kind, std::string_view why) {
  record_fault(s, code, kind, why);
  return code;
}

CUresult add_attribute(Call& call, KernelWork& kernel, const CUlaunchAttribute& attribute) {
  switch (attribute.id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: kernel.cooperative = attribute.value.cooperative != 0; break;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
      const CUdim3& cluster = attribute.value.clusterDim;
      if (cluster.x == 1 && cluster.y == 1 && cluster.z == 1) break;
      return unsupported(call, "a launch in clusters of several blocks");
    }
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
      return unsupported(call, "launch attribute " + std::to_string(static_cast<int>(attribute.id)));
    default:
      if (attribute.id < 0 || attribute.id > CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING)
        return CUDA_ERROR_INVALID_VALUE;
  }
  std::erase_if(kernel.attributes, [&](const CUlaunchAttribute& other) { return other.id == attribute.id; });
  kernel.attributes.push_back(attribute);
  return CUDA_SUCCESS;
}

CUresult check(Call& call, const KernelWork& kernel) {
  LoadedFunction* f = find_function(call, kernel.function);
  if (f == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (f->info == nullptr) return unsupported(call, "static only: SASS is not executed");
  if (const char* why = bad_configuration(*f, kernel))
    return refuse(call.state, CUDA_ERROR_INVALID_VALUE, "bad launch", why);
  if (kernel.cooperative && kernel.grid.count() != 1)
    return unsupported(call, "a cooperative launch of several blocks: blocks run one after another here");
  return CUDA_SUCCESS;
}

CUresult pack(Call& call, KernelWork& kernel, void** params, void** extra) {
  LoadedFunction* f = find_function(call, kernel.function);
  if (f == nullptr || f->info == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const char* why = pack_into(*f->info, params, extra, kernel.params);
  return why == nullptr ? CUDA_SUCCESS : refuse(call.state, CUDA_ERROR_INVALID_VALUE, "bad launch", why);
}

CUresult run(Call& call, const KernelWork& kernel, const Place& place) {
  State& s = call.state;
  if (CUresult code = check(call, kernel); code != CUDA_SUCCESS) return code;
  LoadedFunction* f = find_function(call, kernel.function);
  bool recorded = cupti::kernel_kind() != CUPTI_ACTIVITY_KIND_INVALID;
  uint64_t start = recorded ? cupti::now() : 0;
  LaunchRequest request{kernel.grid, kernel.block, kernel.shared, kernel.params, s.settings.budget};
  LaunchOutcome outcome = f->program->launch(f->entry, request);
  if (outcome.fault) {
    CUresult code = result_of(*outcome.fault);
    record_fault(s, code, *outcome.fault);
    if (outcome.fault->kind == FaultKind::bad_launch) return code;
    call.context.poison = code;
  }
  keep_counters(s, outcome.counters);
  if (recorded) record_kernel(call, *f, kernel, place, start);
  return CUDA_SUCCESS;
}

#define KGATE_KERNEL \
  KernelWork { function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, false, {}, {} }

KGATE_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                     CUstream stream, void** params, void** extra) {
  return context_call(KGATE_API(cuLaunchKernel, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                                stream, params, extra),
                      [&](Call& call) { return launch(call, KGATE_KERNEL, {stream, false}, params, extra); });
}

KGATE_EXPORT CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                          CUstream stream, void** params, void** extra) {
  return context_call(KGATE_API(cuLaunchKernel_ptsz, function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                shared, stream, params, extra),
                      [&](Call& call) { return launch(call, KGATE_KERNEL, {stream, true}, params, extra); });
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
                      [&](Call& call) { return launch_cooperative(call, KGATE_KERNEL, {stream, false}, params); });
}

KGATE_EXPORT CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y,
                                                     unsigned grid_z, unsigned block_x, unsigned block_y,
                                                     unsigned block_z, unsigned shared, CUstream stream,
                                                     void** params) {
  return context_call(KGATE_API(cuLaunchCooperativeKernel_ptsz, function, grid_x, grid_y, grid_z, block_x, block_y,
                                block_z, shared, stream, params),
                      [&](Call& call) { return launch_cooperative(call, KGATE_KERNEL, {stream, true}, params); });
}

}  // namespace kgate::vgpu
