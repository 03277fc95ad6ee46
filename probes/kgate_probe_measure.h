// What one hit costs: calls of a function of kgate-probe itself, whose first instruction is of the same cheap class as
// the driver's. Taken at every attach, because it takes a few milliseconds and depends on the machine, its hypervisor
// and the way to attach.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "support/error.h"

namespace kgate::probe {

struct CallSite {
  std::string file;  // this program
  uint64_t offset = 0;
};
bool find_call_site(CallSite* site);

// Median over batches; kOwnCalls calls in all.
constexpr int kOwnCalls = 1000;
double ns_per_call();

// Did each call count once as a hit and write one event? Takes the events out of the ring.
std::optional<Failure> check_own_hits(int ring_map, int hits_map);

// All CPUs' values of one element.
Result<uint64_t> sum_over_cpus(int map, uint32_t index);

}  // namespace kgate::probe
