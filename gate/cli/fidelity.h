// A recording's first replay: how faithful it is, and whether it needs its addresses. The answer is kept in its file.
#pragma once

#include <filesystem>

#include "gpu/driver.h"
#include "workload/workload.h"

namespace kgate {

// Measures, says it in one line, stores it in `kgw` (a file that cannot be written is warned about) and sets
// workload.addresses. Throws Error{environment} when the recording does not replay at all.
void keep_fidelity(Workload& workload, const std::filesystem::path& kgw, const gpu::DeviceChoice& device);

}  // namespace kgate
