// CUDA_INJECTION64_PATH, as the real driver honours it: a tool's library, loaded inside the first cuInit.
#pragma once

namespace kgate::vgpu {

// Loads the library and calls its InitializeInjection() once a process, before the driver is initialised; a second
// thread's cuInit waits for it. A library that cannot be loaded, lacks the function or fails changes nothing.
void run_injection();

}  // namespace kgate::vgpu
