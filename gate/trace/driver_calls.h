// What a driver call is to the metrics, by CUPTI's callback id.
#pragma once

#include <cstdint>
#include <string>

namespace kgate::trace {

struct DriverCall {
  std::string name;  // "cuLaunchKernel"; "driver call 1234" for an id that kgate has no name for
  bool is_launch = false;
  bool is_sync =
      false;  // the host waits for the device: synchronise calls and the copies that are blocking by definition
  bool is_alloc = false;
};

const DriverCall& driver_call(uint32_t cbid);  // the reference stays valid
bool is_launch_cbid(uint32_t cbid);

}  // namespace kgate::trace
