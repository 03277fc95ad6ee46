// kgate check: the whole gate for one candidate, or a corpus with known answers.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "cli/gate_run.h"
#include "cli/manifest_run.h"
#include "cli/verbs.h"
#include "report/report.h"
#include "support/fd.h"
#include "support/log.h"

namespace kgate::cli {

namespace {

struct CheckOptions {
  std::string contract, candidate, entry, workload, baseline, device = "auto", scope = "full", tier, out = "kgate-out",
                                                              markdown, json_file, manifest, only;
  std::optional<uint64_t> seed;
  std::optional<uint32_t> warmup, requests;
  uint32_t max_pairs = 24;
  double speed = 1;
  bool json = false, counters = false;
};

Scope scope_of(const std::string& name) {
  if (name == "static") return Scope::static_only;
  if (name == "numeric") return Scope::numeric;
  return Scope::full;
}

std::string is_device(const std::string& text) {
  bool number =
      text.starts_with("gpu:") && text.size() > 4 && text.find_first_not_of("0123456789", 4) == std::string::npos;
  return text == "auto" || text == "gpu" || text == "virtual" || number
             ? ""
             : "'" + text + "' is not auto, gpu, gpu:N or virtual";
}

GateRequest request_of(const CheckOptions& options, const Invocation& invocation) {
  GateRequest request;
  request.contract = options.contract;
  request.candidate = options.candidate;
  request.entry = options.entry;
  if (!options.workload.empty()) request.workload = options.workload;
  if (!options.baseline.empty()) request.baseline = options.baseline;
  request.device = options.device;
  request.scope = scope_of(options.scope);
  request.require_tier = options.tier;
  request.seed = options.seed;
  request.warmup = options.warmup;
  request.requests = options.requests;
  request.max_pairs = options.max_pairs;
  request.counters = options.counters;
  request.speed = options.speed;
  request.out = options.out;
  request.command = invocation.command;
  return request;
}

void write_report(const std::filesystem::path& path, const std::string& text) {
  if (auto written = write_file_atomic(path, text); !written)
    throw Error(Exit::environment, written.failure().what, written.failure().where,
                "name another file, or mend its folder");
}

Exit run_one(const CheckOptions& options, const Invocation& invocation) {
  bool by_kernel = !options.workload.empty() && !options.entry.empty();
  if (options.candidate.empty() || (options.contract.empty() && !by_kernel))
    throw Error(Exit::usage, "a check needs a candidate, and a contract or a workload and the name of its kernel", {},
                "kgate check --contract CONTRACT.yaml CANDIDATE.ptx, kgate check --workload X.kgw --kernel NAME "
                "CANDIDATE.ptx, or kgate check --manifest FILE");
  GateRequest request = request_of(options, invocation);
  Verdict verdict;
  {
    log::Progress progress("kgate");
    request.on_progress = [&](double fraction, const std::string& what) { progress.update(fraction, what); };
    verdict = run_gate(request);
  }
  std::string json = render_json(verdict);
  write_report(request.out / "verdict.json", json);
  write_report(request.out / "verdict.md", render_markdown(verdict));
  if (!options.markdown.empty()) write_report(options.markdown, render_markdown(verdict));
  if (options.json)
    fmt::print("{}", json);
  else
    fmt::print("{}", render_terminal(verdict, log::color_enabled(STDOUT_FILENO)));
  return verdict.exit;
}

}  // namespace

void add_check(CLI::App& app, const Invocation& invocation, Action& action) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* verb = app.add_subcommand("check", "judge a candidate kernel: compile, numbers, replay, verdict");
  verb->add_option("candidate", options->candidate, "the kernel to judge: .ptx, .cubin or .cu");
  verb->add_option("-c,--contract", options->contract, "what it must satisfy (docs/formats.md)");
  verb->add_option(
      "--kernel", options->entry,
      "entry of the candidate; default: the binding's, else the contract's kernel. Without a contract: the "
      "workload's kernel that is judged (* and ? allowed), outputs compared bit for bit");
  verb->add_option("--workload", options->workload, "a .kgw or YAML workload instead of the contract's");
  verb->add_option("--baseline", options->baseline, "a kernel file instead of the contract's baseline");
  verb->add_option("--device", options->device, "auto, gpu, gpu:N or virtual")->check(is_device)->capture_default_str();
  verb->add_option("--scope", options->scope, "full, numeric (no replay) or static (nothing is executed)")
      ->check(CLI::IsMember({"full", "numeric", "static"}))
      ->capture_default_str();
  verb->add_option("--require-tier", options->tier, "T0: exit 5 when eBPF tracing is not reached")
      ->check(CLI::IsMember({"T0", "T2"}));
  verb->add_option("--seed", options->seed, "of inputs and order; default: derived from the candidate's hash")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--warmup", options->warmup, "requests before each measured round; default: 200, virtual GPU 2")
      ->check(CLI::Range(0u, 1000000u));
  verb->add_option("--requests", options->requests, "measured requests a round; default: 1000, virtual GPU 12")
      ->check(CLI::Range(1u, 1000000u));
  verb->add_option("--max-pairs", options->max_pairs,
                   "pairs of rounds at most; looks are after 6, 12, 24 and this many")
      ->check(CLI::Range(6u, 600u))
      ->capture_default_str();
  verb->add_option("--speed", options->speed, "replay arrivals and host gaps this many times as fast")
      ->check(CLI::Range(0.01, 100.0));
  verb->add_flag(
      "--counters", options->counters,
      "also read hardware counters of the judged launches, in a process of its own: cache hits, traffic, occupancy");
  verb->add_option("--out", options->out, "folder for verdict.json, verdict.md, trace.db and compile.log")
      ->capture_default_str();
  verb->add_option("--markdown", options->markdown, "also write the Markdown report to this file");
  verb->add_flag("--json", options->json, "print the JSON verdict instead of the summary");
  CLI::Option* manifest =
      verb->add_option("--manifest", options->manifest, "run a corpus with known answers and print the score");
  verb->add_option("--only", options->only, "with --manifest: only entries whose name matches this pattern")
      ->needs(manifest);
  // A corpus takes candidates, contracts and limits from its manifest: an option that it would ignore is a mistake.
  for (const char* name :
       {"candidate", "--contract", "--kernel", "--workload", "--baseline", "--scope", "--require-tier", "--seed",
        "--warmup", "--requests", "--max-pairs", "--markdown", "--counters", "--speed"})
    manifest->excludes(verb->get_option(name));
  verb->callback([=, &invocation, &action] {
    action = [=, &invocation] {
      if (!options->manifest.empty())
        return run_manifest({options->manifest, options->device, options->only, options->out, options->json});
      return run_one(*options, invocation);
    };
  });
}

}  // namespace kgate::cli
