#include "trace/probe_process.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "probes/host_event.h"
#include "probes/kgate_probe_wire.h"
#include "support/process.h"
#include "support/text.h"

namespace kgate::trace {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAnswer{30'000};  // loading takes 0.1 s; several hundred perf uprobes take a few
constexpr milliseconds kLastWords{1'000};

static_assert(static_cast<uint32_t>(ProbeMode::automatic) == static_cast<uint32_t>(probe::Mode::automatic) &&
              static_cast<uint32_t>(ProbeMode::session) == static_cast<uint32_t>(probe::Mode::session) &&
              static_cast<uint32_t>(ProbeMode::multi) == static_cast<uint32_t>(probe::Mode::multi) &&
              static_cast<uint32_t>(ProbeMode::perf) == static_cast<uint32_t>(probe::Mode::perf));

Failure failure(const std::string& what, const std::string& hint = {}) { return {what, probe_program(), hint}; }

// A map is used only if it is what the reader's buffers are made for.
std::optional<Failure> check_map(const Fd& map, uint32_t type, uint32_t entries, uint32_t value_bytes) {
  bpf_map_info info{};
  uint32_t size = sizeof info;
  if (bpf_obj_get_info_by_fd(map.get(), &info, &size) != 0) {
    int error = errno;
    if (error == EPERM)
      return failure("this kernel lets only root read eBPF maps", "Linux 5.19 and newer do not; or run kgate as root.");
    return failure(std::string("sent something that is no eBPF map: ") + std::strerror(error));
  }
  if (info.type == type && (entries == 0 || info.max_entries == entries) && info.value_size == value_bytes) return {};
  return failure("sent another map than expected", "Install kgate and kgate-probe together.");
}

}  // namespace

struct ProbeProcess::State {
  Fd channel, counters, hits, ring_map;
  std::optional<Child> child;
  ProbeMode mode = ProbeMode::automatic;
  double ns_per_hit = 0;
  ring_buffer* ring = nullptr;
  std::vector<HostEvent>* sink = nullptr;
  int cpus = 0;

  ~State() {
    ring_buffer__free(ring);
    channel.reset();
    if (child) child->wait(kLastWords);
  }
  std::optional<Failure> spawn();
  std::optional<Failure> ask(const probe::Request& request, const Fd& library);
  std::optional<Failure> open_maps();
  Failure ended(const std::string& how);
  uint64_t sum(const Fd& map, uint32_t index) const;
  static int on_event(void* state, void* data, size_t size);
};

std::optional<Failure> ProbeProcess::State::spawn() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return failure(std::string("cannot make a socket pair: ") + std::strerror(errno));
  channel = Fd(ends[0]);
  Fd theirs(ends[1]);
  Command command;
  command.argv = {probe_program()};
  command.descriptors = {{theirs.get(), probe::kChannel}, {STDERR_FILENO, STDERR_FILENO}};
  command.limits.drop_capabilities = false;
  command.limits.no_new_privs = false;
  if (::access(command.argv[0].c_str(), X_OK) != 0)
    return failure(std::string("cannot run kgate-probe: ") + std::strerror(errno),
                   "Reinstall kgate as a whole, or set KGATE_PROBE to the path of kgate-probe.");
  auto spawned = Child::spawn(command);
  if (!spawned) return failure(spawned.failure().what);
  child.emplace(std::move(*spawned));
  return {};
}

Failure ProbeProcess::State::ended(const std::string& how) {
  channel.reset();
  return failure("kgate-probe " + how + ": " + describe(child->wait(kLastWords)));
}

std::optional<Failure> ProbeProcess::State::ask(const probe::Request& request, const Fd& library) {
  int descriptor = library.get();
  if (!probe::send_packet(channel.get(), std::as_bytes(std::span(&request, 1)), {&descriptor, 1}))
    return ended("ended without an answer");
  for (auto deadline = std::chrono::steady_clock::now() + kAnswer;;) {
    pollfd p{channel.get(), POLLIN, 0};
    if (::poll(&p, 1, 50) > 0) break;
    if (interrupted()) return failure("interrupted");
    if (std::chrono::steady_clock::now() < deadline) continue;
    child->kill_group();
    return ended("did not answer");
  }
  probe::Reply reply;
  std::vector<Fd> maps;
  // A refusal carries no descriptors, so their number is looked at after the answer.
  std::string problem = probe::receive_packet(channel.get(), std::as_writable_bytes(std::span(&reply, 1)), &maps);
  if (problem == "closed") return ended("ended without an answer");
  if (!problem.empty()) return failure("kgate-probe answered with " + problem);
  if (reply.magic != probe::kMagic || reply.version != probe::kVersion)
    return failure("kgate-probe is not of this kgate", "Install kgate and kgate-probe together.");
  if (reply.ok != 1)
    return Failure{sanitize(probe::get_text(reply.what)), sanitize(probe::get_text(reply.where)),
                   sanitize(probe::get_text(reply.hint))};
  bool sound = maps.size() == probe::kReplyDescriptors && reply.mode != probe::Mode::automatic &&
               reply.mode <= probe::Mode::perf && std::isfinite(reply.ns_per_hit) && reply.ns_per_hit >= 0;
  if (!sound) return failure("kgate-probe's answer makes no sense");
  mode = static_cast<ProbeMode>(reply.mode);
  ns_per_hit = reply.ns_per_hit;
  ring_map = std::move(maps[probe::kRing]);
  counters = std::move(maps[probe::kCounters]);
  hits = std::move(maps[probe::kHits]);
  return {};
}

std::optional<Failure> ProbeProcess::State::open_maps() {
  libbpf_set_print([](libbpf_print_level, const char*, va_list) { return 0; });
  if (auto problem = check_map(ring_map, BPF_MAP_TYPE_RINGBUF, 0, 0)) return problem;
  if (auto problem = check_map(counters, BPF_MAP_TYPE_PERCPU_ARRAY, KGATE_COUNTERS, 8)) return problem;
  if (auto problem = check_map(hits, BPF_MAP_TYPE_PERCPU_ARRAY, KGATE_HIT_COUNTERS, 8)) return problem;
  cpus = libbpf_num_possible_cpus();
  if (cpus < 1) return failure(std::string("cannot count the processors: ") + std::strerror(-cpus));
  ring = ring_buffer__new(ring_map.get(), on_event, this, nullptr);
  if (ring == nullptr) return failure(std::string("cannot map the ring buffer: ") + std::strerror(errno));
  // One look-up now, so that none fails later.
  std::vector<uint64_t> values(static_cast<size_t>(cpus));
  uint32_t zero = 0;
  if (bpf_map_lookup_elem(counters.get(), &zero, values.data()) != 0)
    return failure(std::string("cannot read a counter: ") + std::strerror(errno),
                   "Linux 5.19 and newer let everyone read a map that was handed to him; or run kgate as root.");
  return {};
}

uint64_t ProbeProcess::State::sum(const Fd& map, uint32_t index) const {
  std::vector<uint64_t> values(static_cast<size_t>(cpus));
  if (bpf_map_lookup_elem(map.get(), &index, values.data()) != 0) return 0;
  uint64_t total = 0;
  for (uint64_t value : values) total += value;
  return total;
}

// Once an event: nothing but a copy.
int ProbeProcess::State::on_event(void* state, void* data, size_t size) {
  auto* self = static_cast<State*>(state);
  if (size < sizeof(kgate_host_event)) return 0;
  const auto* event = static_cast<const kgate_host_event*>(data);
  if (event->kind > KGATE_PROBE_FORK) return 0;
  self->sink->push_back({static_cast<HostEventKind>(event->kind), static_cast<uint16_t>(event->symbol), event->thread,
                         event->begin, event->end, event->state, event->run_queue});
  return 0;
}
static_assert(static_cast<int>(HostEventKind::api) == KGATE_PROBE_API &&
              static_cast<int>(HostEventKind::off_cpu) == KGATE_PROBE_OFF_CPU &&
              static_cast<int>(HostEventKind::fork) == KGATE_PROBE_FORK);

ProbeProcess::ProbeProcess(std::unique_ptr<State> state) : state_(std::move(state)) {}
ProbeProcess::~ProbeProcess() = default;

Result<std::unique_ptr<ProbeProcess>> ProbeProcess::start(int pid, const Fd& library,
                                                          const std::vector<ProbeSymbol>& symbols, ProbeMode mode,
                                                          bool scheduler) {
  if (symbols.size() > KGATE_MAX_SYMBOLS) return failure("more symbols than kgate-probe can tell apart");
  probe::Request request;
  request.process = static_cast<uint32_t>(pid);
  request.mode = static_cast<probe::Mode>(mode);
  request.scheduler = scheduler;
  for (size_t i = 0; i < symbols.size(); ++i)
    if (symbols[i].cost != ProbeSymbol::Cost::single_step)
      request.target[request.targets++] = {symbols[i].file_offset, i};
  auto state = std::make_unique<State>();
  if (auto problem = state->spawn()) return *problem;
  if (auto problem = state->ask(request, library)) return *problem;
  if (auto problem = state->open_maps()) return *problem;
  return std::unique_ptr<ProbeProcess>(new ProbeProcess(std::move(state)));
}

ProbeMode ProbeProcess::mode() const { return state_->mode; }
double ProbeProcess::ns_per_hit() const { return state_->ns_per_hit; }

void ProbeProcess::drain(std::vector<HostEvent>* events) {
  state_->sink = events;
  ring_buffer__consume(state_->ring);
}

uint64_t ProbeProcess::hits(uint32_t symbol) const { return state_->sum(state_->hits, symbol); }
uint64_t ProbeProcess::counter(uint32_t which) const { return state_->sum(state_->counters, which); }

std::string probe_program() {
  const char* path = std::getenv("KGATE_PROBE");
  return path && *path ? path : self_directory() + "/kgate-probe";
}

const char* attach_name(ProbeMode mode) {
  switch (mode) {
    case ProbeMode::session:
      return "uprobe_multi session";
    case ProbeMode::multi:
      return "uprobe_multi";
    case ProbeMode::perf:
      return "perf uprobe";
    case ProbeMode::automatic:
      break;
  }
  return "not attached";
}

}  // namespace kgate::trace
