// The grid: CTAs in order, their warps round robin. A CTA that spins (it waits for another one) steps back behind the
// next, so that look-back scans and semaphores between blocks make progress.
#include <algorithm>
#include <list>

#include "vgpu/warp.h"

namespace kgate::vgpu {

namespace {

constexpr uint64_t kDefaultBudget = uint64_t{1} << 31;
constexpr uint32_t kRotateAfter = 4096;  // backward branches of one split while others wait
constexpr int kPassesPerTurn = 2;        // quanta of a CTA before the next one gets its turn
constexpr size_t kMostResident = 64;

void merge_splits(Warp& warp) {
  int kept = 0;
  for (int i = 0; i < warp.split_count; ++i) {
    Split split = warp.splits[i];
    if (split.mask == 0) continue;
    int same = 0;
    while (same < kept && warp.splits[same].ip != split.ip) ++same;
    if (same < kept) {
      Split& other = warp.splits[same];
      other.mask |= split.mask;
      if (split.wait != other.wait || split.wait == Wait::members) other.wait = Wait::ready;
      if (warp.running == i) warp.running = same;
    } else {
      if (warp.running == i) warp.running = kept;
      warp.splits[kept++] = split;
    }
  }
  warp.split_count = kept;
}

// Sets `running` to the split that goes next; false when none can.
bool pick(Warp& warp) {
  const Insn* last = warp.running < warp.split_count ? warp.splits[warp.running].ip : nullptr;
  merge_splits(warp);
  bool current_ready = warp.running < warp.split_count && warp.splits[warp.running].wait == Wait::ready;
  bool rotate = warp.split_count > 1 && warp.spins >= kRotateAfter;
  if (rotate) warp.spins = 0;
  if (warp.favour_running && !rotate && current_ready) return true;
  int lowest = -1, next = -1;
  for (int i = 0; i < warp.split_count; ++i) {
    if (warp.splits[i].wait != Wait::ready) continue;
    if (lowest < 0 || before(warp.splits[i].ip, warp.splits[lowest].ip)) lowest = i;
    bool after = last && before(last, warp.splits[i].ip);
    if (after && (next < 0 || before(warp.splits[i].ip, warp.splits[next].ip))) next = i;
  }
  if (lowest < 0) {
    warp.running = 0;
    return false;
  }
  warp.favour_running = rotate && !warp.favour_running && next >= 0;
  warp.running = warp.favour_running ? next : lowest;
  return true;
}

// Runs the chosen split until it yields or meets another one.
void run_split(Warp& warp) {
  Split& split = warp.splits[warp.running];
  const Insn* limit = kNoLimit;
  for (int i = 0; i < warp.split_count; ++i) {
    if (before(split.ip, warp.splits[i].ip) && before(warp.splits[i].ip, limit)) limit = warp.splits[i].ip;
  }
  warp.active = split.mask;
  const Insn* ip = warp.run_start = split.ip;
  std::byte* const regs = warp.regs;
  do {
    uint32_t mask = warp.active & (predicate(regs, ip->guard) ^ ip->guard_flip);
    ip = mask != 0 ? ip->handler(regs, ip, mask, warp) : ip + 1;
  } while (before(ip, limit));
  if (ip == kYield) return;
  warp.count_to(ip);
  warp.splits[warp.running].ip = ip;
}

// Until the warp has exited, waits, or has used up its quantum.
void run_warp(Warp& warp) {
  warp.quantum_over = false;
  while (!warp.launch->fault && !warp.quantum_over) {
    if (pick(warp)) {
      run_split(warp);
    } else if (warp.alive() == 0 || !arrive_if_complete(warp) || warp.at_barrier) {
      return;
    }
  }
}

enum class Progress { done, turn_over, fault };

Progress run_cta(Launch& launch, Cta& cta) {
  for (int pass = 0; pass < kPassesPerTurn;) {
    bool moved = false, spun = false;
    for (Warp& warp : cta.warps) {
      if (warp.alive() == 0 || warp.at_barrier) continue;
      uint64_t counted = launch.counters.warp_instructions;
      run_warp(warp);
      if (launch.fault) return Progress::fault;
      moved |= launch.counters.warp_instructions != counted;
      spun |= warp.quantum_over;
      if (warp.alive() == 0) {
        --cta.live_warps;
        warp_left(cta);
        moved = true;
      }
    }
    if (launch.fault) return Progress::fault;
    if (cta.live_warps == 0) return Progress::done;
    bool released = false;
    for (Warp& warp : cta.warps) released |= warp.alive() != 0 && !warp.at_barrier;
    if (!moved || !released) {
      for (Warp& warp : cta.warps) {
        if (warp.alive() == 0) continue;
        const Split& split = warp.splits[0];
        warp.fault(FaultKind::deadlock, split.ip, static_cast<uint32_t>(std::countr_zero(split.mask)),
                   "no warp of the block can go on: " + describe_waits(cta));
        return Progress::fault;
      }
    }
    if (spun) ++pass;
  }
  return Progress::turn_over;
}

uint64_t special_value(SpecialKind kind, const Launch& launch, const Cta& cta, uint32_t warp, uint32_t lane) {
  const Dim3 &block = launch.request->block, &grid = launch.request->grid;
  uint32_t thread = warp * 32 + lane;
  uint32_t bit = uint32_t{1} << lane;
  switch (kind) {
    case SpecialKind::tid_x:
      return thread % block.x;
    case SpecialKind::tid_y:
      return thread / block.x % block.y;
    case SpecialKind::tid_z:
      return thread / block.x / block.y;
    case SpecialKind::ntid_x:
      return block.x;
    case SpecialKind::ntid_y:
      return block.y;
    case SpecialKind::ntid_z:
      return block.z;
    case SpecialKind::ctaid_x:
      return cta.id.x;
    case SpecialKind::ctaid_y:
      return cta.id.y;
    case SpecialKind::ctaid_z:
      return cta.id.z;
    case SpecialKind::nctaid_x:
      return grid.x;
    case SpecialKind::nctaid_y:
      return grid.y;
    case SpecialKind::nctaid_z:
      return grid.z;
    case SpecialKind::laneid:
      return lane;
    case SpecialKind::warpid:
      return warp;
    case SpecialKind::nwarpid:
      return cta.warps.size();
    case SpecialKind::nsmid:
    case SpecialKind::one:
      return 1;
    case SpecialKind::mask_eq:
      return bit;
    case SpecialKind::mask_lt:
      return bit - 1;
    case SpecialKind::mask_le:
      return bit | (bit - 1);
    case SpecialKind::mask_ge:
      return ~(bit - 1);
    case SpecialKind::mask_gt:
      return ~(bit | (bit - 1));
    case SpecialKind::dynamic_shared:
      return launch.request->dynamic_shared;
    case SpecialKind::total_shared:
      return cta.shared.size();
    case SpecialKind::smid:
    case SpecialKind::gridid:
    case SpecialKind::zero:
      return 0;
  }
  return 0;
}

void store_lane(std::byte* regs, uint32_t offset, uint32_t width, uint32_t lane, uint64_t value) {
  std::memcpy(regs + offset + size_t{width} * lane, &value, std::min<uint32_t>(width, 8));
}

void start_cta(Launch& launch, Cta& cta, uint64_t number) {
  const Dim3 &block = launch.request->block, &grid = launch.request->grid;
  const Code& code = *launch.code;
  cta.id = {static_cast<uint32_t>(number % grid.x), static_cast<uint32_t>(number / grid.x % grid.y),
            static_cast<uint32_t>(number / grid.x / grid.y)};
  uint32_t threads = static_cast<uint32_t>(block.count()), warps = (threads + 31) / 32;
  bool fresh = cta.warps.empty();
  if (fresh) {
    size_t stride = code.register_bytes;
    cta.registers.reset(new RegisterLine[stride / sizeof(RegisterLine) * warps]());
    cta.local.reset(new std::byte[size_t{code.local_bytes} * 32 * warps]());
    cta.shared.resize(code.static_shared + size_t{launch.request->dynamic_shared});
    cta.warps.resize(warps);
    for (uint32_t w = 0; w < warps; ++w) {
      std::byte* regs = cta.registers.get()->bytes + stride * w;
      set_predicate(regs, kAllOnes, ~0u, ~0u);
      for (const Constant& constant : code.constants) {
        for (uint32_t lane = 0; lane < 32; ++lane)
          store_lane(regs, constant.offset, constant.width, lane, constant.value);
      }
    }
  }
  std::fill(cta.shared.begin(), cta.shared.end(), std::byte{0});
  cta.live_warps = warps;
  for (Barrier& barrier : cta.barriers) barrier = {};
  for (uint32_t w = 0; w < warps; ++w) {
    Warp& warp = cta.warps[w];
    warp = {};
    warp.launch = &launch;
    warp.cta = &cta;
    warp.regs = cta.registers.get()->bytes + size_t{code.register_bytes} * w;
    warp.shared = cta.shared.data();
    warp.shared_bytes = static_cast<uint32_t>(cta.shared.size());
    warp.local = cta.local.get() + size_t{code.local_bytes} * 32 * w;
    warp.local_bytes = code.local_bytes;
    warp.index = w;
    warp.present = threads - w * 32 >= 32 ? ~0u : (1u << (threads - w * 32)) - 1;
    warp.split_count = 1;
    warp.splits[0] = {code.insns.data(), warp.present, Wait::ready, 0, 0};
    for (const SpecialSlot& slot : code.specials) {
      bool by_block = slot.kind >= SpecialKind::ctaid_x && slot.kind <= SpecialKind::ctaid_z;
      if (!fresh && !by_block) continue;
      for (uint32_t lane = 0; lane < 32; ++lane) {
        store_lane(warp.regs, slot.offset, slot.width, lane, special_value(slot.kind, launch, cta, w, lane));
      }
    }
  }
}

uint64_t fingerprint(const Cta& cta, const Code& code) {
  uint64_t hash = 1469598103934665603u;
  auto mix = [&](uint64_t value) { hash = (hash ^ value) * 1099511628211u, hash ^= hash >> 29; };
  const std::byte* registers = cta.registers.get()->bytes;
  for (size_t at = 0; at < size_t{code.register_bytes} * cta.warps.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, registers + at, 8);
    mix(word);
  }
  for (const Warp& warp : cta.warps) {
    for (int i = 0; i < warp.split_count; ++i) {
      mix(reinterpret_cast<uintptr_t>(warp.splits[i].ip));
      mix(warp.splits[i].mask);
    }
  }
  return hash;
}

// True when since its last turn nothing has changed: not its registers, and no memory or barrier anywhere.
bool repeats_itself(Cta& cta, const Launch& launch) {
  uint64_t now = fingerprint(cta, *launch.code);
  bool same = cta.fingerprint == now && cta.changes == launch.changes;
  cta.fingerprint = now;
  cta.changes = launch.changes;
  return same;
}

void report_endless(Cta& cta) {
  for (Warp& warp : cta.warps) {
    if (warp.alive() == 0 || warp.at_barrier) continue;
    const Split& split = warp.splits[warp.running < warp.split_count ? warp.running : 0];
    warp.fault(FaultKind::budget_exhausted, split.ip, static_cast<uint32_t>(std::countr_zero(split.mask)),
               "an endless loop: neither registers nor memory change any more; " + describe_waits(cta));
    return;
  }
}

}  // namespace

LaunchOutcome run_grid(const Code& code, const LaunchRequest& request, std::vector<DeviceMemory::Range> ranges) {
  Launch launch;
  launch.code = &code;
  launch.request = &request;
  launch.ranges = std::move(ranges);
  launch.params = request.params.data();
  launch.param_bytes = static_cast<uint32_t>(request.params.size());
  launch.budget = request.instruction_budget ? request.instruction_budget : kDefaultBudget;
  uint64_t total = request.grid.count(), next = 0;
  std::list<Cta> resident, idle;
  size_t repeating = 0;  // turns in a row in which nothing changed
  while ((next < total || !resident.empty()) && !launch.fault) {
    bool admit = next < total && resident.size() < kMostResident;
    if (admit) {
      if (idle.empty()) idle.emplace_back();
      resident.splice(resident.end(), idle, idle.begin());
      start_cta(launch, resident.back(), next++);
    } else {
      resident.splice(resident.end(), resident, resident.begin());
    }
    auto turn = std::prev(resident.end());
    Progress progress = run_cta(launch, *turn);
    if (progress == Progress::done) idle.splice(idle.end(), resident, turn);
    repeating = progress == Progress::turn_over && repeats_itself(*turn, launch) ? repeating + 1 : 0;
    if (repeating > resident.size()) report_endless(*turn);
  }
  return {launch.counters, std::move(launch.fault)};
}

}  // namespace kgate::vgpu
