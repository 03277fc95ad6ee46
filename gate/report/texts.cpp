// Phrases that every format shares, so that they cannot say different things.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/report.h"
#include "support/text.h"

namespace kgate {

namespace {
std::string signed_value(const MetricInfo& metric, double value) {
  return (value < 0 ? "-" : "+") + format_metric(metric, std::fabs(value));
}
}  // namespace

std::string change_text(const MetricVerdict& metric) {
  const MetricInfo* info = find_metric(metric.id);
  if (!info || !metric.candidate) return "-";
  if (metric.baseline && *metric.baseline == *metric.candidate) return "equal";
  if (metric.baseline && *metric.baseline == 0) return signed_value(*info, *metric.candidate) + " (from 0)";
  if (metric.absolute && metric.baseline) return signed_value(*info, *metric.candidate - *metric.baseline);
  if (!metric.effect) return "-";
  std::string text = fmt::format("{:+.1f} %", *metric.effect * 100);
  if (metric.lower && metric.upper && std::isfinite(*metric.lower) && std::isfinite(*metric.upper))
    text += fmt::format(" [{:+.1f}, {:+.1f}]", *metric.lower * 100, *metric.upper * 100);
  return text;
}

std::string limit_text(const MetricVerdict& metric) {
  const MetricInfo* info = find_metric(metric.id);
  if (!metric.gated || !info) return "-";
  std::vector<std::string> parts;
  if (metric.limit.min_improvement) parts.push_back(fmt::format("{:+g} %", -*metric.limit.min_improvement * 100));
  if (metric.limit.max_regression) parts.push_back(fmt::format("+{:g} %", *metric.limit.max_regression * 100));
  if (metric.limit.max_increase) parts.push_back("+" + format_metric(*info, *metric.limit.max_increase));
  std::string text = parts.empty() ? "" : parts[0];
  if (parts.size() == 2) text += " or " + parts[1];
  if (metric.limit.max) text += (text.empty() ? "max " : ", max ") + format_metric(*info, *metric.limit.max);
  return text;
}

std::string outcome_text(const MetricVerdict& metric) {
  if (!metric.gated) return "shown";
  switch (metric.outcome) {
    case Outcome::pass:
      return "ok";
    case Outcome::fail:
      return "FAIL";
    case Outcome::inconclusive:
      return "undecided";
  }
  return "-";
}

std::string next_step(const Verdict& verdict) {
  if (!verdict.advice.empty()) return sanitize(verdict.advice, 1000);
  switch (verdict.exit) {
    case Exit::pass:
      return "Nothing to do: the candidate may replace the baseline under these limits.";
    case Exit::regression:
      return "Mend the candidate, or raise the limit on purpose if the cost is wanted.";
    case Exit::inconclusive: {
      uint32_t needed = 0;
      for (const auto& metric : verdict.metrics)
        if (metric.gated && metric.outcome == Outcome::inconclusive) needed = std::max(needed, metric.pairs_to_decide);
      if (needed > verdict.pairs)
        return fmt::format(
            "Run again with --max-pairs {} on a quiet machine, or widen the limit to what can be resolved.", needed);
      return "Run again on a quiet machine; an effect that sits at its limit stays undecided.";
    }
    case Exit::no_baseline:
      return "Name a baseline in the contract (`baseline:`), or use absolute limits.";
    case Exit::environment:
      return "Mend the environment (kgate doctor says what works here), or narrow the question with --scope.";
    case Exit::bad_input:
      return "Mend the contract or the candidate: they do not fit together, and nothing was run.";
    case Exit::broken:
      return "Mend the candidate; the finding above repeats with the command below.";
    default:
      return "See the error above.";
  }
}

}  // namespace kgate
