// Device memory: one large reservation at a fixed address, handed out in order. A freed range is not handed out again
// until the reservation has been walked through once, so that a use after free meets no live allocation.
#include <sys/mman.h>

#include <algorithm>
#include <map>

#include "vgpu/device_memory.h"

namespace kgate::vgpu {

namespace {

constexpr uint64_t kPreferredBase = uint64_t{0x20} << 40;  // free on Linux x86-64 and arm64, under AddressSanitizer too
constexpr uint64_t kRedZone = 256;
constexpr uint64_t kPage = 4096;

uint64_t round_up(uint64_t value, uint64_t align) { return (value + align - 1) / align * align; }

}  // namespace

DeviceMemory::DeviceMemory(uint64_t capacity_bytes) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.capacity = capacity_bytes;
  s.reserved = round_up(std::max<uint64_t>(capacity_bytes, kPage) * 4, kPage);
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* at = mmap(reinterpret_cast<void*>(kPreferredBase), s.reserved, PROT_READ | PROT_WRITE,
                  flags | MAP_FIXED_NOREPLACE, -1, 0);
  if (at == MAP_FAILED) at = mmap(nullptr, s.reserved, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (at == MAP_FAILED)
    throw Error(Exit::environment, "cannot reserve " + std::to_string(s.reserved) + " bytes of address space");
  s.base = reinterpret_cast<uint64_t>(at);
  s.next = s.base + kRedZone;
}

DeviceMemory::~DeviceMemory() {
  for (const auto& [address, reservation] : state_->reservations)
    if (reservation.outside) munmap(reinterpret_cast<void*>(address), reservation.bytes);
  munmap(reinterpret_cast<void*>(state_->base), state_->reserved);
}

uint64_t DeviceMemory::allocate(uint64_t bytes, uint64_t align) {
  State& s = *state_;
  bool power = align != 0 && (align & (align - 1)) == 0;
  if (bytes == 0 || !power || align > (uint64_t{1} << 21) || bytes > s.capacity || s.used > s.capacity - bytes)
    return 0;
  align = std::max<uint64_t>(align, 256);
  for (int attempt = 0; attempt < 2; ++attempt) {
    uint64_t at = s.free_gap(s.next, bytes, align);
    if (at != 0) {
      s.live[at] = bytes;
      s.used += bytes;
      s.next = at + bytes + kRedZone;
      return at;
    }
    s.next = s.base + kRedZone;
  }
  return 0;
}

uint64_t DeviceMemory::State::first_gap(uint64_t from, uint64_t bytes, uint64_t align) const {
  uint64_t at = round_up(from, align);
  auto next_live = live.upper_bound(at);
  if (next_live != live.begin()) {
    auto previous = std::prev(next_live);
    at = std::max(at, round_up(previous->first + previous->second + kRedZone, align));
  }
  for (; next_live != live.end(); ++next_live) {
    if (at + bytes + kRedZone <= next_live->first) return at;
    at = round_up(next_live->first + next_live->second + kRedZone, align);
  }
  return at + bytes + kRedZone <= base + reserved ? at : 0;
}

uint64_t DeviceMemory::State::free_gap(uint64_t from, uint64_t bytes, uint64_t align) const {
  while (uint64_t at = first_gap(from, bytes, align)) {
    auto taken = reservation_in(at, bytes + kRedZone);
    if (taken == reservations.end()) return at;
    from = taken->first + taken->second.bytes + kRedZone;
  }
  return 0;
}

bool DeviceMemory::free(uint64_t address) {
  State& s = *state_;
  auto found = s.live.find(address);
  if (found == s.live.end()) return false;
  uint64_t first = round_up(address, kPage), last = (address + found->second) / kPage * kPage;
  if (last > first) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  s.used -= found->second;
  s.live.erase(found);
  return true;
}

std::optional<DeviceMemory::Range> DeviceMemory::find(uint64_t address) const {
  auto next = state_->live.upper_bound(address);
  if (next == state_->live.begin()) return std::nullopt;
  auto found = std::prev(next);
  if (address - found->first >= found->second) return std::nullopt;
  return Range{found->first, found->second};
}

bool DeviceMemory::contains(uint64_t address, uint64_t bytes) const {
  auto range = find(address);
  if (!range) return false;
  uint64_t end = range->base + range->size;
  // Only mappings meet without a red zone between them.
  for (auto next = state_->live.find(end); bytes > end - address && next != state_->live.end();
       next = state_->live.find(end)) {
    end += next->second;
  }
  return bytes <= end - address;
}

uint64_t DeviceMemory::capacity() const { return state_->capacity; }
uint64_t DeviceMemory::used() const { return state_->used; }

}  // namespace kgate::vgpu
