// The host side of tier T0: eBPF uprobes on the driver's entry points in one process, sched_switch of its threads and
// the processes that it forks. What needs rights is done by kgate-probe, a small program beside kgate; this interface
// starts it, reads what its programs write, and ends it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "support/error.h"

namespace kgate {

enum class HostEventKind : uint8_t { api, off_cpu, fork };

// One call of a probed entry point, one span off the CPU, or one process that was forked. CLOCK_MONOTONIC ns.
struct HostEvent {
  HostEventKind kind;
  uint16_t symbol;      // api: index into HostProbes::symbols()
  uint32_t thread;      // OS thread id; fork: the thread that forked
  uint64_t begin, end;  // fork: both are the moment
  uint32_t state;  // off_cpu: prev_state of sched_switch (0: preempted, 1: sleeping, ...); fork: the child's process id
  uint64_t run_queue_ns;  // off_cpu: part spent runnable after the wake-up; 0 where unknown
};

constexpr uint32_t kUnknownState = 0xffffffff;  // of an off_cpu event that was not seen as a switch (tier T2)

struct ProbeSymbol {
  std::string name;  // "cuLaunchKernel"
  // What a call of it is for (trace/entry_points.h says which is which).
  enum class Use : uint8_t { launch, graph_launch, sync, event, copy, memset, alloc, free, module } use;
  enum class Cost : uint8_t { emulated, emulated_after_endbr, single_step } cost;
  uint64_t file_offset;
  uint64_t hits;  // so far
};
constexpr int kProbeUses = 9;
const char* use_name(ProbeSymbol::Use use);  // "launch", "graph_launch", ...

struct ProbeHealth {
  std::string attach;                                    // "uprobe_multi session", "uprobe_multi" or "perf uprobe"
  uint64_t lost_api = 0, lost_sched = 0, lost_fork = 0;  // the ring buffer was full
  uint64_t unmatched_returns = 0;
  std::string kernel_release;
  double ns_per_hit = 0;  // of this way to attach on this machine, entry and return; 0: not measured
};

enum class ProbeMode : uint8_t { automatic, session, multi, perf };  // automatic: the first that works, in this order

// A set of uses.
class ProbeUses {
 public:
  constexpr ProbeUses() : bits_((1u << kProbeUses) - 1) {}  // all
  constexpr ProbeUses(std::initializer_list<ProbeSymbol::Use> uses) {
    for (ProbeSymbol::Use use : uses) bits_ |= 1u << static_cast<unsigned>(use);
  }
  constexpr bool contains(ProbeSymbol::Use use) const { return bits_ >> static_cast<unsigned>(use) & 1; }

 private:
  uint32_t bits_ = 0;
};

struct ProbeOptions {
  ProbeUses uses;         // entry points of other uses are neither probed nor listed
  bool scheduler = true;  // off_cpu events
  ProbeMode mode = ProbeMode::automatic;
};

class HostProbes {
 public:
  // Attaches to the entry points that `driver_library` exports, in `pid`; a name without a folder is looked up among
  // what the process has loaded, a path need not be loaded yet: a process that is going to exec and load it is seen
  // too. Failure: what right or feature is missing, and the command that mends it.
  static Result<std::unique_ptr<HostProbes>> attach(int pid, const std::string& driver_library,
                                                    const ProbeOptions& options = {});
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

// For doctor: can eBPF be loaded and attached here, and why not?
struct ProbeSupport {
  bool ok = false;
  std::string detail;  // "uprobe_multi + tp_btf, 640 ns a hit" or the reason
  std::string hint;
  double ns_per_hit = 0;
};
ProbeSupport probe_support();

}  // namespace kgate
