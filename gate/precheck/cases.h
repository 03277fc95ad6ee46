// The contract's shapes as workloads of one launch each: what the numeric runs execute. One path for candidate,
// baseline and reference: only the launch and the output types differ.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "contract/contract.h"
#include "precheck/precheck.h"
#include "workload/workload.h"

namespace kgate {

// One shape with one kind of input. Buffers of a case follow the contract's tensor parameters, in order.
struct Case {
  Environment shape;                   // empty for a launch of the workload
  std::optional<LaunchSpec> recorded;  // a launch of the workload instead of a shape: its grid, block and scalars
  std::vector<uint64_t> tensor_bytes;  // then: size of each tensor, in the order of the contract's tensor parameters
  std::string label;                   // "rows=7 cols=31", "rows=7 cols=31 with NaN inputs"
  bool special = false;                // some inputs are NaN
  uint64_t seed = 0;
};
std::vector<Case> make_cases(const Contract& contract, uint64_t seed);  // none without has_shapes

// One case for each distinct judged launch of the contract's kernel in the workload (other grid, block, shared memory
// or scalars), at most kMaxLaunchCases spread over them: what production launches is compared too, not only the shapes
// that somebody wrote down. Failure: the workload's kernel does not have the contract's parameters.
constexpr size_t kMaxLaunchCases = 64;
struct LaunchCases {
  std::vector<Case> cases;
  size_t distinct = 0;
};
Result<LaunchCases> make_launch_cases(const Contract& contract, const Workload& workload,
                                      const std::vector<uint32_t>& judged, uint64_t seed);

// What an output holds before anybody writes it: NaN in every float format, 0xa5 for integers (-1 is often right).
uint8_t poison_of(Dtype dtype);

// One tensor of one case, in the contract's terms.
struct TensorSlot {
  size_t param = 0;       // index into contract.params
  uint64_t elements = 0;  // spanned, strides included
  uint64_t bytes = 0;     // in the contract's dtype
};
std::vector<TensorSlot> tensor_slots(const Contract& contract,
                                     const Case& test_case);  // throws Error{bad_input} for absurd sizes

// First content of a tensor in the contract's dtype. Outputs are poisoned with 0xff.
std::string input_bytes(const Contract& contract, const Case& test_case, size_t param, const TensorSlot& slot);

// Whether the candidate can be launched in this case as the contract and its binding say. Builds no content.
Result<std::monostate> check_candidate_launch(const Contract& contract, const Prepared& candidate,
                                              const Case& test_case);

// Throws Error{environment} naming the first case that needs more memory than `free_bytes`.
void check_memory(const Contract& contract, const std::vector<Case>& cases, uint64_t free_bytes,
                  const std::string& device);

// Device memory of one case, guard bands and a widened reference included.
uint64_t case_bytes(const Contract& contract, const Case& test_case);

enum class Subject { candidate, baseline, reference };

// A workload with one request a case (for cases [first, last)): the contract's launch of its kernel, on `prepared`. The
// reference gets its floating outputs as f64 and a launch of kgate's own choosing. For the candidate the kernel is only
// named: candidate_arm says what runs instead. Throws Error{bad_input} when the contract's launch does not fit.
Workload numeric_workload(const Contract& contract, const Prepared& prepared, Subject subject,
                          const std::vector<Case>& cases, size_t first, size_t last);

// What the candidate does in place of every launch of such a workload. Failure: the binding does not fit, or takes the
// contract's kernel not at all or only together with others.
Result<Arm> candidate_arm(const Contract& contract, const Prepared& candidate, const Workload& workload);

}  // namespace kgate
