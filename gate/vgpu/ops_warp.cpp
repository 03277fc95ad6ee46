// Warp collectives: shfl, vote, match, redux, elect, bar.warp.sync, activemask.
//
// A lane with member mask M waits until every lane of M that has not exited stands at the same instruction with the
// same M; then the group goes through at once. A lane outside its own mask is undefined behaviour and faults.
#include <cstdio>

#include "vgpu/handlers.h"

namespace kgate::vgpu {

namespace {

// Calls run(group) for each complete group; parks the lanes whose partners have not come.
template <class F>
const Insn* with_groups(const Insn* ip, uint32_t mask, Warp& warp, const uint32_t* members, F run) {
  uint32_t left = mask, waiting = 0;
  ++warp.effects;
  while (left != 0) {
    uint32_t lane = static_cast<uint32_t>(std::countr_zero(left)), wanted = members[lane], group = 0;
    for (uint32_t l = 0; l < 32; ++l) group |= (left >> l & 1) && members[l] == wanted ? 1u << l : 0;
    if (group & ~wanted) {
      char shown[16];
      std::snprintf(shown, sizeof shown, "0x%08x", wanted);
      return warp.fault(FaultKind::illegal_instruction, ip, static_cast<uint32_t>(std::countr_zero(group & ~wanted)),
                        std::string("the executing thread is not in its member mask ") + shown);
    }
    if ((wanted & warp.alive()) & ~group)
      waiting |= group;
    else
      run(group);
    left &= ~group;
  }
  if (waiting == 0) return ip + 1;
  --warp.effects;
  return warp.park(ip, waiting, Wait::members);
}

enum class Shuffle { up, down, bfly, idx };

template <Shuffle kMode>
const Insn* shuffle(std::byte* regs, const Insn* ip, uint32_t mask, Warp& warp) {
  const uint32_t *a = lanes<uint32_t>(regs, ip->a), *b = lanes<uint32_t>(regs, ip->b),
                 *c = lanes<uint32_t>(regs, ip->c);
  uint32_t* d = lanes<uint32_t>(regs, ip->d);
  uint32_t in_range = ip->extra->regs[1];
  return with_groups(ip, mask, warp, lanes<uint32_t>(regs, ip->extra->regs[0]), [&](uint32_t group) {
    uint32_t out[32], valid = 0;
    for (uint32_t l = 0; l < 32; ++l) {
      uint32_t step = b[l] & 31, clamp = c[l] & 31, segment = c[l] >> 8 & 31;
      uint32_t low = (l & segment), last = low | (clamp & ~segment & 31);
      int32_t from;
      bool p;
      switch (kMode) {
        case Shuffle::up:
          from = int32_t(l) - int32_t(step), p = from >= int32_t(last);
          break;
        case Shuffle::down:
          from = int32_t(l + step), p = from <= int32_t(last);
          break;
        case Shuffle::bfly:
          from = int32_t(l ^ step), p = from <= int32_t(last);
          break;
        default:
          from = int32_t(low | (step & ~segment & 31)), p = from <= int32_t(last);
          break;
      }
      if (!p) from = int32_t(l);
      out[l] = a[from];
      valid |= uint32_t(p) << l;
    }
    for (uint32_t l = 0; l < 32; ++l) {
      if (group >> l & 1) d[l] = out[l];
    }
    if (in_range) set_predicate(regs, in_range, group, valid);
  });
}

enum class Vote { all, any, uni, ballot };

template <Vote kMode>
const Insn* vote(std::byte* regs, const Insn* ip, uint32_t mask, Warp& warp) {
  uint32_t holds = predicate(regs, ip->a) ^ uint32_t(ip->imm);
  return with_groups(ip, mask, warp, lanes<uint32_t>(regs, ip->b), [&](uint32_t group) {
    uint32_t yes = holds & group;
    if constexpr (kMode == Vote::ballot) {
      for (uint32_t l = 0; l < 32; ++l) {
        if (group >> l & 1) lanes<uint32_t>(regs, ip->d)[l] = yes;
      }
    } else {
      bool out = kMode == Vote::all ? yes == group : kMode == Vote::any ? yes != 0 : yes == 0 || yes == group;
      set_predicate(regs, ip->d, group, out ? ~0u : 0);
    }
  });
}

const Insn* active_mask(std::byte* regs, const Insn* ip, uint32_t mask, Warp&) {
  for (uint32_t l = 0; l < 32; ++l) {
    if (mask >> l & 1) lanes<uint32_t>(regs, ip->d)[l] = mask;
  }
  return ip + 1;
}

const Insn* warp_sync(std::byte* regs, const Insn* ip, uint32_t mask, Warp& warp) {
  return with_groups(ip, mask, warp, lanes<uint32_t>(regs, ip->b), [](uint32_t) {});
}

template <class T, bool kAll>
const Insn* match(std::byte* regs, const Insn* ip, uint32_t mask, Warp& warp) {
  const T* a = lanes<T>(regs, ip->a);
  return with_groups(ip, mask, warp, lanes<uint32_t>(regs, ip->b), [&](uint32_t group) {
    uint32_t out[32], same_all = 0;
    for (uint32_t l = 0; l < 32; ++l) {
      out[l] = 0;
      for (uint32_t k = 0; k < 32; ++k) out[l] |= uint32_t((group >> k & 1) && a[k] == a[l]) << k;
      if (kAll && out[l] != group) out[l] = 0;
      if (out[l] == group) same_all |= 1u << l;
    }
    for (uint32_t l = 0; l < 32; ++l) {
      if ((group >> l & 1) && ip->d) lanes<uint32_t>(regs, ip->d)[l] = out[l];
    }
    if (ip->extra->regs[0]) set_predicate(regs, ip->extra->regs[0], group, same_all);
  });
}

template <class T, auto F>
const Insn* reduce(std::byte* regs, const Insn* ip, uint32_t mask, Warp& warp) {
  const T* a = lanes<T>(regs, ip->a);
  return with_groups(ip, mask, warp, lanes<uint32_t>(regs, ip->b), [&](uint32_t group) {
    T sum{};
    bool first = true;
    for (uint32_t l = 0; l < 32; ++l) {
      if (!(group >> l & 1)) continue;
      sum = first ? a[l] : F(sum, a[l]);
      first = false;
    }
    for (uint32_t l = 0; l < 32; ++l) {
      if (group >> l & 1) lanes<T>(regs, ip->d)[l] = sum;
    }
  });
}

const Insn* elect(std::byte* regs, const Insn* ip, uint32_t mask, Warp& warp) {
  return with_groups(ip, mask, warp, lanes<uint32_t>(regs, ip->b), [&](uint32_t group) {
    uint32_t leader = static_cast<uint32_t>(std::countr_zero(group));
    for (uint32_t l = 0; l < 32; ++l) {
      if ((group >> l & 1) && ip->d) lanes<uint32_t>(regs, ip->d)[l] = leader;
    }
    if (ip->extra->regs[0]) set_predicate(regs, ip->extra->regs[0], group, 1u << leader);
  });
}

}  // namespace

Handler shuffle_handler(std::string_view mode) {
  return mode == "up"     ? shuffle<Shuffle::up>
         : mode == "down" ? shuffle<Shuffle::down>
         : mode == "bfly" ? shuffle<Shuffle::bfly>
         : mode == "idx"  ? shuffle<Shuffle::idx>
                          : nullptr;
}
Handler vote_handler(std::string_view mode) {
  return mode == "all"      ? vote<Vote::all>
         : mode == "any"    ? vote<Vote::any>
         : mode == "uni"    ? vote<Vote::uni>
         : mode == "ballot" ? vote<Vote::ballot>
                            : nullptr;
}
Handler active_mask_handler() { return active_mask; }
Handler warp_sync_handler() { return warp_sync; }
Handler match_handler(bool all, bool wide) {
  if (wide) return all ? match<uint64_t, true> : match<uint64_t, false>;
  return all ? match<uint32_t, true> : match<uint32_t, false>;
}
Handler reduce_handler(std::string_view name, ptx::Type type) {
  using ptx::Type;
  bool is_signed = type == Type::s32, is_unsigned = type == Type::u32;
  if (is_signed || is_unsigned) {
    if (name == "add") return reduce<uint32_t, [](uint32_t a, uint32_t b) { return a + b; }>;
    if (name == "min" && is_signed) return reduce<int32_t, [](int32_t a, int32_t b) { return b < a ? b : a; }>;
    if (name == "max" && is_signed) return reduce<int32_t, [](int32_t a, int32_t b) { return a < b ? b : a; }>;
    if (name == "min") return reduce<uint32_t, [](uint32_t a, uint32_t b) { return b < a ? b : a; }>;
    if (name == "max") return reduce<uint32_t, [](uint32_t a, uint32_t b) { return a < b ? b : a; }>;
  }
  if (type != Type::b32) return nullptr;
  if (name == "and") return reduce<uint32_t, [](uint32_t a, uint32_t b) { return a & b; }>;
  if (name == "or") return reduce<uint32_t, [](uint32_t a, uint32_t b) { return a | b; }>;
  if (name == "xor") return reduce<uint32_t, [](uint32_t a, uint32_t b) { return a ^ b; }>;
  return nullptr;
}
Handler elect_handler() { return elect; }

}  // namespace kgate::vgpu
