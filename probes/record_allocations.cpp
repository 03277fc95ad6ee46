// Allocations and frees. A free counts from its entry on: as soon as the driver has it, another thread may be given the
// same address.
#include "probes/record_call_table.h"
#include "probes/record_recorder.h"

namespace kgate::record {

using namespace gpu;
using namespace recording;

#define KGATE_ID(name) CUPTI_DRIVER_TRACE_CBID_##name

namespace {

uint64_t number(const void* handle) { return reinterpret_cast<uint64_t>(handle); }

uint64_t stream_of(uint32_t cbid, CUstream stream) {
  return stream == nullptr && kWatchedCalls[cbid].per_thread ? kStreamPerThread : number(stream);
}

struct Freed {
  uint64_t address = 0, size = 0, stream = 0;
  bool async = false;
  bool range = false;  // all mappings in it
};

Freed freed_by(uint32_t cbid, const CUpti_CallbackData& data) {
  switch (cbid) {
    case KGATE_ID(cuMemFreeAsync):
    case KGATE_ID(cuMemFreeAsync_ptsz): {
      const auto& p = params_of<KGATE_ID(cuMemFreeAsync)>(data);
      return {p.dptr, 0, stream_of(cbid, p.hStream), true, false};
    }
    case KGATE_ID(cuMemUnmap): {
      const auto& p = params_of<KGATE_ID(cuMemUnmap)>(data);
      return {p.ptr, p.size, 0, false, true};
    }
    default:  // cuMemFree_v2, cuMemFreeHost, cuMemHostUnregister, cuIpcCloseMemHandle: the address is all they take
      return {params_of<KGATE_ID(cuMemFree_v2)>(data).dptr, 0, 0, false, false};
  }
}

}  // namespace

void Recorder::enter_free(Thread& thread, uint32_t cbid, const CUpti_CallbackData& data) {
  const Freed freed = freed_by(cbid, data);
  thread.call.captured = freed.async && is_capturing(thread, freed.stream);
  thread.freed.clear();
  if (thread.call.captured) return;
  if (freed.range) {
    thread.freed = memory_.remove_range(freed.address, freed.size);
  } else if (const auto gone = memory_.remove(freed.address)) {
    thread.freed.push_back(*gone);
  }
}

void Recorder::put_alloc(Thread& thread, const Allocation& allocation, uint64_t stream, int result, bool existing) {
  AllocRecord record{};
  record.head = head(thread, Kind::alloc, result);
  record.address = allocation.address, record.size = allocation.size, record.stream = stream;
  record.memory = allocation.memory, record.existing = existing;
  thread.add(record);
}

void Recorder::exit_memory(Thread& thread, uint32_t cbid, const CUpti_CallbackData& data, int result) {
  if (kWatchedCalls[cbid].sort == Sort::free) {
    const Freed freed = freed_by(cbid, data);
    if (result != CUDA_SUCCESS)
      for (const Allocation& allocation : thread.freed) memory_.add(allocation);
    if (!freed.range && thread.freed.empty()) thread.freed.resize(1);
    for (const Allocation& allocation : thread.freed) {
      FreeRecord record{};
      record.head = head(thread, Kind::free, result);
      record.address = allocation.address != 0 ? allocation.address : freed.address;
      record.stream = freed.stream, record.async = freed.async;
      thread.add(record);
    }
    return;
  }
  const bool ok = result == CUDA_SUCCESS;
  Allocation made{0, 0, Memory::device, data.context};
  uint64_t stream = 0;
  switch (cbid) {
    case KGATE_ID(cuMemAlloc_v2): {
      const auto& p = params_of<KGATE_ID(cuMemAlloc_v2)>(data);
      made.address = ok ? *p.dptr : 0, made.size = p.bytesize;
      break;
    }
    case KGATE_ID(cuMemAllocPitch_v2): {
      const auto& p = params_of<KGATE_ID(cuMemAllocPitch_v2)>(data);
      made.address = ok ? *p.dptr : 0, made.size = ok ? *p.pPitch * p.Height : 0;
      break;
    }
    case KGATE_ID(cuMemAllocAsync):
    case KGATE_ID(cuMemAllocAsync_ptsz): {
      const auto& p = params_of<KGATE_ID(cuMemAllocAsync)>(data);
      made.address = ok ? *p.dptr : 0, made.size = p.bytesize, made.memory = Memory::async;
      stream = stream_of(cbid, p.hStream);
      break;
    }
    case KGATE_ID(cuMemAllocFromPoolAsync):
    case KGATE_ID(cuMemAllocFromPoolAsync_ptsz): {
      const auto& p = params_of<KGATE_ID(cuMemAllocFromPoolAsync)>(data);
      made.address = ok ? *p.dptr : 0, made.size = p.bytesize, made.memory = Memory::async;
      stream = stream_of(cbid, p.hStream);
      break;
    }
    case KGATE_ID(cuMemAllocManaged): {
      const auto& p = params_of<KGATE_ID(cuMemAllocManaged)>(data);
      made.address = ok ? *p.dptr : 0, made.size = p.bytesize, made.memory = Memory::managed;
      break;
    }
    case KGATE_ID(cuMemAllocHost_v2): {
      const auto& p = params_of<KGATE_ID(cuMemAllocHost_v2)>(data);
      made.address = ok ? number(*p.pp) : 0, made.size = p.bytesize, made.memory = Memory::pinned_host;
      break;
    }
    case KGATE_ID(cuMemHostAlloc): {
      const auto& p = params_of<KGATE_ID(cuMemHostAlloc)>(data);
      made.address = ok ? number(*p.pp) : 0, made.size = p.bytesize, made.memory = Memory::pinned_host;
      break;
    }
    case KGATE_ID(cuMemHostRegister_v2): {
      const auto& p = params_of<KGATE_ID(cuMemHostRegister_v2)>(data);
      made.address = number(p.p), made.size = p.bytesize, made.memory = Memory::registered_host;
      break;
    }
    case KGATE_ID(cuMemMap): {
      const auto& p = params_of<KGATE_ID(cuMemMap)>(data);
      made.address = p.ptr, made.size = p.size, made.memory = Memory::mapped;
      made.readable = false;  // before cuMemSetAccess
      break;
    }
    case KGATE_ID(cuMemSetAccess): {
      const auto& p = params_of<KGATE_ID(cuMemSetAccess)>(data);
      bool readable = false;
      for (size_t i = 0; ok && p.desc != nullptr && i < p.count; ++i) readable |= p.desc[i].flags != 0;
      if (ok) memory_.set_readable(p.ptr, p.size, readable);
      return;
    }
    case KGATE_ID(cuIpcOpenMemHandle_v2):
      made.address = ok ? *params_of<KGATE_ID(cuIpcOpenMemHandle_v2)>(data).pdptr : 0, made.memory = Memory::imported;
      break;
    case KGATE_ID(cuExternalMemoryGetMappedBuffer):
      made.address = ok ? *params_of<KGATE_ID(cuExternalMemoryGetMappedBuffer)>(data).devPtr : 0;
      made.memory = Memory::imported;
      break;
    default:
      return;
  }
  if (made.memory == Memory::async && ok) thread.call.captured = is_capturing(thread, stream);
  if (made.memory == Memory::imported && ok) {
    Inside inside(thread);
    CUdeviceptr base = 0;
    if (ask(driver_.cuMemGetAddressRange_v2, &base, &made.size, made.address) != CUDA_SUCCESS) made.size = 1;
  }
  if (ok && !thread.call.captured) memory_.add(made);
  put_alloc(thread, made, stream, result);
  if (ok) note_memory(thread, made);
}

void Recorder::note_memory(Thread& thread, const Allocation& allocation) {
  if (allocation.memory == Memory::managed)
    note(thread, "managed memory, which the host may change without a call that could be recorded");
  if (allocation.memory == Memory::imported) note(thread, "memory of another process or of another API");
}

}  // namespace kgate::record
