// Does a recording replay to the memory that it left, and need it be where it was? Asked once of a recording on a
// machine; the answer is kept in its file.
#pragma once

#include <filesystem>
#include <string>

#include "replay/session.h"
#include "workload/workload.h"

namespace kgate {

struct FidelityAnswer {
  Fidelity fidelity;
  Addresses addresses = Addresses::unknown;  // relocatable or pinned; unknown where nothing could be compared
  std::string text;                          // for people, one sentence
};

// Replays the recording twice at its recorded addresses and once with all of them shifted. Failure: it does not replay
// at its recorded addresses at all.
Result<FidelityAnswer> measure_fidelity(const Workload& workload, const std::filesystem::path& kgw,
                                        const SessionOptions& session);

}  // namespace kgate
