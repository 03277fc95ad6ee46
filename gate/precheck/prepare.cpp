// From a file to a kernel that workers can load. Both arms go the same way (same assembler, same flags), so that a
// difference in time is a difference in code.

#include <fmt/format.h>

#include "candidate/sniff.h"
#include "precheck/precheck.h"
#include "support/fd.h"
#include "support/hash.h"
#include "support/text.h"

namespace kgate {

namespace {

const char* compile_finding(CompileOutcome outcome) {
  switch (outcome) {
    case CompileOutcome::crashed:
      return "compiler_crash";
    case CompileOutcome::timed_out:
      return "compile_timeout";
    default:
      return "compile";
  }
}

std::string compile_text(const CompileResult& result) {
  switch (result.outcome) {
    case CompileOutcome::crashed:
      return result.compiler + " crashed on it" +
             (result.first_error.empty() ? "" : ": " + sanitize(result.first_error));
    case CompileOutcome::timed_out:
      return result.compiler + " did not finish in time";
    default:
      return fmt::format("{}: {}", result.compiler, sanitize(result.first_error));
  }
}

// A compiler's refusal: of the candidate it is a finding, of anything else the user's input is at fault.
bool settle(const CompileResult& result, const std::filesystem::path& path, const std::string& label,
            std::vector<Finding>& findings) {
  if (result.outcome == CompileOutcome::ok) return true;
  if (label != "candidate")
    throw Error(Exit::bad_input, fmt::format("the {} does not compile: {}", label, compile_text(result)), path.string(),
                "repeat with: " + result.command);
  findings.push_back({compile_finding(result.outcome), "compile", compile_text(result), path.string(), Exit::broken});
  return false;
}

void compile_source(Prepared& prepared, int arch, std::vector<Finding>& findings) {
  CompileOptions options;
  options.arch = arch;
  CompileResult ptx = compile_cuda(prepared.source.bytes, prepared.source.path.string(), options);
  if (ptx.outcome == CompileOutcome::no_compiler)
    throw Error(Exit::environment, "CUDA C++ needs NVRTC, and none was found: " + ptx.compiler,
                prepared.source.path.string(), "install the CUDA toolkit, or give the PTX");
  if (!settle(ptx, prepared.source.path, prepared.label, findings)) return;
  std::string file_hash = prepared.source.sha256;
  auto parsed = parse_candidate(std::move(ptx.image), prepared.source.path);
  if (!parsed)
    throw Error(Exit::internal, "NVRTC made PTX that cannot be read: " + parsed.failure().what, parsed.failure().where);
  prepared.source = std::move(*parsed);
  prepared.source.sha256 = file_hash;
}

void assemble_ptx(Prepared& prepared, int arch, std::vector<Finding>& findings) {
  CompileOptions options;
  options.arch = arch;
  CompileResult result = assemble(prepared.source.bytes, options);
  if (result.outcome != CompileOutcome::no_compiler &&
      !settle(result, prepared.source.path, prepared.label, findings)) {
    prepared.compiled = std::move(result);
    return;
  }
  if (result.outcome == CompileOutcome::ok) {
    auto cubin = parse_candidate(result.image, prepared.source.path);
    auto assembled = [&](const Entry& entry, std::string& id, std::optional<ResourceUsage>& usage) {
      usage = resource_usage(result.log, entry.name);
      if (!cubin) return false;
      auto found = cubin->entry(entry.name);
      if (found) id = (*found)->kernel_id;
      return static_cast<bool>(found);
    };
    prepared.machine_code = assembled(prepared.entry, prepared.kernel_id, prepared.usage);
    for (PreparedEntry& other : prepared.others) assembled(other.entry, other.kernel_id, other.usage);
  }
  prepared.compiled = std::move(result);
}

// A candidate that is PTX and cannot be read: the assembler's word counts. Where it accepts what kgate's reader does
// not, that is kgate's gap and never the candidate's fault. False: not PTX at all.
bool settle_unreadable(Prepared& prepared, const Failure& failure, int arch, std::vector<Finding>& findings) {
  auto bytes = read_file(prepared.source.path);
  if (!bytes) return false;
  auto kind = sniff(*bytes);
  if (!kind || *kind != CodeKind::ptx) return false;
  prepared.source.sha256 = sha256(*bytes);
  CompileOptions options;
  options.arch = arch;
  prepared.compiled = assemble(*bytes, options);
  std::string own = failure.what;
  switch (prepared.compiled->outcome) {
    case CompileOutcome::no_compiler:
      findings.push_back({"compile", "compile", own, failure.where, Exit::broken});
      break;
    case CompileOutcome::ok:
      findings.push_back({"not_executed", "compile", "the assembler accepts it, kgate's PTX reader does not: " + own,
                          failure.where, Exit::environment});
      break;
    default:
      settle(*prepared.compiled, prepared.source.path, prepared.label, findings);
  }
  return true;
}

ResourceUsage usage_of_cubin(const Entry& entry) {
  ResourceUsage usage;
  usage.registers = entry.registers;
  usage.stack_bytes = entry.stack_bytes;
  usage.static_shared = entry.static_shared;
  usage.barriers = entry.barriers;
  return usage;
}

}  // namespace

Prepared prepare(const std::filesystem::path& path, const std::string& entry, const std::string& label, int arch,
                 bool virtual_device, std::vector<Finding>& findings) {
  Prepared prepared;
  prepared.label = label;
  prepared.source.path = path;
  auto read = read_candidate(path);
  if (!read) {
    if (label == "candidate" && settle_unreadable(prepared, read.failure(), arch, findings)) return prepared;
    throw Error(Exit::bad_input, read.failure());
  }
  prepared.source = std::move(*read);
  if (prepared.source.kind == CodeKind::cuda_source) {
    size_t before = findings.size();
    compile_source(prepared, arch, findings);
    if (findings.size() != before) return prepared;
  }
  prepared.entry = *prepared.source.entry(entry).value_or_throw(Exit::bad_input);
  prepared.kernel_id = prepared.entry.kernel_id;
  prepared.image = prepared.source.bytes;
  for (const Entry& other : prepared.source.entries)
    if (other.name != prepared.entry.name) prepared.others.push_back({other, other.kernel_id, {}});
  if (prepared.source.kind == CodeKind::cubin) {
    prepared.machine_code = true;
    prepared.usage = usage_of_cubin(prepared.entry);
    for (PreparedEntry& other : prepared.others) other.usage = usage_of_cubin(other.entry);
    prepared.executable = !virtual_device;
    return prepared;
  }
  assemble_ptx(prepared, arch, findings);
  bool assembled = prepared.compiled && prepared.compiled->outcome == CompileOutcome::ok;
  if (assembled && !virtual_device) prepared.image = prepared.compiled->image;
  return prepared;
}

KernelImage kernel_image(const Prepared& prepared) {
  KernelImage image{prepared.label, prepared.source.path.filename().string(), prepared.image, {}};
  image.entries.push_back({prepared.entry, prepared.kernel_id});
  for (const PreparedEntry& other : prepared.others) image.entries.push_back({other.entry, other.kernel_id});
  return image;
}

}  // namespace kgate
