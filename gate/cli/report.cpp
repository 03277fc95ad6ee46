// kgate report: what is in a trace, the verdict that was stored in it, and a timeline of it. Judges nothing: exit 0
// says that the report was made.

#include "report/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "cli/verbs.h"
#include "contract/quantity.h"
#include "support/fd.h"
#include "support/log.h"

namespace kgate::cli {

namespace {

struct ReportVerb {
  std::string trace = "kgate-out/trace.db", perfetto, markdown, from, span;
  std::optional<uint32_t> round;
  bool json = false;
};

uint64_t duration(const std::string& option, const std::string& text) {
  auto parsed = parse_duration_ns(text);
  if (!parsed) throw Error(Exit::usage, option + ": " + parsed.failure().what, {}, parsed.failure().hint);
  if (!(*parsed >= 0 && *parsed < 9e18))
    throw Error(Exit::usage, option + ": out of range", {}, "for example 1.5s or 20ms");
  return static_cast<uint64_t>(*parsed);
}

void timeline(const TraceStore& trace, const ReportVerb& options) {
  TimelineCut cut;
  cut.round = options.round;
  if (!options.from.empty()) cut.from_ns = duration("--from", options.from);
  if (!options.span.empty()) cut.for_ns = duration("--for", options.span);
  TimelineCounts counts = write_perfetto(trace, cut, options.perfetto);
  if (counts.slices == 0) log::warning("the timeline is empty: nothing of the trace lies in this cut");
  if (counts.crowded_out)
    log::warning(fmt::format("{} slices overlap too many others and are not in the timeline", counts.crowded_out));
  fmt::print("{}: {} slices, {} arrows from launch to kernel{}; open it in ui.perfetto.dev\n", options.perfetto,
             counts.slices, counts.flows,
             counts.kernels_without_launch
                 ? fmt::format(", kernels without a known launch call: {}", counts.kernels_without_launch)
                 : "");
}

Exit report(const ReportVerb& options) {
  if (options.perfetto.empty() && (options.round || !options.from.empty() || !options.span.empty()))
    throw Error(Exit::usage, "--round, --from and --for cut a timeline", {}, "say --perfetto FILE too");
  auto trace = TraceStore::open(options.trace).value_or_throw(Exit::bad_input);
  if (!options.perfetto.empty()) {
    timeline(*trace, options);
    if (!options.json && options.markdown.empty()) return Exit::pass;
  }
  TraceSummary summary = summarise(*trace);
  std::string terminal, markdown;
  bool color = log::color_enabled(STDOUT_FILENO);
  for (const auto& json : summary.verdicts) {
    Verdict verdict = read_verdict(json).value_or_throw(Exit::bad_input);
    terminal += render_terminal(verdict, color) + "\n";
    markdown += render_markdown(verdict) + "\n";
  }
  terminal += summary_terminal(summary, color);
  markdown += summary_markdown(summary);
  if (!options.markdown.empty()) write_file_atomic(options.markdown, markdown).value_or_throw(Exit::environment);
  fmt::print("{}", options.json ? summary_json(summary) : terminal);
  return Exit::pass;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto options = std::make_shared<ReportVerb>();
  CLI::App* verb = app.add_subcommand("report", "what is in a trace, its stored verdict, and a timeline of it");
  verb->add_option("trace", options->trace, "the trace store")->capture_default_str();
  verb->add_option("--perfetto", options->perfetto, "write a timeline for ui.perfetto.dev to this file");
  verb->add_option("--round", options->round, "with --perfetto: this round only");
  verb->add_option("--from", options->from, "with --perfetto: from this time after the first event, for example 1.5s");
  verb->add_option("--for", options->span, "with --perfetto: for so long, for example 20ms");
  verb->add_option("--markdown", options->markdown, "write the verdict and the summary as Markdown to this file");
  verb->add_flag("--json", options->json, "machine-readable");
  verb->callback([=, &action] { action = [=] { return report(*options); }; });
}

}  // namespace kgate::cli
