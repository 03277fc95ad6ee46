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
#include "trace/bpf_program.h"
#include "trace/probe_symbols.h"

namespace kgate {

using trace::BpfProgram;

struct HostProbes::State {
  std::vector<ProbeSymbol> symbols;
  std::unique_ptr<BpfProgram> program;
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

std::optional<Failure> unfit(const std::string& library, const std::vector<ProbeSymbol>& symbols) {
  for (ProbeSymbol::Use use : {ProbeSymbol::Use::launch, ProbeSymbol::Use::sync}) {
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
  std::vector<trace::WantedSymbol> wanted;
  for (const trace::WantedSymbol& symbol : trace::driver_entry_points())
    if (options.uses.contains(symbol.use)) wanted.push_back(symbol);
  auto symbols = trace::find_probe_symbols(*file, wanted);
  if (!symbols) return symbols.failure();
  if (auto problem = unfit(*file, *symbols)) return *problem;
  auto program = BpfProgram::attach(pid, *file, *symbols, options.mode, options.scheduler);
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
  utsname name{};
  if (::uname(&name) == 0) health.kernel_release = name.release;
  return health;
}

}  // namespace kgate
