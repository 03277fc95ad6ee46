// kgate trace: an application under eBPF and CUPTI, into a trace store.
//
// Exit codes: 0 traced, and the application ended with 0; 5 whatever else happened, which is said (a CI step must fail,
// and 1 would read as a regression); 130 interrupted. The trace is written in each case in which there is something.

#include <fmt/format.h>
#include <sys/utsname.h>

#include <CLI/CLI.hpp>
#include <set>

#include "cli/application.h"
#include "cli/trace_files.h"
#include "cli/trace_run.h"
#include "cli/verbs.h"
#include "gpu/driver.h"
#include "support/fd.h"
#include "support/log.h"
#include "support/text.h"
#include "trace/demangle.h"

namespace kgate::cli {

namespace {

struct Options {
  std::vector<std::string> argv;
  std::string out = "trace.db", require_tier, cuda_library, workload;
};

// T0 if probes watched every process that has records; otherwise T2, and why.
std::pair<std::string, std::string> tier_of(const ApplicationRun& run,
                                            const std::map<std::string, ProcessFiles>& files) {
  for (const auto& [stem, process] : files) {
    if (process.records.empty()) continue;
    const ApplicationProcess* seen = nullptr;
    for (const ApplicationProcess& one : run.processes)
      if (one.process == process.process) seen = &one;
    if (seen == nullptr) return {"T2", fmt::format("process {} could not reach kgate", process.process)};
    if (!seen->without_probes.empty()) return {"T2", seen->without_probes};
  }
  return {"T0", {}};
}

void print_rows(const TraceStore& store, const char* title, const std::string& sql,
                const std::function<std::string(const std::vector<std::string>&)>& format) {
  bool any = false;
  store
      .query(sql,
             [&](const auto&, const auto& values) {
               if (!any) fmt::print("{}\n", title);
               any = true;
               std::vector<std::string> row;
               for (const auto& value : values) row.push_back(value.value_or("0"));
               fmt::print("  {}\n", format(row));
             })
      .value_or_throw(Exit::internal);
}

double number(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

void print_summary(const TraceStore& store, const std::filesystem::path& out, const std::string& tier,
                   const std::string& why) {
  fmt::print("trace    {}  (tier {}{})\n", out.string(), tier, why.empty() ? "" : ": " + sanitize(why));
  print_rows(store, "processes", "SELECT process, command, cuda, recorded, end_ns FROM processes ORDER BY begin_ns",
             [](const auto& r) {
               const char* state = r[3] == "0"   ? (r[2] == "0" ? "no CUDA" : "not traced")
                                   : r[4] == "0" ? "killed, or left by _exit: its last records are missing"
                                                 : "whole";
               return fmt::format("{:<8} {}  [{}]", r[0], sanitize(r[1], 80), state);
             });
  print_rows(store, "kernels                                                        launches      avg      p99   share",
             "SELECT demangled, COUNT(*), AVG(duration_ns), p99(duration_ns), 100.0 * SUM(duration_ns) / (SELECT "
             "SUM(duration_ns) FROM kernel_launches) FROM kernel_launches GROUP BY kernel_name ORDER BY "
             "SUM(duration_ns) DESC LIMIT 20",
             [](const auto& r) {
               return fmt::format("{:<58} {:>10} {:>8} {:>8} {:>5.1f} %", sanitize(trace::short_kernel_name(r[0], 58)),
                                  r[1], format_ns(number(r[2])), format_ns(number(r[3])), number(r[4]));
             });
  print_rows(store, "synchronising calls                                               calls    total      p99",
             "SELECT name, COUNT(*), SUM(end_ns - start_ns), p99(end_ns - start_ns) FROM api_calls WHERE is_sync GROUP "
             "BY name ORDER BY 3 DESC",
             [](const auto& r) {
               return fmt::format("{:<58} {:>10} {:>8} {:>8}", sanitize(r[0], 58), r[1], format_ns(number(r[2])),
                                  format_ns(number(r[3])));
             });
  bool any = false;
  for (const HealthRow& row : store.health()) {
    if (row.ok()) continue;
    if (!any) fmt::print("what this trace cannot vouch for\n");
    any = true;
    fmt::print("  {} = {:g} (limit {:g}) {}\n", row.name, row.value, row.limit, sanitize(row.note));
  }
}

// Nothing was recorded: says why as well as it is known.
[[noreturn]] void nothing_traced(const ApplicationRun& run, const std::map<std::string, ProcessFiles>& files) {
  std::string ending = run.status.ok() ? "" : " (the application ended with " + describe(run.status) + ")";
  for (const auto& [stem, process] : files)
    if (process.why) throw Error(Exit::environment, process.why->what + ending, process.why->where, process.why->hint);
  throw Error(Exit::environment, "no CUDA call was seen" + ending, {},
              "does it use an NVIDIA GPU, and do its processes keep CUDA_INJECTION64_PATH and KGATE_TRACE_DIR?");
}

// Of the first device that CUDA shows here; an application that picks another one is not noticed.
void note_device(const std::set<std::string>& drivers, RunInfo& info) {
  bool is_virtual = std::all_of(drivers.begin(), drivers.end(),
                                [](const std::string& path) { return path.ends_with("/libkgate_vgpu.so"); });
  auto device = gpu::choose_device(is_virtual ? "virtual" : "gpu");
  info.facts["device"] = device ? device->properties.name : "unknown: " + device.failure().what;
  if (!device) return;
  info.facts["device_uuid"] = device->properties.uuid;
  info.facts["driver_version"] = std::to_string(device->properties.driver_version);
}

Exit trace(const Options& options, const std::string& command) {
  if (!options.workload.empty())
    throw Error(Exit::usage, "tracing a workload alone is not part of this version", options.workload,
                "kgate check replays workloads and leaves a trace; kgate trace takes a program after '--'");
  if (options.argv.empty())
    throw Error(Exit::usage, "no program to trace", {}, "give the program and its arguments after '--'");
  if (options.require_tier == "T0")
    if (ProbeSupport support = probe_support(); !support.ok)
      throw Error(Exit::environment, "tier T0 is required, but eBPF cannot be used: " + support.detail, {},
                  support.hint);
  check_writable(options.out, "the trace");  // before the application runs, which may take hours
  TempDir folder("kgate-trace");
  ApplicationRun run = run_application({options.argv, folder.path(), injection_library(), options.cuda_library});
  auto files = find_process_files(folder.path());
  bool recorded = false;
  for (const auto& [stem, process] : files) recorded |= !process.records.empty();
  if (!recorded && run.interrupted) throw Error(Exit::interrupted, "interrupted before any CUDA call was seen");
  if (!recorded) nothing_traced(run, files);

  auto [tier, why] = tier_of(run, files);
  RunInfo info{tier, {{"command", command}, {"application_status", describe(run.status)}}};
  if (!why.empty()) info.facts["tier_reason"] = sanitize(why);
  std::set<std::string> drivers;
  for (const ApplicationProcess& one : run.processes) drivers.insert(sanitize(one.driver));
  if (!drivers.empty()) info.facts["driver_library"] = fmt::format("{}", fmt::join(drivers, ", "));
  utsname kernel{};
  if (uname(&kernel) == 0) info.facts["kernel_release"] = kernel.release;
  note_device(drivers, info);
  auto store = build_trace(options.out, run, files, std::move(info));
  print_summary(*store, options.out, tier, why);
  for (const auto& [stem, process] : files)
    if (process.why) log::warning("process " + stem + ": " + process.why->what);

  if (run.interrupted) return Exit::interrupted;
  if (!run.status.ok())
    throw Error(Exit::environment, "the application ended with " + describe(run.status), {},
                "its trace up to there is in " + options.out);
  if (!options.require_tier.empty() && tier > options.require_tier)
    throw Error(Exit::environment, "tier " + options.require_tier + " is required, this trace is " + tier, {}, why);
  return Exit::pass;
}

}  // namespace

void add_trace(CLI::App& app, const Invocation& invocation, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("trace", "run an application under eBPF and CUPTI: kgate trace -- CMD...");
  verb->add_option("--out", options->out, "the trace store to write")->capture_default_str();
  verb->add_option("--require-tier", options->require_tier, "exit 5 below this tier")
      ->check(CLI::IsMember({"T0", "T2"}));
  verb->add_option("--cuda-library", options->cuda_library,
                   "what the application finds as libcuda.so.1, e.g. libkgate_vgpu.so");
  verb->add_option("--workload", options->workload, "not part of this version");
  verb->add_option("command", options->argv, "the program and its arguments, after '--'");
  std::string command = invocation.command;
  verb->callback([=, &action] { action = [=] { return trace(*options, command); }; });
}

}  // namespace kgate::cli
