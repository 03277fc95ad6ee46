// Did every launch of a CUDA graph bring all of its kernels? CUPTI loses kernels of replayed graphs without a word, and
// a kernel that was not captured is missing in each replay, so that the graph looks fast.
//
// What a launch must bring is the number of kernel nodes in the GraphRecord; without one, the largest set of different
// nodes that any launch of the graph brought. A graph id is reused after the graph was instantiated anew: each
// GraphRecord begins a generation. Graphs with conditional or device-launched nodes (`open`), and graphs whose id CUPTI
// does not say, bring as many kernels as they like: they are named and not counted.
#pragma once

#include <cstdint>

#include "trace/join.h"

namespace kgate::trace {

struct GraphCheck {
  uint64_t launches = 0;     // graph launches that brought kernels
  uint64_t missing = 0;      // kernels that launches should have brought and did not
  uint64_t surplus = 0;      // kernels beyond what their launch may bring
  uint64_t uncountable = 0;  // graphs of which no number can be expected
  uint64_t without = 0;      // successful launches that brought nothing, although no graph without kernels is known
};

uint64_t graph_node(const wire::KernelRecord& kernel);

GraphCheck check_graphs(const Records& records, const Join& join);

}  // namespace kgate::trace
