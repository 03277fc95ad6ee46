// The binding, applied: one recorded launch becomes what the candidate launches. Everything is settled here, before
// anything runs; a mismatch of parameter count or size is a Failure that names the argument.
#pragma once

#include <string>
#include <vector>

#include "candidate/candidate.h"
#include "contract/contract.h"
#include "workload/workload.h"

namespace kgate {

// `recorded` is a launch of `recorded_kernel`, whose entry is `kernel`. The result's kernel index is left at 0: the
// caller places it. One launch item is executed today; several items, deletion, memset, workspace and sync are refused
// by name.
Result<std::vector<LaunchSpec>> substitute(const Binding& binding, const std::string& kernel,
                                           const LaunchSpec& recorded, const WorkloadKernel& recorded_kernel,
                                           const Entry& candidate);

// The same number of parameters at the same offsets with the same sizes. `label` is "candidate", "baseline", ...
Result<std::monostate> check_same_abi(const WorkloadKernel& recorded, const Entry& entry, const std::string& label);

// The entry that the candidate must have: the binding's, else the contract's kernel.
std::string candidate_entry_name(const Contract& contract);

}  // namespace kgate
