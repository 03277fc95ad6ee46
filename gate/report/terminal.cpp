// The terminal summary. Verdict first; a table of at most a screen; the command that repeats it last.

#include <fmt/format.h>

#include <algorithm>

#include "report/report.h"
#include "support/text.h"

namespace kgate {

namespace {

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

// Columns as wide as their content; text in UTF-8 is ASCII apart from nothing we print here.
class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string render(const std::string& indent) const {
    std::vector<size_t> widths(rows_[0].size());
    for (const auto& row : rows_)
      for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    std::string text;
    for (const auto& row : rows_) {
      std::string line = indent;
      for (size_t i = 0; i < row.size(); ++i)
        line += i + 1 == row.size() ? row[i] : fmt::format("{:<{}}  ", row[i], widths[i]);
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    return text;
  }
  bool empty() const { return rows_.size() == 1; }

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string value_text(const MetricInfo& info, const std::optional<double>& value) {
  return value ? format_metric(info, *value) : "-";
}

std::string metric_table(const Verdict& verdict, bool with_shown) {
  Table table({"metric", "baseline", "candidate", "change", "limit", ""});
  for (const auto& metric : verdict.metrics) {
    const MetricInfo* info = find_metric(metric.id);
    if (!info || (!metric.gated && !with_shown)) continue;
    std::string last = outcome_text(metric);
    if (!metric.label.empty() && metric.label != "equal") last += " " + metric.label;
    if (!metric.note.empty()) last += " (" + metric.note + ")";
    table.add({metric.id, value_text(*info, metric.baseline), value_text(*info, metric.candidate), change_text(metric),
               limit_text(metric), last});
  }
  return table.empty() ? "" : table.render("  ");
}

std::string class_table(const Verdict& verdict) {
  if (verdict.classes.size() < 2) return {};
  Table table({"launch class", "share", "baseline p50", "candidate p50", "change"});
  for (const auto& c : verdict.classes)
    table.add({c.label, fmt::format("{:.0f} %", c.share * 100), format_ns(c.baseline_p50), format_ns(c.candidate_p50),
               c.baseline_p50 > 0 ? fmt::format("{:+.1f} %", (c.candidate_p50 / c.baseline_p50 - 1) * 100) : "-"});
  return table.render("  ");
}

}  // namespace

std::string render_terminal(const Verdict& verdict, bool color) {
  std::string text = paint(sanitize(verdict.headline), verdict_color(verdict.exit), color) + "\n";
  std::string context = fact(verdict, "device");
  if (auto tier = fact(verdict, "tier"); !tier.empty()) context += ", tier " + tier;
  if (verdict.pairs) context += fmt::format(", {} pairs", verdict.pairs);
  context += fmt::format(", {:.1f} s", verdict.seconds);
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
  text += "  " + next_step(verdict) + "\n";
  if (auto trace = fact(verdict, "trace"); !trace.empty()) text += paint("  trace:  " + trace, "2", color) + "\n";
  if (auto command = fact(verdict, "command"); !command.empty())
    text += paint("  repeat: " + command, "2", color) + "\n";
  return text;
}

}  // namespace kgate
