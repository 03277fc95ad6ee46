// The second pass: which driver call, which host probe hit and which kernel belong to a launch that the worker says it
// made. It runs after everything has arrived, because records come out of order and across threads.
//
//   LaunchRecord ──thread, time──► API record ──correlation id──► kernel record
//                └─thread, time──► host event (eBPF)
//
// Kernels are matched by correlation id, never by order; each record is used at most once.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/probes.h"
#include "trace/records.h"

namespace kgate::trace {

constexpr uint32_t kNoIndex = 0xffffffff;

struct LaunchMatch {
  uint32_t api = kNoIndex;     // into Records::apis
  uint32_t host = kNoIndex;    // into the host events
  uint32_t kernel = kNoIndex;  // into Records::kernels
};

struct Join {
  std::vector<LaunchMatch> launches;   // parallel to Records::launches
  std::vector<uint32_t> free_kernels;  // matched by no launch
  std::vector<uint64_t> previous_end;  // by kernel: end of what ran before it on its stream; 0: nothing
};

Join join_records(const Records& records, const std::vector<HostEvent>& host_events,
                  const std::vector<ProbeSymbol>& symbols);

// Where in the run a time lies. Rounds and the requests of a thread do not overlap in honest streams; in others any
// answer is as good as the other, and the lookups stay inside the vectors.
class Timeline {
 public:
  explicit Timeline(const Records& records);
  uint32_t round_at(uint64_t time) const;  // index into Records::rounds, or kNoIndex
  uint32_t request_at(uint32_t round, uint32_t thread,
                      uint64_t time) const;     // `round`: its number; into Records::requests
  uint32_t round_index(uint32_t number) const;  // by number, or kNoIndex

 private:
  const Records& records_;
  std::vector<uint32_t> rounds_by_begin_, rounds_by_number_, requests_;
};

}  // namespace kgate::trace
