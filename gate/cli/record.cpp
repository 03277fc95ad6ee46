// kgate record: an application under CUPTI callbacks, into a workload that kgate check replays.
//
// Exit codes: 0 recorded, and the application ended with 0; 5 whatever else happened, which is said; 130 interrupted.
// The recording is written in each case in which there is one.

#include <fmt/format.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <ctime>
#include <nlohmann/json.hpp>

#include "cli/application.h"
#include "cli/fidelity.h"
#include "cli/trace_files.h"
#include "cli/verbs.h"
#include "contract/quantity.h"
#include "support/log.h"
#include "support/text.h"
#include "trace/demangle.h"
#include "workload/assemble.h"
#include "workload/elsewhere.h"
#include "workload/kgw.h"

namespace kgate::cli {

namespace {

constexpr uint64_t kDefaultMaxBytes = uint64_t{4} << 30;

struct Options {
  std::vector<std::string> argv;
  std::string out, kernel, request_range, cuda_library;
  std::string from, length, max_size;  // quantities as given
  uint64_t requests = 0;
  uint32_t process = 0;  // of several, the N-th; 0: there is only one
  bool no_replay = false;
};

uint64_t nanoseconds(const std::string& flag, const std::string& text) {
  if (text.empty()) return 0;
  auto value = parse_duration_ns(text);
  if (!value) throw Error(Exit::usage, value.failure().what, flag, value.failure().hint);
  return static_cast<uint64_t>(*value);
}

uint64_t bytes(const std::string& flag, const std::string& text) {
  if (text.empty()) return kDefaultMaxBytes;
  auto value = parse_bytes(text);
  if (!value) throw Error(Exit::usage, value.failure().what, flag, value.failure().hint);
  return static_cast<uint64_t>(*value);
}

std::string recorder_options(const Options& options) {
  return nlohmann::json{{"from_ns", nanoseconds("--from", options.from)},
                        {"for_ns", nanoseconds("--for", options.length)},
                        {"requests", options.requests},
                        {"request_range", options.request_range},
                        {"kernel", options.kernel},
                        {"max_bytes", bytes("--max-size", options.max_size)}}
      .dump();
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

struct Run {
  ExitStatus status;
  bool interrupted = false;
  std::string begun;

  std::string ending() const { return status.ok() ? "" : " (the application ended with " + describe(status) + ")"; }
};

Run run_application(const Options& options, const std::filesystem::path& folder, const std::string& settings) {
  const std::string injector = injection_library().string();
  refuse_other_tools(injector);
  refuse_other_tools(injector, "NVTX_INJECTION64_PATH");
  Run run;
  run.begun = utc_now();
  Application application({options.argv,
                           {{"CUDA_INJECTION64_PATH", injector},
                            {"NVTX_INJECTION64_PATH", injector},
                            {"KGATE_RECORD_DIR", folder.string()},
                            {"KGATE_RECORD_OPTIONS", settings}},
                           options.cuda_library,
                           folder,
                           true});
  for (bool over = false; !over;) {
    pollfd sources[] = {{application.ended(), POLLIN, 0}, {application.signalled(), POLLIN, 0}};
    if (::poll(sources, 2, -1) < 0 && errno != EINTR) throw Error(Exit::environment, "cannot wait for the application");
    if (sources[1].revents != 0) application.pass_signals_on();
    over = sources[0].revents != 0;
  }
  run.status = application.wait();
  run.interrupted = application.interrupted();
  return run;
}

// ---- which process -------------------------------------------------------------------------------------------------

struct Recording {
  std::filesystem::path path;
  RecordedProcess process;
};

// Those that launched something, in the order in which they began to use CUDA.
std::vector<Recording> find_recordings(const std::filesystem::path& folder, bool& used_cuda) {
  std::vector<Recording> all;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().extension() != ".kgrec") continue;
    auto process = recorded_process(entry.path());
    if (!process) {
      log::warning(process.failure().where + ": " + process.failure().what);
      continue;
    }
    used_cuda |= process->used_cuda;
    if (process->launches > 0) all.push_back({entry.path(), std::move(*process)});
  }
  std::sort(all.begin(), all.end(),
            [](const Recording& a, const Recording& b) { return a.process.begin_ns < b.process.begin_ns; });
  return all;
}

[[noreturn]] void nothing_recorded(const Run& run, const std::filesystem::path& folder, bool used_cuda) {
  if (run.interrupted) throw Error(Exit::interrupted, "interrupted before any kernel was launched");
  for (const auto& [stem, process] : find_process_files(folder))
    if (process.why)
      throw Error(Exit::environment, process.why->what + run.ending(), process.why->where, process.why->hint);
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (!used_cuda && entry.path().extension() == ".kgrec")
      throw Error(Exit::environment,
                  "a process that used CUDA ended before anything that it did was written" + run.ending(), {},
                  "it left by _exit or was killed: let it run longer, or end in order");
  if (used_cuda)
    throw Error(Exit::environment, "the application launched no kernel" + run.ending(), {},
                "a workload is made of launches: check what the application did");
  throw Error(Exit::environment, "no CUDA call was seen" + run.ending(), {},
              "does it use an NVIDIA GPU, and do its processes keep CUDA_INJECTION64_PATH and KGATE_RECORD_DIR?");
}

const Recording& choose(const std::vector<Recording>& all, const Options& options) {
  if (options.process > all.size())
    throw Error(Exit::environment,
                fmt::format("{} {} launched kernels; there is no number {}", all.size(),
                            all.size() == 1 ? "process" : "processes", options.process),
                "--process");
  if (options.process != 0) return all[options.process - 1];
  std::vector<const Recording*> fitting;
  for (const Recording& one : all)
    if (options.kernel.empty() || std::any_of(one.process.kernels.begin(), one.process.kernels.end(),
                                              [&](const auto& name) { return glob_match(options.kernel, name); }))
      fitting.push_back(&one);
  if (fitting.size() == 1) return *fitting[0];
  if (all.size() == 1) return all[0];  // without the kernel: the assembler names those that it has
  std::string names;
  for (size_t i = 0; i < all.size(); ++i)
    names += fmt::format("\n  {}: process {}, {} launches", i + 1, all[i].process.process, all[i].process.launches);
  throw Error(Exit::environment,
              fmt::format("{} processes launched kernels; a workload holds one of them:{}", all.size(), names), {},
              "record again with --process N, or with --kernel of a kernel that only one of them launches");
}

// ---- summary -------------------------------------------------------------------------------------------------------

struct KernelUse {
  std::string entry;
  uint64_t launches = 0;
  size_t classes = 0;
};

std::vector<KernelUse> kernel_uses(const Workload& w) {
  std::vector<uint64_t> launched(w.launches.size());
  for (const Call& call : w.calls) {
    if (call.launch != kNone) ++launched[call.launch];
    if (call.graph == kNone) continue;
    for (const GraphNode& node : w.graphs[call.graph].nodes)
      if (node.launch != kNone) ++launched[node.launch];
  }
  std::vector<KernelUse> uses(w.kernels.size());
  for (size_t i = 0; i < w.kernels.size(); ++i) uses[i].entry = w.kernels[i].entry;
  for (size_t i = 0; i < w.launches.size(); ++i) {
    KernelUse& use = uses[w.launches[i].kernel];
    use.launches += launched[i];
    use.classes += launched[i] != 0;
  }
  std::erase_if(uses, [](const KernelUse& use) { return use.launches == 0; });
  std::stable_sort(uses.begin(), uses.end(),
                   [](const KernelUse& a, const KernelUse& b) { return a.launches > b.launches; });
  return uses;
}

std::string shell_word(const std::string& text) {
  return text.find_first_of(" '\"\\$`*?[]&|;<>()") == text.npos ? text : "'" + text + "'";
}

std::string counted(size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void print_summary(const Assembled& out, const Options& options) {
  constexpr size_t kShown = 20;
  const Workload& w = out.workload;
  std::error_code ignored;
  const auto file_bytes = std::filesystem::file_size(options.out, ignored);
  fmt::print("recorded {}  ({}, on {})\n", options.out, format_bytes(ignored ? 0 : static_cast<double>(file_bytes)),
             w.origin.device);
  const auto uses = kernel_uses(w);
  fmt::print("kernels                                                        launches  distinct\n");
  for (size_t i = 0; i < std::min(uses.size(), kShown); ++i) {
    const std::string name = trace::demangle({uses[i].entry})[0];
    fmt::print("  {:<58} {:>10} {:>9}\n", sanitize(trace::short_kernel_name(name, 58)), uses[i].launches,
               uses[i].classes);
  }
  if (uses.size() > kShown) fmt::print("  and {} more\n", uses.size() - kShown);
  fmt::print("calls    {} in {} on {} and {}\n", w.calls.size(), counted(w.requests.size(), "request"),
             counted(w.threads, "thread"), counted(w.streams.size(), "stream"));
  fmt::print("memory   {} in {}, {} of it with recorded content\n",
             format_bytes(static_cast<double>(total_buffer_bytes(w))), counted(w.buffers.size(), "buffer"),
             format_bytes(static_cast<double>(out.content_bytes)));
  for (const std::string& note : w.origin.notes) fmt::print("note     {}\n", note);
  std::string kernel = uses.front().entry;
  if (!options.kernel.empty())
    for (const KernelUse& use : uses)
      if (glob_match(options.kernel, use.entry)) {
        kernel = use.entry;
        break;
      }
  fmt::print("next     kgate check --workload {} --kernel {} CANDIDATE\n", shell_word(options.out), shell_word(kernel));
}

// Why nothing came of it is often how the application ended.
Assembled assemble_run(const std::filesystem::path& records, const AssembleOptions& options, const Run& run) {
  try {
    return assemble(records, options);
  } catch (const Error& error) {
    const Failure& failure = error.failure();
    throw Error(error.code(), failure.what + run.ending(), failure.where, failure.hint);
  }
}

// Says while the application's machine is at hand whether the recording replays.
void replay_once(const std::string& file) {
  Workload workload = read_kgw(file).value_or_throw(Exit::internal);
  bool on_virtual = !is_elsewhere(workload, 0);
  auto device = gpu::choose_device(on_virtual ? "virtual" : "gpu");
  if (!device) return log::warning("not replayed: " + device.failure().what);
  try {
    keep_fidelity(workload, file, *device);
  } catch (const Error& error) {
    log::warning(std::string("the recording was written, but ") + error.failure().what);
  }
}

// ---- the verb ------------------------------------------------------------------------------------------------------

Exit record(Options options, const std::string& command) {
  if (options.argv.empty())
    throw Error(Exit::usage, "no program to record", {}, "give the program and its arguments after '--'");
  if (options.out.empty()) options.out = std::filesystem::path(options.argv[0]).filename().string() + ".kgw";
  const std::string settings = recorder_options(options);
  check_writable(options.out, "the recording");  // before the application runs, which may take hours
  TempDir folder("kgate-record");
  const Run run = run_application(options, folder.path(), settings);
  bool used_cuda = false;
  const auto recordings = find_recordings(folder.path(), used_cuda);
  if (recordings.empty()) nothing_recorded(run, folder.path(), used_cuda);
  for (const auto& [stem, process] : find_process_files(folder.path()))
    if (process.why) log::warning("process " + stem + ": " + process.why->what);

  const Recording& chosen = choose(recordings, options);
  AssembleOptions assembling;
  assembling.name = std::filesystem::path(options.out).stem().string();
  assembling.command = command;
  assembling.begun = run.begun;
  assembling.kernel = options.kernel;
  assembling.request_range = options.request_range;
  assembling.requests = options.requests;
  const Assembled out = assemble_run(chosen.path, assembling, run);
  write_kgw(out.workload, options.out, out.chunk);
  if (!options.no_replay && run.status.ok() && !run.interrupted) replay_once(options.out);
  print_summary(out, options);

  if (run.interrupted) return Exit::interrupted;
  if (!run.status.ok())
    throw Error(Exit::environment, "the application ended with " + describe(run.status), {},
                (out.complete ? "its recording is whole: " : "its recording up to there is in ") + options.out);
  return Exit::pass;
}

}  // namespace

void add_record(CLI::App& app, const Invocation& invocation, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("record", "record an application as a workload: kgate record -- CMD...");
  verb->add_option("-o,--out", options->out, "the workload to write; default: the program's name with .kgw");
  verb->add_option("--kernel", options->kernel,
                   "a slice without a launch of such a kernel is refused (a name, * and ?)");
  verb->add_option(
      "--from", options->from,
      "when the slice begins, after the first launch: 10s; default: with the first call that touches the device");
  verb->add_option("--for", options->length, "how long the slice is: 500ms; default: to the end");
  verb->add_option("--requests", options->requests, "the slice ends after so many requests");
  verb->add_option("--request-range", options->request_range,
                   "NVTX ranges of this name are the requests; default: the spans between host syncs");
  verb->add_option("--max-size", options->max_size, "the most memory to keep contents of: 2GiB; default 4GiB");
  verb->add_option("--process", options->process, "of several processes that launch kernels, the N-th");
  verb->add_option("--cuda-library", options->cuda_library,
                   "what the application finds as libcuda.so.1, e.g. libkgate_vgpu.so");
  verb->add_flag("--no-replay", options->no_replay, "do not replay the recording once to see how faithful it is");
  verb->add_option("command", options->argv, "the program and its arguments, after '--'");
  const std::string command = invocation.command;
  verb->callback([=, &action] { action = [=] { return record(*options, command); }; });
}

}  // namespace kgate::cli
