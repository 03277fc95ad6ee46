// Sentences about a Breakdown: the three largest parts, each a twentieth of the change or more. The judged kernel is
// always one of them, since whether it is to blame is the question.

#include "judge/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "support/text.h"

namespace kgate {

namespace {

constexpr double kWorthNaming = 0.05;
constexpr size_t kMostNamed = 3;
constexpr double kCancelling = 1.2;  // sum of the parts' sizes, of the size of their sum

std::string signed_ns(double ns) { return (ns < 0 ? "-" : "+") + format_ns(std::fabs(ns)); }
std::string share(double part, double whole) {
  return whole == 0 ? "" : fmt::format(" ({:.0f} %)", part / whole * 100);
}

double moved(const MetricVerdict& metric) { return metric.candidate.value_or(0) - metric.baseline.value_or(0); }

struct Named {
  std::string name;
  double change;
  std::string detail;
  bool always = false;
};

// "a +180 us (83 %), b +30 us (14 %), rest +8 us (4 %)". Without shares where gains and losses cancel out: they would
// add up to hundreds of percent.
std::string list_parts(std::vector<Named> parts, double whole) {
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Named& a, const Named& b) { return std::fabs(a.change) > std::fabs(b.change); });
  double moves = 0;
  size_t free = kMostNamed;
  for (const auto& part : parts) moves += std::fabs(part.change), free -= part.always;
  bool shares = moves <= kCancelling * std::fabs(whole);
  std::string text;
  double rest = 0;
  for (const auto& part : parts) {
    bool worth = part.change != 0 && std::fabs(part.change) >= kWorthNaming * moves;
    if (!part.always && (!worth || free == 0)) {
      rest += part.change;
      continue;
    }
    free -= !part.always;
    text += fmt::format("{}{} {}{}{}", text.empty() ? "" : ", ", part.name, signed_ns(part.change),
                        shares ? share(part.change, whole) : "", part.detail);
  }
  if (std::fabs(rest) >= 1 && std::fabs(rest) >= 0.005 * moves)
    text += fmt::format("{}rest {}{}", text.empty() ? "" : ", ", signed_ns(rest), shares ? share(rest, whole) : "");
  return text;
}

std::string head(const MetricVerdict& metric) {
  const MetricInfo& info = *find_metric(metric.id);
  double change = moved(metric);
  return fmt::format("{} {}{}", metric.id, change < 0 ? "-" : "+", format_metric(info, std::fabs(change)));
}

// The parts say nothing about a change that they do not show.
std::string unexplained(double explained, double change) {
  double missing = change - explained;
  if (std::fabs(missing) <= 0.2 * std::fabs(change) || std::fabs(missing) < 100) return {};
  return fmt::format("; unexplained: {}", signed_ns(missing));
}

std::string explain_requests(const TraceRows& rows, const MetricVerdict& metric, Span span, bool tail) {
  Breakdown parts = break_down(rows, span, tail);
  if (parts.pairs == 0) return {};
  double change = parts.candidate_total - parts.baseline_total;
  std::vector<Named> named;
  for (size_t i = 0; i < kParts; ++i)
    named.push_back({part_name(static_cast<Part>(i)), parts.candidate[i] - parts.baseline[i], "",
                     static_cast<Part>(i) == Part::judged_kernel && span != Span::launch_call});
  const char* what = span == Span::launch_call ? "launch calls" : "requests";
  std::string where = tail ? fmt::format("in the slowest 1 % of {} ({} a round, {} on average): ", what, parts.samples,
                                         signed_ns(change))
                      : span == Span::sync_stall
                          ? "waiting for: "
                          : fmt::format("over all {} ({} on average): ", what, signed_ns(change));
  std::string text = head(metric) + ": " + where + list_parts(named, change) + unexplained(change, moved(metric));
  if (!parts.scheduling) text += "; the host's scheduling was not traced";
  return text;
}

std::string explain_others(const TraceRows& rows, const MetricVerdict& metric) {
  auto delays = delays_of_others(rows);
  if (delays.empty()) return {};
  double change = 0;
  std::vector<Named> named;
  for (const auto& [name, delay] : delays) {
    change += delay.change();
    named.push_back({sanitize(name, 80), delay.change(),
                     fmt::format(", {} of it before it began", signed_ns(delay.waiting.change()))});
  }
  PerRequest judged = judged_time(rows);
  return fmt::format("{}: {}; the judged kernel itself takes {} → {} a request{}", head(metric),
                     list_parts(named, change), format_ns(judged.baseline), format_ns(judged.candidate),
                     unexplained(change, moved(metric)));
}

// Launch classes, by what they add to the mean GPU time of a judged launch.
std::string explain_kernel_time(const TraceRows& rows, const MetricVerdict& metric) {
  if (rows.sum_requests) {
    PerRequest judged = judged_time(rows);
    return fmt::format("{}: the judged launches of a request take {} → {} on average", head(metric),
                       format_ns(judged.baseline), format_ns(judged.candidate));
  }
  double q = find_metric(metric.id)->quantile;
  struct Class {
    std::string label;
    double share, before, after, added;
  };
  auto samples = judged_classes(rows);
  double launches = 0, change = 0;
  for (const auto& [id, one] : samples) launches += double(one.baseline.size());
  std::vector<Class> classes;
  for (auto& [id, one] : samples) {
    if (one.baseline.empty() || one.candidate.empty()) continue;
    auto mean = [](const std::vector<double>& values) {
      double sum = 0;
      for (double value : values) sum += value;
      return sum / double(values.size());
    };
    Class c{one.label, double(one.baseline.size()) / launches, 0, 0, 0};
    c.added = c.share * (mean(one.candidate) - mean(one.baseline));
    c.before = quantile(one.baseline, q);
    c.after = quantile(one.candidate, q);
    change += c.added;
    classes.push_back(c);
  }
  if (classes.empty()) return {};
  std::stable_sort(classes.begin(), classes.end(),
                   [](const auto& a, const auto& b) { return std::fabs(a.added) > std::fabs(b.added); });
  std::string text = head(metric) + ": ";
  for (size_t i = 0; i < std::min<size_t>(3, classes.size()); ++i) {
    const Class& c = classes[i];
    text += fmt::format("{}{} ({:.0f} % of launches) p{:g} {} → {}", i ? ", " : "", c.label, c.share * 100, q * 100,
                        format_ns(c.before), format_ns(c.after));
    if (c.before > 0) text += fmt::format(" ({:+.1f} %)", (c.after / c.before - 1) * 100);
    if (change != 0 && classes.size() > 1)
      text += fmt::format(", {:.0f} % of the mean's change", c.added / change * 100);
  }
  if (classes.size() > 3) text += fmt::format(", and {} more launch classes", classes.size() - 3);
  return text;
}

std::string explain_queue(const TraceRows& rows, const MetricVerdict& metric) {
  std::vector<Named> named;
  double change = 0;
  for (const auto& [name, delay] : delays_of_others(rows)) {
    change += delay.waiting.change();
    named.push_back({sanitize(name, 80), delay.waiting.change(), ""});
  }
  if (named.empty()) return {};
  return fmt::format("{}: before the other kernels began, a request: {}", head(metric), list_parts(named, change));
}

std::string explain_counts(const TraceRows& rows, const MetricVerdict& metric, CallUse kind) {
  std::string text;
  for (const auto& [name, count] : calls_by_name(rows, kind))
    if (std::fabs(count.change()) > 1e-9)
      text += fmt::format("{}{} {:.4g} → {:.4g} a request", text.empty() ? "" : ", ", sanitize(name, 80),
                          count.baseline, count.candidate);
  return text.empty() ? "" : head(metric) + ": " + text;
}

// Worse than its noise, within its limit.
bool clearly_worse(const MetricVerdict& metric) {
  return metric.effect && metric.lower && !metric.absolute && *metric.lower > 0;
}

bool worth_explaining(const MetricVerdict& metric) {
  const MetricInfo* info = find_metric(metric.id);
  if (!info || info->source != MetricSource::timing || !metric.gated) return false;
  switch (metric.outcome) {
    case Outcome::fail:
      return true;
    case Outcome::inconclusive:
      return moved(metric) > 0;
    case Outcome::pass:
      return clearly_worse(metric);
  }
  return false;
}

}  // namespace

std::string explain_metric(const TraceRows& rows, const MetricVerdict& metric) {
  if (!metric.baseline || !metric.candidate || !find_metric(metric.id)) return {};
  const std::string& id = metric.id;
  bool tail = id.ends_with(".p99");
  if (id.starts_with("service.")) return explain_requests(rows, metric, Span::service, tail);
  if (id.starts_with("response.")) return explain_requests(rows, metric, Span::response, tail);
  if (id == "sync_stall") return explain_requests(rows, metric, Span::sync_stall, false);
  if (id == "launch_api.p99") return explain_requests(rows, metric, Span::launch_call, true);
  if (id == "kernel_time.p50" || id == "kernel_time.p99") return explain_kernel_time(rows, metric);
  if (id == "others.delay") return explain_others(rows, metric);
  if (id == "queue_wait.p99") return explain_queue(rows, metric);
  if (id == "sync_count") return explain_counts(rows, metric, CallUse::sync);
  if (id == "launch_count") return explain_counts(rows, metric, CallUse::launch);
  if (id == "alloc_count") return explain_counts(rows, metric, CallUse::alloc);
  return {};
}

void explain(const TraceStore& trace, std::vector<MetricVerdict>& metrics) {
  if (std::none_of(metrics.begin(), metrics.end(), worth_explaining)) return;
  TraceRows rows = read_rows(trace);
  for (auto& metric : metrics)
    if (worth_explaining(metric)) metric.explanation = explain_metric(rows, metric);
}

}  // namespace kgate
