// Reads the record memfd of one worker into vectors. The worker is untrusted: every length, kind, phase and time is
// checked here once, so that what follows may rely on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/wire.h"

namespace kgate::trace {

// After reading: begin ≤ end everywhere, times below 2^63, phases are enumerators. A kernel without times has start =
// end = 0.
struct Records {
  std::vector<wire::RoundRecord> rounds;
  std::vector<wire::RequestRecord> requests;
  std::vector<wire::LaunchRecord> launches;  // also one for each kernel of each graph call, with a graph_node
  struct GraphCall {
    wire::GraphCallRecord record;
    uint32_t first_launch, launch_count;  // into `launches`
  };
  std::vector<GraphCall> graph_calls;
  std::vector<wire::BufferHashRecord> hashes;
  std::vector<wire::KernelRecord> kernels;
  std::vector<wire::ApiRecord> apis;
  std::vector<wire::SyncRecord> syncs;
  std::vector<wire::MemoryRecord> memories;
  std::vector<wire::OverheadRecord> overheads;
  std::vector<wire::VirtualCountersRecord> counters;
  std::vector<wire::GraphRecord> graphs;
  std::vector<wire::GraphNodeRecord> nodes;
  std::vector<wire::ModuleRecord> modules;
  std::vector<wire::ProcessRecord> processes;
  std::vector<wire::CollectorRecord> collectors;
  std::vector<wire::HardwareCountersRecord> hardware;
  // By call: the index of the runtime's call that stands for it, or its own (trace/nested_calls.h). Empty: all their
  // own.
  std::vector<uint32_t> outer;
  std::unordered_map<uint32_t, std::string> names;  // printable
  uint64_t lost = 0;                                // the writer's own count
  uint64_t bad = 0;            // records that make no sense; a length that makes none ends the stream
  uint64_t invalid_times = 0;  // device-side records with end < start, or kernels that have no time
  std::string first_bad;       // the first of `bad`, in words
};

Records read_records(std::span<const std::byte> memfd);  // wire::Header first

}  // namespace kgate::trace
