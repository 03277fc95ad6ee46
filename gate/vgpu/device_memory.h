// Inside of DeviceMemory, for the machine only.
#pragma once

#include <map>

#include "vgpu/machine.h"

namespace kgate::vgpu {

struct DeviceMemory::State {
  uint64_t base = 0, reserved = 0, capacity = 0, used = 0, next = 0;
  std::map<uint64_t, uint64_t> live;  // base → size

  struct Reservation {
    uint64_t bytes = 0;
    bool outside = false;  // of the range from `base`: mapped on its own
  };
  std::map<uint64_t, Reservation> reservations;

  uint64_t first_gap(uint64_t from, uint64_t bytes, uint64_t align) const;  // among live memory; 0: none
  uint64_t free_gap(uint64_t from, uint64_t bytes, uint64_t align) const;   // and outside of reservations
  std::map<uint64_t, Reservation>::const_iterator reservation_in(uint64_t address, uint64_t bytes) const;
  bool has_live_in(uint64_t address, uint64_t bytes) const;
  void return_to_system(uint64_t address, uint64_t bytes, bool outside);
};

}  // namespace kgate::vgpu
