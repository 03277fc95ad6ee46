// From what the recorder left (workload/recording.h) to a workload.
//
// Enters: STEM.kgrec and STEM.blobs, untrusted. Leaves: a Workload of the slice, whose contents still lie in
// STEM.blobs, and sentences about what was left out. docs/recording.md says what becomes of which call.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "workload/workload.h"

namespace kgate {

struct AssembleOptions {
  std::string name{};           // of the workload
  std::string command{};        // of the application, for people
  std::string begun{};          // UTC, ISO 8601
  std::string kernel{};         // a pattern of entry names: a slice without such a launch is refused; empty: any
  std::string request_range{};  // NVTX ranges of this name are the requests; empty: spans between host syncs
  uint64_t requests = 0;        // at most so many; 0: all
};

// The bytes of a chunk of ContentChunks. Throws Error{environment} when the disk does not deliver.
using ReadChunk = std::function<std::string(const Sha256Digest&)>;

struct Assembled {
  Workload workload;           // validate() holds; `source` is empty
  ReadChunk chunk;             // of the workload's contents; valid while the recording lies where it lay
  bool complete = false;       // the slice has its end; else what there was until the application ended
  uint64_t launches = 0;       // kernels launched in the slice, those of graphs counted at each graph launch
  uint64_t content_bytes = 0;  // of buffers that have recorded content
  uint64_t dropped_bytes = 0;  // of allocations that nothing in the slice reaches
};

// Throws Error{bad_input} for a file that is no recording or is damaged; Error{environment} for one that is whole but
// holds no slice, no launch, or calls that cannot be replayed (all of them are named).
Assembled assemble(const std::filesystem::path& records, const AssembleOptions& options);

// What a process left, without assembling it: which of several has the launches.
struct RecordedProcess {
  uint32_t process = 0;
  uint64_t launches = 0;  // seen, inside the slice or not
  bool used_cuda = false;
  uint64_t begin_ns = 0;             // CLOCK_MONOTONIC of its first record
  std::vector<std::string> kernels;  // entry names, sorted
};
Result<RecordedProcess> recorded_process(const std::filesystem::path& records);

}  // namespace kgate
