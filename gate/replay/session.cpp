// One conversation with one worker, step by step. A step that fails fills in the outcome and ends the conversation; the
// worker and all that it started are dead before the outcome leaves this file, so that nobody reads memory that is
// still written.
#include "replay/session.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "replay/schedstat.h"
#include "replay/sizing.h"
#include "replay/worker_process.h"
#include "support/process.h"
#include "support/text.h"

namespace kgate {

using std::chrono::milliseconds;
using worker::ChannelState;
using worker::Message;
using Type = Message::Type;

const char* worker_end_name(WorkerEnd end) {
  switch (end) {
    case WorkerEnd::completed:
      return "completed";
    case WorkerEnd::fault:
      return "fault";
    case WorkerEnd::crashed:
      return "crashed";
    case WorkerEnd::hung:
      return "hung";
    case WorkerEnd::garbage:
      return "garbage";
    case WorkerEnd::failed_to_start:
      return "failed to start";
  }
  return "?";
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr milliseconds kSlice{50};          // how late an interrupt is noticed
constexpr milliseconds kLastWords{10'000};  // between a fault and `done`, and from `done` to the end of the process
constexpr milliseconds kCanarySeen{2'000};  // for the probes' records to arrive

// A worker that makes all calls in order ends the requests in the order of their last calls.
std::vector<uint32_t> requests_by_end(const Workload& workload) {
  std::vector<uint32_t> order(workload.requests.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return workload.requests[a].calls.back() < workload.requests[b].calls.back();
  });
  return order;
}

class Session {
 public:
  Session(const ReplayPlan& plan, const Workload& workload, const SessionOptions& options)
      : plan_(plan), workload_(workload), options_(options) {}

  WorkerOutcome run() {
    if (start() && attach_probes() && prepare() && check_canary() && replay() && finish())
      outcome_.end = WorkerEnd::completed;
    collect();
    return std::move(outcome_);
  }

 private:
  bool reports_requests() const { return plan_.mode == ReplayMode::numeric || plan_.mode == ReplayMode::live; }
  bool start();
  bool attach_probes();
  bool prepare();
  bool check_canary();
  bool replay();
  bool finish();
  void collect();

  bool send(Type type);
  bool await(Type type, milliseconds timeout, const std::string& after, Message* message);
  bool take_fault(const Message& message);
  bool await_progress(const Round& round, std::optional<uint32_t> request, milliseconds timeout,
                      const std::string& after);
  bool died(const std::string& after);
  bool end(WorkerEnd how, std::string detail);
  void take_host_events();
  void take_schedstat();

  const ReplayPlan& plan_;
  const Workload& workload_;
  const SessionOptions& options_;
  TempDir folder_{"kgate-plan"};
  std::optional<WorkerProcess> process_;
  std::optional<worker::Channel> channel_;
  std::unique_ptr<HostProbes> probes_;
  std::optional<SchedStat> schedstat_;
  Message canary_;
  bool was_ready_ = false, collecting_ = false;
  WorkerOutcome outcome_;
};

bool Session::end(WorkerEnd how, std::string detail) {
  outcome_.end = how;
  outcome_.detail = std::move(detail);
  if (process_ && process_->child) process_->child->kill_group();
  return false;
}

// The socket is closed: how did the process end, and what did it say?
bool Session::died(const std::string& after) {
  ExitStatus status = process_->child->wait(kLastWords);
  std::string words = process_->last_words();
  std::string detail = describe(status) + " " + after + (words.empty() ? "" : ": " + words);
  if (status.timed_out) return end(WorkerEnd::garbage, "closed the channel and went on running " + after);
  return end(was_ready_ || status.signal ? WorkerEnd::crashed : WorkerEnd::failed_to_start, detail);
}

bool Session::send(Type type) {
  Message message;
  message.type = type;
  channel_->send(message);  // a closed channel is noticed by the await that follows
  return true;
}

// The next message, which must be a `type`. A fault is legal at any time.
bool Session::await(Type type, milliseconds timeout, const std::string& after, Message* message) {
  std::string garbage;
  for (auto deadline = Clock::now() + timeout;;) {
    auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    ChannelState state =
        channel_->receive(message, static_cast<int>(std::clamp(left, milliseconds(0), kSlice).count()), &garbage);
    take_host_events();
    if (interrupted()) return end(WorkerEnd::hung, "interrupted");
    if (state == ChannelState::closed) return died(after);
    if (state == ChannelState::garbage) return end(WorkerEnd::garbage, garbage);
    if (state == ChannelState::timeout) {
      if (left.count() > 0) continue;
      return end(WorkerEnd::hung,
                 "no answer for " + format_ns(static_cast<double>(timeout.count()) * 1e6) + " " + after);
    }
    if (message->type == Type::fault) return take_fault(*message);
    if (message->type == type) return true;
    return end(WorkerEnd::garbage, std::string("'") + message_type_name(message->type) + "' instead of '" +
                                       message_type_name(type) + "' " + after);
  }
}

bool Session::take_fault(const Message& message) {
  const auto& fault = message.fault;
  outcome_.fault = fault;
  std::string detail = fault.name + " at " + fault.stage + (fault.detail.empty() ? "" : ": " + fault.detail);
  Message done;
  channel_->receive(&done, static_cast<int>(kLastWords.count()));
  return end(WorkerEnd::fault, detail);
}

bool Session::start() {
  write_plan(plan_, folder_.path());
  bool is_virtual = options_.device.kind == gpu::DeviceKind::virtual_gpu;
  WorkerSizes sizes = worker_sizes(plan_, workload_, is_virtual);
  auto round_ms = options_.round_timeout.count() + static_cast<int64_t>(planned_round_ns(plan_, workload_) / 1'000'000);
  auto steps = reports_requests() ? workload_.requests.size() + 1 : 1;
  double wall = static_cast<double>(options_.start_timeout.count()) +
                static_cast<double>(round_ms) * static_cast<double>(plan_.rounds.size() * steps);
  constexpr double kDay = 86'400;
  sizes.cpu_seconds = static_cast<uint64_t>(std::min(60 + wall / 1000 * (workload_.threads + 4), 7 * kDay));
  sizes.fixed_addresses = plan_.placement == Placement::recorded;
  auto process = spawn_worker(sizes);
  if (!process) return end(WorkerEnd::failed_to_start, process.failure().where + " " + process.failure().what);
  process_.emplace(std::move(*process));
  channel_.emplace(process_->control.get());

  Message hello;
  hello.type = Type::hello;
  hello.hello = {options_.device.library, options_.device.ordinal, folder_.path().string(),
                 sizes.record_bytes,      sizes.readback_bytes,    {}};
  bool counters = plan_.mode == ReplayMode::counters;
  if (counters || (plan_.trace && options_.collect_cupti))
    hello.hello.cupti = !options_.cupti.empty() ? options_.cupti : is_virtual ? options_.device.library : find_cupti();
  hello.hello.collect = options_.collect;
  collecting_ = !counters && !hello.hello.cupti.empty();
  channel_->send(hello);
  Message ready;
  if (!await(Type::ready, options_.start_timeout, "before it was ready", &ready)) return false;
  if (ready.pid != process_->child->pid())
    return end(WorkerEnd::garbage, "claims to be process " + std::to_string(ready.pid));
  return was_ready_ = true;
}

// A tier that is not reached is no failure here: the caller decides what it needs.
bool Session::attach_probes() {
  if (!plan_.trace || !options_.attach_probes) return true;
  std::string library = options_.device.library;
  if (library.find('/') == std::string::npos) library = mapped_library(process_->child->pid(), library);
  std::error_code error;
  auto path = std::filesystem::canonical(library, error);
  if (error) {
    outcome_.probe_failure =
        "cannot find the driver library that the worker loaded ('" + options_.device.library + "')";
    return true;
  }
  using Use = ProbeSymbol::Use;
  ProbeOptions options;
  options.uses = {Use::launch, Use::graph_launch, Use::sync};  // what the worker does while it is measured
  auto probes = HostProbes::attach(process_->child->pid(), path.string(), options);
  if (probes)
    probes_ = std::move(*probes);
  else
    outcome_.probe_failure =
        probes.failure().what + (probes.failure().hint.empty() ? "" : " (" + probes.failure().hint + ")");
  return true;
}

bool Session::prepare() {
  send(Type::start);
  Message message;
  if (!await(Type::device, options_.start_timeout, "while the driver was initialised", &message)) return false;
  outcome_.device = message.device;
  if (!await(Type::loaded, options_.start_timeout, "while modules were loaded", &message)) return false;
  outcome_.load_ns = message.numbers;
  if (!await(Type::placed, options_.start_timeout, "while memory was placed", &message)) return false;
  outcome_.wanted = static_cast<uint32_t>(std::min(message.numbers.at("wanted"), 1e9));
  outcome_.exact = static_cast<uint32_t>(std::min(message.numbers.at("exact"), 1e9));
  return await(Type::canary, options_.start_timeout, "after the modules were loaded", &canary_);
}

// Exactly one launch and one synchronisation lie between the canary's times. A canary that fails is not the worker's
// fault: it says that the probes are not to be believed.
bool Session::check_canary() {
  if (!probes_) return true;
  constexpr double kRounding = 16;  // ns: the times travelled as doubles
  double begin = canary_.numbers.at("begin") - kRounding, finish = canary_.numbers.at("end") + kRounding;
  auto symbols = probes_->symbols();
  for (auto deadline = Clock::now() + kCanarySeen;;) {
    take_host_events();
    int launches = 0, syncs = 0;
    for (const HostEvent& e : outcome_.host_events) {
      if (e.kind != HostEventKind::api || e.symbol >= symbols.size()) continue;
      if (static_cast<double>(e.begin) < begin || static_cast<double>(e.end) > finish) continue;
      launches += symbols[e.symbol].use == ProbeSymbol::Use::launch;
      syncs += symbols[e.symbol].use == ProbeSymbol::Use::sync;
    }
    outcome_.canary_ok = launches == 1 && syncs == 1 && probes_->hits(ProbeSymbol::Use::launch) == 1;
    if (outcome_.canary_ok || Clock::now() >= deadline || interrupted()) return true;
    ::usleep(1000);
  }
}

bool Session::await_progress(const Round& round, std::optional<uint32_t> request, milliseconds timeout,
                             const std::string& after) {
  Message message;
  if (!await(Type::progress, timeout, after, &message)) return false;
  auto said = message.numbers.find("request");
  bool right = message.numbers.at("round") == round.round && (said != message.numbers.end()) == request.has_value() &&
               (!request || said->second == *request);
  return right ? true : end(WorkerEnd::garbage, "progress out of order " + after);
}

bool Session::replay() {
  if (plan_.trace && !probes_) take_schedstat();
  send(Type::go);
  milliseconds timeout = options_.round_timeout + milliseconds(planned_round_ns(plan_, workload_) / 1'000'000);
  std::string after = "before the first round";
  for (uint32_t i = 0; i < plan_.rounds.size(); ++i) {
    const Round& round = plan_.rounds[i];
    if (reports_requests())
      for (uint32_t r : requests_by_end(workload_))
        if (!await_progress(round, r, timeout, "in request " + std::to_string(r))) return false;
    if (!await_progress(round, std::nullopt, timeout, after)) return false;
    if (plan_.trace && !probes_) take_schedstat();
    after = "after round " + std::to_string(round.round);
    if (options_.on_progress) options_.on_progress(i + 1);
  }
  return true;
}

bool Session::finish() {
  Message done;
  if (!await(Type::done, options_.round_timeout, "after the last round", &done)) return false;
  if (done.collected != collecting_) return end(WorkerEnd::garbage, "a wrong account of the device-side collection");
  if (done.collected) outcome_.collector = done.health;
  ExitStatus status = process_->child->wait(kLastWords);
  if (status.timed_out) return end(WorkerEnd::hung, interrupted() ? "interrupted" : "did not end after it was done");
  if (!status.ok()) return end(WorkerEnd::crashed, describe(status) + " after it was done");
  return true;
}

void Session::take_host_events() {
  if (!probes_) return;
  auto events = probes_->take();
  outcome_.host_events.insert(outcome_.host_events.end(), events.begin(), events.end());
}

// Tier T2: no eBPF, so the scheduler's own account, once a round.
void Session::take_schedstat() {
  if (!schedstat_) schedstat_.emplace(process_->child->pid());
  auto events = schedstat_->sample();
  outcome_.host_events.insert(outcome_.host_events.end(), events.begin(), events.end());
}

// Whatever happened, the records that were written are kept: they show how far it came.
void Session::collect() {
  if (!process_) return;
  process_->child->kill_group();
  process_->child->wait(milliseconds(0));
  if (probes_) {
    take_host_events();
    outcome_.symbols = probes_->symbols();
    outcome_.probes = probes_->health();
  }
  auto map = [](const Fd& fd, Mapping& into) {
    off_t bytes = fd ? ::lseek(fd.get(), 0, SEEK_END) : 0;
    if (bytes <= 0) return;
    into = Mapping::of(fd, static_cast<size_t>(bytes), false).value_or_throw(Exit::internal);
  };
  map(process_->records, outcome_.records);
  map(process_->readback, outcome_.readback);
}

}  // namespace

WorkerOutcome run_worker(const ReplayPlan& plan, const Workload& workload, const SessionOptions& options) {
  validate_plan(plan, workload).value_or_throw(Exit::internal);
  return Session(plan, workload, options).run();
}

}  // namespace kgate
