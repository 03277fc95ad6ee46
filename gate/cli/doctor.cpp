// kgate doctor: what works on this machine, found by trying it, and what would mend what does not.

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "candidate/compile.h"
#include "cli/verbs.h"
#include "gpu/driver.h"
#include "support/log.h"
#include "support/process.h"
#include "support/text.h"
#include "trace/collector.h"
#include "trace/probe_symbols.h"
#include "trace/probes.h"

namespace kgate::cli {

namespace {

struct Check {
  std::string name;
  bool ok = false;
  std::string detail, hint;
  nlohmann::ordered_json facts = {};  // more of it, for --json
};

std::string device_text(const gpu::DeviceChoice& choice) {
  const auto& p = choice.properties;
  return fmt::format("{}, sm_{}, {} SMs, {}, driver {}.{} ({})", p.name, p.arch(), p.sm_count,
                     format_bytes(double(p.total_memory)), p.driver_version / 1000, p.driver_version % 1000 / 10,
                     choice.library);
}

Check check_device(const char* name, const char* option) {
  auto choice = gpu::choose_device(option);
  if (choice) return {name, true, device_text(*choice), {}};
  return {name, false, choice.failure().what, choice.failure().hint};
}

Check check_tool(const char* name, const std::string& found, const char* hint) {
  return {name, !found.empty(), found.empty() ? "not found" : found, found.empty() ? hint : ""};
}

Check check_probes() {
  ProbeSupport probes = probe_support();
  Check check{"ebpf", probes.ok, probes.detail, probes.hint};
  if (probes.ok) check.facts["ns_per_hit"] = probes.ns_per_hit;
  return check;
}

// The file behind the driver's name, as the dynamic linker finds it; needs no GPU.
std::string driver_file() {
  const char* given = std::getenv("KGATE_CUDA_LIB");
  void* library = ::dlopen(given && *given ? given : "libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  link_map* entry = nullptr;
  if (library == nullptr || ::dlinfo(library, RTLD_DI_LINKMAP, &entry) != 0) return {};
  std::error_code error;
  std::string path = std::filesystem::canonical(entry->l_name, error).string();
  return error ? std::string() : path;
}

// What of the driver the probes can be attached to.
Check check_entry_points() {
  std::string path = driver_file();
  if (path.empty()) return {"libcuda", false, "no driver library on this machine", {}};
  auto survey = trace::survey_entry_points(path);
  if (!survey) return {"libcuda", false, survey.failure().where + ": " + survey.failure().what, {}};
  Check check{"libcuda", survey->exported > 0, {}, {}};
  check.detail = fmt::format("{} of {} entry points, {} emulated, {} behind endbr64, {} single-step (not probed): {}",
                             survey->exported, trace::entry_points().size(), survey->emulated,
                             survey->emulated_after_endbr, survey->single_step, path);
  check.facts = {{"library", path},
                 {"entry_points", survey->exported},
                 {"emulated", survey->emulated},
                 {"emulated_after_endbr", survey->emulated_after_endbr},
                 {"single_step", survey->single_step},
                 {"aliases", survey->aliases}};
  for (int use = 0; use < kProbeUses; ++use)
    check.facts["uses"][use_name(static_cast<ProbeSymbol::Use>(use))] = survey->by_use[static_cast<size_t>(use)];
  check.facts["single_stepped"] = survey->single_stepped;
  check.facts["absent"] = survey->absent;
  return check;
}

std::vector<Check> run_checks() {
  std::vector<Check> checks;
  checks.push_back(check_device("gpu", "gpu"));
  checks.push_back(check_device("virtual gpu", "virtual"));
  bool has_worker = ::access((self_directory() + "/kgate-worker").c_str(), X_OK) == 0;
  checks.push_back({"worker", has_worker,
                    has_worker ? self_directory() + "/kgate-worker" : "kgate-worker is not beside kgate",
                    has_worker ? "" : "reinstall kgate as a whole"});
  checks.push_back(
      check_tool("cupti", find_cupti(), "install the CUDA toolkit's CUPTI, or set KGATE_CUPTI to libcupti.so"));
  CompilersFound compilers = find_compilers();
  checks.push_back(
      check_tool("ptxas", compilers.ptxas, "install the CUDA toolkit, or set KGATE_PTXAS; nvJitLink serves too"));
  checks.push_back(check_tool("nvjitlink", compilers.nvjitlink, "optional where there is ptxas"));
  checks.push_back(check_tool("nvrtc", compilers.nvrtc, "needed for .cu candidates only"));
  checks.push_back(check_probes());
  checks.push_back(check_entry_points());
  return checks;
}

bool ok(const std::vector<Check>& checks, std::string_view name) {
  for (const auto& check : checks)
    if (check.name == name) return check.ok;
  return false;
}

// The best tracing tier here, and why not a higher one.
std::pair<std::string, std::string> tier(const std::vector<Check>& checks) {
  bool device_side = ok(checks, "gpu") ? ok(checks, "cupti") : ok(checks, "virtual gpu");
  if (!device_side) return {"none", "no CUPTI for the GPU"};
  if (!ok(checks, "ebpf")) return {"T2", "eBPF cannot be used (see ebpf)"};
  return {"T0", ""};
}

Exit doctor(bool json) {
  auto checks = run_checks();
  auto [name, why] = tier(checks);
  utsname kernel{};
  uname(&kernel);
  bool usable = ok(checks, "worker") && (ok(checks, "gpu") || ok(checks, "virtual gpu"));
  if (json) {
    nlohmann::ordered_json out{
        {"schema_version", 1}, {"kernel", kernel.release}, {"tier", name}, {"tier_reason", why}, {"usable", usable}};
    for (const auto& check : checks) {
      nlohmann::ordered_json row{
          {"name", check.name}, {"ok", check.ok}, {"detail", check.detail}, {"hint", check.hint}};
      if (!check.facts.is_null()) row["facts"] = check.facts;
      out["checks"].push_back(std::move(row));
    }
    fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return usable ? Exit::pass : Exit::environment;
  }
  bool color = log::color_enabled(STDOUT_FILENO);
  for (const auto& check : checks) {
    const char* mark = check.ok ? (color ? "\033[32mok\033[0m" : "ok") : (color ? "\033[33m--\033[0m" : "--");
    fmt::print("{}  {:<12} {}\n", mark, check.name, sanitize(check.detail));
    if (!check.ok && !check.hint.empty()) fmt::print("    {:<12} hint: {}\n", "", check.hint);
  }
  fmt::print("tracing tier {}{}  (Linux {})\n", name, why.empty() ? "" : ": " + why, kernel.release);
  return usable ? Exit::pass : Exit::environment;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* verb = app.add_subcommand("doctor", "what works on this machine, and what would mend the rest");
  verb->add_flag("--json", *json, "machine-readable");
  verb->callback([=, &action] { action = [=] { return doctor(*json); }; });
}

}  // namespace kgate::cli
