// The binding, applied: recorded launches become what the candidate does instead. Everything is settled here, before
// anything runs; a mismatch of parameter count or size is a Failure that names the argument.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "candidate/candidate.h"
#include "contract/contract.h"
#include "replay/plan.h"
#include "workload/workload.h"

namespace kgate {

struct KernelEntry {
  Entry entry;
  std::string kernel_id;  // of the loaded code
};

// A kernel file as a worker loads it.
struct KernelImage {
  std::string label;                 // "baseline", "candidate"
  std::string name;                  // file name, for people
  std::string image;                 // PTX or cubin
  std::vector<KernelEntry> entries;  // the judged one first, then what else a binding may name

  // Failure: it has none of that name, with a did-you-mean.
  Result<uint32_t> index_of(const std::string& entry) const;
};

// Turns the launches that a rule takes into items of one arm, and keeps what the items need: the entries that they
// name, and one workspace for each (rule, name), as large as the largest launch wants it.
//
// Which entry is launched: where the binding names one entry in all, the image's first (so that `--entry` may name
// another); where it names several, each by name. Without `with`: the first, or where several kernels are judged, or
// other rules name entries, the entry of the recorded kernel's name.
class Substitution {
 public:
  // `several`: more than one kernel of the workload is judged. All arguments must outlive it.
  Substitution(const Binding& binding, const KernelImage& image, const Workload& workload, bool several);

  // `launches`: of the workload, the replaced one first; `rule` null: the same ABI. Items for the first; the others go
  // away.
  Result<std::vector<ArmItem>> items(const Replacement* rule, std::span<const uint32_t> launches);

  // The items for a recorded launch on entry `index` of the image.
  Result<std::vector<ArmItem>> same_abi(uint32_t launch, uint32_t index);

  // Label, module, kernels and workspaces of the arm; nothing is replaced yet.
  Arm arm() const;

 private:
  class Items;
  Result<uint32_t> named(const Replacement& rule, const std::string& entry) const;
  uint32_t kernel(uint32_t index);  // entry of the image → kernel of the arm
  uint32_t workspace(const Replacement& rule, const std::string& name, uint64_t bytes, bool zeroed);

  const Binding& binding_;
  const KernelImage& image_;
  const Workload& workload_;
  bool several_ = false;
  bool one_name_ = false, names_entries_ = false;
  std::vector<bool> in_graph_;     // by workload launch
  std::vector<uint32_t> kernels_;  // of the arm: entries of the image
  std::map<std::pair<const Replacement*, std::string>, uint32_t> workspace_index_;
  std::vector<Buffer> workspaces_;
};

// The same number of parameters at the same offsets with the same sizes. `label` is "candidate", "baseline", ...
Result<std::monostate> check_same_abi(const WorkloadKernel& recorded, const Entry& entry, const std::string& label);

// The entry that the candidate must have: the binding's first, else the contract's kernel; empty: its only one.
std::string candidate_entry_name(const Contract& contract);

}  // namespace kgate
