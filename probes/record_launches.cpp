// Launches: what is launched how, and the bytes of its parameters, which are the caller's again once the call returns.
#include <algorithm>
#include <cstring>

#include "probes/record_call_table.h"
#include "probes/record_recorder.h"

namespace kgate::record {

using namespace gpu;
using namespace recording;

#define KGATE_ID(name) CUPTI_DRIVER_TRACE_CBID_##name

// One of the three shapes that a launch comes in.
struct Recorder::Launch {
  CUfunction function = nullptr;
  const unsigned *grid = nullptr, *block = nullptr;  // three each
  unsigned shared = 0;
  CUstream stream = nullptr;
  void *const *params = nullptr, *const *extra = nullptr;
  bool cooperative = false;
  const CUlaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;

  static Launch of(uint32_t cbid, const CUpti_CallbackData& data) {
    Launch out;
    switch (cbid) {
      case KGATE_ID(cuLaunchKernel):
      case KGATE_ID(cuLaunchKernel_ptsz): {
        const auto& p = params_of<KGATE_ID(cuLaunchKernel)>(data);
        out = {p.f, &p.gridDimX, &p.blockDimX, p.sharedMemBytes, p.hStream, p.kernelParams, p.extra};
        break;
      }
      case KGATE_ID(cuLaunchKernelEx):
      case KGATE_ID(cuLaunchKernelEx_ptsz): {
        const auto& p = params_of<KGATE_ID(cuLaunchKernelEx)>(data);
        if (p.config == nullptr) return out;
        const CUlaunchConfig& c = *p.config;
        out = {p.f,          &c.gridDimX,
               &c.blockDimX, c.sharedMemBytes,
               c.hStream,    p.kernelParams,
               p.extra,      false,
               c.attrs,      c.attrs != nullptr ? c.numAttrs : 0};
        break;
      }
      default: {
        const auto& p = params_of<KGATE_ID(cuLaunchCooperativeKernel)>(data);
        out = {p.f, &p.gridDimX, &p.blockDimX, p.sharedMemBytes, p.hStream, p.kernelParams, nullptr, true};
      }
    }
    return out;
  }
  uint64_t stream_handle(uint32_t cbid) const {
    return stream == nullptr && kWatchedCalls[cbid].per_thread ? kStreamPerThread : reinterpret_cast<uint64_t>(stream);
  }
};

// The packed block, in thread.params; its size. Parameters that are not known are left out.
uint32_t Recorder::pack_params(Thread& thread, const Function& function, void* const* params, void* const* extra) {
  std::byte* out = thread.params.get();
  if (params != nullptr) {
    uint32_t end = 0;
    for (const auto& [offset, size] : function.params) {
      if (offset > end) std::memset(out + end, 0, offset - end);
      if (*params != nullptr)
        std::memcpy(out + offset, *params, size);
      else
        std::memset(out + offset, 0, size);
      ++params;
      end = std::max(end, offset + size);
    }
    return function.param_bytes;
  }
  if (extra == nullptr) return 0;
  const void* bytes = nullptr;
  size_t size = 0;
  for (int i = 0; i < 16 && extra[i] != kLaunchParamEnd; i += 2) {
    if (extra[i] == kLaunchParamBufferPointer) bytes = extra[i + 1];
    if (extra[i] == kLaunchParamBufferSize && extra[i + 1] != nullptr) size = *static_cast<const size_t*>(extra[i + 1]);
  }
  if (bytes == nullptr || size > kMaxParamBytes) return 0;
  std::memcpy(out, bytes, size);
  return static_cast<uint32_t>(size);
}

void Recorder::enter_launch(Thread& thread, uint32_t cbid, const CUpti_CallbackData& data) {
  const Launch launch = Launch::of(cbid, data);
  if (launch.function == nullptr) return;
  if (first_launch_.load(std::memory_order_relaxed) == 0)
    thread.call.first = first_launch_.exchange(thread.call.begin) == 0;
  thread.call.captured = is_capturing(thread, launch.stream_handle(cbid));
  const Function* function = nullptr;
  {
    Inside inside(thread);
    function = &modules_.function(thread, reinterpret_cast<uint64_t>(launch.function), data.symbolName);
  }
  thread.call.function = function;
  thread.module_library = function->library;
  if (slice_ != Slice::inside || thread.call.captured) return;
  if (!function->params_known && launch.params != nullptr)
    note(thread, "this driver does not tell the parameters of kernel " + function->name +
                     ": it is too old for recording (CUDA 12.4 or later is needed)");
  thread.call.param_bytes = pack_params(thread, *function, launch.params, launch.extra);
}

void Recorder::exit_launch(Thread& thread, uint32_t cbid, const CUpti_CallbackData& data, int result) {
  const Launch launch = Launch::of(cbid, data);
  thread.module_library = 0;
  if (launch.function == nullptr) return;
  LaunchRecord record{};
  record.head = head(thread, Kind::launch, result);
  record.function = reinterpret_cast<uint64_t>(launch.function);
  record.stream = launch.stream_handle(cbid);
  for (int i = 0; i < 3; ++i) record.grid[i] = launch.grid[i], record.block[i] = launch.block[i];
  record.shared = launch.shared;
  record.cooperative = launch.cooperative;
  for (unsigned i = 0; i < launch.attribute_count; ++i) {
    const CUlaunchAttribute& attribute = launch.attributes[i];
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        record.cooperative = attribute.value.cooperative != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        record.cluster[0] = attribute.value.clusterDim.x;
        record.cluster[1] = attribute.value.clusterDim.y;
        record.cluster[2] = attribute.value.clusterDim.z;
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        record.programmatic = attribute.value.programmaticStreamSerializationAllowed != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        note(thread, "a launch that records an event by itself (launch attribute " + std::to_string(attribute.id) +
                         "), which cannot be replayed");
        break;
      case CU_LAUNCH_ATTRIBUTE_IGNORE:
        break;
      default:
        if (const uint64_t bit = uint64_t{1} << (attribute.id & 63); (attributes_noted_.fetch_or(bit) & bit) == 0)
          note(thread, "launch attribute " + std::to_string(attribute.id) + " is left out of the replay", false);
    }
  }
  record.param_bytes = thread.call.param_bytes;
  if (!thread.call.captured && slice_ == Slice::inside) ++thread.launches;
  thread.add(record, {{thread.params.get(), thread.call.param_bytes}});
}

}  // namespace kgate::record
