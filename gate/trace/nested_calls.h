// Calls inside calls. A call of the CUDA runtime makes calls of the driver, and CUPTI may write a record of both: then
// it is the runtime's that counts, once, since that is the call that the application made.
#pragma once

#include "trace/records.h"

namespace kgate::trace {

// A call is nested if it lies within a runtime call of its thread, or overlaps one that has its correlation id, and
// that call is everything that it is (a launch, a synchronisation, an allocation, ...): kNestedCall is set in its cbid
// and Records::outer names the outermost such call. One that is more than what is around it (a copy inside a launch)
// counts for itself. Nothing is done to a stream without runtime calls.
void mark_nested_calls(Records* records);

}  // namespace kgate::trace
