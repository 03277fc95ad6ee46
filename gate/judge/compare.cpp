// What is not the same in both arms is found first (other devices, lost records, kernels of one arm only), then the
// largest kernels are judged and the rest is shown. A kernel that is missing is never a pass: it may have been replaced
// by something slower under another name.

#include "judge/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "judge/metrics.h"
#include "support/text.h"

namespace kgate {

namespace {

constexpr double kUnmatchedShare =
    0.05;  // of a kernel's time, in classes of one arm only: past it the kernel is not comparable
constexpr size_t kMostNamed = 8;
constexpr std::array kSameFacts{"device", "driver_version", "workload_sha256"};  // and the tier

class Comparison {
 public:
  Comparison(const std::vector<ArmTrace>& baseline, const std::vector<ArmTrace>& candidate,
             const CompareOptions& options)
      : baseline_(baseline), candidate_(candidate), options_(options) {}

  Verdict run() {
    verdict_.pairs = static_cast<uint32_t>(baseline_.size());
    check_health();
    check_facts();
    match_kernels();
    judge_classes();
    judge_runs();
    fail_paired(verdict_.metrics, options_.alpha);
    worst_first(verdict_.metrics);
    for (auto& metric : verdict_.metrics) conclude(metric);
    if (!gated_any_)
      verdict_.findings.push_back(
          {"nothing_compared", "judge", "no kernel of both arms could be judged", {}, Exit::inconclusive});
    verdict_.exit = exit_of(verdict_.findings);
    if (verdict_.exit != Exit::pass && verdict_.deciding.empty())
      for (const auto& finding : verdict_.findings)
        if (finding.exit == verdict_.exit && verdict_.deciding.empty()) verdict_.deciding = finding.id;
    note_facts();
    verdict_.headline = headline();
    verdict_.advice = advice();
    return std::move(verdict_);
  }

 private:
  bool is_virtual() const { return baseline_[0].virtual_device || candidate_[0].virtual_device; }

  void check_health() {
    for (const auto* arm : {&baseline_, &candidate_})
      for (const auto& trace : *arm) {
        bool vouched = false;  // the store writes the row even when nothing was dropped
        for (const auto& row : trace.health) {
          vouched |= row.name == "cupti_dropped";
          if (row.ok()) continue;
          unfit(trace, fmt::format("{} = {:g}, limit {:g}{}{}", row.name, row.value, row.limit,
                                   row.note.empty() ? "" : ": ", row.note));
        }
        if (!vouched) unfit(trace, "the trace does not say how many records were dropped");
      }
  }

  void unfit(const ArmTrace& trace, std::string text) {
    verdict_.findings.push_back({"trace_unfit", "trace", std::move(text), trace.path, Exit::environment});
  }

  static std::string fact(const ArmTrace& trace, const std::string& key) {
    if (key == "tier") return trace.info.tier;
    if (key == "kind") return trace.virtual_device ? "virtual GPU" : "GPU";
    auto found = trace.info.facts.find(key);
    return found == trace.info.facts.end() ? "" : found->second;
  }

  // All traces of an arm must agree; the arms must, unless the fact is what is under test.
  void check_facts() {
    std::vector<std::string> keys{"kind", "tier"};
    keys.insert(keys.end(), kSameFacts.begin(), kSameFacts.end());
    for (const auto& key : keys) {
      for (const auto* arm : {&baseline_, &candidate_})
        for (const auto& trace : *arm)
          if (fact(trace, key) != fact((*arm)[0], key)) differ(key, (*arm)[0], trace, false);
      if (fact(baseline_[0], key) != fact(candidate_[0], key))
        differ(key, baseline_[0], candidate_[0], options_.across.contains(key));
    }
  }

  void differ(const std::string& key, const ArmTrace& one, const ArmTrace& other, bool under_test) {
    auto shown = [&](const ArmTrace& trace) {
      std::string value = fact(trace, key);
      if (value.empty()) return std::string("not recorded");
      return key.ends_with("_sha256") ? sanitize(value.substr(0, 16)) : sanitize(value, 80);
    };
    verdict_.findings.push_back(
        {"different_run", "trace",
         fmt::format("{}: {} and {}{}", key, shown(one), shown(other), under_test ? ", which is under test" : ""),
         under_test ? "" : one.path + ", " + other.path, under_test ? Exit::pass : Exit::environment});
  }

  // Time by kernel and class over all traces of an arm.
  static std::map<std::string, std::map<std::string, double>> times(const std::vector<ArmTrace>& arm) {
    std::map<std::string, std::map<std::string, double>> out;
    for (const auto& trace : arm)
      for (const auto& [key, figures] : trace.classes)
        out[key.kernel][key.label] += figures.total_ns + (trace.virtual_device ? figures.instructions : 0);
    return out;
  }

  static double sum(const std::map<std::string, double>& classes) {
    double total = 0;
    for (const auto& [label, time] : classes) total += time;
    return total;
  }

  void match_kernels() {
    auto before = times(baseline_), after = times(candidate_);
    unmatched(before, after, "baseline");
    unmatched(after, before, "candidate");
  }

  void unmatched(const std::map<std::string, std::map<std::string, double>>& mine,
                 const std::map<std::string, std::map<std::string, double>>& other, const char* arm) {
    double total = 0;
    for (const auto& [kernel, classes] : mine) total += sum(classes);
    std::vector<std::pair<double, std::string>> missing;
    for (const auto& [kernel, classes] : mine) {
      double time = sum(classes);
      auto twin = other.find(kernel);
      if (twin == other.end()) {
        missing.emplace_back(time / total, kernel);
        continue;
      }
      double alone = 0;
      std::string labels;
      for (const auto& [label, one] : classes) {
        if (twin->second.contains(label)) continue;
        alone += one;
        if (labels.size() < 300) labels += (labels.empty() ? "" : "; ") + label;
      }
      if (labels.empty()) continue;
      bool matters = !(alone <= kUnmatchedShare * time) && !options_.allow_unmatched;
      verdict_.findings.push_back({"unmatched_class",
                                   "judge",
                                   fmt::format("{}: launch classes in the {} only, {:.1f} % of its time there: {}",
                                               sanitize(kernel, 100), arm, alone / time * 100, sanitize(labels, 300)),
                                   {},
                                   matters ? Exit::inconclusive : Exit::pass});
    }
    std::sort(missing.rbegin(), missing.rend());
    for (size_t i = 0; i < missing.size(); ++i) {
      bool last = i + 1 == kMostNamed && missing.size() > kMostNamed;
      verdict_.findings.push_back(
          {"unmatched_kernel",
           "judge",
           fmt::format("{}: in the {} only, {:.1f} % of the GPU time there{}", sanitize(missing[i].second, 100), arm,
                       missing[i].first * 100,
                       last ? fmt::format(", and {} more kernels", missing.size() - kMostNamed) : ""),
           {},
           options_.allow_unmatched ? Exit::pass : Exit::inconclusive});
      if (last) break;
    }
  }

  std::optional<Limit> limit_of(const std::string& metric) const {
    for (const auto& limit : options_.limits)
      if (limit.metric == metric) return limit;
    if (options_.unlimited.contains(metric)) return std::nullopt;
    Limit limit;
    limit.metric = metric;
    limit.where = "default";
    if (is_virtual() && (metric == "virtual.instructions" || metric == "virtual.sectors"))
      limit.max_regression = 0.10;
    else if (is_virtual() && metric == "virtual.bank_conflicts")
      limit.max_regression = 0.10, limit.max_increase = 32;
    else if (!is_virtual() && metric.starts_with("kernel_time."))
      limit.max_regression = 0.05;
    else
      return std::nullopt;
    return limit;
  }

  // Classes of both arms, the longest total time first (on the virtual GPU: the most instructions).
  std::vector<std::pair<double, ClassKey>> common_classes() const {
    auto before = times(baseline_), after = times(candidate_);
    double totals[2] = {0, 0};
    for (const auto& [kernel, classes] : before) totals[0] += sum(classes);
    for (const auto& [kernel, classes] : after) totals[1] += sum(classes);
    std::vector<std::pair<double, ClassKey>> out;
    for (const auto& [kernel, classes] : before)
      for (const auto& [label, time] : classes)
        if (after.contains(kernel) && after[kernel].contains(label))
          out.push_back({std::max(time / totals[0], after[kernel][label] / totals[1]), {kernel, label}});
    std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    return out;
  }

  static double figure(const ClassFigures& figures, std::string_view metric) {
    return metric == "kernel_time.p50"        ? figures.p50_ns
           : metric == "kernel_time.p99"      ? figures.p99_ns
           : metric == "virtual.instructions" ? figures.instructions
           : metric == "virtual.sectors"      ? figures.sectors
                                              : figures.conflicts;
  }

  void judge_classes() {
    auto common = common_classes();
    std::vector<std::string> ids{"kernel_time.p50", "kernel_time.p99"};
    if (is_virtual()) ids = {"virtual.instructions", "virtual.sectors", "virtual.bank_conflicts"};
    double judged_share = 0;
    for (size_t i = 0; i < common.size(); ++i) {
      const auto& [share, key] = common[i];
      for (const auto& id : ids) judge_class(key, id, i < kMostGatedClasses);
      if (i < kMostGatedClasses) judged_share += share;
    }
    if (common.size() > kMostGatedClasses)
      verdict_.findings.push_back(
          {"classes_shown",
           "judge",
           fmt::format("the {} largest of {} kernels by launch class are judged, {:.0f} % of the GPU time; the others "
                       "are only shown",
                       kMostGatedClasses, common.size(), std::min(1.0, judged_share) * 100),
           {},
           Exit::pass});
  }

  void judge_class(const ClassKey& key, const std::string& id, bool large) {
    MetricSeries series;
    const ClassFigures *before = nullptr, *after = nullptr;
    for (size_t i = 0; i < baseline_.size(); ++i) {
      auto a = baseline_[i].classes.find(key), b = candidate_[i].classes.find(key);
      MetricSeries::Pair pair{static_cast<uint32_t>(i), std::nullopt, std::nullopt};
      if (a != baseline_[i].classes.end()) pair.baseline = figure(*(before = &a->second), id);
      if (b != candidate_[i].classes.end()) pair.candidate = figure(*(after = &b->second), id);
      if (pair.baseline && pair.candidate) {
        uint64_t fewer = std::min(a->second.launches, b->second.launches);
        series.samples_per_round = series.samples_per_round ? std::min(series.samples_per_round, fewer) : fewer;
      }
      series.pairs.push_back(pair);
    }
    MetricVerdict metric;
    metric.id = id;
    metric.subject = key.kernel + " " + key.label;
    judge(series, large, metric);
    MetricVerdict& judged = verdict_.metrics.back();
    if (judged.gated && judged.outcome != Outcome::pass && before && after && id.ends_with("p50"))
      judged.explanation = code_change(key, *before, *after);
  }

  static std::string code_change(const ClassKey& key, const ClassFigures& before, const ClassFigures& after) {
    auto list = [](const std::set<uint32_t>& values) {
      std::string text;
      for (uint32_t value : values) text += (text.empty() ? "" : "/") + std::to_string(value);
      return text;
    };
    std::string name = sanitize(key.kernel, 100);
    if (!before.kernel_ids.empty() && before.kernel_ids == after.kernel_ids)
      return name + " is the same code in both arms: its data, its neighbours or the machine changed";
    std::string text = before.kernel_ids.empty() || after.kernel_ids.empty() ? "" : name + " is other code";
    if (before.registers != after.registers)
      text += fmt::format("{}registers {} → {}", text.empty() ? name + ": " : ", ", list(before.registers),
                          list(after.registers));
    return text;
  }

  // With its limit, or shown. A default asks only what these traces can show.
  void judge(const MetricSeries& series, bool may_gate, MetricVerdict& metric) {
    const MetricInfo& info = *find_metric(metric.id);
    auto limit = may_gate ? limit_of(metric.id) : std::nullopt;
    bool by_default = limit && limit->where == "default";
    bool enough = info.quantile == 0 || series.samples_per_round >= minimum_samples(info.quantile);
    metric.gated = limit && (enough || !by_default);
    metric.by_default = by_default;
    if (limit) metric.limit = *limit;
    judge_series(series, info, options_.alpha, metric);
    metric.samples_per_round = series.samples_per_round;
    if (!metric.gated) {
      if (metric.baseline && metric.candidate && *metric.baseline > 0 && !metric.effect)
        metric.effect = *metric.candidate / *metric.baseline - 1;
      if (enough) metric.note.clear();
      metric.label.clear();
    }
    verdict_.metrics.push_back(metric);
    gated_any_ |= metric.gated;
    if (metric.gated) largest_sample_ = std::max(largest_sample_, metric.pairs_to_decide);
  }

  void judge_runs() {
    for (const auto& info : kMetrics) {
      std::string id(info.id);
      if (!compared_by_run(id)) continue;
      bool exact = info.cls == MetricClass::exact;
      auto limit = limit_of(id);
      if (is_virtual() && !exact) {
        if (limit)
          verdict_.findings.push_back(
              {"unmeasurable", "judge", id + ": the virtual GPU gives no times", {}, Exit::environment});
        continue;
      }
      MetricSeries series;
      for (size_t i = 0; i < baseline_.size(); ++i) {
        MetricSeries::Pair pair{static_cast<uint32_t>(i), std::nullopt, std::nullopt};
        uint64_t samples[2] = {0, 0};
        for (int arm : {0, 1}) {
          const auto& metrics = (arm ? candidate_ : baseline_)[i].metrics;
          if (auto found = metrics.find(id); found != metrics.end()) {
            (arm ? pair.candidate : pair.baseline) = found->second.value;
            samples[arm] = found->second.samples;
          }
        }
        uint64_t fewer = std::min(samples[0], samples[1]);
        if (pair.baseline && pair.candidate)
          series.samples_per_round = series.samples_per_round ? std::min(series.samples_per_round, fewer) : fewer;
        if (pair.baseline || pair.candidate) series.pairs.push_back(pair);
      }
      if (series.pairs.empty() && !limit) continue;
      MetricVerdict metric;
      metric.id = id;
      judge(series, true, metric);
    }
  }

  // What a judged metric says, as a finding.
  void conclude(MetricVerdict& metric) {
    if (!metric.gated || metric.outcome == Outcome::pass) return;
    bool fails = metric.outcome == Outcome::fail;
    verdict_.findings.push_back(
        {metric.id, "judge", describe(metric), {}, fails ? Exit::regression : Exit::inconclusive});
    if (verdict_.deciding.empty() && fails) verdict_.deciding = metric.id;
  }

  void note_facts() {
    auto list = [](const std::vector<ArmTrace>& arm) {
      std::string text;
      for (const auto& trace : arm) text += (text.empty() ? "" : " ") + trace.path;
      return text;
    };
    verdict_.facts["baseline"] = list(baseline_);
    verdict_.facts["candidate"] = list(candidate_);
    verdict_.facts["tier"] = candidate_[0].info.tier;
    for (const char* key : kSameFacts)
      if (auto value = fact(candidate_[0], key); !value.empty()) verdict_.facts[key] = value;
  }

  std::string headline() const {
    std::string subject = baseline_.size() == 1 ? candidate_[0].path + " against " + baseline_[0].path
                                                : fmt::format("{} pairs of traces", baseline_.size());
    if (verdict_.exit == Exit::pass) {
      size_t gated = 0;
      for (const auto& metric : verdict_.metrics) gated += metric.gated;
      return fmt::format("PASS  {}: {} limits hold", subject, gated);
    }
    const char* word = verdict_.exit == Exit::regression ? "FAIL" : "INCONCLUSIVE";
    for (const auto& finding : verdict_.findings)
      if (finding.exit == verdict_.exit)
        return fmt::format("{}  {}: {}{}", word, subject, find_metric(finding.id) ? "" : finding.id + ": ",
                           finding.text);
    return fmt::format("{}  {}", word, subject);
  }

  std::string advice() const {
    switch (verdict_.exit) {
      case Exit::pass:
        return "Nothing to do: under these limits the candidate's traces are no slower.";
      case Exit::environment:
        for (const auto& finding : verdict_.findings)
          if (finding.exit == Exit::environment && finding.text.starts_with("workload_sha256"))
            return "Replay the same requests on both sides: a contract without a workload makes its inputs from "
                   "--seed, "
                   "which depends on the candidate unless it is given. --across workload_sha256 compares all the same.";
        return "Compare traces of the same device, driver, workload and tier without lost records; --across FACT names "
               "what is under test.";
      case Exit::inconclusive:
        break;
      default:
        return {};
    }
    for (const auto& finding : verdict_.findings)
      if (finding.exit == Exit::inconclusive && finding.id.starts_with("unmatched"))
        return "If kernels were meant to come and go, say --allow-unmatched and limit what must not regress, for "
               "example --limit service.p99=5%.";
    if (baseline_.size() < 2)
      return "One trace is one sample: trace each side again and give --baseline A1.db A2.db … --candidate B1.db B2.db "
             "…; "
             "6 traces an arm usually decide.";
    if (largest_sample_ > baseline_.size())
      return fmt::format("About {} traces an arm would decide (each file is one sample).", largest_sample_);
    return "More traces an arm, a quieter machine, or a limit that can be resolved: an effect that sits at its limit "
           "stays undecided.";
  }

  const std::vector<ArmTrace>&baseline_, &candidate_;
  const CompareOptions& options_;
  Verdict verdict_;
  bool gated_any_ = false;
  uint32_t largest_sample_ = 0;
};

}  // namespace

Verdict compare(const std::vector<ArmTrace>& baseline, const std::vector<ArmTrace>& candidate,
                const CompareOptions& options) {
  if (baseline.empty() || baseline.size() != candidate.size())
    throw Error(Exit::usage,
                fmt::format("{} traces of the baseline and {} of the candidate: file i of one pairs with file i of the "
                            "other",
                            baseline.size(), candidate.size()),
                {}, "give as many of each");
  return Comparison(baseline, candidate, options).run();
}

}  // namespace kgate
