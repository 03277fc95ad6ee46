// The verdict for a job summary or a merge-request comment. Both cap their text at about 64 KiB, so that is the budget;
// kernel names and compiler output are untrusted and escaped.

#include <fmt/format.h>

#include "report/report.h"
#include "report/text_table.h"
#include "support/text.h"

namespace kgate {

namespace {

constexpr size_t kBudget = 64 * 1024 - 512;

const char* badge(Exit exit) {
  switch (exit) {
    case Exit::pass:
      return "✅";
    case Exit::inconclusive:
    case Exit::environment:
    case Exit::no_baseline:
      return "⚠️";
    default:
      return "❌";
  }
}

std::string row_of(const MetricVerdict& metric) {
  const MetricInfo* info = find_metric(metric.id);
  if (!info) return {};
  auto value = [&](const std::optional<double>& v) { return v ? format_metric(*info, *v) : std::string("-"); };
  std::string outcome = outcome_text(metric);
  if (!metric.label.empty()) outcome += ", " + metric.label;
  if (!metric.note.empty()) outcome += " (" + markdown_escape(metric.note) + ")";
  std::string name = fmt::format("`{}`", metric.id);
  if (!metric.subject.empty()) name = markdown_escape(metric.subject) + " " + name;
  return fmt::format("| {} | {} | {} | {} | {} | {} |\n", name, value(metric.baseline), value(metric.candidate),
                     markdown_escape(change_text(metric)), limit_text(metric), outcome);
}

}  // namespace

std::string render_markdown(const Verdict& verdict) {
  std::string text = fmt::format("### {} kgate: {}\n\n", badge(verdict.exit), markdown_escape(verdict.headline));
  size_t hidden = 0;
  for (const auto& finding : verdict.findings) {
    if (find_metric(finding.id)) continue;
    std::string line = fmt::format("- **{}** {}{}\n", markdown_escape(finding.id), markdown_escape(finding.text),
                                   finding.where.empty() ? "" : " — " + markdown_escape(finding.where));
    if (text.size() + line.size() > kBudget / 2)
      ++hidden;
    else
      text += line;
  }
  if (hidden) text += fmt::format("- {} more findings are in the JSON report\n", hidden);
  if (!verdict.metrics.empty()) {
    text += "\n| metric | baseline | candidate | change | limit | |\n|---|---|---|---|---|---|\n";
    size_t left_out = 0;
    for (const auto& metric : verdict.metrics) {
      std::string row = row_of(metric);
      if (text.size() + row.size() > kBudget * 5 / 8)
        ++left_out;
      else
        text += row;
    }
    if (left_out) text += fmt::format("\n{} more metrics are in the JSON report\n", left_out);
  }
  std::string why;
  for (const auto& metric : verdict.metrics)
    if (!metric.explanation.empty() && text.size() + why.size() < kBudget * 3 / 4)
      why += "- " + markdown_escape(metric.explanation) + "\n";
  if (!why.empty()) text += "\nWhere the time went:\n\n" + why;
  text += "\n" + markdown_escape(next_step(verdict)) + "\n\n<details><summary>What was judged</summary>\n\n";
  for (const auto& [key, value] : verdict.facts) {
    std::string line = fmt::format("- {}: {}\n", markdown_escape(key), markdown_escape(value));
    if (text.size() + line.size() > kBudget) break;
    text += line;
  }
  return text + "\n</details>\n";
}

}  // namespace kgate
