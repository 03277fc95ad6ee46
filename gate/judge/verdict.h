// The verdict: from measured series, static figures, findings and limits to one exit code, with every reason kept.
//
// Enters: MetricTable, StaticFigures, limits, findings of earlier stages. Leaves: Verdict. Nothing passes by absence: a
// limit without a measurement is never a pass.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "contract/contract.h"
#include "judge/metrics.h"
#include "judge/statistics.h"
#include "support/error.h"

namespace kgate {

// Something that was found about the candidate or the run, by any stage. `id` is stable (docs/formats.md lists them).
struct Finding {
  std::string id;          // "wrong_numbers", "hang", "compile", "identical_code", a metric id, ...
  std::string stage;       // "compile", "resources", "equivalence", "replay", "judge", "trace"
  std::string text;        // one line
  std::string where;       // file:line, shape, launch; may be empty
  Exit exit = Exit::pass;  // what it decides by itself; pass: only informs
};

struct MetricVerdict {
  std::string id;
  Outcome outcome = Outcome::inconclusive;
  bool gated = false;       // a limit applies
  bool by_default = false;  // the limit is kgate's default, not the contract's
  Limit limit;
  std::optional<double> baseline, candidate;  // median over rounds (paired), the value (exact)
  std::optional<double> effect, lower,
      upper;  // relative change (fraction); absolute excess in the unit where `absolute`
  bool absolute = false;
  double p_fail = 1, sign_flip_p = 1;
  uint32_t pairs = 0, pairs_to_decide = 0;
  uint64_t samples_per_round = 0;
  std::string label;        // "faster", "slower, within the limit", "no material change", ...
  std::string note;         // why it could not be decided, variation between rounds, ...
  std::string subject;      // what of the run it is about, where there are several: a kernel and its launch class
  std::string explanation;  // where the time went (judge/explain.h); empty: nothing to say
};

struct Verdict {
  Exit exit = Exit::internal;
  std::string headline;                // one line: "PASS: ...", "FAIL: kernel_time.p50 is 31.2 % slower ..."
  std::string deciding;                // finding or metric id that decided
  std::vector<MetricVerdict> metrics;  // gated first, worst first
  std::vector<Finding> findings;
  std::map<std::string, std::string> facts;  // device, driver, tier, candidate_sha256, kernel_id, seed, command, ...
  std::vector<ClassTime> classes;
  std::vector<HealthRow> health;
  uint32_t pairs = 0;
  double seconds = 0;
  std::string advice;  // what to do now, where it is not what the exit code says; else empty
};

// Figures that need no run: metric id → value of the arm.
struct StaticFigures {
  std::map<std::string, double, std::less<>> baseline, candidate;
};

enum class Scope { full, numeric, static_only };

// The limits in force: the contract's, or where it has no `limits:` key the defaults of the device. A default limit
// says so.
struct EffectiveLimit {
  Limit limit;
  bool by_default = false;
};
std::vector<EffectiveLimit> effective_limits(const Contract& contract, bool virtual_device, bool external_arrivals,
                                             bool has_baseline);

// Limits that this device, scope and baseline cannot measure: exit 5 or 4, before anything runs.
std::vector<Finding> unmeasurable(const std::vector<EffectiveLimit>& limits, bool virtual_device, Scope scope,
                                  bool has_baseline, bool external_arrivals);

// Judges what is there so far. `last_look`: an undecided metric is inconclusive for good.
struct JudgeInput {
  const MetricTable* metrics = nullptr;  // null: nothing was replayed
  StaticFigures statics;
  std::vector<EffectiveLimit> limits;
  std::vector<HealthRow> health;
  Scope scope = Scope::full;
  double alpha = 0.05 / 3;
  bool virtual_device = false;  // its times are the host's: they are left out of the verdict
};
struct JudgeResult {
  Outcome outcome = Outcome::inconclusive;
  std::vector<MetricVerdict> metrics;
  std::vector<Finding> findings;  // regressions, health limits that were passed
  std::string deciding;
};
JudgeResult judge(const JudgeInput& input);

// What `judge` is made of, for those that bring series of their own: one series against the limit that `verdict` holds
// (paired metrics never fail here), then Holm over all gated paired ones, then the order of a report.
void judge_series(const MetricSeries& series, const MetricInfo& metric, double alpha, MetricVerdict& verdict);
void fail_paired(std::vector<MetricVerdict>& verdicts, double alpha);
void worst_first(std::vector<MetricVerdict>& verdicts);
std::string describe(const MetricVerdict& verdict);  // "kernel_time.p50: 3.50 us → 4.60 us (+31.4 %); why undecided"

// The exit code of a set of findings: the gravest stage wins (broken before environment before no baseline before
// regression before inconclusive).
Exit exit_of(const std::vector<Finding>& findings);

}  // namespace kgate
