// YAML workloads: arrivals, buffers and the calls of one request, expanded into a Workload. Deterministic: the same
// file and the same kernels give the same workload hash. Format: docs/formats.md.
#pragma once

#include <filesystem>

#include "workload/workload.h"

namespace kgate {

// Throws Error{bad_input} listing all problems. PTX and cubin modules are read; .cu modules are compiled with NVRTC.
Workload build_workload(const std::filesystem::path& yaml);

// By content: a .kgw is read, YAML is built. Throws Error{bad_input}.
Workload load_workload(const std::filesystem::path& path);

// What `kgate inspect` prints of a workload: kernels, launch classes, requests, streams, sizes, arrivals.
std::string describe_workload(const Workload& workload);
std::string workload_json(const Workload& workload);

}  // namespace kgate
