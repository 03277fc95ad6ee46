// The verdict for a job summary or a merge-request comment. Both cap their text at about 64 KiB, so that is the budget;
// kernel names and compiler output are untrusted and escaped.

#include <fmt/format.h>

#include "report/report.h"
#include "support/text.h"

namespace kgate {

namespace {

constexpr size_t kBudget = 64 * 1024 - 512;

std::string escape(std::string_view text) {
  std::string out;
  for (char c : sanitize(text, 600)) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else {
      if (c == '|' || c == '`' || c == '*' || c == '_' || c == '[' || c == ']' || c == '\\' || c == '#' || c == '@')
        out += '\\';
      out += c;
    }
  }
  return out;
}

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

void add_row(std::string& text, const MetricVerdict& metric) {
  const MetricInfo* info = find_metric(metric.id);
  if (!info) return;
  auto value = [&](const std::optional<double>& v) { return v ? format_metric(*info, *v) : std::string("-"); };
  std::string outcome = outcome_text(metric);
  if (!metric.label.empty()) outcome += ", " + metric.label;
  if (!metric.note.empty()) outcome += " (" + escape(metric.note) + ")";
  text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", metric.id, value(metric.baseline), value(metric.candidate),
                      escape(change_text(metric)), limit_text(metric), outcome);
}

}  // namespace

std::string render_markdown(const Verdict& verdict) {
  std::string text = fmt::format("### {} kgate: {}\n\n", badge(verdict.exit), escape(verdict.headline));
  size_t hidden = 0;
  for (const auto& finding : verdict.findings) {
    if (find_metric(finding.id)) continue;
    std::string line = fmt::format("- **{}** {}{}\n", escape(finding.id), escape(finding.text),
                                   finding.where.empty() ? "" : " — " + escape(finding.where));
    if (text.size() + line.size() > kBudget / 2)
      ++hidden;
    else
      text += line;
  }
  if (hidden) text += fmt::format("- {} more findings are in the JSON report\n", hidden);
  if (!verdict.metrics.empty()) {
    text += "\n| metric | baseline | candidate | change | limit | |\n|---|---|---|---|---|---|\n";
    for (const auto& metric : verdict.metrics) add_row(text, metric);
  }
  text += "\n" + escape(next_step(verdict)) + "\n\n<details><summary>What was judged</summary>\n\n";
  for (const auto& [key, value] : verdict.facts) {
    std::string line = fmt::format("- {}: {}\n", escape(key), escape(value));
    if (text.size() + line.size() > kBudget) break;
    text += line;
  }
  return text + "\n</details>\n";
}

}  // namespace kgate
