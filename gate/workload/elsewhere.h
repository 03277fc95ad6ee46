// A recording on another GPU than its own: machine code does not run there, PTX may. Then only a live comparison of two
// arms means anything: recorded hashes and times are of another machine.
#pragma once

#include <string>
#include <vector>

#include "workload/workload.h"

namespace kgate {

// `arch` as 90; 0: the virtual GPU. False for workloads that were built.
bool is_elsewhere(const Workload& workload, int arch);

// What to load: the recorded machine code at home, PTX elsewhere. Empty: there is none.
const std::string& image_of(const WorkloadModule& module, bool elsewhere);

// Failure: names the kernels that cannot run on `arch`.
Result<std::monostate> check_elsewhere(const Workload& workload, int arch);

// Launches whose grid is a multiple of the recorded GPU's number of multiprocessors, and that may have been chosen for
// it, by kernel name.
std::vector<std::string> grids_of_the_machine(const Workload& workload);

}  // namespace kgate
