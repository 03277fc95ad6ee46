// Driver: memory at a chosen address, by the driver's virtual memory calls. Recorded workloads that are not relocatable
// hold addresses inside their buffers, so they must lie where they were. Everything half done is undone on failure.
#include "gpu/driver_state.h"

namespace kgate::gpu {

namespace {

CUmemAllocationProp device_memory(CUdevice device) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return prop;
}

}  // namespace

std::optional<CUdeviceptr> Driver::allocate_at(CUdeviceptr address, size_t bytes) {
  State& s = *state_;
  if (s.calls.cuMemGetAllocationGranularity == nullptr) return std::nullopt;
  const CUmemAllocationProp prop = device_memory(s.device);
  size_t granule = 0;
  s.check(s.calls.cuMemGetAllocationGranularity(&granule, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
          "cuMemGetAllocationGranularity");
  if (granule == 0 || address % granule != 0 || bytes == 0 || bytes > SIZE_MAX - granule) return std::nullopt;
  size_t size = (bytes + granule - 1) / granule * granule;
  if (!reserve_at(address, size)) return std::nullopt;
  try {
    map(address, size);
  } catch (const GpuError&) {
    s.calls.cuMemAddressFree(address, size);
    throw;
  }
  std::lock_guard lock(s.mapped_mutex);
  s.mapped[address] = size;
  return address;
}

bool Driver::reserve_at(CUdeviceptr address, size_t bytes) {
  const DriverCalls& cu = state_->calls;
  if (cu.cuMemAddressReserve == nullptr || cu.cuMemAddressFree == nullptr) return false;
  CUdeviceptr granted = 0;
  if (cu.cuMemAddressReserve(&granted, bytes, 0, address, 0) != CUDA_SUCCESS) return false;
  if (granted != address) cu.cuMemAddressFree(granted, bytes);
  return granted == address;
}

CUdeviceptr Driver::reserve(CUdeviceptr wanted, size_t bytes) {
  const DriverCalls& cu = state_->calls;
  if (cu.cuMemAddressReserve == nullptr) state_->fail(CUDA_ERROR_NOT_SUPPORTED, "cuMemAddressReserve");
  CUdeviceptr granted = 0;
  state_->check(cu.cuMemAddressReserve(&granted, bytes, 0, wanted, 0), "cuMemAddressReserve");
  return granted;
}

void Driver::unreserve(CUdeviceptr address, size_t bytes) {
  if (state_->calls.cuMemAddressFree == nullptr) state_->fail(CUDA_ERROR_NOT_SUPPORTED, "cuMemAddressFree");
  state_->check(state_->calls.cuMemAddressFree(address, bytes), "cuMemAddressFree");
}

void Driver::unmap(CUdeviceptr address, size_t bytes) {
  if (state_->calls.cuMemUnmap == nullptr) state_->fail(CUDA_ERROR_NOT_SUPPORTED, "cuMemUnmap");
  state_->check(state_->calls.cuMemUnmap(address, bytes), "cuMemUnmap");
}

void Driver::map(CUdeviceptr address, size_t bytes) {
  State& s = *state_;
  const DriverCalls& cu = s.calls;
  if (cu.cuMemCreate == nullptr || cu.cuMemMap == nullptr || cu.cuMemSetAccess == nullptr ||
      cu.cuMemRelease == nullptr || cu.cuMemUnmap == nullptr)
    s.fail(CUDA_ERROR_NOT_SUPPORTED, "cuMemMap");
  const CUmemAllocationProp prop = device_memory(s.device);
  CUmemGenericAllocationHandle handle = 0;
  s.check(cu.cuMemCreate(&handle, bytes, &prop, 0), "cuMemCreate");
  CUresult code = cu.cuMemMap(address, bytes, 0, handle, 0);
  cu.cuMemRelease(handle);  // the mapping keeps the memory
  s.check(code, "cuMemMap");
  CUmemAccessDesc access{prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  if ((code = cu.cuMemSetAccess(address, bytes, &access, 1)) == CUDA_SUCCESS) return;
  cu.cuMemUnmap(address, bytes);
  s.fail(code, "cuMemSetAccess");
}

void Driver::free(CUdeviceptr p) {
  State& s = *state_;
  std::unique_lock lock(s.mapped_mutex);
  auto it = s.mapped.find(p);
  if (it == s.mapped.end()) {
    lock.unlock();
    s.check(s.calls.cuMemFree_v2(p), "cuMemFree_v2");
    return;
  }
  size_t size = it->second;
  s.mapped.erase(it);
  lock.unlock();
  s.check(s.calls.cuMemUnmap(p, size), "cuMemUnmap");
  s.check(s.calls.cuMemAddressFree(p, size), "cuMemAddressFree");
}

}  // namespace kgate::gpu
