// Before anything is timed: does the candidate compile, what does it use, and does it compute the same numbers?
//
// Enters: Candidate, Contract, a device. Leaves: PrecheckResult: findings, static figures, and the images that replay
// loads. Every step runs untrusted code in a process of its own: the compiler in a limited child, the candidate in a
// worker that never sees the expected results.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "candidate/candidate.h"
#include "candidate/compile.h"
#include "contract/contract.h"
#include "gpu/driver.h"
#include "judge/verdict.h"
#include "replay/session.h"
#include "replay/substitute.h"

namespace kgate {

struct PreparedEntry {
  Entry entry;
  std::string kernel_id;               // of the machine code where there is some, else of the PTX
  std::optional<ResourceUsage> usage;  // absent: no assembler
};

// A kernel ready to be loaded: what the driver gets, and what is known about it.
struct Prepared {
  std::string label;                      // "candidate", "baseline", "reference"
  Candidate source;                       // as read (for CUDA C++: the PTX that NVRTC made)
  std::optional<CompileResult> compiled;  // by ptxas or nvJitLink, when there is PTX
  std::string image;          // what workers load: the cubin for this GPU, or PTX (virtual GPU, no assembler)
  Entry entry;                // parameters etc. of the judged entry
  std::string kernel_id;      // of the machine code where there is some, else of the PTX
  bool machine_code = false;  // kernel_id is of machine code
  std::optional<ResourceUsage> usage;
  std::vector<PreparedEntry> others;  // the file's other entries: a binding may name them
  bool executable = true;             // false: a cubin on the virtual GPU
};

// As the arms of a replay take it.
KernelImage kernel_image(const Prepared& prepared);

// Reads, compiles and measures one kernel file for `arch` (0: any, as on the virtual GPU). Findings about the
// *candidate* (it does not compile, the compiler crashed) are appended; a baseline or reference that does not compile
// throws Error{bad_input}.
Prepared prepare(const std::filesystem::path& path, const std::string& entry, const std::string& label, int arch,
                 bool virtual_device, std::vector<Finding>& findings);

struct Equivalence {
  uint32_t shapes = 0;      // compared
  double worst_error = 0;   // largest |candidate − reference| / tolerance over all outputs; ≤ 1 passes
  std::string worst_where;  // "rows=7 cols=31: out[3]"
};

struct PrecheckResult {
  std::vector<Finding> findings;
  StaticFigures statics;
  std::optional<Equivalence> equivalence;
  bool identical_code = false;  // the candidate is the baseline, byte for byte of machine code, launched the same way
};

struct PrecheckOptions {
  uint64_t seed = 0;
  const Workload* workload = nullptr;  // its judged launches are compared too
  SessionOptions session;              // device, timeouts
  std::function<void(double fraction, const std::string& what)> on_progress;
};

// Static figures of both, occupancy at the contract's first shape, and the identical-code test. Of several entries that
// are launched: the most registers, shared and local bytes, the sum of the spills, the least occupancy.
// `several`: where more than one kernel of the workload is judged.
struct JudgedKernels {
  std::vector<std::string> names;
  std::vector<Prepared> recorded;  // each as it was recorded, where no baseline file stands for them; in their order
};
void check_resources(const Contract& contract, const Prepared& candidate, const Prepared* baseline,
                     PrecheckResult& result, const JudgedKernels* several = nullptr);

// Runs every shape of the contract on seeded random inputs and compares. A contract without shapes
// (Contract::has_shapes) is not touched: `equivalence` stays absent, and numbers are a matter of the workload's own
// launches. Appends findings with ids wrong_numbers, nan_mismatch, gap_written, stale_output, input_written,
// guard_band, out_of_bounds, hang, crash, not_executed, ...
void check_equivalence(const Contract& contract, const Prepared& candidate, const Prepared* baseline,
                       const Prepared* reference, const gpu::DeviceProperties& device, const PrecheckOptions& options,
                       PrecheckResult& result);

}  // namespace kgate
