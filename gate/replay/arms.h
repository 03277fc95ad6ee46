// The two sides of the comparison: the workload with its judged launches replaced by the baseline's and by the
// candidate's code.
#pragma once

#include <string>
#include <vector>

#include "candidate/candidate.h"
#include "contract/contract.h"
#include "replay/plan.h"
#include "trace/store.h"
#include "workload/workload.h"

namespace kgate {

// A kernel as a worker loads it.
struct KernelImage {
  std::string label;  // "baseline", "candidate"
  std::string name;   // file name, for people
  std::string image;  // PTX or cubin
  Entry entry;
  std::string kernel_id;  // of the loaded code
};

struct Comparison {
  std::vector<Arm> arms;         // [0] baseline, [1] candidate
  std::vector<uint32_t> judged;  // workload launches that are judged
  ArmKernels names;              // what the trace store needs to name things
};

// Which workload launches the contract judges: those whose kernel the binding's glob (or the contract's kernel name)
// matches. Failure: none does (nothing passes by absence), with a did-you-mean.
Result<std::vector<uint32_t>> judged_launches(const Workload& workload, const Contract& contract);

// Failure: a mismatch of parameters, a binding that cannot be evaluated for some launch.
Result<Comparison> compare_arms(const Workload& workload, const Contract& contract, const KernelImage& baseline,
                                const KernelImage& candidate);

}  // namespace kgate
