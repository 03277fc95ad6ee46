// CUPTI's range profiler inside a worker of its own: hardware counters of single launches. Never in a process that is
// timed: it serialises, and it takes the machine's performance monitors, of which there is one set.
//
// Enters: a context. Leaves: for each pushed range the values of one counter set, collected in one pass.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpu/cupti_abi.h"
#include "support/error.h"
#include "trace/counter_sets.h"

namespace kgate {

class RangeProfiler {
 public:
  // `library`: path of libcupti. After the context is current. Failure: no rights, another holder, a chip or a
  // configuration that cannot be profiled, each with the way out.
  static Result<std::unique_ptr<RangeProfiler>> open(const std::string& library, gpu::CUcontext context, int device);
  ~RangeProfiler();

  // The set that the next start() collects, for at most `ranges` ranges. Failure: unknown on this chip, or more than
  // one pass.
  Result<std::monostate> configure(const trace::CounterSet& set, uint32_t ranges);

  Result<std::monostate> start();
  Result<std::monostate> push();  // nothing is in flight
  Result<std::monostate> pop();   // the range's work is done
  // The values of each range, in the order of push(); [range][counter of the set].
  Result<std::vector<std::vector<double>>> stop();

 private:
  struct State;
  explicit RangeProfiler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kgate
