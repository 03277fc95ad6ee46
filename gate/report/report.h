// The verdict as files and text: one function an output format, each a pure function of the Verdict.
#pragma once

#include <string>

#include "judge/verdict.h"

namespace kgate {

// For a person at a terminal, ten seconds: verdict, the one metric that decided, a short table, what to do next.
std::string render_terminal(const Verdict& verdict, bool color);

// The documented schema (docs/formats.md): `schema_version`, stable keys, numbers in base units with the unit in the
// key.
std::string render_json(const Verdict& verdict);

// For a job summary or a merge-request comment: at most 64 KiB, verdict first. Untrusted text is escaped.
std::string render_markdown(const Verdict& verdict);

constexpr int kVerdictSchemaVersion = 1;

// Shared by the formats.
std::string next_step(const Verdict& verdict);          // one sentence: what to do now
std::string change_text(const MetricVerdict& metric);   // "+31.2 % [+29.8, +32.6]", "+2.1 us", "equal", "-"
std::string limit_text(const MetricVerdict& metric);    // "+5 %", "max 0 B", "-"
std::string outcome_text(const MetricVerdict& metric);  // "ok", "FAIL", "undecided", "shown"

}  // namespace kgate
