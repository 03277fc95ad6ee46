// Can eBPF be used here, and what does a hit cost? kgate-probe is asked to watch this very process and no entry point:
// it loads, attaches to a function of its own, and measures.
#include <unistd.h>

#include "probes/host_event.h"
#include "support/text.h"
#include "trace/probe_process.h"
#include "trace/probe_symbols.h"
#include "trace/probes.h"

namespace kgate {

ProbeSupport probe_support() {
  ProbeSupport support;
  auto own = trace::open_library("/proc/self/exe");
  if (!own) return {false, own.failure().what, {}, 0};
  auto program = trace::ProbeProcess::start(static_cast<int>(::getpid()), *own, {}, ProbeMode::automatic, true);
  if (!program) return {false, program.failure().what, program.failure().hint, 0};
  support.ok = true;
  support.ns_per_hit = (*program)->ns_per_hit();
  support.detail =
      std::string(trace::attach_name((*program)->mode())) + " + tp_btf, " + format_ns(support.ns_per_hit) + " a call";
  return support;
}

}  // namespace kgate
