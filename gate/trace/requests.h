// What a traced application did, in the words of a replay: one round, and requests that its threads' synchronisations
// end.
#pragma once

#include "trace/join.h"

namespace kgate::trace {

// A request is what a thread asks for between two of its synchronisations: from its first launch, copy or memset after
// the one to the end of the next. Without a launch in between there is none. `round`: the number that they get.
std::vector<wire::RequestRecord> requests_of(const std::vector<wire::ApiRecord>& calls, uint32_t round);

// Launches that brought no kernel, failed ones and graphs not counted. Between the begin and the end of a stream
// capture a launch becomes a graph's node instead.
struct EmptyLaunches {
  uint64_t captured = 0, lost = 0;
};
EmptyLaunches empty_launches(const Records& records, const Join& join);

}  // namespace kgate::trace
