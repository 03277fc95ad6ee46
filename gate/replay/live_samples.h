// What a live replay leaves in the readback memory: the blocks of memory that each sampled launch changed. Written by
// the worker, one launch after the other; read by kgate, which trusts nothing in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "replay/plan.h"
#include "support/error.h"

namespace kgate {

constexpr uint64_t kLiveBlockBytes = 512;

// At the begin of the readback memory.
struct LiveHeader {
  uint64_t blocks = 0;  // LiveBlocks that follow
  uint64_t lost = 0;    // that found no room
};

struct LiveBlock {
  uint32_t sample = 0;  // index into plan.samples
  uint32_t buffer = 0;
  uint64_t block = 0;  // of kLiveBlockBytes in the buffer; of the last one what lies behind its end is zero
  uint32_t pass = 0;   // 1: the same launch once more from the same memory, where the arm is the recording itself
  uint32_t pad = 0;
  std::byte before[kLiveBlockBytes], after[kLiveBlockBytes];
};

// Room for `blocks` changed blocks.
constexpr uint64_t live_bytes(uint64_t blocks) { return sizeof(LiveHeader) + blocks * sizeof(LiveBlock); }

// The blocks in order of sample, pass, buffer and block. Failure: indices out of range, a block twice, more blocks than
// there is room for.
struct LiveResult {
  std::vector<const LiveBlock*> blocks;  // into the memory
  uint64_t lost = 0;
};
Result<LiveResult> read_live(std::span<const std::byte> memory, const ReplayPlan& plan, const Workload& workload);

}  // namespace kgate
