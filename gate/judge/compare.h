// Two sets of traces against each other, by kernel name and launch class, with the judge's own rules.
//
// Enters: traces of each arm, as figures. Leaves: a Verdict whose metrics name their kernel (`subject`). One trace is
// one sample: between processes even kernel time moves by several percent, so that launches of one file say nothing
// about the next file. File i of one arm and file i of the other are a pair.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "judge/verdict.h"
#include "trace/store.h"

namespace kgate {

// A kernel in a launch class: the name that the workload (or the application) has for it, and the shape in words.
struct ClassKey {
  std::string kernel, label;
  auto operator<=>(const ClassKey&) const = default;
};
struct ClassFigures {
  uint64_t launches = 0;
  double total_ns = 0;
  double p50_ns = 0, p99_ns = 0;                        // 0 launches with times: not measured
  double instructions = 0, sectors = 0, conflicts = 0;  // virtual GPU, a launch
  std::set<std::string> kernel_ids;                     // of the code that ran; empty: not known
  std::set<uint32_t> registers;
};

// One arm of one trace.
struct ArmTrace {
  std::string path;
  RunInfo info;
  std::vector<HealthRow> health;
  bool virtual_device = false;  // times are the host's and are not compared
  std::map<ClassKey, ClassFigures> classes;
  struct Value {
    double value;
    uint64_t samples;
  };
  std::map<std::string, Value> metrics;  // of the whole run, by metric id: medians over its rounds
};

enum class ArmChoice { automatic, baseline, candidate };  // automatic: the candidate, or the only arm
// Throws Error{usage} when the trace does not have that arm.
ArmTrace read_arm(const TraceStore& trace, ArmChoice choice);

// The rows of one arm, folded: the core of read_arm. `names`: launch class → key.
std::map<ClassKey, ClassFigures> fold_classes(const std::vector<KernelRow>& kernels, uint32_t arm,
                                              const std::map<uint32_t, ClassKey>& names);

struct CompareOptions {
  std::vector<Limit> limits;        // in place of the default of the same metric
  std::set<std::string> unlimited;  // metrics whose default does not apply
  std::set<std::string> across;     // facts that may differ between the arms, because they are under test
  bool allow_unmatched = false;     // kernels and classes of one arm only are notes
  double alpha = 0.05;
};
constexpr size_t kMostGatedClasses = 5;  // the largest by GPU time; Holm's correction runs over their metrics

// Metrics that a comparison has: those of kernels (by class), and those of the whole run.
bool compared_by_class(std::string_view metric);
bool compared_by_run(std::string_view metric);

// Both arms have the same number of traces, at least one. Everything that stands against a verdict is a finding in it.
Verdict compare(const std::vector<ArmTrace>& baseline, const std::vector<ArmTrace>& candidate,
                const CompareOptions& options);

}  // namespace kgate
