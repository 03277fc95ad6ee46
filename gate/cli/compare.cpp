// kgate compare: two traces, or two sets of them, judged by kernel and launch class. Needs no GPU.

#include "judge/compare.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstring>
#include <fstream>

#include "cli/verbs.h"
#include "contract/quantity.h"
#include "report/report.h"
#include "support/fd.h"
#include "support/log.h"
#include "support/text.h"

namespace kgate::cli {

namespace {

struct CompareVerb {
  std::vector<std::string> traces, baseline, candidate, limits, across;
  std::string arm = "auto", markdown;
  bool allow_unmatched = false, json = false;
};

// Same bytes. Two names of one file, or a copy: a comparison with itself would pass by statistics.
bool same_trace(const std::string& one, const std::string& other) {
  struct stat a {
  }, b{};
  if (::stat(one.c_str(), &a) != 0 || ::stat(other.c_str(), &b) != 0) return false;  // opening it says why
  if (a.st_dev == b.st_dev && a.st_ino == b.st_ino) return true;
  if (a.st_size != b.st_size) return false;
  std::ifstream left(one, std::ios::binary), right(other, std::ios::binary);
  std::vector<char> x(1 << 20), y(1 << 20);
  while (left && right) {
    left.read(x.data(), static_cast<std::streamsize>(x.size()));
    right.read(y.data(), static_cast<std::streamsize>(y.size()));
    if (left.gcount() != right.gcount() || std::memcmp(x.data(), y.data(), static_cast<size_t>(left.gcount())) != 0)
      return false;
  }
  return true;
}

void refuse_repeats(const std::vector<std::string>& baseline, const std::vector<std::string>& candidate) {
  std::vector<std::string> all = baseline;
  all.insert(all.end(), candidate.begin(), candidate.end());
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = i + 1; j < all.size(); ++j)
      if (same_trace(all[i], all[j]))
        throw Error(Exit::usage, "identical traces: " + all[i] + " and " + all[j] + " hold the same bytes", {},
                    "each trace is one sample and counts once; kgate report shows both arms of a check's trace");
}

void add_limit(const std::string& text, CompareOptions& options) {
  auto equals = text.find('=');
  std::string metric = text.substr(0, equals);
  if (equals == std::string::npos)
    throw Error(Exit::usage, "--limit " + sanitize(text, 80) + ": no value", {}, "--limit kernel_time.p50=5%");
  if (!compared_by_class(metric) && !compared_by_run(metric)) {
    std::vector<std::string> names;
    for (const auto& info : kMetrics)
      if (compared_by_class(info.id) || compared_by_run(info.id)) names.emplace_back(info.id);
    auto near = did_you_mean(metric, names);
    std::string list;
    for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
    throw Error(Exit::usage, "--limit: a comparison has no metric '" + sanitize(metric, 60) + "'", {},
                near ? "did you mean " + *near + "?" : "it has " + list);
  }
  std::string value = text.substr(equals + 1);
  if (value == "none") {
    options.unlimited.insert(metric);
    return;
  }
  Limit limit;
  limit.metric = metric;
  limit.where = "--limit";
  auto read = [&](Result<double> parsed) {
    if (!parsed)
      throw Error(Exit::usage, "--limit " + metric + ": " + parsed.failure().what, {}, parsed.failure().hint);
    return *parsed;
  };
  bool counts = find_metric(metric)->unit == MetricUnit::count;
  if (value.ends_with('%'))
    limit.max_regression = read(parse_percent(value));
  else if (counts)
    limit.max_increase = read(parse_number(value));
  else
    limit.max_increase = read(parse_duration_ns(value));
  if (limit.max_increase && *limit.max_increase < 0)
    throw Error(Exit::usage, "--limit " + metric + ": a negative increase", {}, "give 0 or more");
  options.limits.push_back(limit);
}

std::vector<ArmTrace> read_arms(const std::vector<std::string>& files, ArmChoice arm) {
  std::vector<ArmTrace> traces;
  for (const auto& file : files)
    traces.push_back(read_arm(*TraceStore::open(file).value_or_throw(Exit::bad_input), arm));
  return traces;
}

Exit compare_traces(CompareVerb verb, const Invocation& invocation) {
  auto begin = std::chrono::steady_clock::now();
  if (!verb.traces.empty() && (!verb.baseline.empty() || !verb.candidate.empty()))
    throw Error(Exit::usage, "traces are given twice, by position and by option", {},
                "kgate compare A.db B.db, or --baseline A1.db A2.db --candidate B1.db B2.db");
  if (verb.traces.size() == 2) verb.baseline = {verb.traces[0]}, verb.candidate = {verb.traces[1]};
  if (verb.baseline.empty() || verb.candidate.empty())
    throw Error(Exit::usage, "a comparison needs a trace of the baseline and one of the candidate", {},
                "kgate compare A.db B.db, or --baseline A1.db A2.db --candidate B1.db B2.db");
  CompareOptions options;
  for (const auto& limit : verb.limits) add_limit(limit, options);
  options.across.insert(verb.across.begin(), verb.across.end());
  options.allow_unmatched = verb.allow_unmatched;
  refuse_repeats(verb.baseline, verb.candidate);
  ArmChoice arm = verb.arm == "baseline"    ? ArmChoice::baseline
                  : verb.arm == "candidate" ? ArmChoice::candidate
                                            : ArmChoice::automatic;
  auto baseline = read_arms(verb.baseline, arm), candidate = read_arms(verb.candidate, arm);
  Verdict verdict = compare(baseline, candidate, options);
  verdict.facts["command"] = invocation.command;
  verdict.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!verb.markdown.empty())
    write_file_atomic(verb.markdown, render_markdown(verdict)).value_or_throw(Exit::environment);
  if (verb.json)
    fmt::print("{}", render_json(verdict));
  else
    fmt::print("{}", render_terminal(verdict, log::color_enabled(STDOUT_FILENO)));
  return verdict.exit;
}

}  // namespace

void add_compare(CLI::App& app, const Invocation& invocation, Action& action) {
  auto options = std::make_shared<CompareVerb>();
  CLI::App* verb = app.add_subcommand("compare", "judge two traces, or two sets of them, by kernel and launch class");
  verb->add_option("traces", options->traces, "A.db B.db: the baseline's trace and the candidate's")->expected(2);
  verb->add_option("--baseline", options->baseline, "several traces of the baseline: each file is one sample")
      ->expected(1, 1000);
  verb->add_option("--candidate", options->candidate, "as many of the candidate; file i pairs with file i")
      ->expected(1, 1000);
  verb->add_option("--limit", options->limits,
                   "METRIC=5%, METRIC=2us or METRIC=none; repeatable. Default: kernel_time.p50 and .p99 +5 % in the "
                   "five largest kernels")
      ->allow_extra_args(false);
  verb->add_option("--arm", options->arm, "which arm of a check's trace: auto (the candidate, or the only one)")
      ->check(CLI::IsMember({"auto", "baseline", "candidate"}))
      ->capture_default_str();
  verb->add_option("--across", options->across, "what may differ between the two sides, because it is under test")
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"tier", "device", "driver_version", "workload_sha256"}));
  verb->add_flag("--allow-unmatched", options->allow_unmatched,
                 "kernels and launch classes of one side only are notes, not a reason to stay undecided");
  verb->add_flag("--json", options->json, "print the JSON verdict instead of the summary");
  verb->add_option("--markdown", options->markdown, "also write the Markdown report to this file");
  verb->callback(
      [=, &invocation, &action] { action = [=, &invocation] { return compare_traces(*options, invocation); }; });
}

}  // namespace kgate::cli
