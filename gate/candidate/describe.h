// What `kgate inspect` prints about a candidate.
#pragma once

#include <string>

#include "candidate/candidate.h"

namespace kgate {

std::string describe_candidate(const Candidate& candidate);  // for people: a table, ends with a newline
std::string candidate_json(const Candidate& candidate);      // for programs: one object, the keys of Candidate and Entry

}  // namespace kgate
