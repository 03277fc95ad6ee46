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
    return all;
  }();
  return rows;
}

}  // namespace kgate
