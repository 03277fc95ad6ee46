#include "candidate/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "candidate/compile_log.h"
#include "candidate/toolkit.h"
#include "support/fd.h"
#include "support/process.h"
#include "support/text.h"

namespace kgate {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMaxLog = size_t{1} << 20;
constexpr size_t kMaxImage = size_t{512} << 20;
constexpr int kLowestArch = 75;  // the oldest that CUDA 13 compiles for
constexpr int kLibraryMissing = 3;  // exit code of kgate-compile

// `.target sm_100f, debug` in the PTX text -> {100, 'f'}; comments may name other targets before it.
struct NamedTarget {
  int arch = 0;
  std::string suffix;
};

NamedTarget named_target(std::string_view ptx) {
  constexpr std::string_view directive = ".target";
  for (std::string_view line : split_lines(ptx)) {
    line = trim(line);
    if (!line.starts_with(directive)) continue;
    size_t at = line.find("sm_");
    if (at == std::string_view::npos) continue;
    NamedTarget target;
    const char* begin = line.data() + at + 3;
    const char* end = line.data() + line.size();
    auto [stop, error] = std::from_chars(begin, end, target.arch);
    if (error != std::errc{} || target.arch < 0 || target.arch > 999) continue;
    if (stop != end && (*stop == 'a' || *stop == 'f')) target.suffix = *stop;
    return target;
  }
  return {};
}

std::string arch_option(std::string_view ptx, const CompileOptions& options) {
  NamedTarget target = named_target(ptx);
  int arch = options.arch ? options.arch : std::max(target.arch, kLowestArch);
  std::string suffix = options.arch_specific ? "a" : arch == target.arch ? target.suffix : "";
  return fmt::format("sm_{}{}", arch, suffix);
}

std::string without(std::string text, const std::string& what) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) text.erase(at, what.size());
  return text;
}

struct Job {
  Command command;
  fs::path folder;         // of the inputs and of the output; its name is taken out of every text
  std::string output;      // file name inside
  bool hosted = false;     // in kgate-compile: not ptxas
};

std::string spelled(const Job& job) {
  std::string text;
  for (const auto& word : job.command.argv) text += (text.empty() ? "" : " ") + word;
  return without(std::move(text), job.folder.string() + "/");
}

void classify(const Job& job, const ExitStatus& status, const CompileOptions& options, CompileResult& result) {
  std::string limit;
  if (speaks_of_memory(result.log))
    limit = fmt::format(" (the limit is {} of address space)", format_bytes(static_cast<double>(options.memory_bytes)));
  if (status.timed_out) {
    result.outcome = CompileOutcome::timed_out;
    result.first_error = fmt::format("not finished after {}", format_ns(static_cast<double>(options.timeout.count()) * 1e6));
  } else if (status.signal) {
    result.outcome = CompileOutcome::crashed;
    result.first_error = fmt::format("the compiler died of {}{}", describe(status), limit);
  } else if (status.code == kLibraryMissing && job.hosted) {
    result.outcome = CompileOutcome::no_compiler;
    result.first_error = first_error(result.log);
  } else if (status.code != 0) {
    result.outcome = CompileOutcome::rejected;
    result.first_error = first_error(result.log) + limit;
    if (result.first_error.empty()) result.first_error = "the compiler failed without a message: " + describe(status);
  } else {
    result.outcome = CompileOutcome::ok;
  }
}

// kgate-compile says which library it loaded, and its version, in the first line of its log.
std::string take_banner(std::string& log) {
  constexpr std::string_view prefix = "compiler: ";
  if (!log.starts_with(prefix)) return {};
  size_t end = log.find('\n');
  if (end == std::string::npos) return {};
  std::string banner = sanitize(log.substr(prefix.size(), end - prefix.size()), 100);
  log.erase(0, end + 1);
  return banner;
}

CompileResult run_job(Job job, const CompileOptions& options, std::string compiler) {
  CompileResult result;
  result.compiler = std::move(compiler);
  result.command = spelled(job);
  Limits& limits = job.command.limits;
  limits.address_space_bytes = options.memory_bytes;
#if defined(__SANITIZE_ADDRESS__)
  if (job.hosted) limits.address_space_bytes.reset();  // the helper is instrumented too: it maps terabytes
#endif
  limits.file_bytes = kMaxImage;
  limits.open_files = 256;
  job.command.environment["TMPDIR"] = job.folder.string();
  auto run = run_captured(job.command, options.timeout, kMaxLog);
  throw_if_interrupted();
  if (!run) {
    result.first_error = run.failure().where + ": " + run.failure().what;
    return result;
  }
  result.log = without(std::move(run->output), job.folder.string() + "/");
  if (std::string banner = take_banner(result.log); !banner.empty()) result.compiler = banner;
  classify(job, run->status, options, result);
  if (result.outcome != CompileOutcome::ok) return result;
  auto image = read_file(job.folder / job.output, kMaxImage);
  if (image && !image->empty()) {
    result.image = std::move(*image);
  } else {
    result.outcome = CompileOutcome::rejected;
    result.first_error = "the compiler reported success and wrote no output";
  }
  return result;
}

CompileResult missing(std::string looked_for, std::string error) {
  CompileResult result;
  result.compiler = std::move(looked_for);
  result.first_error = std::move(error);
  return result;
}

}  // namespace

CompileResult assemble(const std::string& ptx, const CompileOptions& options) {
  auto ptxas = options.assembler == Assembler::nvjitlink ? std::nullopt : find_ptxas();
  auto helper = options.assembler == Assembler::ptxas || ptxas ? std::nullopt : find_compile_helper();
  if (!ptxas && !helper)
    return missing("ptxas ($KGATE_PTXAS, PATH, /usr/local/cuda*/bin) and nvJitLink (through kgate-compile)",
                   "no PTX assembler is installed");
  TempDir folder("kgate-compile");
  Job job;
  job.folder = folder.path();
  job.output = "candidate.cubin";
  std::string in = folder.path() / "candidate.ptx", out = folder.path() / job.output;
  write_file_atomic(in, ptx).value_or_throw(Exit::environment);
  std::string arch = arch_option(ptx, options);
  if (ptxas) {
    job.command.argv = {*ptxas, "-v", "-warn-spills", "-arch=" + arch, in, "-o", out};
    std::string version = ptxas_version(*ptxas);
    return run_job(std::move(job), options, version.empty() ? "ptxas" : "ptxas " + version);
  }
  job.hosted = true;
  job.command.argv = {*helper, "nvjitlink", in, out, "-arch=" + arch, "-verbose"};
  return run_job(std::move(job), options, "nvJitLink");
}

CompileResult compile_cuda(const std::string& source, const std::string& file_name, const CompileOptions& options) {
  auto helper = find_compile_helper();
  if (!helper) return missing("NVRTC (through kgate-compile)", "kgate-compile is not beside this program");
  TempDir folder("kgate-compile");
  Job job;
  job.folder = folder.path();
  job.output = "candidate.ptx";
  job.hosted = true;
  fs::path named = fs::path(file_name);
  std::string in = folder.path() / "candidate.cu", out = folder.path() / job.output;
  write_file_atomic(in, source).value_or_throw(Exit::environment);
  job.command.argv = {*helper, "nvrtc", in, out, named.filename().string(),
                      fmt::format("--gpu-architecture=compute_{}{}", options.arch ? options.arch : kLowestArch,
                                  options.arch_specific ? "a" : ""),
                      "--std=c++17"};
  std::error_code error;
  fs::path beside = fs::absolute(named, error).parent_path();
  if (!error) job.command.argv.push_back("--include-path=" + beside.string());
  return run_job(std::move(job), options, "NVRTC");
}

}  // namespace kgate
