#include "probes/record_memory.h"

namespace kgate::record {

void MemoryMap::add(const Allocation& allocation) {
  std::lock_guard lock(mutex_);
  live_[allocation.address] = allocation;
}

std::optional<Allocation> MemoryMap::remove(uint64_t address) {
  std::lock_guard lock(mutex_);
  const auto at = live_.find(address);
  if (at == live_.end()) return {};
  const Allocation gone = at->second;
  live_.erase(at);
  return gone;
}

std::vector<Allocation> MemoryMap::remove_range(uint64_t address, uint64_t size) {
  std::lock_guard lock(mutex_);
  std::vector<Allocation> gone;
  for (auto at = live_.lower_bound(address); at != live_.end() && at->second.address - address < size;) {
    gone.push_back(at->second);
    at = live_.erase(at);
  }
  return gone;
}

void MemoryMap::set_readable(uint64_t address, uint64_t size, bool readable) {
  std::lock_guard lock(mutex_);
  for (auto at = live_.lower_bound(address); at != live_.end() && at->second.address - address < size; ++at)
    at->second.readable = readable;
}

std::optional<Allocation> MemoryMap::find(uint64_t address) const {
  std::lock_guard lock(mutex_);
  auto at = live_.upper_bound(address);
  if (at == live_.begin()) return {};
  --at;
  if (address - at->second.address >= at->second.size) return {};
  return at->second;
}

std::vector<Allocation> MemoryMap::all() const {
  std::lock_guard lock(mutex_);
  std::vector<Allocation> all;
  for (const auto& [address, allocation] : live_) all.push_back(allocation);
  return all;
}

void MemoryMap::forget_context(gpu::CUcontext context) {
  std::lock_guard lock(mutex_);
  std::erase_if(live_, [&](const auto& entry) { return entry.second.context == context && !entry.second.is_host(); });
}

}  // namespace kgate::record
