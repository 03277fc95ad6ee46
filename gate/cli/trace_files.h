// From what a traced application left in the run's folder to a trace store.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/trace_run.h"
#include "trace/store.h"

namespace kgate::cli {

// The files of one process, as trace/inject_wire.h names them.
struct ProcessFiles {
  uint32_t process = 0;
  std::filesystem::path records;              // STEM.kgr; empty: none
  std::vector<std::filesystem::path> images;  // STEM-N.cubin
  std::optional<Failure> why;                 // STEM.why
};

// By STEM, so that a process that replaced itself by another program counts twice.
std::map<std::string, ProcessFiles> find_process_files(const std::filesystem::path& folder);

// kernel name → kernel_id over all images. A name that stands for different code in two of them has none.
std::map<std::string, std::string> kernel_ids(const std::vector<std::filesystem::path>& images);

// The store of a run that recorded something; finished.
std::unique_ptr<TraceStore> build_trace(const std::filesystem::path& out, const ApplicationRun& run,
                                        const std::map<std::string, ProcessFiles>& files, RunInfo info);

}  // namespace kgate::cli
