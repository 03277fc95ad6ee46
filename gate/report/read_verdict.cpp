// verdict.json read back, so that a stored verdict is shown by the same code as a fresh one. The inverse of json.cpp;
// keys that are missing keep their defaults, since additions do not raise the schema_version.

#include <nlohmann/json.hpp>

#include "report/report.h"
#include "support/text.h"

namespace kgate {

namespace {

using nlohmann::json;

void read(const json& from, const char* key, std::string& to) {
  if (auto at = from.find(key); at != from.end()) to = at->get<std::string>();
}
void read(const json& from, const char* key, std::optional<double>& to) {
  if (auto at = from.find(key); at != from.end() && !at->is_null()) to = at->get<double>();
}
template <typename Number>
void read(const json& from, const char* key, Number& to) {
  if (auto at = from.find(key); at != from.end() && !at->is_null()) to = at->get<Number>();
}

Exit exit_from(int code) {
  for (Exit exit : {Exit::pass, Exit::regression, Exit::inconclusive, Exit::no_baseline, Exit::environment,
                    Exit::broken, Exit::usage, Exit::bad_input})
    if (static_cast<int>(exit) == code) return exit;
  return Exit::internal;
}

MetricVerdict metric_from(const json& from) {
  MetricVerdict metric;
  read(from, "id", metric.id);
  read(from, "subject", metric.subject);
  read(from, "gated", metric.gated);
  std::string outcome;
  if (auto at = from.find("outcome"); at != from.end() && at->is_string()) outcome = at->get<std::string>();
  metric.outcome = outcome == "pass" ? Outcome::pass : outcome == "fail" ? Outcome::fail : Outcome::inconclusive;
  read(from, "label", metric.label);
  read(from, "note", metric.note);
  read(from, "explanation", metric.explanation);
  read(from, "baseline", metric.baseline);
  read(from, "candidate", metric.candidate);
  metric.absolute = from.value("effect_kind", "relative") == "excess_over_limit";
  read(from, "effect", metric.effect);
  read(from, "lower", metric.lower);
  read(from, "upper", metric.upper);
  read(from, "p_fail", metric.p_fail);
  read(from, "sign_flip_p", metric.sign_flip_p);
  read(from, "pairs", metric.pairs);
  read(from, "pairs_to_decide", metric.pairs_to_decide);
  read(from, "samples_per_round", metric.samples_per_round);
  metric.limit.metric = metric.id;
  if (auto limit = from.find("limit"); limit != from.end() && limit->is_object()) {
    read(*limit, "max_regression", metric.limit.max_regression);
    read(*limit, "max_increase", metric.limit.max_increase);
    read(*limit, "max", metric.limit.max);
    read(*limit, "min_improvement", metric.limit.min_improvement);
    read(*limit, "default", metric.by_default);
    read(*limit, "where", metric.limit.where);
  }
  return metric;
}

Verdict verdict_from(const json& from) {
  Verdict verdict;
  verdict.exit = exit_from(from.at("exit_code").get<int>());
  read(from, "headline", verdict.headline);
  read(from, "deciding", verdict.deciding);
  read(from, "next_step", verdict.advice);
  read(from, "pairs", verdict.pairs);
  read(from, "seconds", verdict.seconds);
  for (const auto& metric : from.at("metrics")) verdict.metrics.push_back(metric_from(metric));
  for (const auto& one : from.at("findings")) {
    Finding finding;
    read(one, "id", finding.id);
    read(one, "stage", finding.stage);
    read(one, "text", finding.text);
    read(one, "where", finding.where);
    finding.exit = exit_from(one.at("exit_code").get<int>());
    verdict.findings.push_back(finding);
  }
  for (const auto& one : from.at("classes")) {
    ClassTime time;
    read(one, "launch", time.launch);
    read(one, "label", time.label);
    read(one, "share", time.share);
    read(one, "baseline_p50_ns", time.baseline_p50);
    read(one, "candidate_p50_ns", time.candidate_p50);
    verdict.classes.push_back(time);
  }
  for (const auto& one : from.at("health")) {
    HealthRow row;
    read(one, "name", row.name);
    read(one, "value", row.value);
    read(one, "limit", row.limit);
    read(one, "note", row.note);
    verdict.health.push_back(row);
  }
  for (const auto& [key, value] : from.at("facts").items()) verdict.facts[key] = value.get<std::string>();
  return verdict;
}

}  // namespace

Result<Verdict> read_verdict(const std::string& text) {
  json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object()) return Failure{"the stored verdict is not a JSON object", {}, {}};
  try {
    int version = parsed.at("schema_version").get<int>();
    if (version != kVerdictSchemaVersion)
      return Failure{"a verdict of schema_version " + std::to_string(version) + ", this kgate reads " +
                         std::to_string(kVerdictSchemaVersion),
                     {},
                     "read it with the kgate that wrote it"};
    return verdict_from(parsed);
  } catch (const json::exception& error) {
    return Failure{"the stored verdict is damaged: " + sanitize(error.what(), 200), {}, {}};
  }
}

}  // namespace kgate
