// Judging: each limit against its measurement, then all of them together.
//
// PASS is an intersection (every gated metric must pass on its own, so no correction is due). FAIL is a union, so
// Holm's correction runs over the gated paired metrics. Exact metrics decide at once. A limit without a measurement is
// inconclusive.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "judge/verdict.h"

namespace kgate {

namespace {

std::optional<double> median_of(const MetricSeries& series, bool candidate) {
  std::vector<double> values;
  for (const auto& pair : series.pairs)
    if (const auto& value = candidate ? pair.candidate : pair.baseline) values.push_back(*value);
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// The margin as a fraction: a regression allowed (positive) or a gain demanded (negative).
double relative_margin(const Limit& limit) {
  return limit.min_improvement ? -*limit.min_improvement : limit.max_regression.value_or(0);
}

bool relative(const Limit& limit) { return limit.max_regression || limit.max_increase || limit.min_improvement; }

// Log ratios where that is possible, else (an absolute bound, or a value of zero) the excess over what is allowed, in
// the unit.
struct Effects {
  std::vector<double> values;
  double margin = 0;
  bool absolute = false;
};

double excess(const Limit& limit, const std::optional<double>& baseline, double candidate) {
  double worst = -INFINITY;
  if (relative(limit)) {
    double allowed = relative_margin(limit) * *baseline;
    if (limit.max_increase) allowed = std::max(allowed, *limit.max_increase);
    worst = candidate - *baseline - allowed;
  }
  if (limit.max) worst = std::max(worst, candidate - *limit.max);
  return worst;
}

Effects effects_of(const MetricSeries& series, const Limit& limit) {
  std::vector<const MetricSeries::Pair*> usable;
  bool any_zero = false;
  for (const auto& pair : series.pairs) {
    if (!pair.candidate || (relative(limit) && !pair.baseline)) continue;
    usable.push_back(&pair);
    any_zero |= !(*pair.candidate > 0) || !(pair.baseline.value_or(1) > 0);
  }
  Effects effects;
  effects.absolute = limit.max_increase || limit.max || any_zero;
  effects.margin = effects.absolute ? 0 : std::log1p(relative_margin(limit));
  for (const auto* pair : usable)
    effects.values.push_back(effects.absolute ? excess(limit, pair->baseline, *pair->candidate)
                                              : std::log(*pair->candidate / *pair->baseline));
  return effects;
}

std::string label_of(const PairedResult& result, bool absolute, double margin) {
  if (absolute) return result.mean < 0 ? "within the limit" : "past the limit";
  if (result.upper < 0) return "faster";
  if (result.lower > margin) return "slower";
  if (result.lower > 0) return margin > 0 ? "slower, within the limit" : "slower";
  return "no material change";
}

void judge_paired(const MetricSeries& series, const MetricInfo& metric, double alpha, MetricVerdict& verdict) {
  verdict.samples_per_round = series.samples_per_round;
  if (metric.quantile > 0 && series.samples_per_round < minimum_samples(metric.quantile)) {
    verdict.note = fmt::format("{} samples a round; a statement about p{:g} needs {}", series.samples_per_round,
                               metric.quantile * 100, minimum_samples(metric.quantile));
    return;
  }
  Effects effects = effects_of(series, verdict.limit);
  PairedResult result = analyse(effects.values, effects.margin, alpha);
  verdict.absolute = effects.absolute;
  verdict.pairs = result.pairs;
  verdict.pairs_to_decide = result.pairs_to_decide;
  verdict.p_fail = result.p_fail;
  verdict.sign_flip_p = sign_flip_p(effects.values, effects.margin);
  if (result.pairs < 2) {
    verdict.note = result.pairs ? "one pair decides nothing" : "no pair has the samples";
    return;
  }
  auto shown = [&](double value) { return effects.absolute ? value : std::expm1(value); };
  verdict.effect = shown(result.mean);
  verdict.lower = shown(result.lower);
  verdict.upper = shown(result.upper);
  verdict.label = label_of(result, effects.absolute, effects.margin);
  if (result.upper < effects.margin)
    verdict.outcome = Outcome::pass;
  else if (result.lower <= effects.margin)
    verdict.note = result.pairs_to_decide > result.pairs
                       ? fmt::format("about {} pairs would decide", result.pairs_to_decide)
                       : "the effect sits at the limit";
}

// What an exact candidate value may be at most.
std::optional<double> ceiling(const Limit& limit, const std::optional<double>& baseline) {
  std::optional<double> bound = limit.max;
  if (baseline && (limit.max_regression || limit.max_increase || limit.min_improvement)) {
    double allowed = relative_margin(limit) * *baseline;
    if (limit.max_increase) allowed = std::max(allowed, *limit.max_increase);
    double relative = *baseline + allowed;
    bound = bound ? std::min(*bound, relative) : relative;
  }
  return bound;
}

void judge_exact(MetricVerdict& verdict) {
  auto bound = ceiling(verdict.limit, verdict.baseline);
  if (!verdict.candidate || !bound) {
    verdict.note = verdict.candidate ? "no baseline value" : "not measured";
    return;
  }
  bool lower_is_worse = verdict.id == "occupancy";
  if (verdict.baseline && *verdict.baseline > 0) verdict.effect = *verdict.candidate / *verdict.baseline - 1;
  bool past = lower_is_worse ? *verdict.candidate < (verdict.baseline ? 2 * *verdict.baseline - *bound : *bound)
                             : *verdict.candidate > *bound + 1e-9 * std::fabs(*bound);
  verdict.outcome = past ? Outcome::fail : Outcome::pass;
  double before = verdict.baseline.value_or(*verdict.candidate);
  verdict.label = past                           ? "past the limit"
                  : *verdict.candidate == before ? "equal"
                  : *verdict.candidate < before  ? "less"
                                                 : "within the limit";
}

// Any pair past the limit fails: exact values are not averaged.
void judge_exact_pairs(const MetricSeries& series, MetricVerdict& verdict) {
  MetricVerdict worst;
  for (const auto& pair : series.pairs) {
    MetricVerdict one = verdict;
    one.baseline = pair.baseline;
    one.candidate = pair.candidate;
    judge_exact(one);
    bool graver = worst.id.empty() || (one.outcome == Outcome::fail && worst.outcome != Outcome::fail) ||
                  (one.outcome == Outcome::inconclusive && worst.outcome == Outcome::pass);
    if (graver) worst = one;
  }
  if (worst.id.empty()) {
    verdict.note = "not measured";
    return;
  }
  worst.pairs = static_cast<uint32_t>(series.pairs.size());
  verdict = worst;
}

// An exact count that is not the same in every round is worth a warning: something in the run was not deterministic.
std::string variation(const MetricSeries& series) {
  for (bool candidate : {false, true}) {
    std::optional<double> first;
    for (const auto& pair : series.pairs) {
      const auto& value = candidate ? pair.candidate : pair.baseline;
      if (value && first && *value != *first)
        return fmt::format("varies between rounds of the {} ({:g} and {:g})", candidate ? "candidate" : "baseline",
                           *first, *value);
      if (value && !first) first = value;
    }
  }
  return {};
}

std::optional<double> figure(const std::map<std::string, double, std::less<>>& figures, const std::string& id) {
  auto found = figures.find(id);
  if (found == figures.end()) return std::nullopt;
  return found->second;
}

MetricVerdict judge_one(const JudgeInput& input, const EffectiveLimit& limit, const MetricInfo& metric) {
  MetricVerdict verdict;
  verdict.id = limit.limit.metric;
  verdict.gated = true;
  verdict.by_default = limit.by_default;
  verdict.limit = limit.limit;
  if (metric.source == MetricSource::compiler) {
    verdict.baseline = figure(input.statics.baseline, verdict.id);
    verdict.candidate = figure(input.statics.candidate, verdict.id);
    judge_exact(verdict);
    return verdict;
  }
  const MetricSeries* series = nullptr;
  if (input.metrics)
    if (auto found = input.metrics->find(verdict.id); found != input.metrics->end()) series = &found->second;
  if (!series) {
    verdict.note = "not measured";
    return verdict;
  }
  judge_series(*series, metric, input.alpha, verdict);
  return verdict;
}

// Metrics that have values but no limit.
void add_shown(const JudgeInput& input, std::vector<MetricVerdict>& verdicts) {
  for (const auto& metric : kMetrics) {
    std::string id(metric.id);
    bool host_time = metric.source == MetricSource::timing && metric.cls != MetricClass::exact;
    if (input.virtual_device && host_time) continue;
    if (std::any_of(verdicts.begin(), verdicts.end(), [&](const auto& v) { return v.id == id; })) continue;
    MetricVerdict verdict;
    verdict.id = id;
    if (metric.source == MetricSource::compiler) {
      verdict.baseline = figure(input.statics.baseline, id);
      verdict.candidate = figure(input.statics.candidate, id);
    } else if (input.metrics) {
      if (auto found = input.metrics->find(id); found != input.metrics->end()) {
        verdict.baseline = median_of(found->second, false);
        verdict.candidate = median_of(found->second, true);
        verdict.samples_per_round = found->second.samples_per_round;
      }
    }
    if (!verdict.candidate) continue;
    if (verdict.baseline && *verdict.baseline > 0) verdict.effect = *verdict.candidate / *verdict.baseline - 1;
    verdicts.push_back(verdict);
  }
}

// How far past its limit, for ordering: relative where that exists.
double severity(const MetricVerdict& verdict) {
  if (verdict.absolute && verdict.baseline && *verdict.baseline > 0)
    return verdict.effect.value_or(0) / *verdict.baseline;
  return verdict.effect.value_or(0);
}

int rank(const MetricVerdict& verdict) {
  if (!verdict.gated) return 3;
  return verdict.outcome == Outcome::fail ? 0 : verdict.outcome == Outcome::inconclusive ? 1 : 2;
}

}  // namespace

std::string describe(const MetricVerdict& verdict) {
  const MetricInfo& metric = *find_metric(verdict.id);
  std::string text = verdict.subject.empty() ? verdict.id : verdict.subject + " " + verdict.id;
  if (verdict.baseline && verdict.candidate)
    text +=
        fmt::format(": {} → {}", format_metric(metric, *verdict.baseline), format_metric(metric, *verdict.candidate));
  else if (verdict.candidate)
    text += fmt::format(": {}", format_metric(metric, *verdict.candidate));
  if (verdict.effect && !verdict.absolute) text += fmt::format(" ({:+.1f} %)", *verdict.effect * 100);
  if (!verdict.note.empty()) text += "; " + verdict.note;
  return text;
}

void judge_series(const MetricSeries& series, const MetricInfo& metric, double alpha, MetricVerdict& verdict) {
  verdict.baseline = median_of(series, false);
  verdict.candidate = median_of(series, true);
  if (metric.cls == MetricClass::exact) {
    judge_exact_pairs(series, verdict);
    if (auto note = variation(series); !note.empty()) verdict.note = note;
  } else {
    judge_paired(series, metric, alpha, verdict);
  }
}

void fail_paired(std::vector<MetricVerdict>& verdicts, double alpha) {
  std::vector<MetricVerdict*> paired;
  std::vector<double> p;
  for (auto& verdict : verdicts) {
    const MetricInfo* metric = find_metric(verdict.id);
    if (!verdict.gated || !metric || metric->cls == MetricClass::exact || verdict.pairs < 2) continue;
    paired.push_back(&verdict);
    p.push_back(verdict.p_fail);
  }
  auto rejected = holm(p, alpha);
  for (size_t i = 0; i < paired.size(); ++i) {
    if (!rejected[i]) continue;
    paired[i]->outcome = Outcome::fail;
    paired[i]->note.clear();
    if (paired[i]->absolute) paired[i]->label = "past the limit";
  }
}

void worst_first(std::vector<MetricVerdict>& verdicts) {
  std::stable_sort(verdicts.begin(), verdicts.end(), [](const auto& a, const auto& b) {
    return std::make_pair(rank(a), -severity(a)) < std::make_pair(rank(b), -severity(b));
  });
}

JudgeResult judge(const JudgeInput& input) {
  JudgeResult result;
  for (const auto& limit : input.limits) {
    const MetricInfo* metric = find_metric(limit.limit.metric);
    if (!metric) throw Error(Exit::internal, "no such metric: " + limit.limit.metric);
    if (input.scope != Scope::full && metric->source != MetricSource::compiler) continue;
    MetricVerdict verdict = judge_one(input, limit, *metric);
    // A default asks only what can be seen here: without an assembler nobody knows the spills, and the report says so.
    if (limit.by_default && metric->source == MetricSource::compiler && !verdict.candidate) verdict.gated = false;
    result.metrics.push_back(std::move(verdict));
  }
  fail_paired(result.metrics, input.alpha);
  add_shown(input, result.metrics);
  worst_first(result.metrics);

  for (const auto& row : input.health)
    if (!row.ok())
      result.findings.push_back({"trace_unfit",
                                 "trace",
                                 fmt::format("{} = {:g}, limit {:g}{}{}", row.name, row.value, row.limit,
                                             row.note.empty() ? "" : ": ", row.note),
                                 {},
                                 Exit::environment});
  bool failed = false, undecided = !result.findings.empty();
  for (const auto& verdict : result.metrics) {
    if (!verdict.gated || verdict.outcome == Outcome::pass) continue;
    bool fails = verdict.outcome == Outcome::fail;
    failed |= fails;
    undecided |= !fails;
    result.findings.push_back(
        {verdict.id, "judge", describe(verdict), verdict.limit.where, fails ? Exit::regression : Exit::inconclusive});
    if (result.deciding.empty()) result.deciding = verdict.id;
  }
  // A trace that lost records cannot convict on what it measured, but exact static figures do not depend on it.
  bool unfit = std::any_of(input.health.begin(), input.health.end(), [](const auto& row) { return !row.ok(); });
  if (unfit && failed) {
    failed = false;
    for (auto& finding : result.findings) {
      if (finding.exit != Exit::regression) continue;
      if (find_metric(finding.id)->source == MetricSource::compiler)
        failed = true;
      else
        finding.exit = Exit::environment;
    }
    // A proven static regression is the graver finding then.
    if (failed)
      for (auto& finding : result.findings)
        if (finding.exit == Exit::environment) finding.exit = Exit::inconclusive;
  }
  result.outcome = failed ? Outcome::fail : undecided ? Outcome::inconclusive : Outcome::pass;
  return result;
}

}  // namespace kgate
