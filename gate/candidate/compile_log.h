// What compilers write, read back. resource_usage() is declared in compile.h; the rest serves the compile drivers.
#pragma once

#include <string>
#include <string_view>

namespace kgate {

// The first error of a ptxas, nvJitLink or NVRTC log as "line 12: Unknown symbol '%r2'"; the first line with text if no line
// is marked as an error; empty for an empty log.
std::string first_error(std::string_view log);

bool speaks_of_memory(std::string_view log);  // "memory allocation failure", std::bad_alloc

}  // namespace kgate
