#include "trace/bpf_program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "probes/host_event.h"
#include "support/fd.h"
#include "support/text.h"

// The object file, as the build compiled it from probes/host.bpf.c.
asm(".section .rodata\n.balign 16\n"
    ".globl kgate_bpf_object\nkgate_bpf_object:\n.incbin \"" KGATE_BPF_OBJECT
    "\"\n"
    ".globl kgate_bpf_object_end\nkgate_bpf_object_end:\n.byte 0\n.previous\n");
extern "C" const char kgate_bpf_object[], kgate_bpf_object_end[];

namespace kgate::trace {

namespace {

// From include/uapi/linux/bpf.h of kernel 6.13; older headers lack them.
constexpr uint32_t kTraceUprobeMulti = 48, kTraceUprobeSession = 57, kUprobeMultiReturn = 1;
struct MultiLinkAttributes {
  uint32_t program, target, attach_type, flags;
  uint64_t path, offsets, reference_counters, cookies;
  uint32_t count, multi_flags, pid, pad;
};

constexpr const char* kRightsHint =
    "Run kgate as root, or give it the rights: sudo setcap cap_bpf,cap_perfmon=ep $(command -v kgate)";
constexpr const char* kKernelHint =
    "Tier T0 needs Linux 5.18 or newer with BTF, or pass --require-tier T2 to do without eBPF.";

// libbpf reports through a process-wide callback; the last complaint of a call that failed says most.
std::mutex complaint_mutex;
std::string complaint;
int keep_complaint(libbpf_print_level level, const char* format, va_list arguments) {
  if (level != LIBBPF_WARN) return 0;
  char text[1024];
  vsnprintf(text, sizeof text, format, arguments);
  std::lock_guard lock(complaint_mutex);
  complaint = text;
  return 0;
}
std::string take_complaint() {
  std::lock_guard lock(complaint_mutex);
  return sanitize(trim(std::exchange(complaint, {})), 200);
}

Failure failure(const std::string& what, int error) {
  bool rights = error == EPERM || error == EACCES;
  std::string text = what + ": " + std::strerror(error);
  if (std::string detail = take_complaint(); !rights && !detail.empty()) text += " (" + detail + ")";
  return {text, "eBPF", rights ? kRightsHint : kKernelHint};
}

int link_create(int program, uint32_t attach_type, const std::string& path, const std::vector<uint64_t>& offsets,
                const std::vector<uint64_t>& cookies, int pid, bool on_return) {
  MultiLinkAttributes attributes{};
  attributes.program = static_cast<uint32_t>(program);
  attributes.attach_type = attach_type;
  attributes.path = reinterpret_cast<uint64_t>(path.c_str());
  attributes.offsets = reinterpret_cast<uint64_t>(offsets.data());
  attributes.cookies = reinterpret_cast<uint64_t>(cookies.data());
  attributes.count = static_cast<uint32_t>(offsets.size());
  attributes.multi_flags = on_return ? kUprobeMultiReturn : 0;
  attributes.pid = static_cast<uint32_t>(pid);
  return static_cast<int>(syscall(SYS_bpf, BPF_LINK_CREATE, &attributes, sizeof attributes));
}

}  // namespace

struct BpfProgram::State {
  Mode mode = Mode::perf;
  bpf_object* object = nullptr;
  ring_buffer* ring = nullptr;
  std::vector<bpf_link*> links;
  std::vector<Fd> raw_links;
  std::vector<HostEvent>* sink = nullptr;
  int hits = -1, counters = -1;
  int cpus = 1;

  ~State() {
    raw_links.clear();
    for (bpf_link* link : links) bpf_link__destroy(link);
    ring_buffer__free(ring);
    bpf_object__close(object);
  }
  bpf_program* program(const char* name) const { return bpf_object__find_program_by_name(object, name); }
  uint64_t sum(int map, uint32_t index) const {
    std::vector<uint64_t> values(static_cast<size_t>(cpus));
    if (bpf_map_lookup_elem(map, &index, values.data()) != 0) return 0;
    uint64_t total = 0;
    for (uint64_t value : values) total += value;
    return total;
  }

  std::optional<Failure> load();
  std::optional<Failure> configure(int pid);
  std::optional<Failure> attach_calls(int pid, const std::string& binary, const std::vector<ProbeSymbol>& symbols);
  std::optional<Failure> attach_perf(int pid, const std::string& binary, const std::vector<ProbeSymbol>& symbols);
  std::optional<Failure> attach_scheduler();
  std::optional<Failure> check_pid_filter();
  static int on_event(void* state, void* data, size_t size);
};

std::optional<Failure> BpfProgram::State::load() {
  LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "kgate");
  object =
      bpf_object__open_mem(kgate_bpf_object, static_cast<size_t>(kgate_bpf_object_end - kgate_bpf_object), &options);
  if (object == nullptr) return failure("cannot read the embedded eBPF object", errno);
  bool session = mode == Mode::session;
  bpf_program__set_autoload(program("call_session"), session);
  bpf_program__set_autoload(program("call_entry"), !session);
  bpf_program__set_autoload(program("call_return"), !session);
  if (mode != Mode::perf)
    for (const char* name : {"call_session", "call_entry", "call_return"})
      bpf_program__set_expected_attach_type(
          program(name), static_cast<bpf_attach_type>(session ? kTraceUprobeSession : kTraceUprobeMulti));
  if (int error = bpf_object__load(object); error != 0) return failure("cannot load the eBPF programs", -error);
  hits = bpf_object__find_map_fd_by_name(object, "hits");
  counters = bpf_object__find_map_fd_by_name(object, "counters");
  cpus = libbpf_num_possible_cpus();
  if (cpus < 1) return failure("cannot count the processors", -cpus);
  ring = ring_buffer__new(bpf_object__find_map_fd_by_name(object, "events"), on_event, this, nullptr);
  if (ring == nullptr) return failure("cannot map the ring buffer", errno);
  return {};
}

std::optional<Failure> BpfProgram::State::configure(int pid) {
  struct stat space {};
  if (stat("/proc/self/ns/pid", &space) != 0) return failure("cannot find the pid namespace", errno);
  kgate_probe_config config{space.st_dev, space.st_ino, static_cast<uint32_t>(pid), 0};
  uint32_t zero = 0;
  if (bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "config"), &zero, &config, BPF_ANY) != 0)
    return failure("cannot configure the eBPF programs", errno);
  return {};
}

// Kernels before mid-2024 matched the pid of a uprobe_multi link against the thread, so that only the main thread's
// calls were seen. The fix also refuses negative pids (libbpf tells them apart in the same way).
std::optional<Failure> BpfProgram::State::check_pid_filter() {
  int program_fd = bpf_program__fd(program(mode == Mode::session ? "call_session" : "call_entry"));
  Fd link(link_create(program_fd, mode == Mode::session ? kTraceUprobeSession : kTraceUprobeMulti, "/", {0}, {0}, -1,
                      false));
  if (!link && errno == EINVAL) return {};
  return Failure{"this kernel's uprobe_multi filters by thread, not by process", "eBPF", kKernelHint};
}

std::optional<Failure> BpfProgram::State::attach_calls(int pid, const std::string& binary,
                                                       const std::vector<ProbeSymbol>& symbols) {
  if (mode == Mode::perf) return attach_perf(pid, binary, symbols);
  if (auto problem = check_pid_filter()) return problem;
  std::vector<uint64_t> offsets, cookies;
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i].cost == ProbeSymbol::Cost::single_step) continue;
    offsets.push_back(symbols[i].file_offset);
    cookies.push_back(i);
  }
  auto add = [&](const char* name, uint32_t type, bool on_return) {
    int fd = link_create(bpf_program__fd(program(name)), type, binary, offsets, cookies, pid, on_return);
    if (fd >= 0) raw_links.emplace_back(fd);
    return fd >= 0;
  };
  // Return before entry: a call that is under way meanwhile is then missed whole, not halved.
  bool ok = mode == Mode::session
                ? add("call_session", kTraceUprobeSession, false)
                : add("call_return", kTraceUprobeMulti, true) && add("call_entry", kTraceUprobeMulti, false);
  if (!ok) return failure("cannot attach uprobes to " + binary, errno);
  return {};
}

std::optional<Failure> BpfProgram::State::attach_perf(int pid, const std::string& binary,
                                                      const std::vector<ProbeSymbol>& symbols) {
  for (bool on_return : {true, false}) {
    for (size_t i = 0; i < symbols.size(); ++i) {
      if (symbols[i].cost == ProbeSymbol::Cost::single_step) continue;
      LIBBPF_OPTS(bpf_uprobe_opts, options, .bpf_cookie = i, .retprobe = on_return);
      bpf_link* link = bpf_program__attach_uprobe_opts(program(on_return ? "call_return" : "call_entry"), pid,
                                                       binary.c_str(), symbols[i].file_offset, &options);
      if (link == nullptr) return failure("cannot attach a uprobe to " + symbols[i].name, errno);
      links.push_back(link);
    }
  }
  return {};
}

std::optional<Failure> BpfProgram::State::attach_scheduler() {
  for (const char* name : {"on_switch", "on_wakeup"}) {
    bpf_link* link = bpf_program__attach(program(name));
    if (link == nullptr) return failure("cannot attach to the scheduler's tracepoints", errno);
    links.push_back(link);
  }
  return {};
}

int BpfProgram::State::on_event(void* state, void* data, size_t size) {
  auto* self = static_cast<State*>(state);
  if (size < sizeof(kgate_host_event)) return 0;
  const auto* event = static_cast<const kgate_host_event*>(data);
  HostEventKind kind = event->kind == KGATE_PROBE_API ? HostEventKind::api : HostEventKind::off_cpu;
  self->sink->push_back({kind, static_cast<uint16_t>(event->symbol), event->thread, event->begin, event->end,
                         event->state, event->run_queue});
  return 0;
}

BpfProgram::BpfProgram(std::unique_ptr<State> state) : state_(std::move(state)) {}
BpfProgram::~BpfProgram() = default;

Result<std::unique_ptr<BpfProgram>> BpfProgram::attach_one(int pid, const std::string& binary,
                                                           const std::vector<ProbeSymbol>& symbols, Mode mode,
                                                           bool scheduler) {
  if (symbols.size() > KGATE_MAX_SYMBOLS) return Failure{"more symbols than the probes can count", binary, {}};
  libbpf_set_print(keep_complaint);
  auto state = std::make_unique<State>();
  state->mode = mode;
  if (auto problem = state->load()) return *problem;
  if (auto problem = state->configure(pid)) return *problem;
  if (auto problem = scheduler ? state->attach_scheduler() : std::nullopt) return *problem;
  if (auto problem = state->attach_calls(pid, binary, symbols)) return *problem;
  return std::unique_ptr<BpfProgram>(new BpfProgram(std::move(state)));
}

// What is missing for the best way is what is worth telling, unless rights are the problem everywhere.
Result<std::unique_ptr<BpfProgram>> BpfProgram::attach(int pid, const std::string& binary,
                                                       const std::vector<ProbeSymbol>& symbols, Mode wanted,
                                                       bool scheduler) {
  std::optional<Failure> first;
  for (Mode mode : {Mode::session, Mode::multi, Mode::perf}) {
    if (wanted != Mode::automatic && wanted != mode) continue;
    auto attached = attach_one(pid, binary, symbols, mode, scheduler);
    if (attached) return attached;
    if (!first || attached.failure().hint == kRightsHint) first = attached.failure();
  }
  return *first;
}

BpfProgram::Mode BpfProgram::mode() const { return state_->mode; }

void BpfProgram::drain(std::vector<HostEvent>* events) {
  state_->sink = events;
  ring_buffer__consume(state_->ring);
}

uint64_t BpfProgram::hits(uint32_t symbol) const { return state_->sum(state_->hits, symbol); }
uint64_t BpfProgram::counter(uint32_t which) const { return state_->sum(state_->counters, which); }

const char* attach_name(BpfProgram::Mode mode) {
  switch (mode) {
    case BpfProgram::Mode::session:
      return "uprobe_multi session";
    case BpfProgram::Mode::multi:
      return "uprobe_multi";
    default:
      break;
  }
  return "perf uprobe";
}

}  // namespace kgate::trace
