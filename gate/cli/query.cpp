// kgate query: SQL over a trace, with p50 p90 p95 p99 p999 percentile registered.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "support/fd.h"
#include "support/text.h"
#include "trace/store.h"

namespace kgate::cli {

namespace {

using Names = std::vector<std::string>;
using Values = std::vector<std::optional<std::string>>;

void print_table(const Names& names, const std::vector<Values>& rows) {
  std::vector<size_t> widths;
  for (const auto& name : names) widths.push_back(name.size());
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], sanitize(row[i].value_or("NULL")).size());
  auto line = [&](auto cell) {
    std::string text;
    for (size_t i = 0; i < names.size(); ++i)
      text += fmt::format("{:<{}}{}", cell(i), widths[i], i + 1 < names.size() ? "  " : "");
    fmt::print("{}\n", std::string_view(text).substr(0, text.find_last_not_of(' ') + 1));
  };
  line([&](size_t i) { return names[i]; });
  for (const auto& row : rows) line([&](size_t i) { return sanitize(row[i].value_or("NULL")); });
}

void print_json(const Names& names, const std::vector<Values>& rows) {
  auto json = nlohmann::ordered_json::array();
  for (const auto& row : rows) {
    nlohmann::ordered_json object;
    for (size_t i = 0; i < names.size(); ++i)
      object[names[i]] = row[i] ? nlohmann::ordered_json(*row[i]) : nlohmann::ordered_json(nullptr);
    json.push_back(object);
  }
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

Exit query(const std::string& path, const std::string& sql, bool json) {
  auto store = TraceStore::open(path).value_or_throw(Exit::bad_input);
  Names names;
  std::vector<Values> rows;
  store
      ->query(sql,
              [&](const Names& columns, const Values& values) {
                names = columns;
                rows.push_back(values);
              })
      .value_or_throw(Exit::bad_input);
  if (json)
    print_json(names, rows);
  else if (rows.empty())
    fmt::print("no rows\n");
  else
    print_table(names, rows);
  return Exit::pass;
}

}  // namespace

void add_query(CLI::App& app, Action& action) {
  struct Options {
    std::string sql, trace = "kgate-out/trace.db", file;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("query", "SQL over a trace (docs/formats.md lists tables and views)");
  verb->add_option("sql", options->sql, "one read-only statement");
  verb->add_option("--trace", options->trace, "the trace store")->capture_default_str();
  verb->add_option("--file", options->file, "read the statement from this file");
  verb->add_flag("--json", options->json, "an array of objects");
  verb->callback([=, &action] {
    action = [=] {
      std::string sql = options->sql;
      if (!options->file.empty()) sql = read_file(options->file).value_or_throw(Exit::bad_input);
      if (trim(sql).empty())
        throw Error(Exit::usage, "no statement to run", {},
                    "kgate query \"SELECT name, value FROM health\", or --file FILE");
      return query(options->trace, sql, options->json);
    };
  });
}

}  // namespace kgate::cli
