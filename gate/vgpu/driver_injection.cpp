// See the header. The library may call into this one while it runs, even cuInit: only another thread's call waits.
#include "vgpu/driver_injection.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>

namespace kgate::vgpu {

namespace {

void load_and_call() {
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr || *path == '\0') return;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);  // never closed: it stays for the life of the process
  if (library == nullptr) return;
  if (auto* initialise = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"))) initialise();
}

}  // namespace

void run_injection() {
  static std::once_flag once;
  thread_local bool inside = false;
  if (inside) return;
  inside = true;
  std::call_once(once, load_and_call);
  inside = false;
}

}  // namespace kgate::vgpu
