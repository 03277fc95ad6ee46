// The driver's names of gpu/cupti_abi.h are those that kgate's own processes call; here are the others that an
// application may. Callback ids are those of CUPTI 13.0.
#include "trace/driver_calls.h"

#include <string_view>
#include <vector>

#include "gpu/cupti_abi.h"
#include "gpu/cupti_runtime_cbids.h"
#include "trace/wire.h"

namespace kgate::trace {

namespace {

struct Named {
  uint32_t cbid;
  const char* name;
};

// clang-format off
constexpr Named kNames[] = {
    {10, "cuCtxCreate"}, {11, "cuCtxDestroy"}, {18, "cuModuleLoad"}, {21, "cuModuleLoadFatBinary"},
    {29, "cuMemAlloc"}, {31, "cuMemAllocPitch"}, {33, "cuMemFree"}, {37, "cuMemAllocHost"}, {39, "cuMemHostAlloc"},
    {43, "cuMemcpyHtoD"}, {45, "cuMemcpyDtoH"}, {47, "cuMemcpyDtoD"}, {49, "cuMemcpyDtoA"}, {51, "cuMemcpyAtoD"},
    {53, "cuMemcpyHtoA"}, {54, "cuMemcpyAtoH"}, {55, "cuMemcpyAtoA"}, {56, "cuMemcpy2D"}, {57, "cuMemcpy2DUnaligned"},
    {58, "cuMemcpy3D"}, {60, "cuMemcpyHtoDAsync"}, {62, "cuMemcpyDtoHAsync"}, {64, "cuMemcpyDtoDAsync"},
    {66, "cuMemcpyHtoAAsync"}, {67, "cuMemcpyAtoHAsync"}, {68, "cuMemcpy2DAsync"}, {69, "cuMemcpy3DAsync"},
    {71, "cuMemsetD8"}, {73, "cuMemsetD16"}, {75, "cuMemsetD32"}, {77, "cuMemsetD2D8"}, {79, "cuMemsetD2D16"},
    {81, "cuMemsetD2D32"}, {87, "cuArrayCreate"}, {89, "cuArrayDestroy"}, {90, "cuArray3DCreate"}, {115, "cuLaunch"},
    {116, "cuLaunchGrid"}, {117, "cuLaunchGridAsync"}, {122, "cuEventDestroy"}, {123, "cuEventElapsedTime"},
    {127, "cuStreamDestroy"}, {218, "cuMemsetD16Async"}, {222, "cuMemsetD2D8Async"}, {224, "cuMemsetD2D16Async"},
    {226, "cuMemsetD2D32Async"}, {235, "cuCtxCreate_v2"}, {244, "cuMemAllocPitch_v2"}, {248, "cuMemcpy_v2"},
    {250, "cuMemsetD16_v2"}, {252, "cuMemsetD2D8_v2"}, {253, "cuMemsetD2D16_v2"}, {254, "cuMemsetD2D32_v2"},
    {271, "cuMemHostAlloc_v2"}, {272, "cuArrayCreate_v2"}, {274, "cuArray3DCreate_v2"}, {282, "cuMemcpyAtoH_v2"},
    {283, "cuMemcpyAtoHAsync_v2"}, {284, "cuMemcpyAtoD_v2"}, {285, "cuMemcpyDtoA_v2"}, {286, "cuMemcpyAtoA_v2"},
    {287, "cuMemcpy2D_v2"}, {288, "cuMemcpy2DUnaligned_v2"}, {289, "cuMemcpy2DAsync_v2"}, {290, "cuMemcpy3D_v2"},
    {291, "cuMemcpy3DAsync_v2"}, {292, "cuMemcpyHtoA_v2"}, {293, "cuMemcpyHtoAAsync_v2"}, {318, "cuMemcpyPeer"},
    {319, "cuMemcpyPeerAsync"}, {320, "cuMemcpy3DPeer"}, {321, "cuMemcpy3DPeerAsync"}, {322, "cuCtxDestroy_v2"},
    {347, "cuMipmappedArrayCreate"}, {349, "cuMipmappedArrayDestroy"}, {367, "cuStreamCreateWithPriority"},
    {371, "cuMemAllocManaged"}, {377, "cuStreamAttachMemAsync"}, {386, "cuDevicePrimaryCtxRetain"},
    {387, "cuDevicePrimaryCtxRelease"}, {389, "cuDevicePrimaryCtxReset"}, {400, "cuMemcpyDtoA_v2_ptds"},
    {401, "cuMemcpyAtoD_v2_ptds"}, {402, "cuMemcpyHtoA_v2_ptds"}, {403, "cuMemcpyAtoH_v2_ptds"},
    {404, "cuMemcpyAtoA_v2_ptds"}, {405, "cuMemcpy2D_v2_ptds"}, {406, "cuMemcpy2DUnaligned_v2_ptds"},
    {407, "cuMemcpy3D_v2_ptds"}, {409, "cuMemcpyPeer_ptds"}, {410, "cuMemcpy3DPeer_ptds"},
    {412, "cuMemsetD16_v2_ptds"}, {414, "cuMemsetD2D8_v2_ptds"}, {415, "cuMemsetD2D16_v2_ptds"},
    {416, "cuMemsetD2D32_v2_ptds"}, {419, "cuMemcpyHtoAAsync_v2_ptsz"}, {420, "cuMemcpyAtoHAsync_v2_ptsz"},
    {424, "cuMemcpy2DAsync_v2_ptsz"}, {425, "cuMemcpy3DAsync_v2_ptsz"}, {426, "cuMemcpyPeerAsync_ptsz"},
    {427, "cuMemcpy3DPeerAsync_ptsz"}, {429, "cuMemsetD16Async_ptsz"}, {431, "cuMemsetD2D8Async_ptsz"},
    {432, "cuMemsetD2D16Async_ptsz"}, {433, "cuMemsetD2D32Async_ptsz"}, {438, "cuStreamAttachMemAsync_ptsz"},
    {480, "cuLaunchCooperativeKernelMultiDevice"}, {495, "cuStreamBeginCapture"}, {496, "cuStreamBeginCapture_ptsz"},
    {497, "cuStreamEndCapture"}, {498, "cuStreamEndCapture_ptsz"}, {499, "cuStreamIsCapturing"},
    {500, "cuStreamIsCapturing_ptsz"}, {501, "cuGraphCreate"}, {513, "cuGraphInstantiate"},
    {516, "cuGraphExecDestroy"}, {517, "cuGraphDestroy"}, {522, "cuGraphDestroyNode"},
    {539, "cuStreamBeginCapture_v2"}, {540, "cuStreamBeginCapture_v2_ptsz"}, {544, "cuDevicePrimaryCtxRelease_v2"},
    {545, "cuDevicePrimaryCtxReset_v2"}, {549, "cuMemCreate"}, {550, "cuMemRelease"}, {551, "cuMemMap"},
    {552, "cuMemUnmap"}, {561, "cuGraphExecUpdate"}, {578, "cuGraphInstantiate_v2"}, {580, "cuGraphUpload"},
    {581, "cuGraphUpload_ptsz"}, {587, "cuEventRecordWithFlags"}, {588, "cuEventRecordWithFlags_ptsz"},
    {598, "cuMemAllocAsync"}, {599, "cuMemAllocAsync_ptsz"}, {600, "cuMemFreeAsync"}, {601, "cuMemFreeAsync_ptsz"},
    {611, "cuMemAllocFromPoolAsync"}, {612, "cuMemAllocFromPoolAsync_ptsz"}, {643, "cuGraphInstantiateWithFlags"},
    {645, "cuCtxCreate_v3"}, {656, "cuGraphInstantiateWithParams"}, {657, "cuGraphInstantiateWithParams_ptsz"},
    {678, "cuLibraryLoadData"}, {679, "cuLibraryLoadFromFile"}, {680, "cuLibraryUnload"},
    {696, "cuGraphExecUpdate_v2"}, {720, "cuStreamBeginCaptureToGraph"}, {721, "cuStreamBeginCaptureToGraph_ptsz"},
    {757, "cuCtxCreate_v4"}, {776, "cuMemcpyBatchAsync"}, {777, "cuMemcpyBatchAsync_ptsz"},
    {778, "cuMemcpy3DBatchAsync"}, {779, "cuMemcpy3DBatchAsync_ptsz"}, {780, "cuEventElapsedTime_v2"},
    {783, "cuStreamCreateForCaptureToCig"}, {796, "cuMemcpyBatchAsync_v2"}, {797, "cuMemcpyBatchAsync_v2_ptsz"},
    {798, "cuMemcpy3DBatchAsync_v2"}, {799, "cuMemcpy3DBatchAsync_v2_ptsz"},
};
// clang-format on

constexpr uint32_t kPlausible = 4096;  // ids come from an untrusted process

std::string_view stem_of(std::string_view name) {
  for (std::string_view suffix : {"_ptsz", "_ptds"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  for (std::string_view suffix : {"_v2", "_v3"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return name;
}

bool one_of(std::string_view stem, std::initializer_list<std::string_view> stems) {
  for (std::string_view one : stems)
    if (stem == one) return true;
  return false;
}

DriverCall classify(uint32_t cbid, const char* name) {
  DriverCall call;
  call.name = name ? name : "driver call " + std::to_string(cbid);
  std::string_view stem = stem_of(call.name);
  call.is_graph_launch = stem == "cuGraphLaunch";
  call.brings_many = call.is_graph_launch || stem == "cuLaunchCooperativeKernelMultiDevice";
  call.is_launch = call.brings_many || one_of(stem, {"cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel",
                                                     "cuLaunch", "cuLaunchGrid", "cuLaunchGridAsync"});
  call.is_sync =
      one_of(stem, {"cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize", "cuMemcpy", "cuMemcpyHtoD",
                    "cuMemcpyDtoH", "cuMemcpyHtoA", "cuMemcpyAtoH", "cuMemcpy2D", "cuMemcpy2DUnaligned", "cuMemcpy3D"});
  call.is_alloc =
      one_of(stem, {"cuMemAlloc", "cuMemAllocPitch", "cuMemAllocHost", "cuMemHostAlloc", "cuMemAllocManaged",
                    "cuMemAllocAsync", "cuMemAllocFromPoolAsync", "cuMemCreate", "cuArrayCreate", "cuArray3DCreate",
                    "cuMipmappedArrayCreate", "cuMemFree", "cuMemFreeHost", "cuMemFreeAsync", "cuMemRelease",
                    "cuArrayDestroy", "cuMipmappedArrayDestroy"});
  call.is_work = call.is_launch || stem.starts_with("cuMemcpy") || stem.starts_with("cuMemset");
  call.begins_capture = stem.starts_with("cuStreamBeginCapture");
  call.ends_capture = stem == "cuStreamEndCapture";
  return call;
}

DriverCall classify_runtime(uint32_t cbid, std::string_view name) {
  DriverCall call;
  if (size_t version = name.rfind("_v"); version != name.npos) name = name.substr(0, version);
  call.name = name.empty() ? "runtime call " + std::to_string(cbid) : std::string(name);
  std::string_view stem = stem_of(call.name);
  while (stem.starts_with('_')) stem.remove_prefix(1);  // __cudaLaunchKernel: what <<<>>> becomes
  call.is_graph_launch = stem == "cudaGraphLaunch";
  call.brings_many = call.is_graph_launch || stem == "cudaLaunchCooperativeKernelMultiDevice";
  call.is_launch = call.brings_many || one_of(stem, {"cudaLaunchKernel", "cudaLaunchKernelExC",
                                                     "cudaLaunchCooperativeKernel", "cudaLaunch"});
  call.is_sync =
      one_of(stem, {"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaThreadSynchronize",
                    "cudaMemcpy", "cudaMemcpy2D", "cudaMemcpyToArray", "cudaMemcpy2DToArray", "cudaMemcpyFromArray",
                    "cudaMemcpy2DFromArray", "cudaMemcpyToSymbol", "cudaMemcpyFromSymbol", "cudaMemcpy3D"});
  call.is_alloc = one_of(stem, {"cudaMalloc", "cudaMallocPitch", "cudaMallocArray", "cudaMallocHost", "cudaHostAlloc",
                                "cudaMalloc3D", "cudaMalloc3DArray", "cudaMallocManaged", "cudaMallocMipmappedArray",
                                "cudaMallocAsync", "cudaMallocFromPoolAsync", "cudaFree", "cudaFreeArray",
                                "cudaFreeHost", "cudaFreeAsync", "cudaFreeMipmappedArray"});
  call.is_work = call.is_launch || stem.starts_with("cudaMemcpy") || stem.starts_with("cudaMemset");
  call.begins_capture = stem.starts_with("cudaStreamBeginCapture");
  call.ends_capture = stem == "cudaStreamEndCapture";
  return call;
}

std::vector<DriverCall> all_runtime_calls() {
  std::vector<const char*> names(kPlausible, "");
#define KGATE_NAME(name, id) names[id] = #name;
  KGATE_CUPTI_RUNTIME_CBIDS(KGATE_NAME)
#undef KGATE_NAME
  std::vector<DriverCall> calls;
  calls.reserve(kPlausible);
  for (uint32_t cbid = 0; cbid < kPlausible; ++cbid) calls.push_back(classify_runtime(cbid, names[cbid]));
  return calls;
}

std::vector<DriverCall> only_names(std::vector<DriverCall> calls) {
  for (DriverCall& call : calls) call = DriverCall{.name = std::move(call.name)};
  return calls;
}

std::vector<DriverCall> all_calls() {
  std::vector<const char*> names(kPlausible);
  for (const Named& one : kNames) names[one.cbid] = one.name;
  std::vector<DriverCall> calls;
  calls.reserve(kPlausible);
  for (uint32_t cbid = 0; cbid < kPlausible; ++cbid) {
    const char* name = gpu::driver_cbid_name(cbid);
    calls.push_back(classify(cbid, name ? name : names[cbid]));
  }
  return calls;
}

}  // namespace

const DriverCall& driver_call(uint32_t cbid) {
  static const DriverCall kUnknown{.name = "unknown driver call"}, kUnknownRuntime{.name = "unknown runtime call"};
  static const std::vector<DriverCall> kDriver = all_calls(), kRuntime = all_runtime_calls();
  static const std::vector<DriverCall> kNestedDriver = only_names(kDriver), kNestedRuntime = only_names(kRuntime);
  bool runtime = (cbid & wire::kRuntimeCall) != 0, nested = (cbid & wire::kNestedCall) != 0;
  cbid &= ~(wire::kRuntimeCall | wire::kNestedCall);
  if (cbid >= kPlausible) return runtime ? kUnknownRuntime : kUnknown;
  if (runtime) return (nested ? kNestedRuntime : kRuntime)[cbid];
  return (nested ? kNestedDriver : kDriver)[cbid];
}

bool is_launch_cbid(uint32_t cbid) { return driver_call(cbid).is_launch; }

}  // namespace kgate::trace
