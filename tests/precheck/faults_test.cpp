// What a worker's end means for the candidate.

#include "precheck/faults.h"

#include <gtest/gtest.h>

namespace kgate {
namespace {

WorkerOutcome fault(int code, const std::string& kind, const std::string& stage = "sync") {
  WorkerOutcome outcome;
  outcome.end = WorkerEnd::fault;
  outcome.fault.emplace();
  outcome.fault->code = code;
  outcome.fault->kind = kind;
  outcome.fault->stage = stage;
  outcome.fault->name = "CUDA_ERROR";
  return outcome;
}

TEST(FindingOf, driver_codes_and_virtual_faults_have_stable_ids) {
  EXPECT_EQ(finding_of(fault(700, ""), "equivalence", "").id, "out_of_bounds");
  EXPECT_EQ(finding_of(fault(716, ""), "equivalence", "").id, "misaligned");
  EXPECT_EQ(finding_of(fault(702, ""), "equivalence", "").id, "hang");
  EXPECT_EQ(finding_of(fault(719, "deadlock"), "equivalence", "").id, "hang");
  EXPECT_EQ(finding_of(fault(719, "barrier_misuse"), "equivalence", "").id, "barrier_misuse");
  EXPECT_EQ(finding_of(fault(700, ""), "equivalence", "").exit, Exit::broken);
}

TEST(FindingOf, what_the_virtual_gpu_does_not_execute_never_convicts) {
  Finding finding = finding_of(fault(801, "unsupported"), "equivalence", "");
  EXPECT_EQ(finding.id, "not_executed");
  EXPECT_EQ(finding.exit, Exit::environment);
}

TEST(FindingOf, a_driver_that_does_not_start_is_the_environments_fault) {
  EXPECT_EQ(finding_of(fault(999, "", "init"), "equivalence", "").exit, Exit::environment);
}

TEST(FindingOf, a_worker_without_memory_is_the_environments_fault_and_its_bugs_are_kgates) {
  EXPECT_EQ(finding_of(fault(0, "", "memory"), "replay", "").exit, Exit::environment);
  EXPECT_EQ(finding_of(fault(700, "", "restore"), "replay", "").exit, Exit::environment);
  WorkerOutcome bug = fault(0, "", "launch");
  bug.fault->name = "internal";
  EXPECT_EQ(finding_of(bug, "replay", "").exit, Exit::internal);
}

TEST(FindingOf, crash_hang_and_garbage_are_findings_about_the_candidate) {
  for (auto [end, id] :
       {std::pair{WorkerEnd::crashed, "crash"}, {WorkerEnd::hung, "hang"}, {WorkerEnd::garbage, "crash"}}) {
    WorkerOutcome outcome;
    outcome.end = end;
    outcome.detail = "d\x1b[31m\n";
    Finding finding = finding_of(outcome, "replay", "here");
    EXPECT_EQ(finding.id, id);
    EXPECT_EQ(finding.exit, Exit::broken);
    EXPECT_EQ(finding.text.find('\x1b'), std::string::npos);
  }
  EXPECT_EQ(finding_of(WorkerOutcome{}, "replay", "").exit, Exit::environment);
}

}  // namespace
}  // namespace kgate
