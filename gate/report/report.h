// The verdict, and what is in a trace, as files and text: one function an output format, each a pure function of what
// it shows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "judge/verdict.h"
#include "trace/store.h"

namespace kgate {

// For a person at a terminal, ten seconds: verdict, the one metric that decided, a short table, what to do next.
std::string render_terminal(const Verdict& verdict, bool color);

// The documented schema (docs/formats.md): `schema_version`, stable keys, numbers in base units with the unit in the
// key.
std::string render_json(const Verdict& verdict);

// For a job summary or a merge-request comment: at most 64 KiB, verdict first. Untrusted text is escaped.
std::string render_markdown(const Verdict& verdict);

constexpr int kVerdictSchemaVersion = 1;

// The verdict that render_json wrote. Failure: not JSON, another schema_version, a key of another type.
Result<Verdict> read_verdict(const std::string& json);

// What is in a trace.
struct TraceSummary {
  struct Kernel {
    uint32_t arm = 0;
    std::string name;
    uint64_t launches = 0;
    double p50_ns = 0, p99_ns = 0, total_ns = 0;
    double share = 0;  // of the arm's GPU time
  };
  std::string path;
  RunInfo info;
  uint64_t arms = 0, rounds = 0, pairs = 0, requests = 0, threads = 0, processes = 0;  // requests: measured
  double seconds = 0;                                                                  // first to last round
  std::vector<Kernel> kernels;                                                         // measured, longest total first
  std::vector<HealthRow> health;
  std::vector<std::string> verdicts;  // as stored: JSON
};
TraceSummary summarise(const TraceStore& trace);
std::string summary_terminal(const TraceSummary& summary, bool color);
std::string summary_markdown(const TraceSummary& summary);
std::string summary_json(const TraceSummary& summary);

// A timeline for ui.perfetto.dev, streamed to `file`. Rows that reach into the cut are kept whole; times count from the
// first event of the trace. Throws Error: a damaged trace, or a file that cannot be written.
struct TimelineCut {
  std::optional<uint32_t> round;
  uint64_t from_ns = 0;
  std::optional<uint64_t> for_ns;
};
struct TimelineCounts {
  uint64_t slices = 0, flows = 0;       // flows: arrows from a launch call to its kernel
  uint64_t kernels_without_launch = 0;  // shown without an arrow
  uint64_t crowded_out = 0;             // slices for which there were too many overlapping ones
};
TimelineCounts write_perfetto(const TraceStore& trace, const TimelineCut& cut, const std::filesystem::path& file);

// Shared by the formats.
std::string next_step(const Verdict& verdict);          // one sentence: what to do now
std::string change_text(const MetricVerdict& metric);   // "+31.2 % [+29.8, +32.6]", "+2.1 us", "equal", "-"
std::string limit_text(const MetricVerdict& metric);    // "+5 %", "max 0 B", "-"
std::string outcome_text(const MetricVerdict& metric);  // "ok", "FAIL", "undecided", "shown"

}  // namespace kgate
