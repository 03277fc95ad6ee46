// A libcuda that misbehaves in cuInit. Every other call that kgate needs exists, and does nothing.
#include <unistd.h>

#include <csignal>

#include "gpu/driver_calls.h"

using namespace kgate::gpu;

#define KGATE_FAKE(name, params) \
  extern "C" __attribute__((visibility("default"))) CUresult name params { return CUDA_ERROR_NOT_INITIALIZED; }
#define cuInit ordinary_cuInit  // the table's first row; the real one is below
#pragma GCC diagnostic ignored "-Wunused-parameter"
KGATE_REQUIRED_CALLS(KGATE_FAKE)
#undef cuInit

extern "C" __attribute__((visibility("default"))) CUresult cuInit(unsigned) {
#if KGATE_FAKE_crash
  raise(SIGABRT);
#elif KGATE_FAKE_exits
  _exit(7);
#endif
  return CUDA_ERROR_NO_DEVICE;
}
