// An application to trace: it uses the driver API of whatever libcuda.so.1 the dynamic loader finds, and does known
// amounts of everything, so that a trace of it can be compared number by number.
//
//   sample plain      two threads with a stream each: 30 launches of add_one with 3 synchronisations, 20 of add_two
//   with
//                     2; before them a copy to the device and a memset, after them a context synchronisation and a copy
//                     back; then itself again as a forked child, with `child`
//   sample child      5 launches of add_one, 1 stream synchronisation
//   sample launches N N launches, 1 stream synchronisation
//   sample _exit      as child, then _exit
//   sample crash      as child, then abort
//   sample status N   as child, then exit status N
//   sample thread     as child, then exit from another thread
//   sample fork       as child; a forked process that never execs leaves by exit, then as child again
//   sample replace    as child, then replaces itself by `sample child`
//   sample wait       as child, says "ready" and waits for a signal
//   sample close      closes every descriptor above 2, then as child
//   sample second F   loads the library F, which it does not use, then as child
//   sample none       nothing with CUDA
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "gpu/cuda_abi.h"

using namespace kgate::gpu;

namespace {

constexpr char kPtx[] = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry add_one(.param .u64 data)
{
  .reg .u64 %rd<3>;
  .reg .u32 %r<2>;
  ld.param.u64 %rd1, [data];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  ld.global.u32 %r1, [%rd1];
  add.u32 %r1, %r1, 1;
  st.global.u32 [%rd1], %r1;
  ret;
}
.visible .entry add_two(.param .u64 data)
{
  .reg .u64 %rd<3>;
  .reg .u32 %r<2>;
  ld.param.u64 %rd1, [data];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  ld.global.u32 %r1, [%rd1];
  add.u32 %r1, %r1, 2;
  st.global.u32 [%rd1], %r1;
  ret;
}
)";

void* driver() {
  static void* const handle = dlopen("libcuda.so.1", RTLD_NOW);
  if (handle == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(90);
  }
  return handle;
}

// call<Parameters>("name", arguments...): exits with 91 when the driver refuses.
template <typename... Parameters, typename... Arguments>
void call(const char* name, Arguments... arguments) {
  auto* function = reinterpret_cast<CUresult (*)(Parameters...)>(dlsym(driver(), name));
  CUresult result = function ? function(static_cast<Parameters>(arguments)...) : CUDA_ERROR_NOT_FOUND;
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: %d\n", name, result);
  std::exit(91);
}

struct Device {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUdeviceptr data = 0;

  Device() {
    call<unsigned>("cuInit", 0u);
    CUdevice device = 0;
    call<CUdevice*, int>("cuDeviceGet", &device, 0);
    call<CUcontext*, CUdevice>("cuDevicePrimaryCtxRetain", &context, device);
    enter();
    call<CUmodule*, const void*>("cuModuleLoadData", &module, kPtx);
    call<CUdeviceptr*, size_t>("cuMemAlloc_v2", &data, 4096);
  }
  void enter() const { call<CUcontext>("cuCtxSetCurrent", context); }

  // `launches` in a stream of its own, a synchronisation after each tenth, or one at the end.
  void work(const char* kernel, int launches, bool often = true) const {
    enter();
    CUfunction function = nullptr;
    CUstream stream = nullptr;
    call<CUfunction*, CUmodule, const char*>("cuModuleGetFunction", &function, module, kernel);
    call<CUstream*, unsigned>("cuStreamCreate", &stream, 1u);
    CUdeviceptr argument = data;
    void* arguments[] = {&argument};
    for (int i = 1; i <= launches; ++i) {
      call<CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**>(
          "cuLaunchKernel", function, 1u, 1u, 1u, 32u, 1u, 1u, 0u, stream, arguments, nullptr);
      if (often ? i % 10 == 0 : i == launches) call<CUstream>("cuStreamSynchronize", stream);
    }
  }
  void child_work() const { work("add_one", 5, false); }
};

int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 92;
}

int plain(char** argv) {
  Device device;
  uint32_t numbers[1024] = {};
  call<CUdeviceptr, const void*, size_t>("cuMemcpyHtoD_v2", device.data, numbers, sizeof numbers);
  call<CUdeviceptr, unsigned char, size_t>("cuMemsetD8_v2", device.data, 0, 4096);
  std::thread first([&] { device.work("add_one", 30); }), second([&] { device.work("add_two", 20); });
  first.join();
  second.join();
  call<>("cuCtxSynchronize");
  call<void*, CUdeviceptr, size_t>("cuMemcpyDtoH_v2", numbers, device.data, sizeof numbers);
  pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", argv[0], "child", nullptr);
    _exit(93);
  }
  return wait_for(child);
}

}  // namespace

int main(int argc, char** argv) {
  std::string mode = argc > 1 ? argv[1] : "plain";
  int number = argc > 2 ? std::atoi(argv[2]) : 0;
  if (mode == "none") return number;
  if (mode == "plain") return plain(argv);
  if (mode == "close")
    for (int fd = 3; fd < 1024; ++fd) close(fd);
  if (mode == "second" && (argc < 3 || dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) == nullptr)) return 94;
  Device device;
  if (mode == "close")
    for (int fd = 3; fd < 1024; ++fd) close(fd);
  if (mode == "launches") {
    device.work("add_one", number, false);
    return 0;
  }
  device.child_work();
  if (mode == "_exit") _exit(0);
  if (mode == "crash") std::abort();
  if (mode == "status") return number;
  if (mode == "thread") {
    std::thread([] { std::exit(0); }).detach();
    pause();
  }
  if (mode == "fork") {
    pid_t child = fork();
    if (child == 0) std::exit(0);
    if (int status = wait_for(child)) return status;
    device.child_work();
  }
  if (mode == "replace") {
    execl("/proc/self/exe", argv[0], "child", nullptr);
    return 93;
  }
  if (mode == "wait") {
    std::puts("ready");
    std::fflush(stdout);
    pause();
  }
  return 0;
}
