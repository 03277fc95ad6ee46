// The host side of tier T2: how long each thread of a worker waited for a CPU, from /proc/PID/task/TID/schedstat. Needs
// no rights and tells no single wait from another: one span a thread and sample.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

#include "trace/probes.h"

namespace kgate {

class SchedStat {
 public:
  explicit SchedStat(pid_t pid) : pid_(pid) {}

  // One off_cpu event a thread for the time since the last call (the first call only sets the start): begin and end of
  // that time, run_queue_ns waited in it, state kUnknownState. Threads that ended in between are left out.
  std::vector<HostEvent> sample();

 private:
  pid_t pid_;
  uint64_t last_time_ = 0;
  std::map<uint32_t, uint64_t> waited_;  // by thread, ns since it began
};

}  // namespace kgate
