// The execution core: decoded instructions, warps with their divergent splits, CTAs with their barriers.
//
// A register is 32 lanes side by side in the warp's register file (2, 4, 8 or 16 bytes each); a predicate is a 32-bit
// mask. Immediates and special registers are registers too, filled before a warp starts, so a handler sees only byte
// offsets. A handler runs one PTX statement for the lanes of `mask` and returns the next instruction, or kYield after
// it has handed control to the scheduler (branch both ways, barrier, exit, fault).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "candidate/ptx.h"
#include "vgpu/machine.h"

namespace kgate::vgpu {

struct Insn;
struct Warp;
struct Cta;
struct Launch;

using Handler = const Insn* (*)(std::byte* regs, const Insn* ip, uint32_t mask, Warp& warp);

// Operands that do not fit an Insn.
struct Extra {
  std::vector<uint32_t> regs;        // vector elements, in order
  std::vector<uint8_t> widths;       // of their registers, in bytes; 0: a sink
  std::vector<const Insn*> targets;  // of brx
  std::vector<uint32_t> target_index;
  struct Copy {
    uint32_t from, to, bytes;
  };  // a call's arguments: offsets into the lane's local memory
  std::vector<Copy> before, after;
  std::string text;     // of a fault that is known at decoding
  uint32_t hidden = 0;  // register with the callee's return address
};

struct alignas(64) Insn {
  Handler handler = nullptr;
  uint32_t d = 0, a = 0, b = 0, c = 0;  // byte offsets into the register file
  uint32_t guard = 0, guard_flip = 0;   // active lanes: load(guard) ^ guard_flip; offset 0 holds all ones
  int64_t imm = 0;                      // address displacement, or what the handler says
  const Extra* extra = nullptr;
  const Insn* target = nullptr;
  uint32_t flags = 0;
  mutable uint32_t hint = 0;  // of memory: the allocation that it hit last
};

inline const Insn* const kYield = reinterpret_cast<const Insn*>(~uintptr_t{0});
inline const Insn* const kNoLimit = reinterpret_cast<const Insn*>(~uintptr_t{0} - 1);
inline bool before(const Insn* a, const Insn* b) {
  return reinterpret_cast<uintptr_t>(a) < reinterpret_cast<uintptr_t>(b);
}

// Fixed places of the register file.
inline constexpr uint32_t kAllOnes = 0;     // predicate that holds always
inline constexpr uint32_t kCarry = 4;       // the condition code of add.cc and its kin, as a predicate
inline constexpr uint32_t kFirstFree = 64;  // a multiple of 64, as is every register's offset

// Generic windows: above every host address, so that a stray pointer is classified at sight.
inline constexpr uint64_t kSharedWindow = uint64_t{1} << 56;
inline constexpr uint64_t kLocalWindow = uint64_t{2} << 56;
inline constexpr uint64_t kParamWindow = uint64_t{3} << 56;
inline constexpr uint64_t kWindowMask = uint64_t{0xff} << 56;

template <class T>
T* lanes(std::byte* regs, uint32_t offset) {
  return reinterpret_cast<T*>(regs + offset);
}
inline uint32_t predicate(const std::byte* regs, uint32_t offset) {
  uint32_t out;
  std::memcpy(&out, regs + offset, 4);
  return out;
}
inline void set_predicate(std::byte* regs, uint32_t offset, uint32_t mask, uint32_t value) {
  value = (predicate(regs, offset) & ~mask) | (value & mask);
  std::memcpy(regs + offset, &value, 4);
}

struct Constant {
  uint32_t offset, width;
  uint64_t value;
};

enum class SpecialKind : uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  gridid,
  mask_eq,
  mask_le,
  mask_lt,
  mask_ge,
  mask_gt,
  dynamic_shared,
  total_shared,
  zero,
  one,
};
struct SpecialSlot {
  uint32_t offset, width;
  SpecialKind kind;
};

// An entry and everything that it may call, ready to run.
struct Code {
  const ptx::Module* module = nullptr;
  const ptx::Function* entry = nullptr;
  std::vector<Insn> insns;                        // closed by one that falls off the end
  std::vector<const ptx::Statement*> statements;  // of each instruction
  std::deque<Extra> extras;
  std::vector<Constant> constants;
  std::vector<SpecialSlot> specials;
  uint32_t register_bytes = 0, local_bytes = 0, static_shared = 0;
};

enum class Wait : uint8_t { ready, members, barrier };

struct Split {
  const Insn* ip = nullptr;
  uint32_t mask = 0;
  Wait wait = Wait::ready;
  uint64_t effects = 0;  // Warp::effects when it was parked
  uint32_t exited = 0;   // Warp::exited when it was parked
};

struct Warp {
  Launch* launch = nullptr;
  Cta* cta = nullptr;
  std::byte* regs = nullptr;
  std::byte* shared = nullptr;
  std::byte* local = nullptr;  // 32 lanes of local_bytes each
  uint32_t shared_bytes = 0, local_bytes = 0;
  uint32_t index = 0, present = 0, exited = 0, active = 0;
  int split_count = 0, running = 0;
  bool favour_running = false;  // anti-livelock: stay with a split that does not have the lowest pc
  bool quantum_over = false;
  bool at_barrier = false;
  uint32_t spins = 0;               // backward branches since the last rotation between splits
  uint32_t backward = 0;            // all backward branches
  uint64_t effects = 0;             // stores, atomics, barriers, collectives: what a thread does besides looking
  const Insn* run_start = nullptr;  // first instruction not yet counted
  Split splits[32];

  bool went_back();  // counts a backward branch: true when the warp's quantum is over
  uint32_t alive() const { return present & ~exited; }
  void count_to(const Insn* end);  // adds [run_start, end) to the counters
  const Insn* park(const Insn* ip, uint32_t mask, Wait wait);
  const Insn* diverge(const Insn* taken, uint32_t taken_mask, const Insn* next, uint32_t next_mask);
  const Insn* leave(const Insn* ip, uint32_t mask);      // exit of these lanes
  const Insn* jump(const Insn* ip, const Insn* target);  // all active lanes
  const Insn* fault(FaultKind kind, const Insn* ip, uint32_t lane, std::string message, uint64_t address = 0);
  void add_split(const Insn* ip, uint32_t mask);
};

struct Barrier {
  uint32_t expected = 0;    // threads; 0: every thread of the CTA
  uint32_t arrived = 0;     // threads, by whole warps
  uint32_t population = 0;  // of bar.red: threads and those whose predicate held
  uint32_t holding = 0;
  bool in_use = false, is_red = false;
  std::vector<Warp*> waiting;
};

struct alignas(64) RegisterLine {
  std::byte bytes[64];
};

struct Cta {
  Dim3 id{0, 0, 0};
  std::vector<Warp> warps;
  std::unique_ptr<RegisterLine[]> registers;
  std::unique_ptr<std::byte[]> local;
  std::vector<std::byte> shared;
  Barrier barriers[16];
  uint32_t live_warps = 0;
  uint64_t fingerprint = 0, changes = 0;  // of the registers, and Launch::changes, when its last turn ended
};

struct Launch {
  const Code* code = nullptr;
  const LaunchRequest* request = nullptr;
  std::vector<DeviceMemory::Range> ranges;  // live allocations, sorted
  const std::byte* params = nullptr;
  uint32_t param_bytes = 0;
  Counters counters;
  std::optional<Fault> fault;
  uint64_t budget = 0;
  uint64_t ignored_prints = 0;
  uint64_t changes = 0;  // of memory or barriers: while it stands still, a loop that repeats its registers never ends

  // The allocation that holds [address, address + bytes), or null. `hint` remembers.
  const DeviceMemory::Range* find(uint64_t address, uint64_t bytes, uint32_t& hint) const;
};

LaunchOutcome run_grid(const Code& code, const LaunchRequest& request, std::vector<DeviceMemory::Range> ranges);

// Barriers (barrier.cpp).
bool arrive_if_complete(Warp& warp);  // a warp without a ready split: true when it is now at a barrier or went on
void warp_left(Cta& cta);             // a warp has exited: barriers that wait for all are looked at again
std::string describe_waits(const Cta& cta);

}  // namespace kgate::vgpu
