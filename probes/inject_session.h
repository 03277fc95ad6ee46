// The tracer inside one process of an application: from cuInit to exit.
#pragma once

namespace kgate::inject {

// From InitializeInjection(). `caller`: an address in the library that called it. Whatever fails, the application goes
// on untraced, and the reason lies in STEM.why.
void begin(const void* caller) noexcept;

}  // namespace kgate::inject
