// Loads a CUDA driver library and resolves its calls by exact exported name. dlsym rather than cuGetProcAddress:
// uprobes sit on the exported symbols, and a name with its version suffix says which ABI is meant.
#include <dlfcn.h>
#include <link.h>

#include <cstdlib>

#include "gpu/driver_calls.h"
#include "support/text.h"

namespace kgate::gpu {

namespace {

std::string mapped_path(void* handle, const std::string& fallback) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_name[0] == '\0') return fallback;
  char* resolved = realpath(map->l_name, nullptr);
  std::string path = resolved != nullptr ? resolved : map->l_name;
  std::free(resolved);
  return path;
}

}  // namespace

Result<Library> load_library(const std::string& name) {
  Library library;
  library.handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library.handle == nullptr) {
    const char* reason = dlerror();
    return Failure{"cannot load the CUDA driver: " + sanitize(reason != nullptr ? reason : "unknown reason"), name,
                   "install the NVIDIA driver, or use --device virtual"};
  }
  library.path = mapped_path(library.handle, name);

  std::string missing;
  auto resolve = [&](const char* symbol, auto& call, bool required) {
    call = reinterpret_cast<std::decay_t<decltype(call)>>(dlsym(library.handle, symbol));
    if (call == nullptr && required) missing += (missing.empty() ? "" : ", ") + std::string(symbol);
  };
#define KGATE_REQUIRED(symbol, params) resolve(#symbol, library.calls.symbol, true);
#define KGATE_OPTIONAL(symbol, params) resolve(#symbol, library.calls.symbol, false);
  KGATE_REQUIRED_CALLS(KGATE_REQUIRED)
  KGATE_OPTIONAL_CALLS(KGATE_OPTIONAL)
#undef KGATE_REQUIRED
#undef KGATE_OPTIONAL
  if (!missing.empty()) {
    dlclose(library.handle);
    return Failure{"not a CUDA driver that kgate can use: it lacks " + sanitize(missing, 200), library.path,
                   "give the path of libcuda.so.1 (driver 525 or newer) or of libkgate_vgpu.so"};
  }
  return library;
}

}  // namespace kgate::gpu
