// Driver: device, memory, streams, events and launches. Each call is one function pointer and one compare; everything
// that can be slow (texts, faults, properties) lies behind the compare.
#include "gpu/driver.h"

#include <dlfcn.h>

#include "gpu/driver_state.h"

namespace kgate::gpu {

Driver::Driver(std::unique_ptr<State> state) : state_(std::move(state)) {}

Driver::~Driver() {
  if (state_->context != nullptr) state_->calls.cuDevicePrimaryCtxRelease_v2(state_->device);
}

Result<std::unique_ptr<Driver>> Driver::open(const std::string& library) {
  auto loaded = load_library(library);
  if (!loaded) return loaded.failure();
  auto state = std::make_unique<State>();
  state->library = *loaded;
  state->calls = state->library.calls;
  void* handle = state->library.handle;
  if (auto version = reinterpret_cast<kgate_vgpu_version_fn>(dlsym(handle, "kgate_vgpu_version"))) {
    if (version() != kVgpuAbiVersion) {
      return Failure{"a virtual GPU of another kgate (interface " + std::to_string(version()) + ", needed " +
                         std::to_string(kVgpuAbiVersion) + ")",
                     state->library.path, "install kgate and its libkgate_vgpu.so from one build"};
    }
    state->is_virtual = true;
    state->read_fault = reinterpret_cast<kgate_vgpu_last_fault_fn>(dlsym(handle, "kgate_vgpu_last_fault"));
    state->read_counters = reinterpret_cast<kgate_vgpu_last_counters_fn>(dlsym(handle, "kgate_vgpu_last_counters"));
  }
  return std::unique_ptr<Driver>(new Driver(std::move(state)));
}

bool Driver::is_virtual() const { return state_->is_virtual; }
void* Driver::symbol(const char* name) const { return dlsym(state_->library.handle, name); }
void Driver::make_current() { state_->check(state_->calls.cuCtxSetCurrent(state_->context), "cuCtxSetCurrent"); }

CUdeviceptr Driver::allocate(size_t bytes) {
  CUdeviceptr address = 0;
  state_->check(state_->calls.cuMemAlloc_v2(&address, bytes), "cuMemAlloc_v2");
  return address;
}

void Driver::upload(CUdeviceptr to, const void* from, size_t bytes) {
  state_->check(state_->calls.cuMemcpyHtoD_v2(to, from, bytes), "cuMemcpyHtoD_v2");
}

void Driver::download(void* to, CUdeviceptr from, size_t bytes) {
  state_->check(state_->calls.cuMemcpyDtoH_v2(to, from, bytes), "cuMemcpyDtoH_v2");
}

void Driver::copy_async(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  state_->check(state_->calls.cuMemcpyDtoDAsync_v2(to, from, bytes, stream), "cuMemcpyDtoDAsync_v2");
}

void Driver::fill(CUdeviceptr to, uint8_t value, size_t bytes, CUstream stream) {
  state_->check(state_->calls.cuMemsetD8Async(to, value, bytes, stream), "cuMemsetD8Async");
}

uint64_t Driver::free_memory() {
  size_t free = 0, total = 0;
  state_->check(state_->calls.cuMemGetInfo_v2(&free, &total), "cuMemGetInfo_v2");
  return free;
}

CUstream Driver::create_stream() {
  CUstream stream = nullptr;
  state_->check(state_->calls.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  return stream;
}

void Driver::destroy_stream(CUstream stream) {
  state_->check(state_->calls.cuStreamDestroy_v2(stream), "cuStreamDestroy_v2");
}

CUevent Driver::create_event() {
  CUevent event = nullptr;
  state_->check(state_->calls.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  return event;
}

void Driver::record_event(CUevent event, CUstream stream) {
  state_->check(state_->calls.cuEventRecord(event, stream), "cuEventRecord");
}

void Driver::wait_event(CUstream stream, CUevent event) {
  state_->check(state_->calls.cuStreamWaitEvent(stream, event, 0), "cuStreamWaitEvent");
}

void Driver::synchronize(CUstream stream) {
  state_->check(state_->calls.cuStreamSynchronize(stream), "cuStreamSynchronize");
}

void Driver::synchronize_event(CUevent event) {
  state_->check(state_->calls.cuEventSynchronize(event), "cuEventSynchronize");
}

void Driver::synchronize_context() { state_->check(state_->calls.cuCtxSynchronize(), "cuCtxSynchronize"); }

unsigned launch_attributes(const Launch& launch, CUlaunchAttribute* out) {
  unsigned count = 0;
  auto add = [&](CUlaunchAttributeID id) -> CUlaunchAttributeValue& {
    out[count] = {id, {}, {}};
    return out[count++].value;
  };
  if (launch.cluster.x != 0)
    add(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim = {launch.cluster.x, launch.cluster.y, launch.cluster.z};
  if (launch.cooperative) add(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1;
  if (launch.programmatic)
    add(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION).programmaticStreamSerializationAllowed = 1;
  return count;
}

void Driver::launch(const Launch& l, std::span<const std::byte> params) {
  size_t size = params.size();
  void* extra[] = {kLaunchParamBufferPointer, const_cast<std::byte*>(params.data()), kLaunchParamBufferSize, &size,
                   kLaunchParamEnd};
  void** packed = size != 0 ? extra : nullptr;
  if (l.cluster.x == 0 && !l.cooperative && !l.programmatic) [[likely]] {
    state_->check(state_->calls.cuLaunchKernel(l.function, l.grid.x, l.grid.y, l.grid.z, l.block.x, l.block.y,
                                               l.block.z, l.shared, l.stream, nullptr, packed),
                  "cuLaunchKernel");
    return;
  }
  if (state_->calls.cuLaunchKernelEx == nullptr) state_->fail(CUDA_ERROR_NOT_SUPPORTED, "cuLaunchKernelEx");
  CUlaunchAttribute attributes[kMaxLaunchAttributes];
  unsigned count = launch_attributes(l, attributes);
  CUlaunchConfig config{l.grid.x,  l.grid.y, l.grid.z, l.block.x,  l.block.y,
                        l.block.z, l.shared, l.stream, attributes, count};
  state_->check(state_->calls.cuLaunchKernelEx(&config, l.function, nullptr, packed), "cuLaunchKernelEx");
}

}  // namespace kgate::gpu
