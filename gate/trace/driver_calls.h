// What a call is to the metrics, by CUPTI's callback id: of the driver, or with wire::kRuntimeCall of the runtime. A
// call that is nested in one that says the same (wire::kNestedCall) has a name and is nothing more.
#pragma once

#include <cstdint>
#include <string>

namespace kgate::trace {

struct DriverCall {
  std::string name;  // "cuLaunchKernel"; "driver call 1234", "runtime call 1234" for an id that kgate has no name for
  bool is_launch = false;
  bool is_graph_launch = false;
  bool brings_many = false;  // of is_launch: more than one kernel may belong to it
  // The host waits for the device: synchronise calls and the copies that are blocking by definition.
  bool is_sync = false;
  bool is_alloc = false;  // allocates or frees
  bool is_work = false;   // puts something on the device: launches, copies, memsets
  bool begins_capture = false, ends_capture = false;
};

const DriverCall& driver_call(uint32_t cbid);  // the reference stays valid
bool is_launch_cbid(uint32_t cbid);

}  // namespace kgate::trace
