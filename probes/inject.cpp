// libkgate_inject.so, which the CUDA driver loads into every process that has CUDA_INJECTION64_PATH set to it, from
// inside cuInit. `kgate trace` and `kgate record` set it. It sits at driver level, so that it makes no difference
// whether an application uses the driver API or a runtime, linked dynamically or statically.
//
// It never writes to the application's streams, never fails its calls and takes no signal of it.
#include "probes/inject_session.h"
#include "probes/record_session.h"

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const void* caller = __builtin_return_address(0);
  kgate::record::wanted() ? kgate::record::begin(caller) : kgate::inject::begin(caller);
  return 1;
}
