// Which recorded launches each rule of the binding takes: by the kernel's name, and for a fusion by what directly
// follows on the stream.
#pragma once

#include <cstdint>
#include <vector>

#include "contract/contract.h"
#include "workload/workload.h"

namespace kgate {

// Launches of the workload (distinct ones: every call and graph node that makes one is replaced alike).
struct Taken {
  const Replacement* rule = nullptr;  // null: the contract has no rules, and its kernel is taken
  std::vector<uint32_t> launches;     // the replaced one, then those that go away with it
};

// The first rule that matches takes a launch. Failure: a rule takes none (nothing passes by absence; a workload of one
// kernel may leave the rules for others unused), or a fusion is not the same wherever its launches are made.
// `contract` must outlive the result.
Result<std::vector<Taken>> taken_launches(const Workload& workload, const Contract& contract);

}  // namespace kgate
