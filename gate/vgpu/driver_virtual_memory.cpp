// Exports: virtual memory management. Addresses are reserved, memory is made, mapped there, and opened to the device;
// each step has its own call and its own undoing. Reservations and mappings last until their undoing or the last
// context's end.
#include "vgpu/driver_call.h"

namespace kgate::vgpu {

namespace {

constexpr uint64_t kGranule = DeviceMemory::kGranule;

bool whole(uint64_t bytes) { return bytes != 0 && bytes % kGranule == 0; }

CUresult check(State& s, const CUmemAllocationProp* prop) {
  if (prop == nullptr || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE || prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE) {
    record_fault(s, CUDA_ERROR_NOT_SUPPORTED, "unsupported", "memory elsewhere than on the device, or to be shared");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return prop->location.id == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

void drop_if_unused(State& s, CUmemGenericAllocationHandle handle) {
  auto found = s.physical.find(handle);
  if (!found->second.released || found->second.mappings != 0) return;
  DeviceMemory::end_physical(found->second.pages, found->second.bytes);
  s.memory->give(found->second.bytes);
  s.physical.erase(found);
}

// Calls visit(address, mapping) for the mappings that fill the range exactly; false: they do not.
template <typename Visit>
bool for_each_mapping(State& s, CUdeviceptr address, size_t size, Visit visit) {
  auto first = s.mapped.find(address);
  uint64_t covered = 0;
  for (auto it = first; it != s.mapped.end() && it->first == address + covered && covered < size; ++it) {
    covered += it->second.bytes;
  }
  if (covered != size || first == s.mapped.end()) return false;
  for (auto it = first; it != s.mapped.end() && it->first < address + size; ++it) visit(it->first, it->second);
  return true;
}

bool any_mapping_in(const State& s, CUdeviceptr address, size_t size) {
  auto next = s.mapped.upper_bound(address);
  if (next != s.mapped.begin() && address - std::prev(next)->first < std::prev(next)->second.bytes) return true;
  return next != s.mapped.end() && next->first - address < size;
}

}  // namespace

KGATE_EXPORT CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                                    unsigned option) {
  return context_call(KGATE_API_ID(cuMemGetAllocationGranularity), [&](Call& call) {
    if (granularity == nullptr || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) return CUDA_ERROR_INVALID_VALUE;
    CUresult code = check(call.state, prop);
    if (code == CUDA_SUCCESS) *granularity = kGranule;
    return code;
  });
}

KGATE_EXPORT CUresult cuMemAddressReserve(CUdeviceptr* out, size_t size, size_t alignment, CUdeviceptr wanted,
                                          uint64_t flags) {
  return context_call(KGATE_API(cuMemAddressReserve, out, size, alignment, wanted, flags), [&](Call& call) {
    if (out == nullptr || !whole(size) || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if ((alignment & (alignment - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr granted = call.state.memory->reserve(wanted, size, alignment);
    if (granted == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = granted;
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuMemAddressFree(CUdeviceptr address, size_t size) {
  return context_call(KGATE_API(cuMemAddressFree, address, size), [&](Call& call) {
    if (any_mapping_in(call.state, address, size)) return CUDA_ERROR_INVALID_VALUE;
    return call.state.memory->unreserve(address, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

KGATE_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle* out, size_t size, const CUmemAllocationProp* prop,
                                  uint64_t flags) {
  return context_call(KGATE_API(cuMemCreate, out, size, prop, flags), [&](Call& call) {
    State& s = call.state;
    if (out == nullptr || !whole(size) || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult code = check(s, prop); code != CUDA_SUCCESS) return code;
    if (!s.memory->take(size)) return CUDA_ERROR_OUT_OF_MEMORY;
    void* pages = DeviceMemory::make_physical(size);
    if (pages == nullptr) {
      s.memory->give(size);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = s.next_physical++;
    s.physical[*out] = {pages, size, 0, false};
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return context_call(KGATE_API(cuMemRelease, handle), [&](Call& call) {
    auto found = call.state.physical.find(handle);
    if (found == call.state.physical.end() || found->second.released) return CUDA_ERROR_INVALID_VALUE;
    found->second.released = true;
    drop_if_unused(call.state, handle);
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                               uint64_t flags) {
  return context_call(KGATE_API(cuMemMap, address, size, offset, handle, flags), [&](Call& call) {
    State& s = call.state;
    auto found = s.physical.find(handle);
    if (found == s.physical.end() || found->second.released) return CUDA_ERROR_INVALID_VALUE;
    if (!whole(size) || offset != 0 || flags != 0 || size > found->second.bytes) return CUDA_ERROR_INVALID_VALUE;
    if (address % kGranule != 0 || !s.memory->reserved(address, size)) return CUDA_ERROR_INVALID_VALUE;
    if (any_mapping_in(s, address, size)) return CUDA_ERROR_ALREADY_MAPPED;
    if (!s.memory->map(address, size, found->second.pages)) return CUDA_ERROR_OUT_OF_MEMORY;
    ++found->second.mappings;
    s.mapped[address] = {size, handle, false};
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
  return context_call(KGATE_API(cuMemUnmap, address, size), [&](Call& call) {
    State& s = call.state;
    std::vector<CUdeviceptr> gone;
    if (!for_each_mapping(s, address, size, [&](CUdeviceptr at, MappedMemory&) { gone.push_back(at); }))
      return CUDA_ERROR_INVALID_VALUE;
    for (CUdeviceptr at : gone) {
      MappedMemory mapping = s.mapped[at];
      s.memory->unmap(at, mapping.bytes);
      s.mapped.erase(at);
      --s.physical[mapping.physical].mappings;
      drop_if_unused(s, mapping.physical);
    }
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc* access, size_t count) {
  return context_call(KGATE_API(cuMemSetAccess, address, size, access, count), [&](Call& call) {
    State& s = call.state;
    if (access == nullptr || count != 1 || access->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
      return CUDA_ERROR_INVALID_VALUE;
    if (access->location.id != 0) return CUDA_ERROR_INVALID_DEVICE;
    if (access->flags != 0 && access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
      record_fault(s, CUDA_ERROR_NOT_SUPPORTED, "unsupported", "memory that the device may only read");
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    bool found = for_each_mapping(s, address, size, [&](CUdeviceptr at, MappedMemory& mapping) {
      mapping.exposed = access->flags != 0;
      s.memory->expose(at, mapping.bytes, mapping.exposed);
    });
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace kgate::vgpu
