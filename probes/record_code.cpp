// Loads and unloads of code, and what names its kernels and variables.
#include "probes/record_call_table.h"
#include "probes/record_recorder.h"

namespace kgate::record {

using namespace gpu;

#define KGATE_ID(name) CUPTI_DRIVER_TRACE_CBID_##name

namespace {
uint64_t number(const void* handle) { return reinterpret_cast<uint64_t>(handle); }
}  // namespace

void Recorder::enter_code(Thread& thread, uint32_t cbid, const CUpti_CallbackData& data) {
  if (kWatchedCalls[cbid].sort == Sort::load) thread.load = thread.call.sequence;
  if (cbid == KGATE_ID(cuModuleUnload)) modules_.unloading(number(params_of<KGATE_ID(cuModuleUnload)>(data).hmod), 0);
  if (cbid == KGATE_ID(cuLibraryUnload))
    modules_.unloading(0, number(params_of<KGATE_ID(cuLibraryUnload)>(data).library));
}

void Recorder::exit_code(Thread& thread, uint32_t cbid, const CUpti_CallbackData& data, int result) {
  bool known = true;
  const auto variable = [&](const CUdeviceptr* address, const size_t* bytes, const char* name) {
    if (address == nullptr || bytes == nullptr || name == nullptr) return;
    std::lock_guard lock(mutex_);
    variables_[*address] = {*bytes, name};
  };
  if (result == CUDA_SUCCESS) switch (cbid) {
      case KGATE_ID(cuModuleLoad): {
        const auto& p = params_of<KGATE_ID(cuModuleLoad)>(data);
        known = modules_.loaded_file(thread, number(*p.module), 0, p.fname);
        break;
      }
      case KGATE_ID(cuModuleLoadData): {
        const auto& p = params_of<KGATE_ID(cuModuleLoadData)>(data);
        known = modules_.loaded(thread, number(*p.module), 0, p.image);
        break;
      }
      case KGATE_ID(cuModuleLoadDataEx): {
        const auto& p = params_of<KGATE_ID(cuModuleLoadDataEx)>(data);
        known = modules_.loaded(thread, number(*p.module), 0, p.image);
        break;
      }
      case KGATE_ID(cuModuleLoadFatBinary): {
        const auto& p = params_of<KGATE_ID(cuModuleLoadFatBinary)>(data);
        known = modules_.loaded(thread, number(*p.module), 0, p.fatCubin);
        break;
      }
      case KGATE_ID(cuLibraryLoadData): {
        const auto& p = params_of<KGATE_ID(cuLibraryLoadData)>(data);
        known = modules_.loaded(thread, 0, number(*p.library), p.code);
        break;
      }
      case KGATE_ID(cuLibraryLoadFromFile): {
        const auto& p = params_of<KGATE_ID(cuLibraryLoadFromFile)>(data);
        known = modules_.loaded_file(thread, 0, number(*p.library), p.fileName);
        break;
      }
      case KGATE_ID(cuLibraryGetKernel):
        modules_.is_kernel(number(*params_of<KGATE_ID(cuLibraryGetKernel)>(data).pKernel));
        break;
      case KGATE_ID(cuModuleGetGlobal_v2): {
        const auto& p = params_of<KGATE_ID(cuModuleGetGlobal_v2)>(data);
        variable(p.dptr, p.bytes, p.name);
        break;
      }
      case KGATE_ID(cuLibraryGetGlobal):
      case KGATE_ID(cuLibraryGetManaged): {
        const auto& p = params_of<KGATE_ID(cuLibraryGetGlobal)>(data);
        variable(p.dptr, p.bytes, p.name);
        break;
      }
      default:
        break;
    }
  if (!known)
    note(thread, "the image of a module has a form that is not known: only the machine code of it is kept", false);
  thread.load = 0;
}

// Machine code may come outside of any load: with lazy loading, at the first launch.
void Recorder::on_module(const CUpti_ModuleResourceData& module) {
  if (!recording()) return;
  modules_.compiled(threads_.mine(), module.pCubin, module.cubinSize);
}

}  // namespace kgate::record
