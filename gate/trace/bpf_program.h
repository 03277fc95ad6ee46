// The embedded eBPF object, loaded and attached: the one place that speaks to libbpf and to bpf(2).
//
// Three ways to attach, best first: uprobe_multi in session mode (kernel 6.13), uprobe_multi entry and return (6.6,
// both need only CAP_BPF and CAP_PERFMON), perf uprobes (need CAP_SYS_ADMIN on most kernels). libbpf 1.1 knows only the
// last, so the links of the first two are made by bpf(2) itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/error.h"
#include "trace/probes.h"

struct bpf_object;
struct kgate_host_event;

namespace kgate::trace {

class BpfProgram {
 public:
  using Mode = ProbeMode;

  // Probes `symbols` (single-step ones are left out; the index is the cookie) of `binary` in process `pid`.
  static Result<std::unique_ptr<BpfProgram>> attach(int pid, const std::string& binary,
                                                    const std::vector<ProbeSymbol>& symbols,
                                                    Mode mode = Mode::automatic, bool scheduler = true);
  ~BpfProgram();

  Mode mode() const;  // never automatic
  // Empties the ring buffer into `events`; not from two threads at once.
  void drain(std::vector<HostEvent>* events);
  uint64_t hits(uint32_t symbol) const;
  uint64_t counter(uint32_t which) const;  // KGATE_LOST_API ...

 private:
  struct State;
  static Result<std::unique_ptr<BpfProgram>> attach_one(int pid, const std::string& binary,
                                                        const std::vector<ProbeSymbol>& symbols, Mode mode,
                                                        bool scheduler);
  explicit BpfProgram(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

const char* attach_name(BpfProgram::Mode mode);  // "uprobe_multi session", "uprobe_multi", "perf uprobe"

}  // namespace kgate::trace
