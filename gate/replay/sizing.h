// How many bytes of records a plan makes, and how long it is planned to take: computed once and in one place, because
// kgate sizes the shared memory by it and the worker its staging areas.
#pragma once

#include <cstdint>

#include "replay/plan.h"

namespace kgate {

// The part of the workload that one round replays: requests [0, total), the first `warmup` of them not measured.
struct Span {
  uint64_t warmup = 0, total = 0;
};
Span round_span(const ReplayPlan& plan, const Workload& workload);

// Of one workload thread in one round: request, launch and (on a virtual GPU) counter records, of the larger arm.
uint64_t stage_bytes(const ReplayPlan& plan, const Workload& workload, uint32_t thread, bool is_virtual);

// Of the whole run, all kinds of records, with room for what is not planned (names, overhead, set-up).
uint64_t record_bytes(const ReplayPlan& plan, const Workload& workload, bool is_virtual);

// How long a round lasts if every call returned at once: arrivals and host gaps.
uint64_t planned_round_ns(const ReplayPlan& plan, const Workload& workload);

}  // namespace kgate
