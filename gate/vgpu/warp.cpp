// Warps: which split runs, how splits part and merge, what is counted. The split with the lowest pc runs first, which
// brings lanes together again wherever their paths meet, without an analysis of the flow graph; a split that spins
// while others wait gives way after a while, so that locks inside a warp are released.
#include "vgpu/warp.h"

#include <algorithm>

namespace kgate::vgpu {

void Warp::count_to(const Insn* end) {
  uint64_t n = static_cast<uint64_t>(end - run_start);
  launch->counters.warp_instructions += n;
  launch->counters.thread_instructions += n * static_cast<uint64_t>(std::popcount(active));
  run_start = end;
}

void Warp::add_split(const Insn* ip, uint32_t mask) {
  for (int i = 0; i < split_count; ++i) {
    if (splits[i].ip == ip && splits[i].mask != 0) {
      splits[i].mask |= mask;
      splits[i].wait = Wait::ready;
      return;
    }
  }
  splits[split_count++] = {ip, mask, Wait::ready, 0, 0};
}

const Insn* Warp::park(const Insn* ip, uint32_t mask, Wait wait) {
  count_to(ip);
  uint32_t rest = active & ~mask;
  splits[running] = {ip, mask, wait, effects, exited};
  if (rest != 0) add_split(ip + 1, rest);
  return kYield;
}

const Insn* Warp::diverge(const Insn* taken, uint32_t taken_mask, const Insn* next, uint32_t next_mask) {
  splits[running] = {next, next_mask, Wait::ready, 0, 0};
  add_split(taken, taken_mask);
  return kYield;
}

const Insn* Warp::leave(const Insn* ip, uint32_t mask) {
  count_to(ip + 1);
  exited |= mask;
  splits[running] = {ip + 1, active & ~mask, Wait::ready, 0, 0};
  for (int i = 0; i < split_count; ++i) {
    if (splits[i].wait == Wait::members) splits[i].wait = Wait::ready;  // perhaps they waited for these lanes
  }
  return kYield;
}

const Insn* Warp::jump(const Insn* ip, const Insn* target) {
  count_to(ip + 1);
  run_start = target;
  if (before(ip, target)) return target;
  bool over = went_back();
  if (launch->counters.warp_instructions > launch->budget) {
    return fault(FaultKind::budget_exhausted, ip, static_cast<uint32_t>(std::countr_zero(active)),
                 "the launch ran " + std::to_string(launch->counters.warp_instructions) +
                     " warp instructions without an end; it loops here");
  }
  if (split_count == 1 && !over) return target;
  splits[running].ip = target;
  return kYield;
}

bool Warp::went_back() {
  constexpr uint32_t kQuantum = 1u << 14;
  ++spins;
  bool over = ++backward % kQuantum == 0;
  quantum_over |= over;
  return over;
}

const Insn* Warp::fault(FaultKind kind, const Insn* ip, uint32_t lane, std::string message, uint64_t address) {
  if (launch->fault) return kYield;
  Fault out;
  out.kind = kind;
  out.entry = launch->code->entry->name;
  const ptx::Statement* statement = launch->code->statements[static_cast<size_t>(ip - launch->code->insns.data())];
  if (statement) {
    out.line = static_cast<uint32_t>(statement->line);
    out.statement = std::string(launch->code->module->statement_text(*statement));
  }
  out.address = address;
  out.block = cta->id;
  const Dim3& block = launch->request->block;
  uint32_t thread = index * 32 + lane;
  out.thread = {thread % block.x, thread / block.x % block.y, thread / block.x / block.y};
  auto triple = [](const Dim3& d) {
    return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
  };
  out.message = std::move(message) + ", by thread " + triple(out.thread) + " of block " + triple(out.block);
  launch->fault = std::move(out);
  splits[running].ip = ip;
  return kYield;
}

const DeviceMemory::Range* Launch::find(uint64_t address, uint64_t bytes, uint32_t& hint) const {
  auto holds = [&](const DeviceMemory::Range& range) {
    return address - range.base < range.size && bytes <= range.size - (address - range.base);
  };
  if (hint < ranges.size() && holds(ranges[hint])) return &ranges[hint];
  auto next = std::upper_bound(ranges.begin(), ranges.end(), address,
                               [](uint64_t a, const DeviceMemory::Range& range) { return a < range.base; });
  if (next == ranges.begin() || !holds(*std::prev(next))) return nullptr;
  hint = static_cast<uint32_t>(std::prev(next) - ranges.begin());
  return &ranges[hint];
}

}  // namespace kgate::vgpu
