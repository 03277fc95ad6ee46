// What there is to say about a workload, counted once for text and JSON.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workload/workload.h"

namespace kgate {

// Launches that agree in kernel, extents and shared memory.
struct LaunchClass {
  uint32_t kernel = 0;
  Dim3 grid, block, cluster;
  uint32_t shared = 0;
  uint64_t launches = 0;  // by calls and by nodes of graphs, each time that a graph is launched
  uint32_t distinct = 0;  // parameter blocks
};

struct Traffic {
  uint64_t calls = 0, bytes = 0;
};

struct WorkloadSummary {
  static constexpr size_t kKinds = static_cast<size_t>(kLastCallKind) + 1;
  std::array<uint64_t, kKinds> calls{};           // by kind
  std::array<Traffic, kKinds> traffic{};          // of copies, fills, allocations
  std::vector<LaunchClass> classes;               // most launches first
  std::vector<uint64_t> kernel_launches;          // by kernel
  std::vector<uint64_t> graph_launches;           // by graph
  uint64_t launches = 0, launches_in_graphs = 0;  // the latter are part of the former
  uint64_t written_bytes = 0;                     // of buffers
  uint64_t recorded_bytes = 0, stored_bytes = 0;  // contents that are not zeros or made up; each distinct chunk once
  uint64_t placed_buffers = 0, hashed_buffers = 0;
  uint64_t edges = 0;                   // between threads
  size_t min_calls = 0, max_calls = 0;  // of a request
  std::vector<uint64_t> gaps;           // between arrivals, sorted
  uint64_t last_arrival = 0;
};

WorkloadSummary summarise(const Workload& workload);

// Kernels by launches, most first; without those that are never launched.
std::vector<uint32_t> kernels_by_launches(const WorkloadSummary& summary);

}  // namespace kgate
