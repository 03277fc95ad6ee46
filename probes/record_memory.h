// What memory is alive, by address: it says what a copy's sides are and what a snapshot reads.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "gpu/cuda_abi.h"
#include "workload/recording.h"

namespace kgate::record {

struct Allocation {
  uint64_t address = 0, size = 0;
  recording::Memory memory = recording::Memory::device;
  gpu::CUcontext context = nullptr;  // in which it was made
  // False: mapped without access so far, or made by a node of a CUDA graph and there only while that runs.
  bool readable = true;

  bool is_host() const {
    return memory == recording::Memory::pinned_host || memory == recording::Memory::registered_host;
  }
  // Its bytes are the application's device memory alone.
  bool is_snapshotted() const {
    return readable && (memory == recording::Memory::device || memory == recording::Memory::async ||
                        memory == recording::Memory::mapped);
  }
};

class MemoryMap {
 public:
  void add(const Allocation& allocation);
  std::optional<Allocation> remove(uint64_t address);
  // Those that lie in [address, address + size) altogether.
  std::vector<Allocation> remove_range(uint64_t address, uint64_t size);
  void set_readable(uint64_t address, uint64_t size, bool readable);  // all that lies in there
  std::optional<Allocation> find(uint64_t address) const;             // that holds this byte
  std::vector<Allocation> all() const;
  void forget_context(gpu::CUcontext context);

 private:
  mutable std::mutex mutex_;
  std::map<uint64_t, Allocation> live_;
};

}  // namespace kgate::record
