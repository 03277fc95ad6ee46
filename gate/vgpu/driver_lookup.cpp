// Exports: error names, cuGetProcAddress, and kgate's own questions. cuGetProcAddress answers with the exported
// addresses, so that a probe on an exported symbol sees every caller.
#include <cstring>

#include "vgpu/driver_call.h"
#include "vgpu/driver_exports.h"

namespace kgate::vgpu {

// Only the addresses matter here; the definitions with their true types lie in the other driver_*.cpp.
namespace address_of {
#define KGATE_ADDRESS(asked, exported) extern const char exported __asm__(#exported);
#define KGATE_ADDRESSES(asked, exported, per_thread) \
  KGATE_ADDRESS(asked, exported) KGATE_ADDRESS(asked, per_thread)
KGATE_EXPORTS(KGATE_ADDRESS, KGATE_ADDRESSES)
#define KGATE_OLD(asked, exported, version) KGATE_ADDRESS(asked, exported)
#define KGATE_OLDS(asked, exported, per_thread, version) KGATE_ADDRESSES(asked, exported, per_thread)
KGATE_OLD_EXPORTS(KGATE_OLD, KGATE_OLDS)
#undef KGATE_OLD
#undef KGATE_OLDS
#undef KGATE_ADDRESS
#undef KGATE_ADDRESSES
}  // namespace address_of

namespace {

struct Export {
  const char* asked;
  const void* address;
  const void* per_thread;
  int below;  // the version of CUDA that the caller was built for
};

constexpr int kAnyVersion = 1 << 30;

const Export kExports[] = {
#define KGATE_ROW(asked, exported, version) {#asked, &address_of::exported, &address_of::exported, version},
#define KGATE_ROW2(asked, exported, per_thread, version) \
  {#asked, &address_of::exported, &address_of::per_thread, version},
    KGATE_OLD_EXPORTS(KGATE_ROW, KGATE_ROW2)
#undef KGATE_ROW
#undef KGATE_ROW2
#define KGATE_ROW(asked, exported) {#asked, &address_of::exported, &address_of::exported, kAnyVersion},
#define KGATE_ROW2(asked, exported, per_thread) \
  {#asked, &address_of::exported, &address_of::per_thread, kAnyVersion},
    KGATE_EXPORTS(KGATE_ROW, KGATE_ROW2)
#undef KGATE_ROW
#undef KGATE_ROW2
};

CUresult look_up(const char* symbol, void** out, int version, uint64_t flags, unsigned* status) {
  if (symbol == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = nullptr;
  for (const Export& e : kExports) {
    if (version >= e.below || std::strcmp(e.asked, symbol) != 0) continue;
    bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    *out = const_cast<void*>(per_thread ? e.per_thread : e.address);
    if (status != nullptr) *status = CU_GET_PROC_ADDRESS_SUCCESS;
    return CUDA_SUCCESS;
  }
  if (status == nullptr) return CUDA_ERROR_NOT_FOUND;
  *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_ERROR_NOT_FOUND;
}

CUresult error_name(CUresult code, const char** name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = result_name(code);
  return *name != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

template <typename T>
int answer(T State::*value, bool State::*present, T* out, size_t size) {
  if (out == nullptr || size != sizeof(T)) return -1;
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (!(s.*present)) return 0;
  *out = s.*value;
  return 1;
}

}  // namespace

KGATE_EXPORT CUresult cuGetErrorName(CUresult code, const char** name) { return error_name(code, name); }

// The virtual GPU has no prose of its own for codes; what went wrong is in kgate_vgpu_last_fault.
KGATE_EXPORT CUresult cuGetErrorString(CUresult code, const char** text) { return error_name(code, text); }

KGATE_EXPORT CUresult cuGetProcAddress(const char* symbol, void** out, int version, uint64_t flags) {
  return look_up(symbol, out, version, flags, nullptr);
}

KGATE_EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** out, int version, uint64_t flags, unsigned* status) {
  return look_up(symbol, out, version, flags, status);
}

KGATE_EXPORT int kgate_vgpu_version() { return kVgpuAbiVersion; }

KGATE_EXPORT int kgate_vgpu_last_fault(kgate_vgpu_fault* fault, size_t size) {
  return answer(&State::fault, &State::has_fault, fault, size);
}

KGATE_EXPORT int kgate_vgpu_last_counters(kgate_vgpu_counters* counters, size_t size) {
  return answer(&State::counters, &State::has_counters, counters, size);
}

}  // namespace kgate::vgpu
