#include "call_table.h"

namespace kgate {

namespace {

#define LIST(...) __VA_ARGS__
// A row: the call's name, its arguments, and what its parameters `p` must be. Both may use the bench `x`.
#define ROW(name, arguments, ...)                                                   \
  CallRow {                                                                         \
#name, CUPTI_DRIVER_TRACE_CBID_##name,                                            \
        [](CallBench& x) -> CUresult { return x.call(#name, LIST arguments); },       \
        [](CallBench& x, const CUpti_CallbackData& data) -> bool {                    \
          const auto& p = params_of<CUPTI_DRIVER_TRACE_CBID_##name>(data);            \
          (void)x;                                                                    \
          return __VA_ARGS__;                                                         \
        },                                                                            \
        nullptr, nullptr, CUDA_SUCCESS \
  }

using Step = void (*)(CallBench&);

CallRow prepared(CallRow row, Step prepare, Step restore = nullptr) {
  row.prepare = prepare;
  row.restore = restore;
  return row;
}
CallRow restored(CallRow row, Step restore) { return prepared(row, nullptr, restore); }
CallRow failing(CallRow row, CUresult code) {
  row.expected = code;
  return row;
}

void no_work(void*) {}

std::vector<std::byte> packed(const CallBench& x) {
  auto bytes = x.add.params.bytes();
  return {bytes.begin(), bytes.end()};
}

// The launch's parameters in both forms, kept in the bench's static storage while the call runs.
void** pointers(CallBench& x) {
  static void* list[4];
  list[0] = &x.add.params.a, list[1] = &x.add.params.b, list[2] = &x.add.params.c, list[3] = &x.add.params.n;
  return list;
}
void** block(CallBench& x) {
  static std::vector<std::byte> bytes;
  static size_t size;
  bytes = packed(x);
  size = bytes.size();
  static void* list[5];
  list[0] = kLaunchParamBufferPointer, list[1] = bytes.data(), list[2] = kLaunchParamBufferSize, list[3] = &size;
  list[4] = kLaunchParamEnd;
  return list;
}
const CUlaunchConfig* config(CallBench& x) {
  static CUlaunchConfig c;
  c = {1, 1, 1, 64, 1, 1, 0, x.stream, nullptr, 0};
  return &c;
}

void add_launches(std::vector<CallRow>& rows) {
#define LAUNCH(name)                                                                                    \
  ROW(name, (x.add.launch.function, 1u, 1u, 1u, 64u, 1u, 1u, 16u, x.stream, (void**)nullptr, block(x)), \
      p.f == x.add.launch.function && p.gridDimX == 1 && p.blockDimX == 64 && p.blockDimZ == 1 &&       \
          p.sharedMemBytes == 16 && p.hStream == x.stream && p.kernelParams == nullptr && p.extra == block(x))
#define LAUNCH_EX(name)                                                       \
  ROW(name, (config(x), x.add.launch.function, pointers(x), (void**)nullptr), \
      p.config == config(x) && p.f == x.add.launch.function && p.kernelParams == pointers(x))
#define COOPERATIVE(name)                                                                \
  ROW(name, (x.add.launch.function, 1u, 1u, 1u, 64u, 1u, 1u, 0u, x.stream, pointers(x)), \
      p.f == x.add.launch.function && p.blockDimX == 64 && p.kernelParams == pointers(x))
#define HOST_FUNCTION(name) \
  ROW(name, (x.stream, &no_work, &x), p.hStream == x.stream && p.fn == &no_work && p.userData == &x)
  rows.insert(rows.end(), {LAUNCH(cuLaunchKernel), LAUNCH(cuLaunchKernel_ptsz), LAUNCH_EX(cuLaunchKernelEx),
                           LAUNCH_EX(cuLaunchKernelEx_ptsz), COOPERATIVE(cuLaunchCooperativeKernel),
                           COOPERATIVE(cuLaunchCooperativeKernel_ptsz), HOST_FUNCTION(cuLaunchHostFunc),
                           HOST_FUNCTION(cuLaunchHostFunc_ptsz)});
}

void free_page(CallBench& x) { x.call("cuMemFreeHost", x.page); }

void add_memory(std::vector<CallRow>& rows) {
  rows.insert(
      rows.end(),
      {ROW(cuMemAlloc_v2, (&x.made, size_t{64}), p.dptr == &x.made && p.bytesize == 64),
       prepared(ROW(cuMemFree_v2, (x.made), p.dptr == x.made), [](CallBench& x) { x.made = x.driver.allocate(64); }),
       restored(ROW(cuMemAllocHost_v2, (&x.page, size_t{64}), p.pp == &x.page && p.bytesize == 64), &free_page),
       restored(ROW(cuMemHostAlloc, (&x.page, size_t{64}, 1u), p.pp == &x.page && p.bytesize == 64 && p.Flags == 1),
                &free_page),
       prepared(ROW(cuMemFreeHost, (x.page), p.p == x.page),
                [](CallBench& x) { x.call("cuMemHostAlloc", &x.page, size_t{64}, 0u); })});
}

void add_copies(std::vector<CallRow>& rows) {
#define UP(name) \
  ROW(name, (x.a, (const void*)x.host, size_t{8}), p.dstDevice == x.a && p.srcHost == x.host && p.ByteCount == 8)
#define DOWN(name) \
  ROW(name, ((void*)x.host, x.a, size_t{8}), p.dstHost == x.host && p.srcDevice == x.a && p.ByteCount == 8)
#define ACROSS(name) ROW(name, (x.b, x.a, size_t{8}), p.dstDevice == x.b && p.srcDevice == x.a && p.ByteCount == 8)
#define ANY(name) ROW(name, (x.b, x.a, size_t{8}), p.dst == x.b && p.src == x.a && p.ByteCount == 8)
#define UP_ASYNC(name)                                       \
  ROW(name, (x.a, (const void*)x.host, size_t{8}, x.stream), \
      p.dstDevice == x.a && p.srcHost == x.host && p.hStream == x.stream)
#define DOWN_ASYNC(name)                               \
  ROW(name, ((void*)x.host, x.a, size_t{8}, x.stream), \
      p.dstHost == x.host && p.srcDevice == x.a && p.hStream == x.stream)
#define ACROSS_ASYNC(name) \
  ROW(name, (x.b, x.a, size_t{8}, x.stream), p.dstDevice == x.b && p.srcDevice == x.a && p.hStream == x.stream)
#define ANY_ASYNC(name) \
  ROW(name, (x.b, x.a, size_t{8}, x.stream), p.dst == x.b && p.src == x.a && p.hStream == x.stream)
  rows.insert(rows.end(),
              {UP(cuMemcpyHtoD_v2), UP(cuMemcpyHtoD_v2_ptds), DOWN(cuMemcpyDtoH_v2), DOWN(cuMemcpyDtoH_v2_ptds),
               ACROSS(cuMemcpyDtoD_v2), ACROSS(cuMemcpyDtoD_v2_ptds), ANY(cuMemcpy), ANY(cuMemcpy_ptds),
               UP_ASYNC(cuMemcpyHtoDAsync_v2), UP_ASYNC(cuMemcpyHtoDAsync_v2_ptsz), DOWN_ASYNC(cuMemcpyDtoHAsync_v2),
               DOWN_ASYNC(cuMemcpyDtoHAsync_v2_ptsz), ACROSS_ASYNC(cuMemcpyDtoDAsync_v2),
               ACROSS_ASYNC(cuMemcpyDtoDAsync_v2_ptsz), ANY_ASYNC(cuMemcpyAsync), ANY_ASYNC(cuMemcpyAsync_ptsz)});
}

void add_fills(std::vector<CallRow>& rows) {
#define FILL(name, type, field) ROW(name, (x.a, type{7}, size_t{8}), p.dstDevice == x.a && p.field == 7 && p.N == 8)
#define FILL_ASYNC(name, type, field)            \
  ROW(name, (x.a, type{7}, size_t{8}, x.stream), \
      p.dstDevice == x.a && p.field == 7 && p.N == 8 && p.hStream == x.stream)
#define FILLS(width, type, field)                                                          \
  FILL(cuMemsetD##width##_v2, type, field), FILL(cuMemsetD##width##_v2_ptds, type, field), \
      FILL_ASYNC(cuMemsetD##width##Async, type, field), FILL_ASYNC(cuMemsetD##width##Async_ptsz, type, field)
  using byte = unsigned char;
  using half = unsigned short;
  rows.insert(rows.end(), {FILLS(8, byte, uc), FILLS(16, half, us), FILLS(32, unsigned, ui)});
}

void add_streams_and_events(std::vector<CallRow>& rows) {
#define STREAM(name) ROW(name, (x.stream), p.hStream == x.stream)
#define STREAM_EVENT(name) \
  ROW(name, (x.stream, x.event, 0u), p.hStream == x.stream && p.hEvent == x.event && p.Flags == 0)
#define EVENT_STREAM(name) ROW(name, (x.event, x.stream), p.hStream == x.stream && p.hEvent == x.event)
#define EVENT(name) ROW(name, (x.event), p.hEvent == x.event)
  rows.insert(rows.end(),
              {ROW(cuStreamCreate, ((CUstream*)&x.handle, 1u), p.phStream == (CUstream*)&x.handle && p.Flags == 1),
               ROW(cuStreamCreateWithPriority, ((CUstream*)&x.handle, 1u, -1),
                   p.phStream == (CUstream*)&x.handle && p.flags == 1 && p.priority == -1),
               STREAM(cuStreamDestroy_v2), STREAM(cuStreamSynchronize), STREAM(cuStreamSynchronize_ptsz),
               STREAM(cuStreamQuery), STREAM(cuStreamQuery_ptsz), STREAM_EVENT(cuStreamWaitEvent),
               STREAM_EVENT(cuStreamWaitEvent_ptsz), EVENT_STREAM(cuEventRecord), EVENT_STREAM(cuEventRecord_ptsz),
               ROW(cuEventCreate, ((CUevent*)&x.handle, 2u), p.phEvent == (CUevent*)&x.handle && p.Flags == 2),
               EVENT(cuEventDestroy_v2), EVENT(cuEventSynchronize), EVENT(cuEventQuery),
               failing(ROW(cuEventElapsedTime_v2, ((float*)&x.number, x.event, x.event),
                           p.pMilliseconds == (float*)&x.number && p.hStart == x.event && p.hEnd == x.event),
                       CUDA_ERROR_INVALID_HANDLE)});  // the event has no times
}

void make_context(CallBench& x) { x.call("cuCtxCreate_v2", (CUcontext*)&x.handle, 0u, 0); }
void end_context(CallBench& x) { x.call("cuCtxDestroy_v2", (CUcontext)x.handle); }
void retain(CallBench& x) { x.call("cuDevicePrimaryCtxRetain", (CUcontext*)&x.handle, 0); }
void release(CallBench& x) { x.call("cuDevicePrimaryCtxRelease_v2", 0); }

void add_contexts(std::vector<CallRow>& rows) {
  CallRow synchronize{"cuCtxSynchronize", CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize,
                      [](CallBench& x) -> CUresult { return x.call("cuCtxSynchronize"); }, nullptr};
  rows.insert(rows.end(),
              {synchronize, ROW(cuCtxSynchronize_v2, ((CUcontext) nullptr), p.ctx == nullptr),
               restored(ROW(cuCtxCreate_v2, ((CUcontext*)&x.handle, 4u, 0),
                            p.pctx == (CUcontext*)&x.handle && p.flags == 4 && p.dev == 0),
                        &end_context),
               restored(ROW(cuCtxCreate_v4, ((CUcontext*)&x.handle, (void*)nullptr, 4u, 0),
                            p.pctx == (CUcontext*)&x.handle && p.ctxCreateParams == nullptr && p.flags == 4),
                        &end_context),
               prepared(ROW(cuCtxDestroy_v2, ((CUcontext)x.handle), p.ctx == x.handle), &make_context),
               restored(ROW(cuDevicePrimaryCtxRetain, ((CUcontext*)&x.handle, 0),
                            p.pctx == (CUcontext*)&x.handle && p.dev == 0),
                        &release),
               prepared(ROW(cuDevicePrimaryCtxRelease_v2, (0), p.dev == 0), &retain),
               failing(ROW(cuDevicePrimaryCtxReset_v2, (1), p.dev == 1), CUDA_ERROR_INVALID_DEVICE)});
}

void add_modules(std::vector<CallRow>& rows) {
  rows.insert(
      rows.end(),
      {ROW(cuModuleLoadData, ((CUmodule*)&x.handle, (const void*)kVectorAdd),
           p.module == (CUmodule*)&x.handle && p.image == kVectorAdd),
       ROW(cuModuleLoadDataEx,
           ((CUmodule*)&x.handle, (const void*)kVectorAdd, 0u, (CUjit_option*)nullptr, (void**)nullptr),
           p.image == kVectorAdd && p.numOptions == 0 && p.options == nullptr),
       ROW(cuModuleUnload, (x.add.module), p.hmod == x.add.module),
       ROW(cuModuleGetFunction, ((CUfunction*)&x.handle, x.add.module, "vector_add"),
           p.hfunc == (CUfunction*)&x.handle && p.hmod == x.add.module && std::string_view(p.name) == "vector_add"),
       failing(ROW(cuModuleGetGlobal_v2, (&x.made, &x.size, x.add.module, "none"),
                   p.dptr == &x.made && p.bytes == &x.size && p.hmod == x.add.module),
               CUDA_ERROR_NOT_FOUND)});
}

const CUmemAllocationProp* device_memory() {
  static CUmemAllocationProp prop{CU_MEM_ALLOCATION_TYPE_PINNED, 0, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, nullptr, {}};
  return &prop;
}
const CUmemAccessDesc* read_write() {
  static CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  return &access;
}
constexpr size_t kGranule = size_t{2} << 20;

void reserve(CallBench& x) { x.call("cuMemAddressReserve", &x.made, kGranule, size_t{0}, CUdeviceptr{0}, uint64_t{0}); }
void create(CallBench& x) { x.call("cuMemCreate", &x.number, kGranule, device_memory(), uint64_t{0}); }
void map(CallBench& x) {
  reserve(x);
  create(x);
  x.call("cuMemMap", x.made, kGranule, size_t{0}, x.number, uint64_t{0});
}
void unmap(CallBench& x) { x.call("cuMemUnmap", x.made, kGranule); }
void release_memory(CallBench& x) {
  x.call("cuMemRelease", x.number);
  x.call("cuMemAddressFree", x.made, kGranule);
}
void unmap_all(CallBench& x) {
  unmap(x);
  release_memory(x);
}

void add_virtual_memory(std::vector<CallRow>& rows) {
  rows.insert(
      rows.end(),
      {restored(ROW(cuMemAddressReserve, (&x.made, kGranule, size_t{0}, CUdeviceptr{0}, uint64_t{0}),
                    p.ptr == &x.made && p.size == kGranule && p.addr == 0 && p.flags == 0),
                [](CallBench& x) { x.call("cuMemAddressFree", x.made, kGranule); }),
       prepared(ROW(cuMemAddressFree, (x.made, kGranule), p.ptr == x.made && p.size == kGranule), &reserve),
       restored(ROW(cuMemCreate, (&x.number, kGranule, device_memory(), uint64_t{0}),
                    p.handle == &x.number && p.size == kGranule && p.prop == device_memory()),
                [](CallBench& x) { x.call("cuMemRelease", x.number); }),
       prepared(ROW(cuMemRelease, (x.number), p.handle == x.number), &create),
       prepared(
           ROW(cuMemMap, (x.made, kGranule, size_t{0}, x.number, uint64_t{0}),
               p.ptr == x.made && p.size == kGranule && p.offset == 0 && p.handle == x.number),
           [](CallBench& x) { reserve(x), create(x); }, &unmap_all),
       prepared(ROW(cuMemUnmap, (x.made, kGranule), p.ptr == x.made && p.size == kGranule), &map, &release_memory),
       prepared(ROW(cuMemSetAccess, (x.made, kGranule, read_write(), size_t{1}),
                    p.ptr == x.made && p.desc == read_write() && p.count == 1),
                &map, &unmap_all)});
}

void take(CallBench& x) { x.made = x.driver.allocate(64); }

void add_other_memory(std::vector<CallRow>& rows) {
#define ALLOCATE_ASYNC(name) \
  ROW(name, (&x.made, size_t{64}, x.stream), p.dptr == &x.made && p.bytesize == 64 && p.hStream == x.stream)
#define FREE_ASYNC(name) prepared(ROW(name, (x.made, x.stream), p.dptr == x.made && p.hStream == x.stream), &take)
  rows.insert(rows.end(),
              {ALLOCATE_ASYNC(cuMemAllocAsync), ALLOCATE_ASYNC(cuMemAllocAsync_ptsz), FREE_ASYNC(cuMemFreeAsync),
               FREE_ASYNC(cuMemFreeAsync_ptsz),
               ROW(cuMemAllocPitch_v2, (&x.made, &x.size, size_t{100}, size_t{3}, 4u),
                   p.dptr == &x.made && p.pPitch == &x.size && p.WidthInBytes == 100 && p.Height == 3),
               failing(ROW(cuMemAllocManaged, (&x.made, size_t{64}, 1u), p.dptr == &x.made && p.bytesize == 64),
                       CUDA_ERROR_NOT_SUPPORTED),
               restored(ROW(cuMemHostRegister_v2, ((void*)x.host, size_t{64}, 0u), p.p == x.host && p.bytesize == 64),
                        [](CallBench& x) { x.call("cuMemHostUnregister", (void*)x.host); }),
               prepared(ROW(cuMemHostUnregister, ((void*)x.host), p.p == x.host),
                        [](CallBench& x) { x.call("cuMemHostRegister_v2", (void*)x.host, size_t{64}, 0u); })});
}

const CUDA_MEMCPY2D* rectangle(CallBench& x) {
  static CUDA_MEMCPY2D copy;
  copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = x.a, copy.dstDevice = x.b;
  copy.srcPitch = copy.dstPitch = 32;
  copy.WidthInBytes = 8, copy.Height = 2;
  return &copy;
}
const CUDA_MEMCPY3D* block_of_memory(CallBench& x) {
  static CUDA_MEMCPY3D copy;
  copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = x.a, copy.dstDevice = x.b;
  copy.srcPitch = copy.dstPitch = 32, copy.srcHeight = copy.dstHeight = 2;
  copy.WidthInBytes = 8, copy.Height = 2, copy.Depth = 2;
  return &copy;
}

void add_boxes(std::vector<CallRow>& rows) {
#define BOX(name, which) ROW(name, (which(x)), p.pCopy == which(x))
#define BOX_ASYNC(name, which) ROW(name, (which(x), x.stream), p.pCopy == which(x) && p.hStream == x.stream)
#define FILL_2D(name, type, field)                            \
  ROW(name, (x.a, size_t{32}, type{7}, size_t{4}, size_t{2}), \
      p.dstDevice == x.a && p.dstPitch == 32 && p.field == 7 && p.Width == 4 && p.Height == 2)
#define FILL_2D_ASYNC(name, type, field)                                \
  ROW(name, (x.a, size_t{32}, type{7}, size_t{4}, size_t{2}, x.stream), \
      p.dstDevice == x.a && p.field == 7 && p.Width == 4 && p.Height == 2 && p.hStream == x.stream)
#define FILLS_2D(width, type, field)                                                                 \
  FILL_2D(cuMemsetD2D##width##_v2, type, field), FILL_2D(cuMemsetD2D##width##_v2_ptds, type, field), \
      FILL_2D_ASYNC(cuMemsetD2D##width##Async, type, field),                                         \
      FILL_2D_ASYNC(cuMemsetD2D##width##Async_ptsz, type, field)
  using byte = unsigned char;
  using half = unsigned short;
  rows.insert(rows.end(),
              {BOX(cuMemcpy2D_v2, rectangle), BOX(cuMemcpy2D_v2_ptds, rectangle),
               BOX(cuMemcpy2DUnaligned_v2, rectangle), BOX(cuMemcpy2DUnaligned_v2_ptds, rectangle),
               BOX_ASYNC(cuMemcpy2DAsync_v2, rectangle), BOX_ASYNC(cuMemcpy2DAsync_v2_ptsz, rectangle),
               BOX(cuMemcpy3D_v2, block_of_memory), BOX(cuMemcpy3D_v2_ptds, block_of_memory),
               BOX_ASYNC(cuMemcpy3DAsync_v2, block_of_memory), BOX_ASYNC(cuMemcpy3DAsync_v2_ptsz, block_of_memory),
               FILLS_2D(8, byte, uc), FILLS_2D(16, half, us), FILLS_2D(32, unsigned, ui)});
}

CUgraph graph_of(CallBench& x) { return (CUgraph)x.prepared; }
CUgraphExec executable_of(CallBench& x) { return (CUgraphExec)x.handle; }

void make_graph(CallBench& x) { x.call("cuGraphCreate", (CUgraph*)&x.prepared, 0u); }
void make_kernel_graph(CallBench& x) {
  make_graph(x);
  CUDA_KERNEL_NODE_PARAMS node{};
  node.func = x.add.launch.function;
  node.gridDimX = node.gridDimY = node.gridDimZ = node.blockDimY = node.blockDimZ = 1;
  node.blockDimX = 64;
  node.kernelParams = pointers(x);
  x.call("cuGraphAddKernelNode_v2", (CUgraphNode*)&x.page, graph_of(x), (const CUgraphNode*)nullptr, size_t{0},
         (const CUDA_KERNEL_NODE_PARAMS*)&node);
}
void make_executable(CallBench& x) {
  make_kernel_graph(x);
  x.call("cuGraphInstantiateWithFlags", (CUgraphExec*)&x.handle, graph_of(x), uint64_t{0});
}
const CUDA_KERNEL_NODE_PARAMS* new_params(CallBench& x) {
  static CUDA_KERNEL_NODE_PARAMS node;
  node = {x.add.launch.function, 1, 1, 1, 32, 1, 1, 0, pointers(x), nullptr, nullptr, nullptr};
  return &node;
}
CUDA_GRAPH_INSTANTIATE_PARAMS* instantiation() {
  static CUDA_GRAPH_INSTANTIATE_PARAMS params;
  params = {};
  return &params;
}

void add_graphs(std::vector<CallRow>& rows) {
#define GRAPH_STREAM(name)                                                                                     \
  prepared(ROW(name, (executable_of(x), x.stream), p.hGraph == executable_of(x) && p.hStream == x.stream), \
           &make_executable)
#define INSTANTIATE(name)                                                                                              \
  prepared(ROW(name, ((CUgraphExec*)&x.handle, graph_of(x), instantiation()),                                          \
               p.phGraphExec == (CUgraphExec*)&x.handle && p.hGraph == graph_of(x) && p.instantiateParams != nullptr), \
           &make_kernel_graph)
  rows.insert(
      rows.end(),
      {GRAPH_STREAM(cuGraphLaunch), GRAPH_STREAM(cuGraphLaunch_ptsz), GRAPH_STREAM(cuGraphUpload),
       GRAPH_STREAM(cuGraphUpload_ptsz), INSTANTIATE(cuGraphInstantiateWithParams),
       INSTANTIATE(cuGraphInstantiateWithParams_ptsz),
       prepared(ROW(cuGraphInstantiateWithFlags, ((CUgraphExec*)&x.handle, graph_of(x), uint64_t{8}),
                    p.phGraphExec == (CUgraphExec*)&x.handle && p.hGraph == graph_of(x) && p.flags == 8),
                &make_kernel_graph),
       prepared(ROW(cuGraphInstantiate_v2,
                    ((CUgraphExec*)&x.handle, graph_of(x), (CUgraphNode*)nullptr, (char*)nullptr, size_t{0}),
                    p.phGraphExec == (CUgraphExec*)&x.handle && p.hGraph == graph_of(x) && p.bufferSize == 0),
                &make_kernel_graph),
       prepared(ROW(cuGraphDestroy, (graph_of(x)), p.hGraph == graph_of(x)), &make_graph),
       prepared(ROW(cuGraphExecDestroy, (executable_of(x)), p.hGraphExec == executable_of(x)), &make_executable),
       prepared(
           ROW(cuGraphExecKernelNodeSetParams_v2, (executable_of(x), (CUgraphNode)x.page, new_params(x)),
               p.hGraphExec == executable_of(x) && p.hNode == (CUgraphNode)x.page && p.nodeParams->blockDimX == 32),
           &make_executable)});
}

void begin_capture(CallBench& x) { x.call("cuStreamBeginCapture_v2", x.stream, 2u); }
void end_capture(CallBench& x) { x.call("cuStreamEndCapture", x.stream, (CUgraph*)&x.handle); }

void add_captures(std::vector<CallRow>& rows) {
#define BEGIN(name) restored(ROW(name, (x.stream, 1u), p.hStream == x.stream && p.mode == 1), &end_capture)
#define BEGIN_TO(name)                                                                                                \
  prepared(                                                                                                           \
      ROW(name, (x.stream, graph_of(x), (const CUgraphNode*)nullptr, (const CUgraphEdgeData*)nullptr, size_t{0}, 2u), \
          p.hStream == x.stream && p.hGraph == graph_of(x) && p.numDependencies == 0 && p.mode == 2),                 \
      &make_graph, &end_capture)
#define END(name)                                                                                                 \
  prepared(ROW(name, (x.stream, (CUgraph*)&x.handle), p.hStream == x.stream && p.phGraph == (CUgraph*)&x.handle), \
           &begin_capture)
#define RECORD_WITH_FLAGS(name) \
  ROW(name, (x.event, x.stream, 0u), p.hEvent == x.event && p.hStream == x.stream && p.flags == 0)
  rows.insert(rows.end(), {BEGIN(cuStreamBeginCapture_v2), BEGIN(cuStreamBeginCapture_v2_ptsz),
                           BEGIN_TO(cuStreamBeginCaptureToGraph), BEGIN_TO(cuStreamBeginCaptureToGraph_ptsz),
                           END(cuStreamEndCapture), END(cuStreamEndCapture_ptsz),
                           RECORD_WITH_FLAGS(cuEventRecordWithFlags), RECORD_WITH_FLAGS(cuEventRecordWithFlags_ptsz)});
}

}  // namespace

const std::vector<CallRow>& call_table() {
  static const std::vector<CallRow> rows = [] {
    std::vector<CallRow> all;
    add_launches(all);
    add_memory(all);
    add_copies(all);
    add_fills(all);
    add_streams_and_events(all);
    add_contexts(all);
    add_modules(all);
    add_virtual_memory(all);
    add_other_memory(all);
    add_boxes(all);
    add_graphs(all);
    add_captures(all);
    return all;
  }();
  return rows;
}

}  // namespace kgate
