// The score is of the gate, not of the candidates: an entry is right when exit code and finding are the ones that the
// manifest expects.

#include "cli/manifest_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/gate_run.h"
#include "contract/manifest.h"
#include "gpu/driver.h"
#include "report/report.h"
#include "support/fd.h"
#include "support/log.h"
#include "support/process.h"
#include "support/text.h"

namespace kgate::cli {

namespace {

struct Scored {
  std::string name;
  enum class State { right, wrong, skipped } state = State::wrong;
  Exit got = Exit::internal;
  std::string finding, note;
  double seconds = 0;
};

bool has_finding(const Verdict& verdict, const std::vector<std::string>& wanted) {
  if (wanted.empty()) return true;
  return std::any_of(wanted.begin(), wanted.end(), [&](const std::string& id) {
    return verdict.deciding == id ||
           std::any_of(verdict.findings.begin(), verdict.findings.end(), [&](const Finding& f) { return f.id == id; });
  });
}

Scored run_entry(const ManifestEntry& entry, const Expectation& expected, const ManifestRequest& request) {
  GateRequest gate;
  gate.contract = entry.contract;
  gate.candidate = entry.candidate;
  gate.entry = entry.entry.value_or("");
  gate.device = request.device;
  gate.out = request.out / entry.name;
  gate.command = fmt::format("kgate check --device {} --contract '{}' '{}'", request.device, entry.contract.string(),
                             entry.candidate.string());
  Scored scored;
  scored.name = entry.name;
  try {
    Verdict verdict = run_gate(gate);
    if (auto written = write_file_atomic(gate.out / "verdict.json", render_json(verdict)); !written)
      log::warning(written.failure().what);
    scored.got = verdict.exit;
    scored.finding = verdict.deciding;
    scored.seconds = verdict.seconds;
    bool right = verdict.exit == expected.exit && has_finding(verdict, expected.findings);
    scored.state = right ? Scored::State::right : Scored::State::wrong;
    if (!right) scored.note = verdict.headline;
  } catch (const Error& error) {
    if (error.code() == Exit::interrupted) throw;
    scored.got = error.code();
    scored.finding = error.code() == Exit::bad_input ? "bad_file" : "error";
    bool right =
        error.code() == expected.exit &&
        (expected.findings.empty() || std::count(expected.findings.begin(), expected.findings.end(), scored.finding));
    scored.state = right ? Scored::State::right : Scored::State::wrong;
    scored.note = error.what();
  }
  if (scored.state == Scored::State::wrong)
    scored.note = fmt::format("expected exit {} {}; {}", static_cast<int>(expected.exit),
                              fmt::join(expected.findings, "|"), scored.note);
  return scored;
}

const char* state_name(Scored::State state) {
  return state == Scored::State::right ? "right" : state == Scored::State::wrong ? "WRONG" : "skipped";
}

// As soon as it is known: a corpus takes minutes.
void print_line(const Scored& scored) {
  std::string line = fmt::format(
      "{:<8} {:<28} exit {:<3} {:<22} {:6.2f} s  {}", state_name(scored.state), scored.name,
      scored.state == Scored::State::skipped ? "-" : std::to_string(static_cast<int>(scored.got)), scored.finding,
      scored.seconds, scored.state == Scored::State::right ? "" : sanitize(scored.note, 300));
  line.erase(line.find_last_not_of(' ') + 1);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void print_json(const std::vector<Scored>& all, size_t right, size_t run, const std::string& device) {
  nlohmann::ordered_json json{{"schema_version", 1},
                              {"device", device},
                              {"right", right},
                              {"run", run},
                              {"entries", nlohmann::ordered_json::array()}};
  for (const auto& scored : all)
    json["entries"].push_back({{"name", scored.name},
                               {"state", state_name(scored.state)},
                               {"exit_code", static_cast<int>(scored.got)},
                               {"finding", scored.finding},
                               {"seconds", scored.seconds},
                               {"note", scored.note}});
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

Exit run_manifest(const ManifestRequest& request) {
  Manifest manifest = read_manifest(request.manifest);
  auto device = gpu::choose_device(request.device).value_or_throw(Exit::environment);
  bool is_virtual = device.kind == gpu::DeviceKind::virtual_gpu;
  std::vector<Scored> all;
  log::Progress progress("corpus");
  for (const auto& entry : manifest.entries) {
    throw_if_interrupted();
    if (!request.only.empty() && !glob_match(request.only, entry.name)) continue;
    progress.update(double(all.size()) / double(manifest.entries.size()), entry.name);
    const auto& expected = is_virtual ? entry.virtual_device : entry.gpu;
    if (!expected || expected->skip)
      all.push_back({entry.name,
                     Scored::State::skipped,
                     Exit::pass,
                     {},
                     expected ? *expected->skip : "no expectation for this device",
                     0});
    else
      all.push_back(run_entry(entry, *expected, request));
    if (!request.json) print_line(all.back());
  }
  size_t right = 0, run = 0;
  for (const auto& scored : all) {
    right += scored.state == Scored::State::right;
    run += scored.state != Scored::State::skipped;
  }
  if (request.json)
    print_json(all, right, run, device.properties.name);
  else
    fmt::print("score: {} of {} on {} ({} skipped)\n", right, run, device.properties.name, all.size() - run);
  if (run == 0)
    throw Error(Exit::usage, "no entry of the manifest was run", request.manifest.string(),
                "--only and --device leave nothing");
  return right == run ? Exit::pass : Exit::regression;
}

}  // namespace kgate::cli
