// See the header. The caller is asked first: whoever runs injections is the driver. Should a driver one day let another
// library do that, the library of the driver's public name is taken.
#include "probes/inject_driver.h"

#include <dlfcn.h>

#include <cstdlib>

#include "trace/collector.h"

namespace kgate::inject {

namespace {

// The file that `handle`'s cuLaunchKernel lies in: what uprobes need. Empty: `handle` has none.
std::string file_of(void* handle) {
  void* launch = handle != nullptr ? dlsym(handle, "cuLaunchKernel") : nullptr;
  Dl_info info{};
  if (launch == nullptr || dladdr(launch, &info) == 0 || info.dli_fname == nullptr) return {};
  char* resolved = realpath(info.dli_fname, nullptr);
  std::string path = resolved != nullptr ? resolved : info.dli_fname;
  std::free(resolved);
  return path;
}

}  // namespace

Driver find_driver(const void* caller) {
  Driver driver;
  Dl_info info{};
  void* handle = nullptr;
  if (dladdr(caller, &info) != 0 && info.dli_fname != nullptr)
    handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  driver.path = file_of(handle);
  if (driver.path.empty()) {
    handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    driver.path = file_of(handle);
  }
  if (driver.path.empty()) return driver;
  driver.handle = handle;
  driver.exports_cupti = dlsym(handle, "cuptiActivityEnable") != nullptr;
#define KGATE_RESOLVE(name, parameters) \
  driver.name = reinterpret_cast<gpu::CUresult(*) parameters>(dlsym(handle, #name));
  KGATE_INJECT_CALLS(KGATE_RESOLVE)
#undef KGATE_RESOLVE
  return driver;
}

std::string cupti_library(const Driver& driver) {
  if (driver.exports_cupti) return driver.path;
  constexpr const char* kName = "libcupti.so.13";
  if (std::getenv("KGATE_CUPTI") == nullptr && dlopen(kName, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD) != nullptr)
    return kName;
  return find_cupti();
}

}  // namespace kgate::inject
