// The table of the contract file. Its rows are the documentation of the format as well: `kgate` prints them as hints
// and editors show them through the JSON Schema.
#pragma once

#include "contract/table.h"

namespace kgate::contract_table {

extern const yaml::Type kRoot;        // a contract; a policy is told by `is_policy`
extern const yaml::Type kPolicyRoot;  // only limits

extern const yaml::Map kContract, kReferenceCuda, kReferenceBaseline, kBaseline, kTensorParam, kScalarParam, kLaunch,
    kTolerances, kTolerance, kLimits, kReplacement, kLaunches, kWithLaunch, kWithMemset, kWithWorkspace, kWithSync;
extern const yaml::Type kParams, kReference, kBaselineType, kReplacements, kWithItem;

const yaml::Map& limit_map(const char* metric);  // of a metric in kMetricNames

}  // namespace kgate::contract_table
