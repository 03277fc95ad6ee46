// Copies and fills: some forty calls that say the same few things. What comes from host memory is read before the call
// runs, since the application may change it afterwards.
#include "probes/record_copies.h"

#include "probes/record_call_table.h"
#include "probes/record_recorder.h"

namespace kgate::record {

using namespace gpu;
using namespace recording;

#define KGATE_ID(name) CUPTI_DRIVER_TRACE_CBID_##name
#define KGATE_TWINS(name, suffix) \
  case KGATE_ID(name):            \
  case KGATE_ID(name##suffix)

namespace {

constexpr int kPointerMemoryType = 2;  // CU_POINTER_ATTRIBUTE_MEMORY_TYPE

uint64_t address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

uint64_t stream_of(uint32_t cbid, CUstream stream) {
  return stream == nullptr && kWatchedCalls[cbid].per_thread ? kStreamPerThread : reinterpret_cast<uint64_t>(stream);
}

}  // namespace

// ---- what a call says ----------------------------------------------------------------------------------------------

bool describe(uint32_t cbid, const CUpti_CallbackData& data, Copy& copy) {
  constexpr unsigned kHost = CU_MEMORYTYPE_HOST, kDevice = CU_MEMORYTYPE_DEVICE, kEither = CU_MEMORYTYPE_UNIFIED;
  const auto async = [&](CUstream stream) { copy.async = true, copy.stream = stream_of(cbid, stream); };
  copy.stream = 0;
  switch (cbid) {
    KGATE_TWINS(cuMemcpyHtoD_v2, _ptds) : {
      const auto& p = params_of<KGATE_ID(cuMemcpyHtoD_v2)>(data);
      copy = Copy::flat(p.dstDevice, kDevice, address(p.srcHost), kHost, p.ByteCount);
      break;
    }
    KGATE_TWINS(cuMemcpyDtoH_v2, _ptds) : {
      const auto& p = params_of<KGATE_ID(cuMemcpyDtoH_v2)>(data);
      copy = Copy::flat(address(p.dstHost), kHost, p.srcDevice, kDevice, p.ByteCount);
      break;
    }
    KGATE_TWINS(cuMemcpyDtoD_v2, _ptds) : {
      const auto& p = params_of<KGATE_ID(cuMemcpyDtoD_v2)>(data);
      copy = Copy::flat(p.dstDevice, kDevice, p.srcDevice, kDevice, p.ByteCount);
      break;
    }
    KGATE_TWINS(cuMemcpy, _ptds) : {
      const auto& p = params_of<KGATE_ID(cuMemcpy)>(data);
      copy = Copy::flat(p.dst, kEither, p.src, kEither, p.ByteCount);
      break;
    }
    KGATE_TWINS(cuMemcpyHtoDAsync_v2, _ptsz) : {
      const auto& p = params_of<KGATE_ID(cuMemcpyHtoDAsync_v2)>(data);
      copy = Copy::flat(p.dstDevice, kDevice, address(p.srcHost), kHost, p.ByteCount);
      async(p.hStream);
      return true;
    }
    KGATE_TWINS(cuMemcpyDtoHAsync_v2, _ptsz) : {
      const auto& p = params_of<KGATE_ID(cuMemcpyDtoHAsync_v2)>(data);
      copy = Copy::flat(address(p.dstHost), kHost, p.srcDevice, kDevice, p.ByteCount);
      async(p.hStream);
      return true;
    }
    KGATE_TWINS(cuMemcpyDtoDAsync_v2, _ptsz) : {
      const auto& p = params_of<KGATE_ID(cuMemcpyDtoDAsync_v2)>(data);
      copy = Copy::flat(p.dstDevice, kDevice, p.srcDevice, kDevice, p.ByteCount);
      async(p.hStream);
      return true;
    }
    KGATE_TWINS(cuMemcpyAsync, _ptsz) : {
      const auto& p = params_of<KGATE_ID(cuMemcpyAsync)>(data);
      copy = Copy::flat(p.dst, kEither, p.src, kEither, p.ByteCount);
      async(p.hStream);
      return true;
    }
    KGATE_TWINS(cuMemcpyPeer, _ptds) : {
      const auto& p = params_of<KGATE_ID(cuMemcpyPeer)>(data);
      copy = Copy::flat(p.dstDevice, kDevice, p.srcDevice, kDevice, p.ByteCount);
      copy.peers = p.dstContext != p.srcContext;
      break;
    }
    KGATE_TWINS(cuMemcpyPeerAsync, _ptsz) : {
      const auto& p = params_of<KGATE_ID(cuMemcpyPeerAsync)>(data);
      copy = Copy::flat(p.dstDevice, kDevice, p.srcDevice, kDevice, p.ByteCount);
      copy.peers = p.dstContext != p.srcContext;
      async(p.hStream);
      return true;
    }
    KGATE_TWINS(cuMemcpy2D_v2, _ptds) : KGATE_TWINS(cuMemcpy2DUnaligned_v2, _ptds) : {
      const auto& p = params_of<KGATE_ID(cuMemcpy2D_v2)>(data);
      if (p.pCopy == nullptr) return false;
      copy = Copy::of(*p.pCopy);
      break;
    }
    KGATE_TWINS(cuMemcpy2DAsync_v2, _ptsz) : {
      const auto& p = params_of<KGATE_ID(cuMemcpy2DAsync_v2)>(data);
      if (p.pCopy == nullptr) return false;
      copy = Copy::of(*p.pCopy);
      async(p.hStream);
      return true;
    }
    KGATE_TWINS(cuMemcpy3D_v2, _ptds) : {
      const auto& p = params_of<KGATE_ID(cuMemcpy3D_v2)>(data);
      if (p.pCopy == nullptr) return false;
      copy = Copy::of(*p.pCopy);
      break;
    }
    KGATE_TWINS(cuMemcpy3DAsync_v2, _ptsz) : {
      const auto& p = params_of<KGATE_ID(cuMemcpy3DAsync_v2)>(data);
      if (p.pCopy == nullptr) return false;
      copy = Copy::of(*p.pCopy);
      async(p.hStream);
      return true;
    }
    default:
      return false;
  }
  copy.stream = stream_of(cbid, nullptr);
  return true;
}

bool describe(uint32_t cbid, const CUpti_CallbackData& data, Fill& fill) {
#define KGATE_FILL(call, unit, value, suffix)                                        \
  KGATE_TWINS(call, suffix) : {                                                      \
    const auto& p = params_of<KGATE_ID(call)>(data);                                 \
    fill = {p.dstDevice, p.N, 1, 0, p.value, unit, stream_of(cbid, nullptr), false}; \
    return true;                                                                     \
  }
#define KGATE_FILL_ASYNC(call, unit, value)                                           \
  KGATE_TWINS(call, _ptsz) : {                                                        \
    const auto& p = params_of<KGATE_ID(call)>(data);                                  \
    fill = {p.dstDevice, p.N, 1, 0, p.value, unit, stream_of(cbid, p.hStream), true}; \
    return true;                                                                      \
  }
#define KGATE_FILL_2D(call, unit, value)                                                                            \
  KGATE_TWINS(call, _ptds) : {                                                                                      \
    const auto& p = params_of<KGATE_ID(call)>(data);                                                                \
    fill = {p.dstDevice, p.Width, p.Height, p.Height > 1 ? p.dstPitch : 0, p.value, unit, stream_of(cbid, nullptr), \
            false};                                                                                                 \
    return true;                                                                                                    \
  }
#define KGATE_FILL_2D_ASYNC(call, unit, value)                                                                        \
  KGATE_TWINS(call, _ptsz) : {                                                                                        \
    const auto& p = params_of<KGATE_ID(call)>(data);                                                                  \
    fill = {p.dstDevice, p.Width, p.Height, p.Height > 1 ? p.dstPitch : 0, p.value, unit, stream_of(cbid, p.hStream), \
            true};                                                                                                    \
    return true;                                                                                                      \
  }
  switch (cbid) {
    KGATE_FILL(cuMemsetD8_v2, 1, uc, _ptds)
    KGATE_FILL(cuMemsetD16_v2, 2, us, _ptds)
    KGATE_FILL(cuMemsetD32_v2, 4, ui, _ptds)
    KGATE_FILL_ASYNC(cuMemsetD8Async, 1, uc)
    KGATE_FILL_ASYNC(cuMemsetD16Async, 2, us)
    KGATE_FILL_ASYNC(cuMemsetD32Async, 4, ui)
    KGATE_FILL_2D(cuMemsetD2D8_v2, 1, uc)
    KGATE_FILL_2D(cuMemsetD2D16_v2, 2, us)
    KGATE_FILL_2D(cuMemsetD2D32_v2, 4, ui)
    KGATE_FILL_2D_ASYNC(cuMemsetD2D8Async, 1, uc)
    KGATE_FILL_2D_ASYNC(cuMemsetD2D16Async, 2, us)
    KGATE_FILL_2D_ASYNC(cuMemsetD2D32Async, 4, ui)
    default:
      return false;
  }
#undef KGATE_FILL
#undef KGATE_FILL_ASYNC
#undef KGATE_FILL_2D
#undef KGATE_FILL_2D_ASYNC
}

// ---- what is done about it -----------------------------------------------------------------------------------------

Side Recorder::side_of(Thread& thread, unsigned kind, uint64_t address) {
  const auto known = memory_.find(address);
  if (known) return known->is_host() ? Side::pinned : Side::device;
  if (kind == CU_MEMORYTYPE_HOST) return Side::pageable;
  if (kind == CU_MEMORYTYPE_UNIFIED) {
    Inside inside(thread);
    unsigned type = 0;
    if (ask(driver_.cuPointerGetAttribute, &type, kPointerMemoryType, address) != CUDA_SUCCESS) return Side::pageable;
    if (type == CU_MEMORYTYPE_HOST) return Side::pinned;
  }
  std::string name;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [begin, variable] : variables_)
      if (address - begin < variable.first) name = variable.second;
  }
  if (!name.empty())
    note(thread, "a copy to or from variable " + name + " of a module, which is no allocation and is not replayed");
  return Side::device;
}

void Recorder::take_payload(Thread& thread, const Copy& copy) {
  const uint64_t all = copy.bytes * copy.rows;
  if (copy.rows != 0 && all / copy.rows != copy.bytes) return;  // the driver refuses it, too
  if (payload_bytes_.fetch_add(all) + all > options_.max_bytes) {
    payload_bytes_ -= all;
    return note(thread,
                "the slice sends more host data to the device than a recording may take: the rest is left out (allow "
                "more with --max-size)",
                false);
  }
  if (copy.rows == 1 || copy.src_pitch == copy.bytes) {
    thread.call.payload = thread.add_blob(reinterpret_cast<const void*>(copy.src), all);
    return;
  }
  std::vector<std::byte> packed(all);
  for (uint64_t row = 0; row < copy.rows; ++row)
    std::copy_n(reinterpret_cast<const std::byte*>(copy.src + row * copy.src_pitch), copy.bytes,
                packed.data() + row * copy.bytes);
  thread.call.payload = thread.add_blob(packed.data(), all);
}

void Recorder::enter_copy(Thread& thread, const Copy& copy) {
  thread.call.captured = is_capturing(thread, copy.stream);
  if (slice_ != Slice::inside) return;
  if (copy.dst_kind == CU_MEMORYTYPE_ARRAY || copy.src_kind == CU_MEMORYTYPE_ARRAY)
    return note(thread, "a copy to or from an array, which cannot be replayed");
  if (copy.peers) note(thread, "a copy between two contexts or devices, which cannot be replayed");
  if (copy.planes) note(thread, "a copy of several planes that lie apart, which cannot be replayed");
  thread.call.dst_side = side_of(thread, copy.dst_kind, copy.dst);
  thread.call.src_side = side_of(thread, copy.src_kind, copy.src);
  if (!thread.call.captured && thread.call.dst_side == Side::device && thread.call.src_side != Side::device)
    take_payload(thread, copy);
}

void Recorder::exit_copy(Thread& thread, const Copy& copy, int result) {
  if (thread.call.dst_side == Side{}) return;  // refused
  CopyRecord record{};
  record.head = head(thread, Kind::copy, result);
  record.dst = copy.dst, record.src = copy.src, record.bytes = copy.bytes, record.rows = copy.rows;
  record.dst_pitch = copy.dst_pitch, record.src_pitch = copy.src_pitch, record.stream = copy.stream;
  record.dst_side = thread.call.dst_side, record.src_side = thread.call.src_side;
  record.async = copy.async, record.payload = thread.call.payload;
  thread.add(record);
  if (!copy.async && record.dst_side != Side::device && !thread.call.captured) host_sync(thread);
}

void Recorder::exit_fill(Thread& thread, const Fill& fill, int result) {
  MemsetRecord record{};
  record.head = head(thread, Kind::memset, result);
  record.dst = fill.dst, record.count = fill.count, record.rows = fill.rows, record.pitch = fill.pitch;
  record.stream = fill.stream, record.value = fill.value, record.unit = fill.unit, record.async = fill.async;
  thread.add(record);
}

}  // namespace kgate::record
