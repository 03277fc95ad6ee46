// A small workload for the tests of the session and the engine: PTX kernels over buffers of 32-bit integers.
#pragma once

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "replay/session.h"
#include "support/fd.h"
#include "trace/wire.h"
#include "workload/workload.h"

namespace kgate::sample {

constexpr uint32_t kCount = 100;  // elements a buffer

// Entries over (out, a, b, n): `add` out = a + b; `sub` out = a - b; `step` out += 1 in place; `past` also writes
// element n; `far` writes far behind every allocation; `spin` never ends.
const std::string& ptx();

std::string bytes_of(const std::vector<uint32_t>& values);

// Builds a workload whose buffers are out (0xff bytes), a (0, 1, 2, ...) and b (1000, 1000, ...).
class Builder {
 public:
  Builder();
  uint32_t kernel(const std::string& entry);                    // index in kernels
  uint32_t launch(const std::string& entry, uint32_t out = 0);  // index in launches: entry over (out, a, b, kCount)
  LaunchSpec spec(uint32_t kernel, uint32_t out = 0) const;
  Call& call(CallKind kind);                                   // appended to the request that is open
  void request(uint32_t thread = 0, uint64_t arrival_ns = 0);  // opens one
  void launch_and_sync(uint32_t launch);
  Workload w;
};

// An arm that runs `entry` instead of launch 0.
Arm arm(const std::string& label, const Builder& builder, const std::string& entry = {});

// The plan and its files, and the run on the virtual GPU.
struct Replay {
  explicit Replay(Workload workload);
  WorkerOutcome operator()();

  TempDir folder;
  Workload workload;
  ReplayPlan plan;
  SessionOptions options;
};

// The content of a readback region (index in readback_layout) as integers, and its guards.
std::vector<uint32_t> values(const Replay& run, const WorkerOutcome& outcome, size_t region);
std::string guards(const Replay& run, const WorkerOutcome& outcome, size_t region);

template <typename Record>
std::vector<Record> records(const WorkerOutcome& outcome, wire::Kind kind) {
  std::vector<Record> found;
  if (outcome.records.size() < sizeof(wire::Header)) return found;
  const auto* header = reinterpret_cast<const wire::Header*>(outcome.records.data());
  size_t end = sizeof(wire::Header) + header->used_bytes.load();
  for (size_t at = sizeof(wire::Header); at + sizeof(wire::RecordHead) <= end;) {
    wire::RecordHead head;
    std::memcpy(&head, outcome.records.data() + at, sizeof head);
    if (head.bytes < sizeof head) break;
    if (head.kind == kind) {
      Record record;
      std::memcpy(&record, outcome.records.data() + at, sizeof record);
      found.push_back(record);
    }
    at += head.bytes;
  }
  return found;
}

uint64_t lost_records(const WorkerOutcome& outcome);

}  // namespace kgate::sample
