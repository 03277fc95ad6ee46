#include "candidate/toolkit.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "candidate/compile.h"
#include "support/process.h"
#include "support/text.h"

namespace kgate {

namespace fs = std::filesystem;

namespace {

// The value of a variable that is set and not empty.
std::optional<std::string> from_environment(const char* variable) {
  const char* value = std::getenv(variable);
  if (!value || !*value) return std::nullopt;
  return std::string(value);
}

std::optional<std::string> program_at(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  return path.find('/') == std::string::npos ? std::nullopt : find_program(path);
}

// "cuda-12.8" -> {12, 8}: 12.10 is newer than 12.9.
std::pair<int, int> version_of(const std::string& folder) {
  int major = 0, minor = 0;
  if (std::sscanf(folder.c_str(), "cuda-%d.%d", &major, &minor) < 1) return {0, 0};
  return {major, minor};
}

std::string probe_library(const char* what) {
  auto helper = find_compile_helper();
  if (!helper) return {};
  Command command;
  command.argv = {*helper, "probe", what};
  auto run = run_captured(command, std::chrono::seconds(20), 4096);
  if (!run || !run->status.ok()) return {};
  return sanitize(trim(run->output));
}

}  // namespace

std::vector<std::string> toolkit_roots() {
  std::vector<std::string> roots;
  std::error_code error;
  if (fs::is_directory("/usr/local/cuda", error)) roots.push_back("/usr/local/cuda");
  std::vector<std::string> versioned;
  for (fs::directory_iterator it("/usr/local", error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.starts_with("cuda-")) versioned.push_back(name);
  }
  std::sort(versioned.begin(), versioned.end(), [](auto& a, auto& b) { return version_of(a) > version_of(b); });
  for (const auto& name : versioned) roots.push_back("/usr/local/" + name);
  return roots;
}

std::optional<std::string> find_ptxas() {
  if (auto path = from_environment("KGATE_PTXAS")) return program_at(*path);
  if (auto path = find_program("ptxas")) return path;
  for (const auto& root : toolkit_roots())
    if (auto path = program_at(root + "/bin/ptxas")) return path;
  return std::nullopt;
}

std::string ptxas_version(const std::string& path) {
  Command command;
  command.argv = {path, "--version"};
  auto run = run_captured(command, std::chrono::seconds(20), 4096);
  if (!run || !run->status.ok()) return {};
  size_t at = run->output.find(", V");
  if (at == std::string::npos) return {};
  std::string_view rest = std::string_view(run->output).substr(at + 3);
  return std::string(rest.substr(0, rest.find_first_not_of("0123456789.")));
}

std::optional<std::string> find_compile_helper() {
  if (auto path = from_environment("KGATE_COMPILE")) return program_at(*path);
  return program_at(self_directory() + "/kgate-compile");
}

std::vector<std::string> library_candidates(const std::string& stem, const char* override_variable) {
  if (auto path = from_environment(override_variable)) return {*path};
  std::vector<std::string> paths;
  for (const char* major : {".so.13", ".so.12"}) paths.push_back("lib" + stem + major);
  for (const auto& root : toolkit_roots())
    for (const char* major : {".so.13", ".so.12"}) paths.push_back(root + "/lib64/lib" + stem + major);
  return paths;
}

CompilersFound find_compilers() {
  CompilersFound found;
  if (auto path = find_ptxas()) {
    std::string version = ptxas_version(*path);
    found.ptxas = *path + " (" + (version.empty() ? "unknown version" : version) + ")";
  }
  found.nvjitlink = probe_library("nvjitlink");
  found.nvrtc = probe_library("nvrtc");
  return found;
}

}  // namespace kgate
