// CTA barriers. A warp arrives when all of its threads that have not exited stand at the barrier; arrivals count by
// whole warps. PTX ISA: "barrier{.cta}.sync waits for all non-exited threads of its warp, then for the other
// participants".
#include "vgpu/barrier.h"

#include <cstdio>

#include "vgpu/warp.h"

namespace kgate::vgpu {

namespace {

void deliver(Warp& warp, const Split& split, const Barrier& barrier) {
  const Insn* ip = split.ip;
  if (!(ip->flags & kBarrierRed)) return;
  bool logical = ip->flags & (kBarrierAnd | kBarrierOr);
  bool holds = ip->flags & kBarrierAnd ? barrier.holding == barrier.population : barrier.holding != 0;
  if (logical) return set_predicate(warp.regs, ip->d, split.mask, holds ? ~0u : 0);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if (split.mask >> lane & 1) lanes<uint32_t>(warp.regs, ip->d)[lane] = barrier.holding;
  }
}

void release(Barrier& barrier) {
  for (Warp* warp : barrier.waiting) {
    for (int i = 0; i < warp->split_count; ++i) {
      Split& split = warp->splits[i];
      deliver(*warp, split, barrier);
      split.ip += 1;
      split.wait = Wait::ready;
    }
    warp->at_barrier = false;
  }
  barrier = {};
}

bool complete(const Cta& cta, const Barrier& barrier) {
  uint32_t needed = barrier.expected ? barrier.expected : cta.live_warps * 32;
  return barrier.in_use && barrier.arrived >= needed;
}

// The id and the count are registers; both must be the same in all lanes.
bool uniform(const Warp& warp, uint32_t offset, uint32_t mask, uint32_t& value) {
  const uint32_t* values = lanes<uint32_t>(warp.regs, offset);
  value = values[std::countr_zero(mask)];
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) && values[lane] != value) return false;
  }
  return true;
}

std::string barrier_name(uint32_t id) { return "barrier " + std::to_string(id); }

void arrive(Warp& warp, const Insn* ip, uint32_t mask) {
  uint32_t lane = static_cast<uint32_t>(std::countr_zero(mask)), id = 0, count = 0;
  auto misuse = [&](const std::string& what) { warp.fault(FaultKind::barrier_misuse, ip, lane, what); };
  if (!uniform(warp, ip->a, mask, id) || ((ip->flags & kBarrierCount) && !uniform(warp, ip->b, mask, count))) {
    return misuse("the barrier's id or thread count differs between threads of a warp");
  }
  if (id > 15) return misuse("barrier id " + std::to_string(id) + " is above 15");
  if ((ip->flags & kBarrierCount) && (count == 0 || count % 32 != 0)) {
    return misuse("thread count " + std::to_string(count) + " of " + barrier_name(id) + " is no multiple of 32");
  }
  Barrier& barrier = warp.cta->barriers[id];
  bool red = ip->flags & kBarrierRed;
  if (barrier.in_use && barrier.expected != count) {
    return misuse(barrier_name(id) + " is waited for with " + std::to_string(barrier.expected) + " and with " +
                  std::to_string(count) + " threads (0: all)");
  }
  if (barrier.in_use && barrier.is_red != red)
    return misuse(barrier_name(id) + " mixes bar.red with bar.sync or bar.arrive");
  ++warp.launch->counters.barriers;
  warp.launch->counters.warp_instructions += 1;
  warp.launch->counters.thread_instructions += static_cast<uint64_t>(std::popcount(mask));
  barrier.in_use = true;
  barrier.is_red = red;
  barrier.expected = count;
  barrier.arrived += 32;
  for (int i = 0; i < warp.split_count; ++i) {
    Split& split = warp.splits[i];
    if (red) {
      uint32_t holds = predicate(warp.regs, split.ip->c) ^ static_cast<uint32_t>(split.ip->imm);
      barrier.population += static_cast<uint32_t>(std::popcount(split.mask));
      barrier.holding += static_cast<uint32_t>(std::popcount(split.mask & holds));
    }
    if (ip->flags & kBarrierArrive) split = {split.ip + 1, split.mask, Wait::ready, 0, 0};
  }
  if (!(ip->flags & kBarrierArrive)) {
    warp.at_barrier = true;
    barrier.waiting.push_back(&warp);
  }
  if (complete(*warp.cta, barrier)) release(barrier);
}

}  // namespace

bool arrive_if_complete(Warp& warp) {
  for (int i = 0; i < warp.split_count; ++i) {
    if (warp.splits[i].wait != Wait::barrier) return false;
  }
  const Split first = warp.splits[0];
  uint32_t lane = static_cast<uint32_t>(std::countr_zero(first.mask));
  for (int i = 0; i < warp.split_count; ++i) {
    const Split& split = warp.splits[i];
    bool aligned = split.ip->flags & kBarrierAligned;
    if (split.ip != first.ip && aligned) {
      warp.fault(
          FaultKind::barrier_misuse, first.ip, lane,
          "threads of one warp wait at different aligned barriers, here and at line " + statement_line(warp, split.ip));
      return true;
    }
    if (aligned && split.exited != warp.exited && split.effects != warp.effects) {
      warp.fault(FaultKind::barrier_misuse, split.ip, lane,
                 "an aligned barrier in divergent code: " + std::to_string(std::popcount(warp.exited & ~split.exited)) +
                     " threads of the warp went on without it and exited");
      return true;
    }
  }
  arrive(warp, first.ip, warp.alive());
  return true;
}

void warp_left(Cta& cta) {
  for (Barrier& barrier : cta.barriers) {
    if (!barrier.waiting.empty() && complete(cta, barrier)) release(barrier);
  }
}

std::string statement_line(const Warp& warp, const Insn* ip) {
  const Code& code = *warp.launch->code;
  const ptx::Statement* statement = code.statements[static_cast<size_t>(ip - code.insns.data())];
  return statement ? std::to_string(statement->line) : "?";
}

std::string describe_waits(const Cta& cta) {
  std::string out;
  int shown = 0;
  for (const Warp& warp : cta.warps) {
    for (int i = 0; i < warp.split_count && warp.alive() != 0; ++i) {
      const Split& split = warp.splits[i];
      if (split.mask == 0 || ++shown > 8) continue;
      if (!out.empty()) out += "; ";
      char lanes_text[16];
      std::snprintf(lanes_text, sizeof lanes_text, "0x%08x", split.mask);
      out +=
          "warp " + std::to_string(warp.index) + " lanes " + lanes_text + " at line " + statement_line(warp, split.ip);
      if (split.wait == Wait::members) out += " for other lanes";
      if (split.wait == Wait::barrier) {
        out += " at barrier " + std::to_string(lanes<uint32_t>(warp.regs, split.ip->a)[std::countr_zero(split.mask)]);
      }
    }
  }
  if (shown > 8) out += "; and " + std::to_string(shown - 8) + " more";
  return out;
}

}  // namespace kgate::vgpu
