// The recorder's life in one process: from cuInit to exit.
#pragma once

#include "probes/record_recorder.h"

namespace kgate::record {

// True: this process is to be recorded (KGATE_RECORD_DIR).
bool wanted();

// From InitializeInjection(). `caller`: an address in the library that called it. Whatever fails, the application goes
// on unrecorded, and the reason lies in STEM.why.
void begin(const void* caller) noexcept;

// The recorder, if this process has one and is not a forked child of such a process; else null.
Recorder* recorder();

}  // namespace kgate::record
