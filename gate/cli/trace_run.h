// Runs an application with libkgate_inject.so in every process that initialises CUDA, and eBPF probes on those.
//
// Enters: a command line. Leaves: how it ended, and of each process what it left in the run's folder
// (trace/inject_wire.h) and what the probes saw. The application keeps its streams, its terminal and its signals.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "support/error.h"
#include "support/process.h"
#include "trace/probes.h"

namespace kgate::cli {

struct ApplicationRequest {
  std::vector<std::string> argv;
  std::filesystem::path folder;    // of the run: exists, and outlives the call
  std::filesystem::path injector;  // libkgate_inject.so
  std::string cuda_library;        // takes the place of libcuda.so.1; empty: the application's own choice
};

// A process that was there. Host events of the tracer's own thread are left out.
struct ApplicationProcess {
  uint32_t process = 0, parent = 0;
  std::string command;         // empty: not known
  bool uses_cuda = false;      // it initialised CUDA
  std::string driver;          // path of its driver library
  std::string without_probes;  // why no probe watched it; empty: one did
  std::vector<HostEvent> host_events;
  std::vector<ProbeSymbol> symbols;
  std::optional<ProbeHealth> probes;
};

struct ApplicationRun {
  uint32_t process = 0;  // the command's own
  ExitStatus status;
  bool interrupted = false;  // SIGINT or SIGTERM came while it ran
  uint64_t begin = 0, end = 0;
  std::vector<ApplicationProcess> processes;  // those that initialised CUDA
};

// Error{usage} when the command cannot be started or CUDA_INJECTION64_PATH belongs to another tool; Error{environment}
// when the run cannot be set up.
ApplicationRun run_application(const ApplicationRequest& request);

}  // namespace kgate::cli
