// One sentence a metric: where the time went that it lost.
//
// Enters: rows of a trace and judged metrics. Leaves: MetricVerdict::explanation. It explains and never convicts; what
// the rows do not account for is called unexplained.
#pragma once

#include <string>
#include <vector>

#include "judge/breakdown.h"
#include "judge/verdict.h"

namespace kgate {

// The sentence for one metric; empty where nothing is known about its parts (figures of the compiler, virtual counts)
// or no pair has both arms.
std::string explain_metric(const TraceRows& rows, const MetricVerdict& metric);

// Explains the gated metrics of time and calls that failed, that are undecided with a worse median, or that are worse
// beyond their noise although within the limit. Reads the trace only where there is something to explain.
void explain(const TraceStore& trace, std::vector<MetricVerdict>& metrics);

}  // namespace kgate
