// The SQL functions of a trace connection: p50 p90 p95 p99 p999 and percentile(x, q), q in percent.
//
// Rule: nearest rank. The q-th percentile of n values is the ceil(q/100 * n)-th smallest (the smallest for q = 0):
// always a value that was measured, never an interpolation. NULLs are not counted; no values give NULL. They work as
// aggregates and as window functions.
#pragma once

#include "trace/database.h"

namespace kgate::trace {

void register_functions(const Database& database);

}  // namespace kgate::trace
