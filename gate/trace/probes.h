// The host side of tier T0: eBPF uprobes on the driver's launch and synchronisation entry points in one process, and
// sched_switch of its threads. This interface is what a separate privileged helper will serve later; today the
// attaching process is kgate itself, which needs CAP_BPF + CAP_PERFMON (or root).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/error.h"

namespace kgate {

enum class HostEventKind : uint8_t { api, off_cpu };

// One call of a probed entry point, or one span off the CPU. CLOCK_MONOTONIC ns.
struct HostEvent {
  HostEventKind kind;
  uint16_t symbol;  // api: index into HostProbes::symbols()
  uint32_t thread;  // OS thread id
  uint64_t begin, end;
  uint32_t state;         // off_cpu: prev_state of sched_switch (0: preempted, 1: sleeping, ...)
  uint64_t run_queue_ns;  // off_cpu: part spent runnable after the wake-up; 0 where unknown
};

constexpr uint32_t kUnknownState = 0xffffffff;  // of an off_cpu event that was not seen as a switch (tier T2)

struct ProbeSymbol {
  std::string name;  // "cuLaunchKernel"
  enum class Use : uint8_t { launch, sync } use;
  enum class Cost : uint8_t { emulated, emulated_after_endbr, single_step } cost;
  uint64_t file_offset;
  uint64_t hits;  // so far
};

struct ProbeHealth {
  std::string attach;                     // "uprobe_multi" or "perf uprobe"
  uint64_t lost_api = 0, lost_sched = 0;  // ring buffer was full
  uint64_t unmatched_returns = 0;
  std::string kernel_release;
};

class HostProbes {
 public:
  // Attaches to the entry points that `driver_library` exports, in `pid`; a name without a folder is looked up among
  // what the process has loaded. Failure: what right or feature is missing, and the command that mends it.
  static Result<std::unique_ptr<HostProbes>> attach(int pid, const std::string& driver_library);
  ~HostProbes();  // detaches

  std::vector<ProbeSymbol> symbols() const;  // with hits
  uint64_t hits(ProbeSymbol::Use use) const;
  std::vector<HostEvent> take();  // everything since the last call (a thread of its own drains the ring)
  ProbeHealth health() const;

 private:
  struct State;
  explicit HostProbes(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// For doctor: can eBPF be loaded and attached here, and why not? Loads and attaches to a function of this very program.
struct ProbeSupport {
  bool ok = false;
  std::string detail;  // "uprobe_multi + tp_btf, 640 ns a hit" or the reason
  std::string hint;
  double ns_per_hit = 0;
};
ProbeSupport probe_support();

}  // namespace kgate
