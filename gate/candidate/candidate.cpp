#include "candidate/candidate.h"

#include <fmt/format.h>

#include "candidate/cubin.h"
#include "candidate/ptx.h"
#include "candidate/sniff.h"
#include "support/fd.h"
#include "support/hash.h"
#include "support/text.h"

namespace kgate {

namespace {

constexpr size_t kMaxFileBytes = size_t{512} << 20;

std::string spoken_list(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < 12; ++i) text += (i ? ", " : "") + sanitize(names[i], 120);
  if (names.size() > 12) text += fmt::format(", and {} more", names.size() - 12);
  return text;
}

Result<std::monostate> read_ptx(Candidate& candidate) {
  std::string_view text = candidate.bytes;
  while (text.ends_with('\0')) text.remove_suffix(1);  // PTX out of fatbins and caches is padded with zeros
  auto module = ptx::parse(text);
  if (!module) {
    Failure failure = module.failure();
    std::string_view line = failure.where;
    if (line.starts_with("line ")) line.remove_prefix(5);
    failure.where = candidate.path.string() + (line.empty() ? "" : ":" + std::string(line));
    return failure;
  }
  candidate.version = module->version;
  candidate.target = module->target;
  for (const auto& function : module->functions) {
    if (!function.is_entry || function.is_declaration) continue;
    Entry entry;
    entry.name = function.name;
    for (const auto& param : function.params) entry.params.push_back({param.name, param.offset, param.size, param.align});
    entry.param_bytes = function.param_bytes;
    entry.reqntid = function.reqntid;
    entry.maxntid = function.maxntid;
    entry.static_shared = function.static_shared;
    entry.line = function.line;
    entry.kernel_id = Sha256().add("kgate ptx 1").add(module->target).add(function.canonical).hex();
    candidate.entries.push_back(std::move(entry));
  }
  if (candidate.entries.empty())
    return Failure{"the PTX defines no .entry", candidate.path.string(), "give a file with a __global__ function"};
  return std::monostate{};
}

Result<std::monostate> read_machine_code(Candidate& candidate) {
  auto cubin = read_cubin(candidate.bytes);
  if (!cubin) {
    Failure failure = cubin.failure();
    failure.where = candidate.path.string();
    return failure;
  }
  candidate.version = cubin->toolkit;
  candidate.target = cubin->target;
  candidate.entries = std::move(cubin->entries);
  return std::monostate{};
}

}  // namespace

const char* code_kind_name(CodeKind kind) {
  switch (kind) {
    case CodeKind::ptx: return "ptx";
    case CodeKind::cubin: return "cubin";
    case CodeKind::cuda_source: return "cuda";
  }
  return "?";
}

Result<const Entry*> Candidate::entry(const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& entry : entries) {
    if (entry.name == name) return &entry;
    names.push_back(entry.name);
  }
  if (entries.empty())
    return Failure{kind == CodeKind::cuda_source ? "CUDA C++ has no entries before it is compiled" : "there is no kernel",
                   path.string(), {}};
  if (name.empty()) {
    if (entries.size() == 1) return &entries.front();
    return Failure{fmt::format("{} kernels, and none was named: {}", entries.size(), spoken_list(names)), path.string(),
                   "name the kernel"};
  }
  auto near = did_you_mean(name, names);
  return Failure{fmt::format("no kernel '{}'; there is {}", sanitize(name), spoken_list(names)), path.string(),
                 near ? fmt::format("did you mean '{}'?", sanitize(*near)) : "name one of these kernels"};
}

Result<Candidate> parse_candidate(std::string bytes, const std::filesystem::path& shown_path, bool cuda_source) {
  Candidate candidate;
  candidate.path = shown_path;
  candidate.sha256 = sha256(bytes);
  candidate.bytes = std::move(bytes);
  if (cuda_source) {
    if (candidate.bytes.find('\0') != std::string::npos)
      return Failure{"not CUDA C++: the file holds zero bytes", shown_path.string(), "was a binary given the suffix .cu?"};
    if (trim(candidate.bytes).empty()) return Failure{"the file is empty", shown_path.string(), {}};
    candidate.kind = CodeKind::cuda_source;
    return candidate;
  }
  auto kind = sniff(candidate.bytes);
  if (!kind) {
    Failure failure = kind.failure();
    failure.where = shown_path.string();
    return failure;
  }
  candidate.kind = *kind;
  auto read = candidate.kind == CodeKind::ptx ? read_ptx(candidate) : read_machine_code(candidate);
  if (!read) return read.failure();
  return candidate;
}

Result<Candidate> read_candidate(const std::filesystem::path& path) {
  auto bytes = read_file(path, kMaxFileBytes);
  if (!bytes) return bytes.failure();
  return parse_candidate(std::move(*bytes), path, path.extension() == ".cu");
}

}  // namespace kgate
