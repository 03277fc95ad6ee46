// kgate's side of kgate-probe: starts it, asks it to watch a process, and reads what its eBPF programs write, through
// descriptors that need no rights. There is no second way: kgate attaches nothing itself, also not as root.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/error.h"
#include "support/fd.h"
#include "trace/probes.h"

namespace kgate::trace {

class ProbeProcess {
 public:
  // Probes `symbols` (single-step ones are left out; the index is the cookie) of the file `library` in process `pid`.
  // The calling thread must outlive the result: kgate-probe dies with it.
  static Result<std::unique_ptr<ProbeProcess>> start(int pid, const Fd& library,
                                                     const std::vector<ProbeSymbol>& symbols, ProbeMode mode,
                                                     bool scheduler);
  ~ProbeProcess();

  ProbeMode mode() const;  // never automatic
  double ns_per_hit() const;
  // Appends what the ring buffer holds to `events`; not from two threads at once.
  void drain(std::vector<HostEvent>* events);
  uint64_t hits(uint32_t symbol) const;
  uint64_t counter(uint32_t which) const;  // KGATE_LOST_API ... (probes/host_event.h)

 private:
  struct State;
  explicit ProbeProcess(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

std::string probe_program();              // path of kgate-probe: KGATE_PROBE, else beside this program
const char* attach_name(ProbeMode mode);  // "uprobe_multi session", "uprobe_multi", "perf uprobe"

}  // namespace kgate::trace
