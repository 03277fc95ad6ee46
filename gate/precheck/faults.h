// What a worker's end says about the kernel that it ran.
#pragma once

#include <string>

#include "judge/verdict.h"
#include "replay/session.h"

namespace kgate {

// `stage`: "equivalence" or "replay"; `where`: the shape or launch that was running. Broken unless the fault is the
// environment's (no driver, no memory) or the form is one that the virtual GPU does not execute.
Finding finding_of(const WorkerOutcome& outcome, const std::string& stage, const std::string& where);

}  // namespace kgate
