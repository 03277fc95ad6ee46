// The terminal summary. Verdict first; a table of at most a screen; the command that repeats it last.

#include <fmt/format.h>

#include <algorithm>

#include "report/report.h"
#include "report/text_table.h"
#include "support/text.h"

namespace kgate {

namespace {

constexpr size_t kShownSubjects = 20;  // without a limit; those with one are all shown

const char* verdict_color(Exit exit) {
  switch (exit) {
    case Exit::pass:
      return "1;32";
    case Exit::inconclusive:
    case Exit::environment:
    case Exit::no_baseline:
      return "1;33";
    default:
      return "1;31";
  }
}

std::string paint(const std::string& text, const char* code, bool color) {
  return color ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
}

std::string fact(const Verdict& verdict, const std::string& key) {
  auto found = verdict.facts.find(key);
  return found == verdict.facts.end() ? "" : sanitize(found->second, 2000);
}

std::string value_text(const MetricInfo& info, const std::optional<double>& value) {
  return value ? format_metric(info, *value) : "-";
}

std::string metric_table(const Verdict& verdict, bool with_shown) {
  TextTable table({"metric", "baseline", "candidate", "change", "limit", ""});
  size_t hidden = 0, subjects = 0;
  for (const auto& metric : verdict.metrics) {
    const MetricInfo* info = find_metric(metric.id);
    if (!info || (!metric.gated && !with_shown)) continue;
    if (!metric.gated && !metric.subject.empty() && ++subjects > kShownSubjects) {
      ++hidden;
      continue;
    }
    std::string name = metric.subject.empty() ? metric.id : metric.id + "  " + sanitize(metric.subject, 90);
    std::string last = outcome_text(metric);
    if (!metric.label.empty() && metric.label != "equal") last += " " + metric.label;
    if (!metric.note.empty()) last += " (" + metric.note + ")";
    table.add({name, value_text(*info, metric.baseline), value_text(*info, metric.candidate), change_text(metric),
               limit_text(metric), last});
  }
  std::string text = table.empty() ? "" : table.render("  ");
  if (hidden) text += fmt::format("  and {} more that are shown, not judged (--json has all)\n", hidden);
  return text;
}

std::string class_table(const Verdict& verdict) {
  if (verdict.classes.size() < 2) return {};
  TextTable table({"launch class", "share", "baseline p50", "candidate p50", "change"});
  for (const auto& c : verdict.classes)
    table.add({c.label, fmt::format("{:.0f} %", c.share * 100), format_ns(c.baseline_p50), format_ns(c.candidate_p50),
               c.baseline_p50 > 0 ? fmt::format("{:+.1f} %", (c.candidate_p50 / c.baseline_p50 - 1) * 100) : "-"});
  return table.render("  ");
}

std::string explanations(const Verdict& verdict) {
  std::string text;
  for (const auto& metric : verdict.metrics)
    if (!metric.explanation.empty()) text += "  why: " + sanitize(metric.explanation, 1000) + "\n";
  return text;
}

}  // namespace

std::string render_terminal(const Verdict& verdict, bool color) {
  std::string text = paint(sanitize(verdict.headline), verdict_color(verdict.exit), color) + "\n";
  std::string context = fact(verdict, "device");
  if (auto tier = fact(verdict, "tier"); !tier.empty()) context += ", tier " + tier;
  if (verdict.pairs) context += fmt::format(", {} pair{}", verdict.pairs, verdict.pairs == 1 ? "" : "s");
  context += fmt::format(", {:.1f} s", verdict.seconds);
  if (auto ratio = fact(verdict, "perturbation"); !ratio.empty())
    context += ", requests " + ratio + "x as long as untraced";
  text += paint("  " + context, "2", color) + "\n";

  for (const auto& finding : verdict.findings) {
    if (find_metric(finding.id)) continue;  // the table shows it
    text += fmt::format(
        "  {} [{}] {}{}\n",
        paint(finding.exit == Exit::pass ? "note" : "found", finding.exit == Exit::pass ? "36" : "31", color),
        finding.id, sanitize(finding.text), finding.where.empty() ? "" : " (" + sanitize(finding.where) + ")");
  }
  text += metric_table(verdict, verdict.exit != Exit::broken);
  if (auto classes = class_table(verdict); !classes.empty() && verdict.exit != Exit::broken) text += "\n" + classes;
  if (verdict.exit != Exit::broken) text += explanations(verdict);
  text += "  " + next_step(verdict) + "\n";
  if (auto trace = fact(verdict, "trace"); !trace.empty()) text += paint("  trace:  " + trace, "2", color) + "\n";
  if (auto command = fact(verdict, "command"); !command.empty())
    text += paint("  repeat: " + command, "2", color) + "\n";
  return text;
}

}  // namespace kgate
