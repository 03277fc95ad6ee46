// The worker as a process: its program, its limits and the descriptors that it shares with kgate.
#pragma once

#include <optional>
#include <string>

#include "replay/plan.h"
#include "support/fd.h"
#include "support/process.h"

namespace kgate {

// Shared memory of a fixed size: sealed against shrinking, because a worker that truncated it would kill the reader
// with SIGBUS, and against growing.
Result<Fd> sealed_memfd(const std::string& name, size_t bytes);

// $KGATE_WORKER, else kgate-worker beside the running program.
std::string worker_program();

struct WorkerProcess {
  std::optional<Child> child;
  Fd control;            // our end of the socket pair
  Fd records, readback;  // readback: empty without one
  Fd output;             // what it wrote to stdout and stderr, the first 64 KiB

  // The last lines of output, one line of clean text; empty when there are none.
  std::string last_words() const;
};

struct WorkerSizes {
  uint64_t record_bytes = 0, readback_bytes = 0, cpu_seconds = 0;
  bool fixed_addresses = false;  // without address randomisation, as the recorded program ran
};

// Throws Error{usage} when the plan needs more than 1 GiB of records, Error{environment} when the readback does not fit
// this machine.
WorkerSizes worker_sizes(const ReplayPlan& plan, const Workload& workload, bool is_virtual);

Result<WorkerProcess> spawn_worker(const WorkerSizes& sizes);

// The path under which process `pid` has mapped `library`: what "libcuda.so.1" was found as. Empty when it is not
// mapped.
std::string mapped_library(pid_t pid, const std::string& library);

}  // namespace kgate
