// Exports: modules and functions.
#include <algorithm>
#include <cstring>
#include <string>

#include "vgpu/driver_call.h"
#include "vgpu/driver_image.h"

namespace kgate::vgpu {

namespace {

constexpr char kStaticOnly[] = "static only: SASS is not executed";

// The log buffers among cuModuleLoadDataEx's options. The driver writes the used length back into the size options.
class JitLogs {
 public:
  JitLogs(unsigned count, CUjit_option* options, void** values) {
    for (unsigned i = 0; i < count; ++i) {
      if (options[i] == CU_JIT_ERROR_LOG_BUFFER) error_.buffer = static_cast<char*>(values[i]);
      if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) error_.size = &values[i];
      if (options[i] == CU_JIT_INFO_LOG_BUFFER) info_.buffer = static_cast<char*>(values[i]);
      if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) info_.size = &values[i];
    }
    info_.write("");
  }
  void error(std::string_view text) { error_.write(text); }

 private:
  struct Log {
    char* buffer = nullptr;
    void** size = nullptr;
    void write(std::string_view text) {
      if (size == nullptr) return;
      size_t room = reinterpret_cast<uintptr_t>(*size);
      size_t length = buffer == nullptr || room == 0 ? 0 : std::min(text.size(), room - 1);
      if (buffer != nullptr && room != 0) {
        std::memcpy(buffer, text.data(), length);
        buffer[length] = '\0';
      }
      *size = reinterpret_cast<void*>(length);
    }
  };
  Log error_, info_;
};

CUfunction add_function(State& s, const Call& call, CUmodule handle, const LoadedModule& module, size_t entry) {
  auto function = std::make_unique<LoadedFunction>();
  const FunctionInfo& info = module.program->entries()[entry];
  function->context = call.context.id;
  function->module = handle;
  function->program = module.program.get();
  function->entry = entry;
  function->info = &info;
  function->name = s.names.insert(info.name).first->c_str();
  function->max_dynamic_shared = kSharedDefault > info.static_shared ? kSharedDefault - info.static_shared : 0;
  function->target_sm = module.target_sm;
  return s.functions.add(std::move(function));
}

CUresult load(Call& call, CUmodule* out, const void* image, JitLogs logs) {
  if (out == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  State& s = call.state;
  auto module = std::make_unique<LoadedModule>();
  module->context = call.context.id;
  ImageKind kind = image_kind(image);
  if (kind == ImageKind::fatbin) {
    constexpr char kText[] = "the virtual GPU loads PTX; take the PTX out of the fatbin";
    logs.error(kText);
    record_fault(s, CUDA_ERROR_NO_BINARY_FOR_GPU, "unsupported", kText);
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  if (kind == ImageKind::ptx) {
    std::string_view text(static_cast<const char*>(image));
    auto program = Program::load(text, *s.memory);
    if (!program) {
      const Failure& failure = program.failure();
      CUresult code = load_error(failure);
      logs.error("ptx input, " + (failure.where.empty() ? "line ?" : failure.where) + "; error : " + failure.what);
      record_fault(s, code, "invalid PTX", failure.what, line_of(failure.where));
      return code;
    }
    module->program = std::move(*program);
    module->target_sm = target_of(text);
    call.image = text;
  }
  LoadedModule& loaded = *module;
  *out = s.modules.add(std::move(module));
  if (loaded.program) {
    for (size_t i = 0; i < loaded.program->entries().size(); ++i) {
      loaded.functions.push_back(add_function(s, call, *out, loaded, i));
    }
  }
  return CUDA_SUCCESS;
}

// A cubin's symbols are not read: any name is granted, and only attributes and launches say what it is.
CUfunction static_function(Call& call, CUmodule handle, const char* name) {
  auto function = std::make_unique<LoadedFunction>();
  function->context = call.context.id;
  function->module = handle;
  function->name = call.state.names.insert(name).first->c_str();
  return call.state.functions.add(std::move(function));
}

// body(LoadedFunction&) for a function of PTX.
template <typename Body>
CUresult function_call(const cupti::Api& api, CUfunction handle, Body&& body) noexcept {
  return context_call(api, [&](Call& call) {
    LoadedFunction* function = call.state.functions.find(handle);
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (function->info == nullptr) {
      record_fault(call.state, CUDA_ERROR_NOT_SUPPORTED, "unsupported", kStaticOnly);
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    return body(*function);
  });
}

CUresult read_attribute(const LoadedFunction& function, CUfunction_attribute attribute, int* value) {
  const FunctionInfo& info = *function.info;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(info.max_threads);
      break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(info.static_shared);
      break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = static_cast<int>(info.local_bytes);
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = static_cast<int>(function.max_dynamic_shared);
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      *value = function.target_sm;
      break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = 90;
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = -1;
      break;
    default:
      // Registers and the rest: not allocated here, hence 0.
      if (attribute < 0 || attribute > CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      *value = 0;
  }
  return CUDA_SUCCESS;
}

}  // namespace

KGATE_EXPORT CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return context_call(KGATE_API(cuModuleLoadData, module, image),
                      [&](Call& call) { return load(call, module, image, JitLogs(0, nullptr, nullptr)); });
}

KGATE_EXPORT CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                                         void** values) {
  return context_call(KGATE_API(cuModuleLoadDataEx, module, image, count, options, values), [&](Call& call) {
    if (count != 0 && (options == nullptr || values == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    return load(call, module, image, JitLogs(count, options, values));
  });
}

KGATE_EXPORT CUresult cuModuleUnload(CUmodule handle) {
  return context_call(KGATE_API(cuModuleUnload, handle), [&](Call& call) {
    if (call.state.modules.find(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    call.state.functions.erase_if([&](const LoadedFunction& function) { return function.module == handle; });
    call.state.modules.erase(handle);
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuModuleGetFunction(CUfunction* out, CUmodule handle, const char* name) {
  return context_call(KGATE_API(cuModuleGetFunction, out, handle, name), [&](Call& call) {
    if (out == nullptr || name == nullptr || *name == '\0') return CUDA_ERROR_INVALID_VALUE;
    LoadedModule* module = call.state.modules.find(handle);
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!module->program) {
      *out = static_function(call, handle, name);
      return CUDA_SUCCESS;
    }
    const std::vector<FunctionInfo>& entries = module->program->entries();
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].name != name) continue;
      *out = module->functions[i];
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
  });
}

KGATE_EXPORT CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule handle) {
  return context_call(KGATE_API_ID(cuModuleGetFunctionCount), [&](Call& call) {
    LoadedModule* module = call.state.modules.find(handle);
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!module->program) return CUDA_ERROR_NOT_SUPPORTED;
    *count = static_cast<unsigned>(module->functions.size());
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule handle) {
  return context_call(KGATE_API_ID(cuModuleEnumerateFunctions), [&](Call& call) {
    LoadedModule* module = call.state.modules.find(handle);
    if (functions == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!module->program) return CUDA_ERROR_NOT_SUPPORTED;
    std::copy_n(module->functions.begin(), std::min<size_t>(count, module->functions.size()), functions);
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule handle, const char* name) {
  return context_call(KGATE_API(cuModuleGetGlobal_v2, address, bytes, handle, name), [&](Call& call) {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    LoadedModule* module = call.state.modules.find(handle);
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!module->program) return CUDA_ERROR_NOT_SUPPORTED;
    auto range = module->program->global(name);
    if (!range) return CUDA_ERROR_NOT_FOUND;
    if (address != nullptr) *address = range->base;
    if (bytes != nullptr) *bytes = range->size;
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return function_call(KGATE_API_ID(cuFuncGetAttribute), handle,
                       [&](LoadedFunction& function) { return read_attribute(function, attribute, value); });
}

KGATE_EXPORT CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  return function_call(KGATE_API_ID(cuFuncSetAttribute), handle, [&](LoadedFunction& function) {
    switch (attribute) {
      case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || uint64_t{function.info->static_shared} + static_cast<uint32_t>(value) > kSharedOptIn) {
          return CUDA_ERROR_INVALID_VALUE;
        }
        function.max_dynamic_shared = static_cast<uint32_t>(value);
        return CUDA_SUCCESS;
      case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return CUDA_SUCCESS;  // a hint
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

KGATE_EXPORT CUresult cuFuncGetModule(CUmodule* module, CUfunction handle) {
  return context_call(KGATE_API_ID(cuFuncGetModule), [&](Call& call) {
    LoadedFunction* function = call.state.functions.find(handle);
    if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *module = function->module;
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuFuncGetName(const char** name, CUfunction handle) {
  return context_call(KGATE_API_ID(cuFuncGetName), [&](Call& call) {
    LoadedFunction* function = call.state.functions.find(handle);
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *name = function->name;
    return CUDA_SUCCESS;
  });
}

KGATE_EXPORT CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* size) {
  if (offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return function_call(KGATE_API_ID(cuFuncGetParamInfo), handle, [&](LoadedFunction& function) {
    if (index >= function.info->params.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = function.info->params[index].offset;
    if (size != nullptr) *size = function.info->params[index].size;
    return CUDA_SUCCESS;
  });
}

}  // namespace kgate::vgpu
