// Bounds, alignment and counts of one warp-wide memory request. Whole-warp contiguous requests are checked at once;
// others lane by lane, each instruction remembering the allocation that it hit last.
#include "vgpu/access.h"

#include <algorithm>
#include <cstdio>

namespace kgate::vgpu {

namespace {

std::string hex(uint64_t value) {
  char out[24];
  std::snprintf(out, sizeof out, "0x%llx", static_cast<unsigned long long>(value));
  return out;
}

const char* kind_name(AccessKind kind) {
  return kind == AccessKind::load ? "load" : kind == AccessKind::store ? "store" : "atomic";
}

std::string what_is_near(const Launch& launch, uint64_t address) {
  if (address < 4096) return "a null pointer";
  auto next = std::upper_bound(launch.ranges.begin(), launch.ranges.end(), address,
                               [](uint64_t a, const DeviceMemory::Range& range) { return a < range.base; });
  if (next != launch.ranges.begin()) {
    const DeviceMemory::Range& below = *std::prev(next);
    uint64_t past = address - below.base;
    if (past < below.size)
      return "it reaches past the end of the allocation of " + std::to_string(below.size) + " bytes at " +
             hex(below.base);
    if (past - below.size < (1u << 20)) {
      return std::to_string(past - below.size) + " bytes past the end of the allocation of " +
             std::to_string(below.size) + " bytes at " + hex(below.base);
    }
  }
  if (next != launch.ranges.end() && next->base - address < (1u << 20)) {
    return std::to_string(next->base - address) + " bytes before the allocation of " + std::to_string(next->size) +
           " bytes at " + hex(next->base);
  }
  return "it lies in no live allocation";
}

struct Request {
  Warp& warp;
  const Insn* ip;
  uint32_t mask, bytes;
  AccessKind kind;
  uint64_t address[32];

  bool out_of_bounds(uint32_t lane, const char* space, const std::string& why) {
    warp.fault(FaultKind::out_of_bounds, ip, lane,
               std::string(space) + " " + kind_name(kind) + " of " + std::to_string(bytes) + " bytes at " +
                   hex(address[lane]) + ": " + why,
               address[lane]);
    return false;
  }
  bool misaligned(uint32_t lane) {
    warp.fault(FaultKind::misaligned, ip, lane,
               std::string(kind_name(kind)) + " of " + std::to_string(bytes) + " bytes at " + hex(address[lane]) +
                   " is not aligned to its size",
               address[lane]);
    return false;
  }
};

void gather(std::byte* regs, const Insn* ip, uint64_t* out) {
  uint64_t displacement = static_cast<uint64_t>(ip->imm);
  if (ip->flags & kAddress32) {
    const uint32_t* base = lanes<uint32_t>(regs, ip->a);
    for (int l = 0; l < 32; ++l) out[l] = static_cast<uint32_t>(base[l] + static_cast<uint32_t>(displacement));
  } else {
    const uint64_t* base = lanes<uint64_t>(regs, ip->a);
    for (int l = 0; l < 32; ++l) out[l] = base[l] + displacement;
  }
}

void classify(const Request& request, Access& out) {
  const uint64_t* a = request.address;
  uint64_t odd = 0, differs = 0, first = a[std::countr_zero(request.mask)];
  for (uint64_t l = 0; l < 32; ++l) odd |= a[l] - (a[0] + l * request.bytes);
  out.contiguous = request.mask == ~0u && odd == 0;
  if (out.contiguous) return;
  for (uint32_t l = 0; l < 32; ++l) differs |= request.mask >> l & 1 ? a[l] - first : 0;
  out.uniform = differs == 0;
}

// Distinct 32-byte sectors that the request touches.
uint64_t sectors(const Request& request, const Access& access) {
  const uint64_t* a = request.address;
  uint32_t first = static_cast<uint32_t>(std::countr_zero(request.mask));
  if (access.contiguous) return (a[31] + request.bytes - 1) / 32 - a[0] / 32 + 1;
  if (access.uniform) return 1;  // aligned to its size: within one sector
  uint64_t seen[32];
  uint32_t count = 0;
  uint64_t last = ~uint64_t{0};
  bool sorted = true;
  for (uint32_t l = first; l < 32; ++l) {
    if (!(request.mask >> l & 1)) continue;
    uint64_t sector = a[l] / 32;
    if (sector == last) continue;
    sorted &= count == 0 || sector > last;
    seen[count++] = last = sector;
  }
  if (sorted) return count;
  std::sort(seen, seen + count);
  return static_cast<uint64_t>(std::unique(seen, seen + count) - seen);
}

// Extra wavefronts: 8- and 16-byte accesses are served by half and quarter warps.
uint64_t bank_conflicts(const Request& request, const Access& access) {
  if ((access.contiguous && request.bytes >= 4) || access.uniform) return 0;
  uint32_t words = std::max<uint32_t>(request.bytes / 4, 1), group = 32 / std::min<uint32_t>(words, 4);
  uint64_t extra = 0;
  for (uint32_t begin = 0; begin < 32; begin += group) {
    uint32_t in_bank[32][8];
    uint8_t used[32] = {};
    uint32_t most = 1;
    for (uint32_t l = begin; l < begin + group; ++l) {
      if (!(request.mask >> l & 1)) continue;
      for (uint32_t w = 0; w < words; ++w) {
        uint32_t word = static_cast<uint32_t>(request.address[l] / 4) + w, bank = word & 31;
        uint32_t known = std::min<uint32_t>(used[bank], 8), i = 0;
        while (i < known && in_bank[bank][i] != word) ++i;
        if (i < known) continue;
        if (known < 8) in_bank[bank][known] = word;
        most = std::max<uint32_t>(most, ++used[bank]);  // past 8 words a bank repeats are counted as distinct
      }
    }
    extra += most - 1;
  }
  return extra;
}

bool aligned(Request& request) {
  uint64_t low = 0;
  for (uint32_t l = 0; l < 32; ++l) low |= request.mask >> l & 1 ? request.address[l] : 0;
  if ((low & (request.bytes - 1)) == 0) return true;
  for (uint32_t l = 0; l < 32; ++l) {
    if ((request.mask >> l & 1) && (request.address[l] & (request.bytes - 1))) return request.misaligned(l);
  }
  return true;
}

bool locate_global(Request& request, Access& out, bool counted) {
  Launch& launch = *request.warp.launch;
  const uint64_t* a = request.address;
  auto host = [](uint64_t address) { return reinterpret_cast<std::byte*>(address); };
  if (out.contiguous && launch.find(a[0], uint64_t{32} * request.bytes, request.ip->hint)) {
    out.at[0] = host(a[0]);
  } else {
    for (uint32_t l = 0; l < 32; ++l) {
      if (!(request.mask >> l & 1)) continue;
      if (!launch.find(a[l], request.bytes, request.ip->hint)) {
        return request.out_of_bounds(l, counted ? "global" : "constant", what_is_near(launch, a[l]));
      }
      out.at[l] = host(a[l]);
    }
  }
  if (!counted) return true;
  uint64_t touched = sectors(request, out);
  ++launch.counters.global_requests;
  (request.kind == AccessKind::load ? launch.counters.global_load_sectors : launch.counters.global_store_sectors) +=
      touched;
  return true;
}

bool locate_shared(Request& request, Access& out) {
  Warp& warp = request.warp;
  for (uint32_t l = 0; l < 32; ++l) {
    if (!(request.mask >> l & 1)) continue;
    uint64_t address = request.address[l];
    if (address > warp.shared_bytes || request.bytes > warp.shared_bytes - address) {
      return request.out_of_bounds(l, "shared",
                                   "the block has " + std::to_string(warp.shared_bytes) + " bytes of shared memory");
    }
    out.at[l] = warp.shared + address;
  }
  warp.launch->counters.bank_conflicts += bank_conflicts(request, out);
  return true;
}

bool locate_local(Request& request, Access& out) {
  Warp& warp = request.warp;
  for (uint32_t l = 0; l < 32; ++l) {
    if (!(request.mask >> l & 1)) continue;
    uint64_t address = request.address[l];
    if (address > warp.local_bytes || request.bytes > warp.local_bytes - address) {
      return request.out_of_bounds(l, "local",
                                   "the thread has " + std::to_string(warp.local_bytes) + " bytes of local memory");
    }
    out.at[l] = warp.local + size_t{warp.local_bytes} * l + address;
  }
  out.contiguous = false;
  out.uniform = false;  // the same offset is another place in each lane
  return true;
}

bool locate_param(Request& request, Access& out) {
  const Launch& launch = *request.warp.launch;
  for (uint32_t l = 0; l < 32; ++l) {
    if (!(request.mask >> l & 1)) continue;
    uint64_t address = request.address[l] & ~kWindowMask;
    if (address > launch.param_bytes || request.bytes > launch.param_bytes - address) {
      return request.out_of_bounds(l, "parameter",
                                   "the kernel has " + std::to_string(launch.param_bytes) + " bytes of parameters");
    }
    if (request.kind != AccessKind::load) return request.out_of_bounds(l, "parameter", "parameters are read-only");
    out.at[l] = const_cast<std::byte*>(launch.params) + address;
  }
  return true;
}

// Lanes may point into different windows: each part is located on its own.
bool locate_generic(Request& request, Access& out) {
  uint64_t window = request.address[std::countr_zero(request.mask)] & kWindowMask;
  bool same = true;
  for (uint32_t l = 0; l < 32; ++l) same &= !(request.mask >> l & 1) || (request.address[l] & kWindowMask) == window;
  if (same && window == 0) return locate_global(request, out, true);
  uint32_t whole = request.mask;
  for (uint64_t part : {uint64_t{0}, kSharedWindow, kLocalWindow, kParamWindow}) {
    Request some = request;
    some.mask = 0;
    for (uint32_t l = 0; l < 32; ++l) {
      if ((whole >> l & 1) && (request.address[l] & kWindowMask) == part) some.mask |= 1u << l;
    }
    if (some.mask == 0) continue;
    if (part != kParamWindow)
      for (uint64_t& address : some.address) address &= ~kWindowMask;
    Access piece;
    if (some.mask == ~0u) piece.contiguous = out.contiguous;
    if (some.mask == whole) piece.uniform = out.uniform;
    bool fine = part == 0               ? locate_global(some, piece, true)
                : part == kSharedWindow ? locate_shared(some, piece)
                : part == kLocalWindow  ? locate_local(some, piece)
                                        : locate_param(some, piece);
    if (!fine) return false;
    if (piece.contiguous && part == 0)
      for (uint32_t l = 0; l < 32; ++l) piece.at[l] = piece.at[0] + size_t{l} * request.bytes;
    for (uint32_t l = 0; l < 32; ++l) {
      if (some.mask >> l & 1) out.at[l] = piece.at[l];
    }
    whole &= ~some.mask;
  }
  out.contiguous = out.uniform = false;
  if (whole == 0) return true;
  return request.out_of_bounds(static_cast<uint32_t>(std::countr_zero(whole)), "generic",
                               "it lies in no live allocation");
}

}  // namespace

bool locate(Warp& warp, const Insn* ip, uint32_t mask, uint32_t bytes, AccessKind kind, Access& out) {
  return locate_as(warp, ip, *ip, mask, bytes, kind, out);
}

bool locate_as(Warp& warp, const Insn* ip, const Insn& shape, uint32_t mask, uint32_t bytes, AccessKind kind,
               Access& out) {
  Request request{warp, ip, mask, bytes, kind, {}};
  gather(warp.regs, &shape, request.address);
  classify(request, out);
  if (!aligned(request)) return false;
  switch (access_space(&shape)) {
    case AccessSpace::global:
      return locate_global(request, out, true);
    case AccessSpace::constant:
      return locate_global(request, out, false);
    case AccessSpace::shared:
      return locate_shared(request, out);
    case AccessSpace::local:
      return locate_local(request, out);
    case AccessSpace::param:
      return locate_param(request, out);
    case AccessSpace::generic:
      return locate_generic(request, out);
  }
  return false;
}

}  // namespace kgate::vgpu
