// Exports: contexts. The primary context is counted as CUDA counts it: the last release destroys what it owns and
// clears a sticky error.
#include "vgpu/driver_call.h"

namespace kgate::vgpu {

namespace {

// Tells the subscriber of a context that a call made, once the lock is released.
CUresult announced(CUresult result, CUcontext made) {
  if (made != nullptr) cupti::context_created(made);
  return result;
}

// The subscriber learns of a context's end while it is still whole. Two threads that destroy the same context would
// both tell; one of them has an error of the application's.
void announce_end(CUcontext context) {
  bool known = false;
  {
    State& s = state();
    std::lock_guard lock(s.mutex);
    known = s.contexts.find(context) != nullptr;
  }
  if (known) cupti::context_destroyed(context);
}

// The primary context, if a release (or, with `any`, a reset) is about to end it.
CUcontext ending_primary(bool any) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  return any || s.primary_references == 1 ? s.primary : nullptr;
}

CUresult make_context(CUcontext* context, unsigned flags, CUdevice device) {
  CUcontext announce = nullptr;
  CUresult result = global_call([&](State& s) {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    CUcontext made = s.create_context(flags);
    if (made == nullptr) return CUDA_ERROR_INVALID_VALUE;
    context_stack().push_back(made);
    *context = announce = made;
    return CUDA_SUCCESS;
  });
  return announced(result, announce);
}

// The context that `handle` names, the current one for null.
CUresult with_context(CUcontext handle, const void* out, auto&& body) noexcept {
  return global_call([&](State& s) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (handle == nullptr) handle = current_handle();
    Context* context = s.contexts.find(handle);
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    return body(*context);
  });
}

}  // namespace

KGATE_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return traced(KGATE_API(cuDevicePrimaryCtxRetain, context, device), [&] {
    CUcontext announce = nullptr;
    CUresult result = global_call([&](State& s) {
      if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
      if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
      if (s.primary == nullptr) {
        if ((s.primary = s.create_context(s.primary_flags)) == nullptr) return CUDA_ERROR_INVALID_VALUE;
        announce = s.primary;
      }
      ++s.primary_references;
      *context = s.primary;
      return CUDA_SUCCESS;
    });
    return announced(result, announce);
  });
}

KGATE_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return traced(KGATE_API(cuDevicePrimaryCtxRelease_v2, device), [&] {
    if (CUcontext last = ending_primary(false)) announce_end(last);
    return global_call([&](State& s) {
      if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
      if (s.primary_references == 0) return CUDA_ERROR_INVALID_CONTEXT;
      if (--s.primary_references == 0) {
        s.destroy_context(s.primary);
        s.primary = nullptr;
      }
      return CUDA_SUCCESS;
    });
  });
}

KGATE_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return traced(KGATE_API(cuDevicePrimaryCtxReset_v2, device), [&] {
    if (CUcontext last = ending_primary(true)) announce_end(last);
    return global_call([&](State& s) {
      if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
      if (s.primary != nullptr) s.destroy_context(s.primary);
      s.primary = nullptr;
      s.primary_references = 0;
      return CUDA_SUCCESS;
    });
  });
}

KGATE_EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  return global_call([&](State& s) {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    s.primary_flags = flags;
    if (Context* context = s.contexts.find(s.primary)) context->flags = flags;
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return global_call([&](State& s) {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = s.primary_flags;
    *active = s.primary != nullptr;
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  return traced(KGATE_API(cuCtxCreate_v2, context, flags, device),
                [&] { return make_context(context, flags, device); });
}

KGATE_EXPORT CUresult cuCtxCreate_v4(CUcontext* context, void* params, unsigned flags, CUdevice device) {
  return traced(KGATE_API(cuCtxCreate_v4, context, params, flags, device), [&] {
    if (params != nullptr) return CUDA_ERROR_NOT_SUPPORTED;  // execution affinity, graphics interoperation
    return make_context(context, flags, device);
  });
}

KGATE_EXPORT CUresult cuCtxDestroy_v2(CUcontext context) {
  return traced(KGATE_API(cuCtxDestroy_v2, context), [&] {
    if (context != nullptr && context != ending_primary(true)) announce_end(context);
    return global_call([&](State& s) {
      if (s.contexts.find(context) == nullptr || context == s.primary) return CUDA_ERROR_INVALID_CONTEXT;
      s.destroy_context(context);
      if (current_handle() == context) context_stack().pop_back();
      return CUDA_SUCCESS;
    });
  });
}

KGATE_EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  return global_call([&](State& s) {
    std::vector<CUcontext>& stack = context_stack();
    if (context != nullptr && s.contexts.find(context) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (!stack.empty()) stack.pop_back();
    if (context != nullptr) stack.push_back(context);
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
  return global_call([&](State&) {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *context = current_handle();
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
  return global_call([&](State& s) {
    if (s.contexts.find(context) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    context_stack().push_back(context);
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  return global_call([&](State&) {
    std::vector<CUcontext>& stack = context_stack();
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (context != nullptr) *context = stack.back();
    stack.pop_back();
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuCtxGetDevice(CUdevice* device) {
  return with_context(nullptr, device, [&](Context&) {
    *device = 0;
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuCtxGetFlags(unsigned* flags) {
  return with_context(nullptr, flags, [&](Context& context) {
    *flags = context.flags;
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
  return with_context(handle, id, [&](Context& context) {
    *id = context.id;
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
  return with_context(handle, version, [&](Context&) {
    *version = 3020;  // what drivers have answered since CUDA 4
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return context_call({}, [&](Call&) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = 0;
    return CUDA_SUCCESS;
  });
}

}  // namespace kgate::vgpu
