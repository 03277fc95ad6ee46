// The names come from gpu/cupti_abi.h; allocation calls that kgate itself never makes are added, because a workload's
// app may. Callback ids are those of CUPTI 13.0's cupti_driver_cbid.h.
#include "trace/driver_calls.h"

#include <mutex>
#include <string_view>
#include <unordered_map>

#include "gpu/cupti_abi.h"

namespace kgate::trace {

namespace {

const char* allocation_name(uint32_t cbid) {
  switch (cbid) {
    case 31:
      return "cuMemAllocPitch";
    case 37:
      return "cuMemAllocHost";
    case 39:
      return "cuMemHostAlloc";
    case 87:
      return "cuArrayCreate";
    case 244:
      return "cuMemAllocPitch_v2";
    case 271:
      return "cuMemHostAlloc_v2";
    case 272:
      return "cuArrayCreate_v2";
    case 371:
      return "cuMemAllocManaged";
    case 549:
      return "cuMemCreate";
    case 598:
      return "cuMemAllocAsync";
    case 599:
      return "cuMemAllocAsync_ptsz";
    case 611:
      return "cuMemAllocFromPoolAsync";
    case 612:
      return "cuMemAllocFromPoolAsync_ptsz";
    default:
      return nullptr;
  }
}

bool one_of(std::string_view name, std::initializer_list<std::string_view> stems) {
  for (std::string_view suffix : {"_ptsz", "_ptds"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  if (name.ends_with("_v2")) name.remove_suffix(3);
  for (std::string_view stem : stems)
    if (name == stem) return true;
  return false;
}

DriverCall classify(uint32_t cbid) {
  DriverCall call;
  if (const char* name = allocation_name(cbid)) {
    call.name = name;
    call.is_alloc = true;
    return call;
  }
  const char* name = gpu::driver_cbid_name(cbid);
  call.name = name ? name : "driver call " + std::to_string(cbid);
  call.is_launch = is_launch_cbid(cbid);
  call.is_sync = one_of(call.name, {"cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize", "cuMemcpy",
                                    "cuMemcpyHtoD", "cuMemcpyDtoH"});
  call.is_alloc = one_of(call.name, {"cuMemAlloc", "cuMemAllocHost"});
  return call;
}

}  // namespace

bool is_launch_cbid(uint32_t cbid) {
  using namespace gpu;
  switch (cbid) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz:
      return true;
    default:
      return false;
  }
}

const DriverCall& driver_call(uint32_t cbid) {
  constexpr uint32_t kPlausible = 4096;  // ids come from an untrusted process and must not fill the table
  static const DriverCall kUnknown{"unknown driver call", false, false, false};
  if (cbid >= kPlausible) return kUnknown;
  static std::mutex mutex;
  static std::unordered_map<uint32_t, DriverCall> calls;
  std::lock_guard lock(mutex);
  auto [at, added] = calls.try_emplace(cbid);
  if (added) at->second = classify(cbid);
  return at->second;
}

}  // namespace kgate::trace
