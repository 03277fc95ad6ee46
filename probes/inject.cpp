// libkgate_inject.so, which the CUDA driver loads into every process that has CUDA_INJECTION64_PATH set to it, from
// inside cuInit. `kgate trace` sets it. It sits at driver level, so that it makes no difference whether an application
// uses the driver API or a runtime, linked dynamically or statically.
//
// It never writes to the application's streams, never fails its calls and takes no signal of it.
#include "probes/inject_session.h"

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  kgate::inject::begin(__builtin_return_address(0));
  return 1;
}
