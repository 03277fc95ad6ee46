// One pass from left to right: contract, device, workload → prepare → resources → equivalence → replay → judge. Each
// step either adds to the verdict or ends it.

#include "cli/gate_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "candidate/candidate.h"
#include "cli/fidelity.h"
#include "cli/replay_run.h"
#include "precheck/cases.h"
#include "precheck/live.h"
#include "precheck/precheck.h"
#include "replay/substitute.h"
#include "report/report.h"
#include "support/fd.h"
#include "support/hash.h"
#include "support/log.h"
#include "support/process.h"
#include "support/text.h"
#include "workload/build.h"
#include "workload/elsewhere.h"
#include "workload/kgw.h"

namespace kgate {

namespace {

namespace fs = std::filesystem;

// Everything that the steps share.
struct Gate {
  const GateRequest& request;
  Contract contract;
  gpu::DeviceChoice device;
  std::optional<Workload> workload;
  fs::path workload_file;  // .kgw
  std::vector<EffectiveLimit> limits;
  std::optional<Prepared> candidate, baseline, reference;
  std::optional<Comparison> comparison;  // on the workload
  std::optional<JudgedKernels> several;  // more than one kernel of the workload is judged
  TempDir scratch{"kgate"};
  uint64_t seed = 0;
  Verdict verdict;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

  explicit Gate(const GateRequest& r) : request(r) {}
  bool is_virtual() const { return device.kind == gpu::DeviceKind::virtual_gpu; }
  bool external() const { return workload && workload->arrivals == Arrivals::external; }
  int arch() const { return is_virtual() ? 0 : device.properties.arch(); }
  void progress(double fraction, const std::string& what) const {
    if (request.on_progress) request.on_progress(fraction, what);
  }
};

std::optional<fs::path> baseline_path(const Gate& gate) {
  if (gate.request.baseline) return gate.request.baseline;
  return gate.contract.baseline;
}

// Creates the folder and takes away what an earlier run left: nobody shall read an old verdict as this one's.
void prepare_output(const fs::path& out) {
  std::error_code error;
  fs::create_directories(out, error);
  if (error || !write_file_atomic(out / "verdict.json", ""))
    throw Error(Exit::environment,
                "cannot write into the output folder" + (error ? ": " + error.message() : std::string()), out.string(),
                "name another folder with --out");
  for (const char* stale : {"verdict.json", "verdict.md", "trace.db", "compile.log"}) fs::remove(out / stale, error);
}

// Workers read the workload from a .kgw. A recording that nobody has replayed yet is replayed first, and its file keeps
// the answer.
void take_workload(Gate& gate, const fs::path& path) {
  gate.workload = load_workload(path);
  Workload& workload = *gate.workload;
  if (!workload.origin.recorded()) {
    gate.workload_file = gate.scratch.path() / "workload.kgw";
    write_kgw(workload, gate.workload_file);
    return;
  }
  gate.workload_file = path;
  check_elsewhere(workload, gate.arch()).value_or_throw(Exit::environment);
  bool elsewhere = is_elsewhere(workload, gate.arch());
  if (elsewhere)
    for (const std::string& kernel : grids_of_the_machine(workload))
      gate.verdict.findings.push_back({"grid_of_the_machine", "replay",
                                       "its grid is a multiple of the recorded GPU's multiprocessors and may have been "
                                       "chosen for them",
                                       kernel, Exit::pass});
  if (workload.addresses == Addresses::unknown && !elsewhere) keep_fidelity(workload, path, gate.device);
}

void open_inputs(Gate& gate) {
  prepare_output(gate.request.out);
  gate.contract =
      gate.request.contract.empty() ? contract_for_kernel(gate.request.entry) : read_contract(gate.request.contract);
  if (!gate.contract.has_shapes && !gate.request.workload && !gate.contract.workload)
    throw Error(Exit::bad_input, "the contract does not say how its kernel is launched", gate.contract.path.string(),
                "name a workload (--workload), or give `params:`, `launch:` and `shapes:` (docs/formats.md)");
  gate.device = gpu::choose_device(gate.request.device).value_or_throw(Exit::environment);
  // Enough for a contract's shapes and little enough that a hang is found in seconds, not minutes.
  if (gate.is_virtual()) ::setenv("KGATE_VGPU_BUDGET", "67108864", /*overwrite=*/0);
  auto path = gate.request.workload ? gate.request.workload : gate.contract.workload;
  if (path && gate.request.scope != Scope::static_only) take_workload(gate, *path);
}

// Without a contract the candidate's entry is the judged kernel's name, or its only one.
std::string entry_of_candidate(const Gate& gate) {
  Candidate candidate = read_candidate(gate.request.candidate).value_or_throw(Exit::bad_input);
  for (const Entry& entry : candidate.entries)
    if (glob_match(gate.request.entry, entry.name)) return entry.name;
  return candidate.entries.size() == 1 ? candidate.entries.front().name : gate.request.entry;
}

Prepared prepare_recorded(Gate& gate, uint32_t index) {
  const WorkloadKernel& kernel = gate.workload->kernels[index];
  fs::path file = gate.scratch.path() / "recorded";
  // From PTX where the program brought it: then both arms' code comes from one assembler.
  const WorkloadModule& module = gate.workload->modules[kernel.module];
  const std::string& image =
      module.portable.empty() ? image_of(module, is_elsewhere(*gate.workload, gate.arch())) : module.portable;
  write_file_atomic(file, image).value_or_throw(Exit::environment);
  return prepare(file, kernel.entry, "baseline", gate.arch(), gate.is_virtual(), gate.verdict.findings);
}

void prepare_kernels(Gate& gate) {
  auto& findings = gate.verdict.findings;
  std::string entry = gate.request.entry.empty() ? candidate_entry_name(gate.contract) : gate.request.entry;
  if (gate.request.contract.empty()) entry = entry_of_candidate(gate);
  gate.candidate = prepare(gate.request.candidate, entry, "candidate", gate.arch(), gate.is_virtual(), findings);
  if (gate.candidate->compiled)
    if (!write_file_atomic(gate.request.out / "compile.log",
                           gate.candidate->compiled->command + "\n" + gate.candidate->compiled->log))
      log::warning("cannot write compile.log");
  if (exit_of(findings) != Exit::pass) return;
  std::vector<uint32_t> kernels;
  if (gate.workload)
    kernels =
        judged_kernels(*gate.workload, judged_launches(*gate.workload, gate.contract).value_or_throw(Exit::bad_input));
  if (kernels.size() > 1) gate.several.emplace();
  if (gate.several)
    for (uint32_t kernel : kernels) gate.several->names.push_back(gate.workload->kernels[kernel].entry);
  if (auto path = baseline_path(gate)) {
    std::string name = gate.contract.baseline_entry.empty() ? gate.contract.kernel : gate.contract.baseline_entry;
    gate.baseline = prepare(*path, name, "baseline", gate.arch(), gate.is_virtual(), findings);
  } else if (gate.several) {  // their arm launches what was recorded; only their figures are wanted
    for (uint32_t kernel : kernels) gate.several->recorded.push_back(prepare_recorded(gate, kernel));
  } else if (gate.workload) {
    gate.baseline = prepare_recorded(gate, kernels.front());
  }
  if (gate.contract.reference && gate.request.scope != Scope::static_only)
    gate.reference = prepare(gate.contract.reference->path, gate.contract.reference->entry, "reference", gate.arch(),
                             gate.is_virtual(), findings);
}

void note_facts(Gate& gate) {
  auto& facts = gate.verdict.facts;
  const auto& device = gate.device.properties;
  facts["device"] = device.name;
  if (!gate.is_virtual()) facts["device_uuid"] = device.uuid;
  facts["driver"] = fmt::format("{}.{}", device.driver_version / 1000, device.driver_version % 1000 / 10);
  facts["contract_sha256"] = gate.contract.sha256;
  facts["seed"] = std::to_string(gate.seed);
  facts["command"] = gate.request.command;
  if (gate.candidate) {
    facts["candidate"] = gate.candidate->source.path.string();
    facts["candidate_sha256"] = gate.candidate->source.sha256;
    facts["candidate_kernel_id"] = gate.candidate->kernel_id;
    facts["loaded_code_sha256"] = sha256(gate.candidate->image);
    if (gate.candidate->compiled) facts["compiler"] = gate.candidate->compiled->compiler;
  }
  if (gate.baseline) facts["baseline_kernel_id"] = gate.baseline->kernel_id;
  if (gate.workload) facts["workload_sha256"] = gate.workload->sha256;
  if (gate.workload && gate.workload->origin.recorded()) {
    facts["recorded_on"] = gate.workload->origin.device;
    facts["addresses"] = addresses_name(gate.workload->addresses);
  }
}

Result<Comparison> arms_of(const Gate& gate) {
  std::optional<KernelImage> baseline;
  if (gate.baseline) baseline = kernel_image(*gate.baseline);
  return compare_arms(*gate.workload, gate.contract, baseline ? &*baseline : nullptr, kernel_image(*gate.candidate));
}

// Can the candidate be launched in every shape, as the contract and its binding say? Settled before anything runs.
void check_binding(Gate& gate) {
  auto cases = make_cases(gate.contract, gate.seed);
  if (gate.request.scope != Scope::static_only)
    check_memory(gate.contract, cases, gate.device.properties.free_memory, gate.device.properties.name);
  for (const auto& test_case : cases) {
    auto fits = check_candidate_launch(gate.contract, *gate.candidate, test_case);
    if (fits) continue;
    const Failure& failure = fits.failure();
    gate.verdict.findings.push_back(
        {"param_mismatch", "binding", failure.what + (failure.hint.empty() ? "" : "; " + failure.hint),
         failure.where.empty() ? gate.contract.path.string() : failure.where, Exit::bad_input});
    return;
  }
  if (!gate.workload) return;
  // The workload's own launches, all of them: what does not fit is refused before anything runs.
  auto arms = arms_of(gate);
  if (arms) {
    gate.comparison = std::move(*arms);
    return;
  }
  const Failure& failure = arms.failure();
  gate.verdict.findings.push_back(
      {"param_mismatch", "binding", failure.what + (failure.hint.empty() ? "" : "; " + failure.hint),
       failure.where.empty() ? gate.contract.path.string() : failure.where, Exit::bad_input});
}

void compare_live(Gate& gate, PrecheckResult& result) {
  LiveOptions options;
  options.seed = gate.seed;
  options.workload = gate.workload_file;
  options.session.device = gate.device;
  options.on_progress = [&](double fraction, const std::string& what) { gate.progress(0.3 + 0.1 * fraction, what); };
  check_live(gate.contract, *gate.workload, *gate.comparison, options, result);
}

// Machine code, which is all that some recordings have, does not say what it spills. Nobody asked for the default
// limit, so it gives way; one of the contract stays, and is then undecided.
void forgo_unknown_spills(Gate& gate, PrecheckResult& result) {
  auto& statics = result.statics;
  if (result.identical_code && statics.candidate.contains("spill_bytes"))
    statics.baseline["spill_bytes"] = statics.candidate["spill_bytes"];
  if (!gate.workload || !gate.workload->origin.recorded()) return;
  if (statics.baseline.contains("spill_bytes") && statics.candidate.contains("spill_bytes")) return;
  size_t dropped = std::erase_if(
      gate.limits, [](const EffectiveLimit& limit) { return limit.by_default && limit.limit.metric == "spill_bytes"; });
  if (dropped == 0) return;
  result.findings.push_back(
      {"spills_unknown",
       "resources",
       "machine code does not say how many bytes spill: the default limit on spills does not apply",
       {},
       Exit::pass});
}

PrecheckResult precheck(Gate& gate) {
  PrecheckResult result;
  const Prepared* baseline = gate.baseline ? &*gate.baseline : nullptr;
  const Prepared* reference = gate.reference ? &*gate.reference : nullptr;
  check_resources(gate.contract, *gate.candidate, baseline, result, gate.several ? &*gate.several : nullptr);
  forgo_unknown_spills(gate, result);
  if (gate.request.scope == Scope::static_only || result.identical_code) return result;
  PrecheckOptions options;
  options.seed = gate.seed;
  options.workload = gate.workload ? &*gate.workload : nullptr;
  options.session.device = gate.device;
  options.on_progress = [&](double fraction, const std::string& what) { gate.progress(0.1 + 0.3 * fraction, what); };
  check_equivalence(gate.contract, *gate.candidate, baseline, reference, gate.device.properties, options, result);
  if (gate.workload && exit_of(result.findings) == Exit::pass &&
      (gate.workload->origin.recorded() || !gate.contract.has_shapes))
    compare_live(gate, result);
  return result;
}

std::string pass_reason(const Gate& gate, const std::optional<Equivalence>& equivalence) {
  for (const auto& finding : gate.verdict.findings)
    if (finding.id == "identical_code") return finding.text;
  std::string text;
  if (equivalence) text = fmt::format("numbers agree in {} shapes and launches", equivalence->shapes);
  size_t gated = 0;
  for (const auto& metric : gate.verdict.metrics) gated += metric.gated;
  if (gated) text += fmt::format("{}{} limits hold", text.empty() ? "" : ", ", gated);
  return text.empty() ? "it compiles" : text;
}

const char* verdict_word(Exit exit) {
  switch (exit) {
    case Exit::pass:
      return "PASS";
    case Exit::regression:
      return "FAIL";
    case Exit::broken:
      return "BROKEN";
    case Exit::bad_input:
      return "REFUSED";
    default:
      return "INCONCLUSIVE";  // undecided, no baseline, or an environment that is not fit to decide
  }
}

std::string headline(const Gate& gate, const std::optional<Equivalence>& equivalence) {
  const Verdict& verdict = gate.verdict;
  std::string subject =
      gate.candidate ? gate.candidate->source.path.filename().string() : gate.request.candidate.filename().string();
  const char* word = verdict_word(verdict.exit);
  if (verdict.exit == Exit::pass) return fmt::format("{}  {}: {}", word, subject, pass_reason(gate, equivalence));
  for (const auto& finding : verdict.findings)
    if (finding.exit == verdict.exit)
      return fmt::format("{}  {}: {}{}", word, subject,
                         find_metric(finding.id) ? finding.text : finding.id + ": " + finding.text,
                         finding.where.empty() || find_metric(finding.id) ? "" : " (" + finding.where + ")");
  return fmt::format("{}  {}", word, subject);
}

// Exit, headline and time: what every way out of the gate shares.
Verdict conclude(Gate& gate, const std::optional<Equivalence>& equivalence = std::nullopt) {
  note_facts(gate);
  Verdict& verdict = gate.verdict;
  bool compiled = gate.candidate && gate.candidate->compiled && gate.candidate->compiled->outcome == CompileOutcome::ok;
  bool gated = std::any_of(verdict.metrics.begin(), verdict.metrics.end(), [](const auto& m) { return m.gated; });
  if (verdict.findings.empty() && !equivalence && !gated && !compiled)
    verdict.findings.push_back(
        {"nothing_checked", "judge", "nothing could be checked in this scope on this machine", {}, Exit::inconclusive});
  verdict.exit = exit_of(verdict.findings);
  if (verdict.deciding.empty())
    for (const auto& finding : verdict.findings)
      if (finding.exit == verdict.exit && verdict.deciding.empty() &&
          (verdict.exit != Exit::pass || finding.id == "identical_code"))
        verdict.deciding = finding.id;  // a note decides nothing
  verdict.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - gate.start).count();
  verdict.headline = headline(gate, equivalence);
  return std::move(verdict);
}

void judge_static(Gate& gate, const StaticFigures& statics) {
  JudgeInput input;
  input.statics = statics;
  input.limits = gate.limits;
  input.scope = Scope::static_only;
  JudgeResult result = judge(input);
  gate.verdict.metrics = result.metrics;
  gate.verdict.findings.insert(gate.verdict.findings.end(), result.findings.begin(), result.findings.end());
}

std::unique_ptr<TraceStore> replay_and_judge(Gate& gate, const StaticFigures& statics) {
  ReplayRequest replay;
  replay.contract = &gate.contract;
  replay.candidate = &*gate.candidate;
  replay.baseline = gate.baseline ? &*gate.baseline : nullptr;
  replay.workload = &*gate.workload;
  replay.comparison = &*gate.comparison;
  replay.workload_file = gate.workload_file;
  replay.speed = gate.request.speed;
  replay.device = gate.device;
  replay.limits = gate.limits;
  replay.statics = statics;
  replay.require_tier = gate.request.require_tier;
  replay.seed = gate.seed;
  replay.warmup = gate.request.warmup.value_or(gate.is_virtual() ? 2 : 200);
  replay.requests = gate.request.requests.value_or(gate.is_virtual() ? 12 : 1000);
  replay.max_pairs = gate.request.max_pairs;
  replay.counters = gate.request.counters;
  replay.trace = gate.request.out / "trace.db";
  replay.command = gate.request.command;
  replay.on_progress = [&](double fraction, const std::string& what) { gate.progress(0.4 + 0.6 * fraction, what); };
  return run_replay(replay, gate.verdict);
}

}  // namespace

Verdict run_gate(const GateRequest& request) {
  Gate gate(request);
  open_inputs(gate);
  bool has_baseline = baseline_path(gate) || gate.workload;
  gate.limits = effective_limits(gate.contract, gate.is_virtual(), gate.external(), has_baseline);
  gate.verdict.findings = unmeasurable(gate.limits, gate.is_virtual(), request.scope, has_baseline, gate.external());
  if (exit_of(gate.verdict.findings) != Exit::pass) return conclude(gate);

  gate.progress(0.02, "compiling");
  prepare_kernels(gate);
  std::string hash = gate.candidate->source.sha256;
  gate.seed = request.seed.value_or(hash.size() >= 8 ? std::stoull(hash.substr(0, 8), nullptr, 16) : 1);
  if (exit_of(gate.verdict.findings) == Exit::pass) check_binding(gate);
  if (exit_of(gate.verdict.findings) != Exit::pass) return conclude(gate);

  PrecheckResult checked = precheck(gate);
  gate.verdict.findings.insert(gate.verdict.findings.end(), checked.findings.begin(), checked.findings.end());
  if (exit_of(checked.findings) != Exit::pass || checked.identical_code || request.scope != Scope::full ||
      !has_baseline) {
    judge_static(gate, checked.statics);
    return conclude(gate, checked.equivalence);
  }
  if (!gate.workload) {
    gate.workload = contract_workload(gate.contract, *gate.baseline, gate.seed);
    gate.workload_file = gate.scratch.path() / "workload.kgw";
    write_kgw(*gate.workload, gate.workload_file);
    gate.comparison = arms_of(gate).value_or_throw(Exit::bad_input);
  }
  auto trace = replay_and_judge(gate, checked.statics);
  if (gate.verdict.metrics.empty())
    judge_static(gate, checked.statics);  // the replay ended early: the static limits still hold or not
  Verdict verdict = conclude(gate, checked.equivalence);
  if (trace) {
    trace->add_verdict(render_json(verdict));
    trace->finish();
  }
  return verdict;
}

}  // namespace kgate
