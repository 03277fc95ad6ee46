// Recorded launches of the baseline become the launches of the candidate: pure functions, no device.
//
// Enters: what was recorded (kernel, grid, block, shared, raw parameter bytes) and a Replacement of the contract. A
// rule takes one launch, or with `then` several: everywhere below they come as a span, the first one first. Leaves:
// launches with every number evaluated and, for each argument, where its bytes come from. Whoever replays relocates the
// addresses among them (a recorded pointer is a source offset here, never a value).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "contract/contract.h"
#include "support/dim3.h"

namespace kgate {

struct RecordedLaunch {
  std::string kernel;
  Dim3 grid, block;
  uint32_t shared = 0;
  std::vector<std::byte> params;  // the packed parameter block
};

using RecordedLaunches = std::span<const RecordedLaunch>;

struct BoundArg {
  enum class Kind {
    pointer_from_offset,  // the 8 bytes at source_offset of the recorded block of source_launch, an address
    scalar_bytes,         // `size` bytes at source_offset there, as they are
    literal,              // value, in as many bytes as the parameter has
    null,                 // zeros, in as many bytes as the parameter has
    workspace,            // the address of the workspace of that name
  };
  Kind kind = Kind::null;
  uint32_t source_launch = 0;  // index in the span
  uint32_t source_offset = 0;
  uint32_t size = 0;  // of scalar_bytes and of the two addresses; 0: the parameter's own
  int64_t value = 0;
  std::string workspace;
};

struct BoundLaunch {
  std::string entry;
  Dim3 grid, block;
  Dim3 cluster{0, 0, 0};  // 0: none
  uint32_t shared = 0;
  bool cooperative = false, programmatic = false, legacy = false;
  std::vector<BoundArg> args;
};
struct BoundMemset {
  BoundArg target;
  uint8_t value = 0;
  uint64_t bytes = 0;
  bool legacy = false;
};
struct BoundWorkspace {
  std::string name;
  uint64_t bytes = 0;
  bool zeroed = false;
  bool each_launch = false;
};
struct BoundSync {
  bool legacy = false;
};
using BoundItem = std::variant<BoundLaunch, BoundMemset, BoundWorkspace, BoundSync>;

// The integers of `let` in these launches. Addresses and floating scalars have no number and are left out. The failure
// names a value that lies outside the recorded block, or a u64 past int64.
Result<Environment> let_values(const Replacement& replacement, RecordedLaunches recorded);

// Grid, block, cluster and shared evaluated (each extent at least 1 and within CUDA's limits, the grid a multiple of
// the cluster), arguments resolved.
Result<BoundLaunch> bind_launch(const ReplacementLaunch& launch, const Replacement& replacement,
                                RecordedLaunches recorded);

// All items of `with`, in order. The replacement must have a `with`.
Result<std::vector<BoundItem>> bind_items(const Replacement& replacement, RecordedLaunches recorded);

// An entry of the candidate, as far as its launch ABI goes.
struct EntryAbi {
  std::string name;
  std::vector<ParamSlot> params;
};

// The parameters of the recorded kernels, one layout a launch.
using RecordedLayouts = std::span<const std::vector<ParamSlot>>;

// Whether the arguments fit the entry, by count and size, and what they read fits the recorded blocks, before anything
// is launched.
Result<std::monostate> check_abi(const Replacement& replacement, const ReplacementLaunch& launch, const EntryAbi& entry,
                                 RecordedLayouts recorded);

// Whatever `let` reads lies inside one recorded parameter: bytes over two of them, or in the padding, are a slip.
Result<std::monostate> check_sources(const Replacement& replacement, RecordedLayouts recorded);

// Without `with` the entry must have the baseline's parameters: as many, with the same offsets and sizes.
Result<std::monostate> check_same_abi(const EntryAbi& entry, std::span<const ParamSlot> recorded);

// The parameter block of the entry: scalars, literals and nulls in place, addresses as recorded, workspaces zero (patch
// them where args[i].kind says so, at entry.params[i].offset). The failure names a literal that does not fit its
// parameter.
Result<std::vector<std::byte>> pack_params(const BoundLaunch& launch, const EntryAbi& entry, RecordedLaunches recorded);

}  // namespace kgate
