// kgate inspect: what is in a candidate, a workload or a trace. Decides by content.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "candidate/candidate.h"
#include "candidate/describe.h"
#include "cli/verbs.h"
#include "support/fd.h"
#include "trace/store.h"
#include "workload/build.h"
#include "workload/kgw.h"

namespace kgate::cli {

namespace {

void print_trace(const TraceStore& store) {
  fmt::print("trace, tier {}\n", store.info().tier);
  for (const auto& [key, value] : store.info().facts) fmt::print("  {:<22} {}\n", key, value);
  fmt::print("  {:<22} {}\n  {:<22} {}\n  {:<22} {}\n", "rounds", store.rounds().size(), "requests",
             store.requests().size(), "kernels", store.kernels().size());
  fmt::print("health\n");
  for (const auto& row : store.health())
    fmt::print("  {:<26} {:g} (limit {:g}){}{}\n", row.name, row.value, row.limit, row.ok() ? "" : "  PAST ITS LIMIT",
               row.note.empty() ? "" : "  " + row.note);
}

// Recordings are many gigabytes: only the first bytes are looked at.
std::string head_of(const std::string& path) {
  std::string head(16, '\0');
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const ssize_t bytes = fd ? ::read(fd.get(), head.data(), head.size()) : 0;
  head.resize(bytes < 0 ? 0 : static_cast<size_t>(bytes));
  return head;
}

Exit inspect(const std::string& path, bool json) {
  bool sqlite = head_of(path).starts_with("SQLite format 3");
  bool yaml = path.ends_with(".yaml") || path.ends_with(".yml");
  if (sqlite && !path.ends_with(".kgw")) {
    if (auto trace = TraceStore::open(path)) {
      if (json) throw Error(Exit::usage, "inspect --json does not cover traces", path, "use kgate query");
      print_trace(**trace);
      return Exit::pass;
    }
  }
  if (sqlite || yaml) {
    Workload workload = load_workload(path);
    fmt::print("{}", json ? workload_json(workload) : describe_workload(workload));
    return Exit::pass;
  }
  Candidate candidate = read_candidate(path).value_or_throw(Exit::bad_input);
  fmt::print("{}", json ? candidate_json(candidate) : describe_candidate(candidate));
  return Exit::pass;
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  auto path = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  CLI::App* verb = app.add_subcommand("inspect", "what is in a candidate, a workload or a trace");
  verb->add_option("file", *path, ".ptx, .cubin, .cu, .kgw, workload .yaml or trace .db")->required();
  verb->add_flag("--json", *json, "machine-readable");
  verb->callback([=, &action] { action = [=] { return inspect(*path, *json); }; });
}

}  // namespace kgate::cli
