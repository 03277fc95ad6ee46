// Branches, calls, exits, barriers, traps, clocks.
#include "support/text.h"
#include "vgpu/barrier.h"
#include "vgpu/handlers.h"

namespace kgate::vgpu {

namespace {

uint32_t first_lane(uint32_t mask) { return static_cast<uint32_t>(std::countr_zero(mask)); }

const Insn* branch(std::byte*, const Insn* ip, uint32_t mask, Warp& warp) {
  if (mask == warp.active) return warp.jump(ip, ip->target);
  ++warp.launch->counters.divergent_branches;
  warp.count_to(ip + 1);
  if (ip->target == ip + 1) {
    warp.run_start = ip + 1;
    return ip + 1;
  }
  if (!before(ip, ip->target)) {
    if (warp.launch->counters.warp_instructions > warp.launch->budget) return warp.jump(ip, ip->target);
    warp.went_back();
  }
  return warp.diverge(ip->target, mask, ip + 1, warp.active & ~mask);
}

// Moves groups of lanes to their targets; the instruction has been counted.
template <class F>
const Insn* scatter(const Insn* ip, uint32_t mask, Warp& warp, F target_of) {
  uint32_t rest = warp.active & ~mask, left = mask;
  warp.splits[warp.running] = {ip + 1, rest, Wait::ready, 0, 0};
  int groups = rest != 0;
  bool back = false;
  while (left != 0) {
    const Insn* target = target_of(first_lane(left));
    uint32_t group = 0;
    for (uint32_t l = 0; l < 32; ++l) {
      if ((left >> l & 1) && target_of(l) == target) group |= 1u << l;
    }
    left &= ~group;
    back |= !before(ip, target);
    ++groups;
    if (warp.splits[warp.running].mask == 0)
      warp.splits[warp.running] = {target, group, Wait::ready, 0, 0};
    else
      warp.add_split(target, group);
  }
  if (groups > 1) ++warp.launch->counters.divergent_branches;
  if (back) {
    warp.went_back();
    if (warp.launch->counters.warp_instructions > warp.launch->budget) {
      return warp.fault(FaultKind::budget_exhausted, ip, first_lane(mask),
                        "the launch ran out of its budget of instructions here");
    }
  }
  return kYield;
}

const Insn* branch_table(std::byte* regs, const Insn* ip, uint32_t mask, Warp& warp) {
  const uint32_t* index = lanes<uint32_t>(regs, ip->a);
  for (uint32_t l = 0; l < 32; ++l) {
    if ((mask >> l & 1) && index[l] >= ip->extra->targets.size()) {
      return warp.fault(FaultKind::illegal_instruction, ip, l,
                        "index " + std::to_string(index[l]) + " is past the " +
                            std::to_string(ip->extra->targets.size()) + " targets of the branch");
    }
  }
  warp.count_to(ip + 1);
  return scatter(ip, mask, warp, [&](uint32_t l) { return ip->extra->targets[index[l]]; });
}

const Insn* leave(std::byte*, const Insn* ip, uint32_t mask, Warp& warp) { return warp.leave(ip, mask); }

void copy_arguments(Warp& warp, uint32_t mask, const std::vector<Extra::Copy>& copies) {
  for (const Extra::Copy& copy : copies) {
    for (uint32_t l = 0; l < 32; ++l) {
      std::byte* local = warp.local + size_t{warp.local_bytes} * l;
      if (mask >> l & 1) std::memcpy(local + copy.to, local + copy.from, copy.bytes);
    }
  }
}

// Frames are static, since recursion is refused: a call stores where each lane returns to in the callee's register.
const Insn* call(std::byte* regs, const Insn* ip, uint32_t mask, Warp& warp) {
  copy_arguments(warp, mask, ip->extra->before);
  const Insn** back = lanes<const Insn*>(regs, ip->extra->hidden);
  for (uint32_t l = 0; l < 32; ++l) {
    if (mask >> l & 1) back[l] = ip;
  }
  if (mask == warp.active) return warp.jump(ip, ip->target);
  warp.count_to(ip + 1);
  return warp.diverge(ip->target, mask, ip + 1, warp.active & ~mask);
}

const Insn* come_back(std::byte* regs, const Insn* ip, uint32_t mask, Warp& warp) {
  const Insn* const* back = lanes<const Insn*>(regs, ip->a);
  uint32_t left = mask;
  while (left != 0) {
    const Insn* site = back[first_lane(left)];
    uint32_t group = 0;
    for (uint32_t l = 0; l < 32; ++l) group |= (left >> l & 1) && back[l] == site ? 1u << l : 0;
    copy_arguments(warp, group, site->extra->after);
    left &= ~group;
  }
  warp.count_to(ip + 1);
  return scatter(ip, mask, warp, [&](uint32_t l) { return back[l] + 1; });
}

const Insn* barrier(std::byte*, const Insn* ip, uint32_t mask, Warp& warp) {
  ++warp.effects;
  ++warp.launch->changes;
  return warp.park(ip, mask, Wait::barrier);
}

const Insn* trap(std::byte*, const Insn* ip, uint32_t mask, Warp& warp) {
  return warp.fault(FaultKind::trap, ip, first_lane(mask), ip->extra->text);
}

// __assertfail(message, file, line, function, char size): its arguments lie in the lane's local memory.
const Insn* assertion(std::byte*, const Insn* ip, uint32_t mask, Warp& warp) {
  uint32_t lane = first_lane(mask);
  auto text = [&](size_t argument) -> std::string {
    if (argument >= ip->extra->before.size()) return "?";
    uint64_t address = 0;
    std::memcpy(&address, warp.local + size_t{warp.local_bytes} * lane + ip->extra->before[argument].from, 8);
    uint32_t hint = 0;
    std::string out;
    for (; out.size() < 200 && warp.launch->find(address, 1, hint); ++address) {
      char c = *reinterpret_cast<const char*>(address);
      if (c == '\0') break;
      out += c;
    }
    return sanitize(out, 200);
  };
  return warp.fault(FaultKind::trap, ip, lane, "device assertion failed: " + text(0) + " in " + text(3));
}

const Insn* unsupported(std::byte*, const Insn* ip, uint32_t mask, Warp& warp) {
  return warp.fault(FaultKind::unsupported, ip, first_lane(mask), ip->extra->text);
}

// A clock that counts the launch's warp instructions: deterministic, and never a time.
template <class T>
const Insn* clock(std::byte* regs, const Insn* ip, uint32_t mask, Warp& warp) {
  warp.count_to(ip);
  for (uint32_t l = 0; l < 32; ++l) {
    if (mask >> l & 1) lanes<T>(regs, ip->d)[l] = static_cast<T>(warp.launch->counters.warp_instructions);
  }
  return ip + 1;
}

const Insn* print(std::byte* regs, const Insn* ip, uint32_t mask, Warp& warp) {
  warp.launch->ignored_prints += static_cast<uint64_t>(std::popcount(mask));
  if (!ip->extra->after.empty()) {
    uint32_t zero = 0;
    for (uint32_t l = 0; l < 32; ++l) {
      std::byte* local = warp.local + size_t{warp.local_bytes} * l;
      if (mask >> l & 1) std::memcpy(local + ip->extra->after[0].to, &zero, sizeof zero);
    }
  }
  (void)regs;
  return ip + 1;
}

}  // namespace

Handler branch_handler() { return branch; }
Handler branch_table_handler() { return branch_table; }
Handler exit_handler() { return leave; }
Handler call_handler() { return call; }
Handler return_handler() { return come_back; }
Handler barrier_handler() { return barrier; }
Handler trap_handler() { return trap; }
Handler assert_handler() { return assertion; }
Handler unsupported_handler() { return unsupported; }
Handler clock_handler(bool wide) { return wide ? clock<uint64_t> : clock<uint32_t>; }
Handler print_handler() { return print; }

}  // namespace kgate::vgpu
