// The reading thread polls every few milliseconds: the programs wake nobody up (probes/host.bpf.c), and 16 MiB hold
// 350,000 events, more than a process makes between two looks.
#include "trace/probes.h"

#include <signal.h>
#include <sys/utsname.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <thread>

#include "probes/host_event.h"
#include "trace/entry_points.h"
#include "trace/probe_process.h"
#include "trace/probe_symbols.h"

namespace kgate {

using trace::ProbeProcess;

struct HostProbes::State {
  std::vector<ProbeSymbol> symbols;
  std::unique_ptr<ProbeProcess> program;
  std::mutex mutex;  // of the ring buffer's reader and of `events`
  std::vector<HostEvent> events;
  std::atomic<bool> stop{false};
  std::thread reader;

  void read() {
    while (!stop.load(std::memory_order_relaxed)) {
      {
        std::lock_guard lock(mutex);
        program->drain(&events);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
};

namespace {

constexpr bool probed(const ProbeSymbol& symbol) { return symbol.cost != ProbeSymbol::Cost::single_step; }

std::optional<Failure> unfit(const std::string& library, const std::vector<ProbeSymbol>& symbols,
                             const ProbeUses& uses) {
  for (ProbeSymbol::Use use : {ProbeSymbol::Use::launch, ProbeSymbol::Use::sync}) {
    if (!uses.contains(use)) continue;
    const char* what = use == ProbeSymbol::Use::launch ? "launch" : "synchronisation";
    auto matches = [&](const ProbeSymbol& s) { return s.use == use; };
    if (std::none_of(symbols.begin(), symbols.end(), matches))
      return Failure{std::string("exports no ") + what + " entry point", library,
                     "Give the path of the CUDA driver library."};
    if (std::none_of(symbols.begin(), symbols.end(), [&](const ProbeSymbol& s) { return matches(s) && probed(s); }))
      return Failure{std::string("every ") + what +
                         " entry point starts with an instruction that the kernel single-steps (20 us a call)",
                     library, "Trace in tier T2."};
  }
  return {};
}

}  // namespace

const char* use_name(ProbeSymbol::Use use) {
  static constexpr const char* kNames[] = {"launch", "graph_launch", "sync", "event", "copy",
                                           "memset", "alloc",        "free", "module"};
  static_assert(std::size(kNames) == kProbeUses);
  return kNames[static_cast<size_t>(use)];
}

HostProbes::HostProbes(std::unique_ptr<State> state) : state_(std::move(state)) {}

HostProbes::~HostProbes() {
  state_->stop = true;
  if (state_->reader.joinable()) state_->reader.join();
}

Result<std::unique_ptr<HostProbes>> HostProbes::attach(int pid, const std::string& driver_library,
                                                       const ProbeOptions& options) {
  if (pid <= 0 || (::kill(pid, 0) != 0 && errno == ESRCH))
    return Failure{"no process " + std::to_string(pid), "eBPF", {}};
  auto file = trace::library_file(pid, driver_library);
  if (!file) return file.failure();
  auto library = trace::open_library(*file);
  if (!library) return library.failure();
  std::vector<trace::EntryPoint> wanted;
  for (const trace::EntryPoint& entry : trace::entry_points())
    if (options.uses.contains(entry.use)) wanted.push_back(entry);
  auto symbols = trace::find_probe_symbols(*library, *file, wanted);
  if (!symbols) return symbols.failure();
  if (auto problem = unfit(*file, *symbols, options.uses)) return *problem;
  auto program = ProbeProcess::start(pid, *library, *symbols, options.mode, options.scheduler);
  if (!program) return program.failure();
  auto state = std::make_unique<State>();
  state->symbols = std::move(*symbols);
  state->program = std::move(*program);
  state->events.reserve(1 << 16);
  state->reader = std::thread(&State::read, state.get());
  return std::unique_ptr<HostProbes>(new HostProbes(std::move(state)));
}

std::vector<ProbeSymbol> HostProbes::symbols() const {
  std::vector<ProbeSymbol> all = state_->symbols;
  for (uint32_t i = 0; i < all.size(); ++i) all[i].hits = state_->program->hits(i);
  return all;
}

uint64_t HostProbes::hits(ProbeSymbol::Use use) const {
  uint64_t total = 0;
  for (const ProbeSymbol& symbol : symbols())
    if (symbol.use == use) total += symbol.hits;
  return total;
}

std::vector<HostEvent> HostProbes::take() {
  std::lock_guard lock(state_->mutex);
  state_->program->drain(&state_->events);
  return std::exchange(state_->events, {});
}

ProbeHealth HostProbes::health() const {
  ProbeHealth health;
  health.attach = trace::attach_name(state_->program->mode());
  health.lost_api = state_->program->counter(KGATE_LOST_API);
  health.lost_sched = state_->program->counter(KGATE_LOST_SCHED);
  health.lost_fork = state_->program->counter(KGATE_LOST_FORK);
  health.unmatched_returns = state_->program->counter(KGATE_UNMATCHED_RETURN);
  health.ns_per_hit = state_->program->ns_per_hit();
  utsname name{};
  if (::uname(&name) == 0) health.kernel_release = name.release;
  return health;
}

}  // namespace kgate
