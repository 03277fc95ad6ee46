// What a traced application did, in the words of a replay: one round, and requests that its threads' synchronisations
// end.
#pragma once

#include "trace/join.h"

namespace kgate::trace {

// A request is what a thread asks for between two of its synchronisations: from its first launch, copy or memset after
// the one to the end of the next. Without a launch in between there is none. `round`: the number that they get.
std::vector<wire::RequestRecord> requests_of(const std::vector<wire::ApiRecord>& calls, uint32_t round);

// Launches that brought no kernel, failed ones and graphs not counted. While its stream is captured a launch becomes a
// graph's node instead, which the record of the call does not say.
struct EmptyLaunches {
  uint64_t captured = 0;     // a kernel node was made inside the call, by its thread: proof
  uint64_t unexplained = 0;  // no such node is known, but some stream was being captured at the time
  uint64_t lost = 0;
};
EmptyLaunches empty_launches(const Records& records, const Join& join);

}  // namespace kgate::trace
