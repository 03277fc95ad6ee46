// The folder was open to the application: whatever lies in it is taken as a claim, and what does not read as what its
// name says is left out and counted.
#include "cli/trace_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "candidate/candidate.h"
#include "support/fd.h"
#include "support/text.h"

namespace kgate::cli {

namespace fs = std::filesystem;

namespace {

uint32_t leading_number(std::string_view text) {
  uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Failure read_reason(const fs::path& path) {
  auto text = read_file(path, 64 << 10);
  if (!text) return text.failure();
  std::vector<std::string> lines;
  for (std::string_view line : split_lines(*text)) lines.push_back(sanitize(line));
  lines.resize(3);
  return {lines[0], lines[1], lines[2]};
}

Result<Mapping> map_records(const fs::path& path) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat st {};
  if (!file || ::fstat(file.get(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
    return Failure{"no record file", path.string(), {}};
  return Mapping::of(file, static_cast<size_t>(st.st_size), false);
}

const ApplicationProcess* find_process(const ApplicationRun& run, uint32_t process, size_t occurrence) {
  for (const ApplicationProcess& one : run.processes)
    if (one.process == process && occurrence-- == 0) return &one;
  return nullptr;
}

}  // namespace

std::map<std::string, ProcessFiles> find_process_files(const fs::path& folder) {
  std::map<std::string, ProcessFiles> all;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    std::string name = entry.path().filename().string(), suffix = entry.path().extension().string();
    std::string stem = entry.path().stem().string();
    if (suffix == ".cubin") stem = stem.substr(0, stem.rfind('-'));
    uint32_t process = leading_number(stem);
    if (process == 0 || (suffix != ".kgr" && suffix != ".why" && suffix != ".cubin")) continue;
    ProcessFiles& files = all[stem];
    files.process = process;
    if (suffix == ".kgr") files.records = entry.path();
    if (suffix == ".why") files.why = read_reason(entry.path());
    if (suffix == ".cubin") files.images.push_back(entry.path());
  }
  return all;
}

std::map<std::string, std::string> kernel_ids(const std::vector<fs::path>& images) {
  std::map<std::string, std::string> ids;
  std::set<std::string> ambiguous;
  for (const fs::path& path : images) {
    auto image = read_candidate(path);
    if (!image) continue;  // a kernel without an id is a kernel without an id
    for (const Entry& entry : image->entries) {
      auto [at, added] = ids.emplace(entry.name, entry.kernel_id);
      if (!added && at->second != entry.kernel_id) ambiguous.insert(entry.name);
    }
  }
  for (const std::string& name : ambiguous) ids.erase(name);
  return ids;
}

std::unique_ptr<TraceStore> build_trace(const fs::path& out, const ApplicationRun& run,
                                        const std::map<std::string, ProcessFiles>& files, RunInfo info) {
  auto store = TraceStore::create(out, info, {});
  std::map<uint32_t, size_t> occurrences;
  std::set<uint32_t> added;
  for (const auto& [stem, process] : files) {
    ProcessTrace trace;
    trace.process = process.process;
    if (const ApplicationProcess* seen = find_process(run, process.process, occurrences[process.process]++)) {
      trace.parent = seen->parent;
      trace.command = seen->command;
      trace.uses_cuda = true;
      trace.host_events = seen->host_events;
      trace.symbols = seen->symbols;
      trace.probes = seen->probes;
    }
    Mapping mapping;
    if (!process.records.empty()) {
      if (auto mapped = map_records(process.records)) mapping = std::move(*mapped);
      trace.records = mapping.bytes();
      trace.kernel_ids = kernel_ids(process.images);
    }
    if (process.records.empty()) trace.uses_cuda = true;  // it says why
    added.insert(process.process);
    store->add_process(trace);
  }
  if (!added.contains(run.process)) {  // a shell or a launcher: others did the work
    ProcessTrace launcher;
    launcher.process = run.process;
    store->add_process(launcher);
  }
  store->finish();
  return store;
}

}  // namespace kgate::cli
