// The verdict for programs. Keys are stable within one schema_version; additions do not raise it.

#include <cmath>
#include <nlohmann/json.hpp>

#include "report/report.h"

namespace kgate {

namespace {

using nlohmann::ordered_json;

const char* unit_name(MetricUnit unit) {
  switch (unit) {
    case MetricUnit::ns:
      return "ns";
    case MetricUnit::count:
      return "count";
    case MetricUnit::bytes:
      return "bytes";
    case MetricUnit::fraction:
      return "fraction";
  }
  return "";
}

ordered_json number(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  return *value;
}

ordered_json limit_json(const MetricVerdict& metric) {
  if (!metric.gated) return nullptr;
  ordered_json limit;
  limit["max_regression"] = number(metric.limit.max_regression);
  limit["max_increase"] = number(metric.limit.max_increase);
  limit["max"] = number(metric.limit.max);
  limit["min_improvement"] = number(metric.limit.min_improvement);
  limit["default"] = metric.by_default;
  limit["where"] = metric.limit.where;
  return limit;
}

ordered_json metric_json(const MetricVerdict& metric) {
  ordered_json json;
  json["id"] = metric.id;
  json["subject"] = metric.subject;
  if (const MetricInfo* info = find_metric(metric.id)) {
    json["unit"] = unit_name(info->unit);
    json["per_request"] = info->per_request;
  }
  json["gated"] = metric.gated;
  json["outcome"] = metric.gated ? ordered_json(outcome_name(metric.outcome)) : ordered_json(nullptr);
  json["label"] = metric.label;
  json["note"] = metric.note;
  json["explanation"] = metric.explanation;
  json["baseline"] = number(metric.baseline);
  json["candidate"] = number(metric.candidate);
  json["effect_kind"] = metric.absolute ? "excess_over_limit" : "relative";
  json["effect"] = number(metric.effect);
  json["lower"] = number(metric.lower);
  json["upper"] = number(metric.upper);
  bool tested = metric.pairs >= 2 && metric.lower.has_value();  // exact metrics have no p
  json["p_fail"] = tested ? number(metric.p_fail) : nullptr;
  json["sign_flip_p"] = tested ? number(metric.sign_flip_p) : nullptr;
  json["pairs"] = metric.pairs;
  json["pairs_to_decide"] = metric.pairs_to_decide;
  json["samples_per_round"] = metric.samples_per_round;
  json["limit"] = limit_json(metric);
  return json;
}

}  // namespace

std::string render_json(const Verdict& verdict) {
  ordered_json json;
  json["schema_version"] = kVerdictSchemaVersion;
  json["verdict"] = exit_name(verdict.exit);
  json["exit_code"] = static_cast<int>(verdict.exit);
  json["headline"] = verdict.headline;
  json["deciding"] = verdict.deciding;
  json["next_step"] = next_step(verdict);
  json["pairs"] = verdict.pairs;
  json["seconds"] = verdict.seconds;
  json["metrics"] = ordered_json::array();
  for (const auto& metric : verdict.metrics) json["metrics"].push_back(metric_json(metric));
  json["findings"] = ordered_json::array();
  for (const auto& finding : verdict.findings)
    json["findings"].push_back({{"id", finding.id},
                                {"stage", finding.stage},
                                {"text", finding.text},
                                {"where", finding.where},
                                {"exit_code", static_cast<int>(finding.exit)}});
  json["classes"] = ordered_json::array();
  for (const auto& c : verdict.classes)
    json["classes"].push_back({{"launch", c.launch},
                               {"label", c.label},
                               {"share", c.share},
                               {"baseline_p50_ns", number(c.baseline_p50)},
                               {"candidate_p50_ns", number(c.candidate_p50)}});
  json["health"] = ordered_json::array();
  for (const auto& row : verdict.health)
    json["health"].push_back(
        {{"name", row.name}, {"value", row.value}, {"limit", row.limit}, {"ok", row.ok()}, {"note", row.note}});
  json["facts"] = ordered_json::object();
  for (const auto& [key, value] : verdict.facts) json["facts"][key] = value;
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace kgate
