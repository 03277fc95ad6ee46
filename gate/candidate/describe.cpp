#include "candidate/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "support/text.h"

namespace kgate {

namespace {

using Row = std::vector<std::string>;

// Columns padded to their widest cell, two blanks between them. The first column is left-aligned, the others right.
std::string table(const std::vector<Row>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      line += i == 0 ? fmt::format("{:<{}}", row[i], widths[i]) : fmt::format("  {:>{}}", row[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string or_dash(const std::optional<uint32_t>& value) { return value ? std::to_string(*value) : "-"; }

std::string extent(const std::optional<Dim3>& value) {
  return value ? fmt::format("{}x{}x{}", value->x, value->y, value->z) : "-";
}

std::string params_line(const Entry& entry) {
  std::string text = fmt::format("  {}: {} bytes of parameters", sanitize(entry.name), entry.param_bytes);
  for (size_t i = 0; i < entry.params.size(); ++i) {
    const auto& param = entry.params[i];
    text += fmt::format("\n    @{:<5} {:>5} B{}{}", param.offset, param.size,
                        param.align ? fmt::format("  align {}", param.align) : "",
                        param.name.empty() ? "" : "  " + sanitize(param.name));
  }
  return text + "\n";
}

nlohmann::ordered_json extent_json(const std::optional<Dim3>& value) {
  if (!value) return nullptr;
  return {value->x, value->y, value->z};
}

nlohmann::ordered_json number_json(const std::optional<uint32_t>& value) {
  if (!value) return nullptr;
  return *value;
}

}  // namespace

std::string describe_candidate(const Candidate& candidate) {
  const char* made_by = candidate.kind == CodeKind::ptx ? "PTX ISA" : "toolkit";
  std::string text = fmt::format("{}: {}", candidate.path.string(), code_kind_name(candidate.kind));
  if (!candidate.target.empty()) text += fmt::format(" for {}", sanitize(candidate.target));
  if (!candidate.version.empty()) text += fmt::format(", {} {}", made_by, sanitize(candidate.version));
  text += fmt::format(", {}\nsha256 {}\n", format_bytes(static_cast<double>(candidate.bytes.size())), candidate.sha256);
  if (candidate.kind == CodeKind::cuda_source) return text + "its kernels are known once it is compiled\n";

  std::vector<Row> rows{{"entry", "params", "reqntid", "maxntid", "shared", "registers", "stack", "barriers", "kernel_id"}};
  for (const auto& entry : candidate.entries)
    rows.push_back({sanitize(entry.name), fmt::format("{} ({} B)", entry.params.size(), entry.param_bytes),
                    extent(entry.reqntid), extent(entry.maxntid), std::to_string(entry.static_shared),
                    or_dash(entry.registers), or_dash(entry.stack_bytes), or_dash(entry.barriers),
                    entry.kernel_id.substr(0, 12)});
  text += "\n" + table(rows) + "\nparameters (offset, size)\n";
  for (const auto& entry : candidate.entries) text += params_line(entry);
  return text;
}

std::string candidate_json(const Candidate& candidate) {
  nlohmann::ordered_json json;
  json["path"] = candidate.path.string();
  json["kind"] = code_kind_name(candidate.kind);
  json["sha256"] = candidate.sha256;
  json["bytes"] = candidate.bytes.size();
  json["version"] = candidate.version;
  json["target"] = candidate.target;
  json["entries"] = nlohmann::ordered_json::array();
  for (const auto& entry : candidate.entries) {
    nlohmann::ordered_json item;
    item["name"] = entry.name;
    item["kernel_id"] = entry.kernel_id;
    item["param_bytes"] = entry.param_bytes;
    item["params"] = nlohmann::ordered_json::array();
    for (const auto& param : entry.params)
      item["params"].push_back(
          {{"name", param.name}, {"offset", param.offset}, {"size", param.size}, {"align", param.align}});
    item["reqntid"] = extent_json(entry.reqntid);
    item["maxntid"] = extent_json(entry.maxntid);
    item["static_shared"] = entry.static_shared;
    item["registers"] = number_json(entry.registers);
    item["stack_bytes"] = number_json(entry.stack_bytes);
    item["barriers"] = number_json(entry.barriers);
    if (entry.line) item["line"] = entry.line;
    json["entries"].push_back(std::move(item));
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace kgate
