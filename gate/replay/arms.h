// The two sides of the comparison: the workload with its judged launches replaced by the baseline's and by the
// candidate's code.
#pragma once

#include <string>
#include <vector>

#include "contract/contract.h"
#include "replay/plan.h"
#include "replay/substitute.h"
#include "trace/store.h"
#include "workload/workload.h"

namespace kgate {

struct Comparison {
  std::vector<Arm> arms;         // [0] baseline, [1] candidate
  std::vector<uint32_t> judged;  // workload launches that are judged, ascending
  ArmKernels names;              // what the trace store needs to name things
};

// Which workload launches the contract judges: all that its rules take (replay/rules.h), those that go away included.
// Failure: a rule takes none (nothing passes by absence), with a did-you-mean.
Result<std::vector<uint32_t>> judged_launches(const Workload& workload, const Contract& contract);

// The workload's kernels among them, in the order of their first launch.
std::vector<uint32_t> judged_kernels(const Workload& workload, const std::vector<uint32_t>& judged);

// `baseline` null: its arm launches what was recorded. Else its first entry stands in for the one judged kernel; where
// several are judged its entries are matched by name. Failure: a mismatch of parameters, a binding that cannot be
// evaluated for some launch, what a graph cannot hold.
Result<Comparison> compare_arms(const Workload& workload, const Contract& contract, const KernelImage* baseline,
                                const KernelImage& candidate);

}  // namespace kgate
