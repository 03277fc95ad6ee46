// From an exception to the fault that kgate is told about. Whoever works says in a Position what it is at, so that no
// call needs a handler of its own.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include "gpu/driver.h"
#include "worker/protocol.h"
#include "workload/workload.h"

namespace kgate::worker {

struct Position {
  const char* stage = "init";
  uint32_t arm = kNone, request = kNone, launch = kNone;
};

// A fault that no driver call reported: memory that is too short, a kernel that is not what the plan says.
struct WorkerError : std::exception {
  std::string name;  // "out of memory", "other parameters"
  std::string detail;
  WorkerError(std::string name, std::string detail) : name(std::move(name)), detail(std::move(detail)) {}
  const char* what() const noexcept override { return detail.c_str(); }
};

// To be called inside a handler. `driver` may be null.
FaultEvent current_fault(const Position& position, gpu::Driver* driver);

}  // namespace kgate::worker
