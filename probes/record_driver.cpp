#include "probes/record_driver.h"

#include <dlfcn.h>

namespace kgate::record {

DriverCalls resolve_driver_calls(void* handle) {
  DriverCalls calls;
#define KGATE_RESOLVE(name, parameters) \
  calls.name = reinterpret_cast<gpu::CUresult(*) parameters>(dlsym(handle, #name));
  KGATE_RECORD_CALLS(KGATE_RESOLVE)
#undef KGATE_RESOLVE
  return calls;
}

}  // namespace kgate::record
