// What is in a trace, for `kgate report`: enough to know what one looks at before asking SQL. One statement a figure,
// so that a large trace is never held in memory.

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "report/report.h"
#include "report/text_table.h"
#include "support/text.h"

namespace kgate {

namespace {

using nlohmann::ordered_json;
using Values = std::vector<std::optional<std::string>>;
constexpr size_t kShownKernels = 20;

double number(const std::optional<std::string>& text) {
  double value = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
}

void each(const TraceStore& trace, const std::string& sql, const std::function<void(const Values&)>& row) {
  trace.query(sql, [&](const auto&, const auto& values) { row(values); }).value_or_throw(Exit::bad_input);
}

std::string arm_name(const TraceSummary& summary, uint32_t arm) {
  if (summary.arms < 2) return "";
  return arm == 0 ? "baseline" : summary.arms == 2 ? "candidate" : fmt::format("candidate {}", arm);
}

std::string counted(uint64_t count, const char* one, const char* several) {
  return fmt::format("{} {}", count, count == 1 ? one : several);
}

std::string contents(const TraceSummary& s) {
  std::string text = counted(s.rounds, "round", "rounds");
  if (s.pairs) text += " in " + counted(s.pairs, "pair", "pairs");
  if (s.processes) text = counted(s.processes, "process", "processes");
  return text + fmt::format(", {} on {}, {}", counted(s.requests, "request", "requests"),
                            counted(s.threads, "thread", "threads"), format_ns(s.seconds * 1e9));
}

}  // namespace

TraceSummary summarise(const TraceStore& trace) {
  TraceSummary summary;
  summary.path = trace.path().string();
  summary.info = trace.info();
  summary.health = trace.health();
  each(
      trace,
      "SELECT COUNT(DISTINCT arm), COUNT(*), IFNULL(MAX(end_ns) - MIN(begin_ns), 0), (SELECT COUNT(*) FROM processes), "
      "(SELECT COUNT(*) FROM (SELECT pair FROM rounds GROUP BY pair HAVING COUNT(DISTINCT arm) > 1)) FROM rounds",
      [&](const Values& row) {
        summary.arms = static_cast<uint64_t>(number(row[0]));
        summary.rounds = static_cast<uint64_t>(number(row[1]));
        summary.seconds = number(row[2]) / 1e9;
        summary.processes = static_cast<uint64_t>(number(row[3]));
        summary.pairs = static_cast<uint64_t>(number(row[4]));
      });
  each(trace, "SELECT COUNT(*), COUNT(DISTINCT thread) FROM requests WHERE phase = 'measured'", [&](const Values& row) {
    summary.requests = static_cast<uint64_t>(number(row[0]));
    summary.threads = static_cast<uint64_t>(number(row[1]));
  });
  std::map<uint32_t, double> totals;
  each(trace,
       "SELECT arm, kernel_name, COUNT(*), p50(duration_ns), p99(duration_ns), IFNULL(SUM(duration_ns), 0) AS total "
       "FROM all_launches WHERE phase = 'measured' GROUP BY arm, kernel_name ORDER BY total DESC",
       [&](const Values& row) {
         TraceSummary::Kernel kernel;
         kernel.arm = static_cast<uint32_t>(number(row[0]));
         kernel.name = row[1].value_or("");
         kernel.launches = static_cast<uint64_t>(number(row[2]));
         kernel.p50_ns = number(row[3]);
         kernel.p99_ns = number(row[4]);
         kernel.total_ns = number(row[5]);
         totals[kernel.arm] += kernel.total_ns;
         summary.kernels.push_back(std::move(kernel));
       });
  for (auto& kernel : summary.kernels)
    if (double total = totals[kernel.arm]; total > 0) kernel.share = kernel.total_ns / total;
  each(trace, "SELECT json FROM verdicts", [&](const Values& row) { summary.verdicts.push_back(row[0].value_or("")); });
  return summary;
}

std::string summary_terminal(const TraceSummary& summary, bool color) {
  std::string text = fmt::format("{}trace {}{}, tier {}\n", color ? "\033[1m" : "", sanitize(summary.path, 2000),
                                 color ? "\033[0m" : "", sanitize(summary.info.tier));
  text += "  " + contents(summary) + "\n";
  for (const auto& [key, value] : summary.info.facts)
    text += fmt::format("  {:<22} {}\n", sanitize(key), sanitize(value, 2000));
  TextTable table({"kernel", "arm", "launches", "p50", "p99", "total", "share"});
  for (size_t i = 0; i < std::min(kShownKernels, summary.kernels.size()); ++i) {
    const auto& k = summary.kernels[i];
    table.add({sanitize(k.name, 60), arm_name(summary, k.arm), std::to_string(k.launches), format_ns(k.p50_ns),
               format_ns(k.p99_ns), format_ns(k.total_ns), fmt::format("{:.1f} %", k.share * 100)});
  }
  if (!table.empty()) text += "\n" + table.render("  ");
  if (summary.kernels.size() > kShownKernels)
    text += fmt::format("  and {} more (--json has all)\n", summary.kernels.size() - kShownKernels);
  size_t unfit = 0;
  std::string rows;
  for (const auto& row : summary.health) {
    if (row.ok()) continue;
    ++unfit;
    rows += fmt::format("  {} = {:g}, past its limit {:g}{}{}\n", sanitize(row.name), row.value, row.limit,
                        row.note.empty() ? "" : ": ", sanitize(row.note));
  }
  text +=
      unfit ? "\nhealth\n" + rows : fmt::format("\n  health: {} checks, none past its limit\n", summary.health.size());
  if (summary.verdicts.empty()) text += "  no verdict is stored in it\n";
  return text;
}

std::string summary_markdown(const TraceSummary& summary) {
  std::string text = fmt::format("### kgate trace, tier {}\n\n{}\n\n", markdown_escape(summary.info.tier),
                                 markdown_escape(contents(summary)));
  text += "| kernel | arm | launches | p50 | p99 | total | share |\n|---|---|---|---|---|---|---|\n";
  for (size_t i = 0; i < std::min(kShownKernels, summary.kernels.size()); ++i) {
    const auto& k = summary.kernels[i];
    text +=
        fmt::format("| {} | {} | {} | {} | {} | {} | {:.1f} % |\n", markdown_escape(k.name), arm_name(summary, k.arm),
                    k.launches, format_ns(k.p50_ns), format_ns(k.p99_ns), format_ns(k.total_ns), k.share * 100);
  }
  text += "\n";
  for (const auto& row : summary.health)
    if (!row.ok())
      text += fmt::format("- **{}** = {:g}, past its limit {:g} {}\n", markdown_escape(row.name), row.value, row.limit,
                          markdown_escape(row.note));
  return text;
}

std::string summary_json(const TraceSummary& summary) {
  ordered_json json;
  json["schema_version"] = kVerdictSchemaVersion;
  json["trace"] = {{"path", summary.path},           {"tier", summary.info.tier},  {"arms", summary.arms},
                   {"rounds", summary.rounds},       {"pairs", summary.pairs},     {"processes", summary.processes},
                   {"requests", summary.requests},   {"threads", summary.threads}, {"seconds", summary.seconds},
                   {"facts", ordered_json::object()}};
  for (const auto& [key, value] : summary.info.facts) json["trace"]["facts"][key] = value;
  json["kernels"] = ordered_json::array();
  for (const auto& k : summary.kernels)
    json["kernels"].push_back({{"arm", k.arm},
                               {"kernel_name", k.name},
                               {"launches", k.launches},
                               {"p50_ns", k.p50_ns},
                               {"p99_ns", k.p99_ns},
                               {"total_ns", k.total_ns},
                               {"share", k.share}});
  json["health"] = ordered_json::array();
  for (const auto& row : summary.health)
    json["health"].push_back(
        {{"name", row.name}, {"value", row.value}, {"limit", row.limit}, {"ok", row.ok()}, {"note", row.note}});
  json["verdicts"] = ordered_json::array();
  for (const auto& verdict : summary.verdicts) {
    auto parsed = ordered_json::parse(verdict, nullptr, false);
    json["verdicts"].push_back(parsed.is_discarded() ? ordered_json(verdict) : parsed);
  }
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace kgate
