// An application to record: it uses the driver API of whatever libcuda.so.1 the dynamic loader finds, and does known
// things. The first argument says which; see the table at the end. Addresses go to stdout where a test needs them.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gpu/cupti_params_abi.h"

#if KGATE_HAVE_CUDA_HEADERS && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define KGATE_HAVE_NVTX 1
#endif

using namespace kgate::gpu;

namespace {

// add: data[i] += n for 32 elements; fill: data[i] = n.
constexpr char kPtx[] = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry add(.param .u64 data, .param .u32 n)
{
  .reg .u64 %rd<3>;
  .reg .u32 %r<4>;
  ld.param.u64 %rd1, [data];
  ld.param.u32 %r3, [n];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  ld.global.u32 %r1, [%rd1];
  add.u32 %r1, %r1, %r3;
  st.global.u32 [%rd1], %r1;
  ret;
}
.visible .entry fill(.param .u64 data, .param .u32 n)
{
  .reg .u64 %rd<3>;
  .reg .u32 %r<4>;
  ld.param.u64 %rd1, [data];
  ld.param.u32 %r3, [n];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r3;
  ret;
}
)";

constexpr int kMissing = 95;  // the driver, or the build, lacks what the mode needs

void* driver() {
  static void* const handle = dlopen("libcuda.so.1", RTLD_NOW);
  if (handle == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(90);
  }
  return handle;
}

template <typename... Parameters, typename... Arguments>
CUresult attempt(const char* name, Arguments... arguments) {
  auto* function = reinterpret_cast<CUresult (*)(Parameters...)>(dlsym(driver(), name));
  if (function == nullptr) {
    std::fprintf(stderr, "no %s\n", name);
    std::exit(kMissing);
  }
  return function(static_cast<Parameters>(arguments)...);
}

// Exits with 91 when the driver refuses.
template <typename... Parameters, typename... Arguments>
void call(const char* name, Arguments... arguments) {
  const CUresult result = attempt<Parameters...>(name, arguments...);
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: %d\n", name, result);
  std::exit(91);
}

CUdeviceptr allocate(size_t bytes) {
  CUdeviceptr address = 0;
  call<CUdeviceptr*, size_t>("cuMemAlloc_v2", &address, bytes);
  return address;
}

CUstream make_stream() {
  CUstream stream = nullptr;
  call<CUstream*, unsigned>("cuStreamCreate", &stream, 1u);
  return stream;
}

CUevent make_event() {
  CUevent event = nullptr;
  call<CUevent*, unsigned>("cuEventCreate", &event, 0u);
  return event;
}

void sync(CUstream stream) { call<CUstream>("cuStreamSynchronize", stream); }

struct Device {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction add = nullptr, fill = nullptr;

  Device() {
    call<unsigned>("cuInit", 0u);
    call<CUcontext*, CUdevice>("cuDevicePrimaryCtxRetain", &context, 0);
    enter();
    call<CUmodule*, const void*>("cuModuleLoadData", &module, kPtx);
    call<CUfunction*, CUmodule, const char*>("cuModuleGetFunction", &add, module, "add");
    call<CUfunction*, CUmodule, const char*>("cuModuleGetFunction", &fill, module, "fill");
  }
  void enter() const { call<CUcontext>("cuCtxSetCurrent", context); }

  void launch(CUfunction function, CUdeviceptr data, uint32_t n, CUstream stream = nullptr,
              const char* name = "cuLaunchKernel") const {
    void* arguments[] = {&data, &n};
    call<CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**>(
        name, function, 1u, 1u, 1u, 32u, 1u, 1u, 0u, stream, arguments, nullptr);
  }
};

// ---- modes ---------------------------------------------------------------------------------------------------------

// Each kind of call once, in a known order.
int calls(char**) {
  Device d;
  uint32_t numbers[32];
  for (uint32_t i = 0; i < 32; ++i) numbers[i] = 1000 + i;
  const CUdeviceptr a = allocate(4096), b = allocate(256);
  std::printf("%lx %lx\n", a, b);
  const CUstream stream = make_stream();
  const CUevent event = make_event();
  call<CUdeviceptr, const void*, size_t>("cuMemcpyHtoD_v2", a, numbers, sizeof numbers);
  numbers[0] = 0;  // what was sent is what it was then
  call<CUdeviceptr, unsigned, size_t>("cuMemsetD32_v2", b, 7, 64);
  d.launch(d.add, a, 5, stream);
  call<CUevent, CUstream>("cuEventRecord", event, stream);
  call<CUstream, CUevent, unsigned>("cuStreamWaitEvent", nullptr, event, 0);
  call<CUdeviceptr, CUdeviceptr, size_t, CUstream>("cuMemcpyDtoDAsync_v2", b, a, 128, stream);
  d.launch(d.fill, b, 9, nullptr, "cuLaunchKernel_ptsz");
  call<CUevent>("cuEventSynchronize", event);
  sync(stream);
  call<>("cuCtxSynchronize");
  call<void*, CUdeviceptr, size_t>("cuMemcpyDtoH_v2", numbers, a, sizeof numbers);
  call<CUdeviceptr>("cuMemFree_v2", b);
  call<CUevent>("cuEventDestroy_v2", event);
  call<CUstream>("cuStreamDestroy_v2", stream);
  return numbers[0] == 1005 ? 0 : 92;
}

// The parameters as one block.
int extra(char**) {
  Device d;
  const CUdeviceptr a = allocate(4096);
  struct {
    CUdeviceptr data;
    uint32_t n;
  } block{a, 77};
  size_t size = 12;
  void* list[] = {kLaunchParamBufferPointer, &block, kLaunchParamBufferSize, &size, kLaunchParamEnd};
  call<CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**>(
      "cuLaunchKernel", d.fill, 1u, 1u, 1u, 32u, 1u, 1u, 0u, nullptr, nullptr, list);
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config{1, 1, 1, 32, 1, 1, 0, nullptr, &attribute, 1};
  uint32_t n = 78;
  CUdeviceptr data = a;
  void* arguments[] = {&data, &n};
  call<const CUlaunchConfig*, CUfunction, void**, void**>("cuLaunchKernelEx", &config, d.fill, arguments, nullptr);
  call<>("cuCtxSynchronize");
  return 0;
}

// `argv[2]` requests: a launch, an upload of the request's number, a launch, a wait.
int requests(char** argv) {
  Device d;
  const CUdeviceptr a = allocate(8192);
  call<CUdeviceptr, unsigned char, size_t>("cuMemsetD8_v2", a, 0, 8192);
  for (uint32_t i = 0; i < static_cast<uint32_t>(std::atoi(argv[2])); ++i) {
    d.launch(d.add, a, 1);
    call<CUdeviceptr, const void*, size_t>("cuMemcpyHtoD_v2", a + 256, &i, sizeof i);
    d.launch(d.add, a, 2);
    sync(nullptr);
  }
  return 0;
}

// Two threads with a stream and a buffer each, `argv[2]` launches, a wait after each tenth.
int threads(char** argv) {
  Device d;
  const auto count = static_cast<uint32_t>(std::atoi(argv[2]));
  const auto work = [&](CUfunction function) {
    d.enter();
    const CUdeviceptr data = allocate(4096);
    const CUstream stream = make_stream();
    for (uint32_t i = 1; i <= count; ++i) {
      d.launch(function, data, i, stream);
      if (i % 10 == 0) sync(stream);
    }
  };
  std::thread first(work, d.add), second(work, d.fill);
  first.join();
  second.join();
  return 0;
}

int memory(char**) {
  Device d;
  const CUdeviceptr a = allocate(200);
  CUdeviceptr pitched = 0, async = 0, managed = 0;
  size_t pitch = 0;
  void* pinned = nullptr;
  static char registered[8192];
  call<CUdeviceptr*, size_t*, size_t, size_t, unsigned>("cuMemAllocPitch_v2", &pitched, &pitch, 100, 3, 4u);
  call<void**, size_t>("cuMemAllocHost_v2", &pinned, 4096);
  call<void*, size_t, unsigned>("cuMemHostRegister_v2", registered, sizeof registered, 0u);
  call<CUdeviceptr*, size_t, CUstream>("cuMemAllocAsync", &async, 512, nullptr);
  std::printf("%lx %lx %zu %p %p %lx\n", a, pitched, pitch, pinned, static_cast<void*>(registered), async);
  call<CUdeviceptr, const void*, size_t, CUstream>("cuMemcpyHtoDAsync_v2", a, pinned, 100, nullptr);
  call<CUdeviceptr, const void*, size_t, CUstream>("cuMemcpyHtoDAsync_v2", a, registered + 16, 50, nullptr);
  char rows[3][10] = {"aaaaaaaaa", "bbbbbbbbb", "ccccccccc"};
  CUDA_MEMCPY2D box{};
  box.srcMemoryType = CU_MEMORYTYPE_HOST, box.srcHost = rows, box.srcPitch = 10, box.srcXInBytes = 1;
  box.dstMemoryType = CU_MEMORYTYPE_DEVICE, box.dstDevice = pitched, box.dstPitch = pitch, box.dstXInBytes = 4;
  box.WidthInBytes = 4, box.Height = 3;
  call<const CUDA_MEMCPY2D*>("cuMemcpy2D_v2", &box);
  d.launch(d.fill, a, 1);
  call<CUdeviceptr, CUstream>("cuMemFreeAsync", async, nullptr);
  call<>("cuCtxSynchronize");
  call<CUdeviceptr>("cuMemFree_v2", pitched);
  call<void*>("cuMemHostUnregister", static_cast<void*>(registered));
  call<void*>("cuMemFreeHost", pinned);
  if (attempt<CUdeviceptr*, size_t, unsigned>("cuMemAllocManaged", &managed, 4096, 1u) == CUDA_SUCCESS)
    d.launch(d.fill, managed, 1);
  return 0;
}

// One range mapped in two halves, used, and unmapped at once.
int mapped(char**) {
  Device d;
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  size_t page = 0;
  call<size_t*, const CUmemAllocationProp*, unsigned>("cuMemGetAllocationGranularity", &page, &prop, 0u);
  CUdeviceptr base = 0;
  call<CUdeviceptr*, size_t, size_t, CUdeviceptr, uint64_t>("cuMemAddressReserve", &base, 2 * page, 0u, 0u, 0u);
  CUmemGenericAllocationHandle handles[2];
  for (int i = 0; i < 2; ++i) {
    call<CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*, uint64_t>("cuMemCreate", &handles[i], page,
                                                                                      &prop, 0u);
    call<CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, uint64_t>("cuMemMap", base + i * page, page, 0u,
                                                                              handles[i], 0u);
  }
  CUmemAccessDesc access{prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  call<CUdeviceptr, size_t, const CUmemAccessDesc*, size_t>("cuMemSetAccess", base, 2 * page, &access, 1u);
  std::printf("%lx %zu\n", base, page);
  d.launch(d.fill, base, 3);
  call<>("cuCtxSynchronize");
  call<CUdeviceptr, size_t>("cuMemUnmap", base, 2 * page);
  return 0;
}

// Prepared by hand: fill(a, 1) and a memset of b, then a child graph that is add(a, 2), then a copy a to b, an empty
// node, and a host function.
int graph(char**) {
  Device d;
  const CUdeviceptr a = allocate(4096), b = allocate(4096);
  const CUstream stream = make_stream();
  std::printf("%lx %lx\n", a, b);
  std::fflush(stdout);
  CUgraph graph = nullptr, child = nullptr;
  call<CUgraph*, unsigned>("cuGraphCreate", &graph, 0u);
  call<CUgraph*, unsigned>("cuGraphCreate", &child, 0u);
  uint32_t one = 1, two = 2;
  CUdeviceptr data = a;
  void *first[] = {&data, &one}, *second[] = {&data, &two};
  CUDA_KERNEL_NODE_PARAMS fill{d.fill, 1, 1, 1, 32, 1, 1, 0, first, nullptr, nullptr, nullptr}, add = fill;
  add.func = d.add, add.kernelParams = second;
  CUDA_MEMSET_NODE_PARAMS set{b, 0, 5, 4, 16, 1};
  CUgraphNode nodes[6] = {};
  using Nodes = const CUgraphNode*;
  const char* add_kernel = "cuGraphAddKernelNode_v2";
  call<CUgraphNode*, CUgraph, Nodes, size_t, const CUDA_KERNEL_NODE_PARAMS*>(add_kernel, &nodes[0], graph, nullptr, 0,
                                                                             &fill);
  call<CUgraphNode*, CUgraph, Nodes, size_t, const CUDA_MEMSET_NODE_PARAMS*, CUcontext>(
      "cuGraphAddMemsetNode", &nodes[1], graph, nullptr, 0, &set, d.context);
  CUgraphNode inner = nullptr;
  call<CUgraphNode*, CUgraph, Nodes, size_t, const CUDA_KERNEL_NODE_PARAMS*>(add_kernel, &inner, child, nullptr, 0,
                                                                             &add);
  call<CUgraphNode*, CUgraph, Nodes, size_t, CUgraph>("cuGraphAddChildGraphNode", &nodes[2], graph, nodes, 2, child);
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = a, copy.dstDevice = b, copy.WidthInBytes = 128, copy.Height = copy.Depth = 1;
  call<CUgraphNode*, CUgraph, Nodes, size_t, const CUDA_MEMCPY3D*, CUcontext>("cuGraphAddMemcpyNode", &nodes[3], graph,
                                                                              &nodes[2], 1, &copy, d.context);
  call<CUgraphNode*, CUgraph, Nodes, size_t>("cuGraphAddEmptyNode", &nodes[4], graph, &nodes[3], 1);
  CUDA_HOST_NODE_PARAMS host{[](void*) {}, nullptr};
  call<CUgraphNode*, CUgraph, Nodes, size_t, const CUDA_HOST_NODE_PARAMS*>("cuGraphAddHostNode", &nodes[5], graph,
                                                                           &nodes[4], 1, &host);
  CUgraphExec exec = nullptr;
  call<CUgraphExec*, CUgraph, uint64_t>("cuGraphInstantiateWithFlags", &exec, graph, 0u);
  call<CUgraph>("cuGraphDestroy", graph);
  call<CUgraphExec, CUstream>("cuGraphLaunch", exec, stream);
  sync(stream);
  call<CUgraphExec>("cuGraphExecDestroy", exec);
  return 0;
}

// Two launches on two streams are captured, the second stream brought in and back by events, then launched twice.
int capture(char**) {
  Device d;
  const CUdeviceptr a = allocate(4096), b = allocate(4096);
  const CUstream one = make_stream(), two = make_stream();
  const CUevent fork = make_event(), join = make_event();
  d.launch(d.fill, b, 4, one);
  sync(one);
  call<CUstream, unsigned>("cuStreamBeginCapture_v2", one, 2u);
  d.launch(d.fill, a, 1, one);
  call<CUevent, CUstream>("cuEventRecord", fork, one);
  call<CUstream, CUevent, unsigned>("cuStreamWaitEvent", two, fork, 0);
  d.launch(d.add, b, 2, two);
  call<CUevent, CUstream>("cuEventRecord", join, two);
  call<CUstream, CUevent, unsigned>("cuStreamWaitEvent", one, join, 0);
  CUgraph graph = nullptr;
  call<CUstream, CUgraph*>("cuStreamEndCapture", one, &graph);
  CUgraphExec exec = nullptr;
  call<CUgraphExec*, CUgraph, uint64_t>("cuGraphInstantiateWithFlags", &exec, graph, 0u);
  for (int i = 0; i < 2; ++i) call<CUgraphExec, CUstream>("cuGraphLaunch", exec, one);
  sync(one);
  return 0;
}

int ranges(char**) {
#if KGATE_HAVE_NVTX
  Device d;
  const CUdeviceptr a = allocate(4096);
  nvtxDomainHandle_t domain = nvtxDomainCreateA("domain");
  const nvtxStringHandle_t text = nvtxDomainRegisterStringA(domain, "step");
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION, event.size = sizeof event;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED, event.message.registered = text;
  for (uint32_t i = 0; i < 3; ++i) {
    i == 1 ? nvtxDomainRangePushEx(domain, &event) : nvtxRangePushA("step");
    d.launch(d.add, a, i);
    nvtxRangePushW(L"inn\u00e9r");
    sync(nullptr);
    nvtxRangePop();
    d.launch(d.add, a, i);
    i == 1 ? nvtxDomainRangePop(domain) : nvtxRangePop();
  }
  const nvtxRangeId_t id = nvtxRangeStartA("step");
  d.launch(d.add, a, 9);
  std::thread([&] { nvtxRangeEnd(id); }).join();
  return 0;
#else
  return kMissing;
#endif
}

// `argv[2]`: how to leave.
int leave(char** argv) {
  const std::string how = argv[2];
  if (how == "nothing") return 3;
  Device d;
  const CUdeviceptr a = allocate(4096);
  if (how == "idle") return 3;
  d.launch(d.fill, a, 1);
  if (how == "fork") {
    sync(nullptr);
    const pid_t child = fork();
    if (child == 0) std::exit(0);
    int status = 0;
    waitpid(child, &status, 0);
    d.launch(d.fill, a, 2);
  }
  if (how == "close")
    for (int fd = 3; fd < 1024; ++fd) close(fd);
  d.launch(d.fill, a, 3);
  if (how == "_exit") {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    _exit(4);
  }
  if (how == "throw") throw std::runtime_error("on purpose");
  if (how == "context") call<CUdevice>("cuDevicePrimaryCtxRelease_v2", 0);
  if (how == "thread") {
    std::thread([] { std::exit(5); }).detach();
    pause();
  }
  return 3;
}

// Calls that fail, and a poll that does not stop.
int odd(char**) {
  Device d;
  const CUdeviceptr a = allocate(4096);
  const CUevent event = make_event();
  void* arguments[] = {nullptr, nullptr};
  (void)attempt<CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**,
                void**>("cuLaunchKernel", d.add, 0u, 1u, 1u, 32u, 1u, 1u, 0u, nullptr, arguments, nullptr);
  (void)attempt<CUdeviceptr>("cuMemFree_v2", a + 8);
  (void)attempt<CUdeviceptr*, size_t>("cuMemAlloc_v2", nullptr, 16);
  d.launch(d.add, a, 1);
  call<CUevent, CUstream>("cuEventRecord", event, nullptr);
  for (int i = 0; i < 1000; ++i) (void)attempt<CUevent>("cuEventQuery", event);
  return 0;
}

int contexts(char**) {
  Device d;
  d.launch(d.fill, allocate(4096), 1);
  CUcontext other = nullptr;
  call<CUcontext*, void*, unsigned, CUdevice>("cuCtxCreate_v4", &other, nullptr, 0u, 0);
  const CUdeviceptr b = allocate(4096);
  call<CUdeviceptr, unsigned char, size_t>("cuMemsetD8_v2", b, 0, 4096);
  call<>("cuCtxSynchronize");
  return 0;
}

// `argv[2]` launches; prints the nanoseconds of one, without the kernel's own time where the launch does not wait.
int speed(char** argv) {
  Device d;
  const CUdeviceptr a = allocate(4096);
  const int count = std::atoi(argv[2]);
  d.launch(d.fill, a, 1);
  sync(nullptr);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) d.launch(d.fill, a, 1);
  const auto end = std::chrono::steady_clock::now();
  sync(nullptr);
  std::printf("%.0f\n", std::chrono::duration<double, std::nano>(end - begin).count() / count);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, int (*)(char**)> modes = {
      {"calls", calls},       {"extra", extra}, {"requests", requests}, {"threads", threads}, {"memory", memory},
      {"mapped", mapped},     {"graph", graph}, {"capture", capture},   {"ranges", ranges},   {"leave", leave},
      {"contexts", contexts}, {"odd", odd},     {"speed", speed}};
  const auto mode = modes.find(argc > 1 ? argv[1] : "");
  return mode == modes.end() ? 64 : mode->second(argv);
}
