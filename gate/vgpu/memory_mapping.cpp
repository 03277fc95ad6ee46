// Device memory that is mapped at chosen addresses: reservations, and the memory behind them. A reservation inside the
// range that allocations come from is only remembered; one elsewhere in the address space is the system's to grant, and
// is not granted where this process has something else.
#include <sys/mman.h>

#include <algorithm>

#include "vgpu/device_memory.h"

namespace kgate::vgpu {

namespace {

void* pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

constexpr int kFresh = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// `bytes` at `wanted` (0: anywhere) aligned to `align`; 0: refused, or granted elsewhere only.
uint64_t take_addresses(uint64_t wanted, uint64_t bytes, uint64_t align) {
  if (wanted != 0) {
    void* at = mmap(pointer(wanted), bytes, PROT_NONE, kFresh | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED) return 0;
    if (at == pointer(wanted)) return wanted;
    munmap(at, bytes);  // a kernel that does not know the flag
    return 0;
  }
  void* at = mmap(nullptr, bytes + align, PROT_NONE, kFresh, -1, 0);
  if (at == MAP_FAILED) return 0;
  uint64_t start = reinterpret_cast<uint64_t>(at), kept = (start + align - 1) / align * align;
  if (kept != start) munmap(at, kept - start);
  if (uint64_t rest = start + align - kept) munmap(pointer(kept + bytes), rest);
  return kept;
}

}  // namespace

std::map<uint64_t, DeviceMemory::State::Reservation>::const_iterator DeviceMemory::State::reservation_in(
    uint64_t address, uint64_t bytes) const {
  auto next = reservations.upper_bound(address);
  if (next != reservations.begin()) {
    auto before = std::prev(next);
    if (address - before->first < before->second.bytes) return before;
  }
  return next != reservations.end() && next->first - address < bytes ? next : reservations.end();
}

bool DeviceMemory::State::has_live_in(uint64_t address, uint64_t bytes) const {
  auto next = live.upper_bound(address);
  if (next != live.begin()) {
    auto before = std::prev(next);
    if (address - before->first < before->second) return true;
  }
  return next != live.end() && next->first - address < bytes;
}

void DeviceMemory::State::return_to_system(uint64_t address, uint64_t bytes, bool outside) {
  mmap(pointer(address), bytes, outside ? PROT_NONE : PROT_READ | PROT_WRITE, kFresh | MAP_FIXED, -1, 0);
}

bool DeviceMemory::take(uint64_t bytes) {
  State& s = *state_;
  if (bytes > s.capacity || s.used > s.capacity - bytes) return false;
  s.used += bytes;
  return true;
}

void DeviceMemory::give(uint64_t bytes) { state_->used -= bytes; }

uint64_t DeviceMemory::reserve(uint64_t wanted, uint64_t bytes, uint64_t align) {
  State& s = *state_;
  constexpr uint64_t kHighest = uint64_t{1} << 47;
  align = std::max(align, kGranule);
  bool power = (align & (align - 1)) == 0;
  if (bytes == 0 || bytes % kGranule != 0 || bytes > kHighest / 2 || !power || align > kHighest / 4) return 0;
  bool usable = wanted != 0 && wanted % align == 0 && wanted < kHighest && bytes < kHighest - wanted;
  if (usable && wanted < s.base + s.reserved && wanted + bytes > s.base) {
    bool inside = wanted >= s.base && wanted + bytes <= s.base + s.reserved;
    if (inside && !s.has_live_in(wanted, bytes) && s.reservation_in(wanted, bytes) == s.reservations.end()) {
      s.reservations[wanted] = {bytes, false};
      return wanted;
    }
    usable = false;
  }
  uint64_t at = usable ? take_addresses(wanted, bytes, align) : 0;
  if (at == 0) at = take_addresses(0, bytes, align);
  if (at != 0) s.reservations[at] = {bytes, true};
  return at;
}

bool DeviceMemory::unreserve(uint64_t address, uint64_t bytes) {
  State& s = *state_;
  auto found = s.reservations.find(address);
  if (found == s.reservations.end() || found->second.bytes != bytes) return false;
  if (found->second.outside) munmap(pointer(address), bytes);
  s.reservations.erase(found);
  return true;
}

bool DeviceMemory::reserved(uint64_t address, uint64_t bytes) const {
  auto found = state_->reservation_in(address, bytes);
  return found != state_->reservations.end() && address >= found->first &&
         bytes <= found->second.bytes - (address - found->first);
}

void* DeviceMemory::make_physical(uint64_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

void DeviceMemory::end_physical(void* physical, uint64_t bytes) { munmap(physical, bytes); }

// A second view of shared pages: what an old size of 0 asks of mremap. No file, whose size a limit of the worker's
// would count.
bool DeviceMemory::map(uint64_t address, uint64_t bytes, void* physical) {
  return mremap(physical, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, pointer(address)) != MAP_FAILED;
}

void DeviceMemory::unmap(uint64_t address, uint64_t bytes) {
  expose(address, bytes, false);
  State& s = *state_;
  auto found = s.reservation_in(address, bytes);
  s.return_to_system(address, bytes, found != s.reservations.end() && found->second.outside);
}

void DeviceMemory::expose(uint64_t address, uint64_t bytes, bool on) {
  if (on)
    state_->live[address] = bytes;
  else
    state_->live.erase(address);
}

}  // namespace kgate::vgpu
