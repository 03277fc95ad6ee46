// The second pass: which driver call, which host probe hit and which kernel belong together. It runs after everything
// has arrived, because records come out of order and across threads.
//
//   LaunchRecord ──thread, time──► API record ◄──correlation id── kernel, synchronisation
//                └─thread, time──► host event (eBPF)
//
// A traced application has no LaunchRecords; the rest is the same. Of calls inside calls the outermost one stands for
// all (trace/nested_calls.h). Nothing is matched by order, and each record is used at most once. Correlation ids are 32
// bits and wrap: a device record belongs to the call with its id that started last before it.
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
  std::vector<uint32_t> kernel_api;    // by kernel: the call that brought it, or kNoIndex
  std::vector<uint32_t> sync_api;      // by synchronisation record, likewise
  std::vector<uint32_t> api_kernel;    // by call: its earliest kernel, or kNoIndex
  std::vector<uint32_t> api_host;      // by call: its probe hit, or kNoIndex; applications only
  std::vector<uint64_t> previous_end;  // by kernel: end of what ran before it on its stream; 0: nothing
};

Join join_records(const Records& records, const std::vector<HostEvent>& host_events,
                  const std::vector<ProbeSymbol>& symbols);

// Launch calls as the probes saw them, in order of thread and time. One exported call may run inside another: only the
// outer one launches.
std::vector<uint32_t> host_launches(const std::vector<HostEvent>& host_events, const std::vector<ProbeSymbol>& symbols);

// Where in the run a time lies. Rounds and the requests of a thread do not overlap in honest streams; in others any
// answer is as good as the other, and the lookups stay inside the vectors. Each lookup tries the last answer first,
// because records come nearly in order.
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
  mutable uint32_t last_round_ = kNoIndex, last_number_ = kNoIndex;
  mutable size_t last_request_ = 0;  // position in requests_
};

}  // namespace kgate::trace
