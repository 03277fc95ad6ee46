// kgate-worker: the process that loads untrusted kernels. It has no rights, is watched by kgate, and ends with _exit:
// no destructor may run through a driver whose context a kernel has broken.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "worker/canary.h"
#include "worker/counters.h"
#include "worker/engine.h"
#include "worker/fidelity.h"
#include "worker/graphs.h"
#include "worker/live.h"
#include "worker/protocol.h"
#include "workload/kgw.h"

namespace kgate::worker {
namespace {

// What lives as long as the process.
struct Worker {
  Channel channel{kControlFd};
  Hello hello;
  Position position;
  std::unique_ptr<gpu::Driver> driver;
  std::unique_ptr<RecordWriter> writer;
  Mapping readback;
  Workload workload;
  ReplayPlan plan;
  std::unique_ptr<CuptiCollector> collector;
};

[[noreturn]] void quit(int code) { ::_exit(code); }

void send(Worker& worker, const Message& message) {
  if (!worker.channel.send(message)) quit(1);  // kgate is gone
}

Message expect(Worker& worker, Message::Type type) {
  Message message;
  std::string garbage;
  ChannelState state = worker.channel.receive(&message, -1, &garbage);
  if (state == ChannelState::closed) quit(1);
  if (state != ChannelState::message || message.type != type) {
    std::fprintf(stderr, "kgate-worker: expected '%s' from kgate: %s\n", message_type_name(type), garbage.c_str());
    quit(1);
  }
  return message;
}

void send_numbers(Worker& worker, Message::Type type, std::map<std::string, double> numbers) {
  Message message;
  message.type = type;
  message.numbers = std::move(numbers);
  send(worker, message);
}

void open_driver(Worker& worker) {
  worker.driver = gpu::Driver::open(worker.hello.library).value_or_throw(Exit::environment);
  Message ready;
  ready.type = Message::Type::ready;
  ready.pid = ::getpid();
  send(worker, ready);
  expect(worker, Message::Type::start);
}

void read_inputs(Worker& worker) {
  worker.plan = read_plan(worker.hello.plan).value_or_throw(Exit::internal);
  worker.workload = read_kgw(worker.plan.workload).value_or_throw(Exit::bad_input);
  validate_plan(worker.plan, worker.workload).value_or_throw(Exit::internal);
  worker.writer = RecordWriter::open(Fd(kRecordFd), worker.hello.record_bytes).value_or_throw(Exit::internal);
  if (worker.hello.readback_bytes > 0)
    worker.readback = Mapping::of(Fd(kReadbackFd), worker.hello.readback_bytes, true).value_or_throw(Exit::internal);
  for (const auto& region : readback_layout(worker.plan, worker.workload))
    if (region.offset + 2 * region.guard + region.bytes > worker.readback.size())
      throw WorkerError("internal", "the readback memory is smaller than the plan's layout");
}

// Device-side collection starts before the driver is initialised: what comes earlier is not seen.
void initialise(Worker& worker) {
  if (!worker.hello.cupti.empty() && worker.plan.mode != ReplayMode::counters) {
    Collect collect = worker.hello.collect;
    collect.graph_nodes = !worker.workload.graphs.empty();
    worker.collector = CuptiCollector::start(worker.hello.cupti, collect).value_or_throw(Exit::environment);
  }
  worker.driver->initialise(worker.hello.ordinal, worker.workload.blocking_sync);
  Message device;
  device.type = Message::Type::device;
  device.device = worker.driver->properties();
  send(worker, device);
}

void announce_canary(Worker& worker) {
  worker.position = {.stage = "canary"};
  Canary canary = run_canary(*worker.driver);
  if (worker.collector) worker.collector->drain(*worker.writer, wire::kNoRound);
  send_numbers(worker, Message::Type::canary,
               {{"launches", 1},
                {"syncs", 1},
                {"begin", static_cast<double>(canary.begin)},
                {"end", static_cast<double>(canary.end)}});
  expect(worker, Message::Type::go);
}

// Graphs run as graphs where time counts. The virtual GPU counts launch by launch, so there they are taken apart.
bool rebuilds_graphs(const Worker& worker) {
  if (worker.workload.graphs.empty()) return false;
  return worker.plan.mode == ReplayMode::fidelity ||
         (worker.plan.mode == ReplayMode::timing && !worker.driver->is_virtual());
}

void replay(Worker& worker) {
  LoadedKernels kernels = load_kernels(*worker.driver, worker.workload, worker.plan, worker.position);
  worker.position = {.stage = "memory"};
  DeviceBuffers buffers(*worker.driver, worker.workload, worker.plan);
  auto arms = prepare_arms(*worker.driver, worker.workload, worker.plan, kernels, buffers, worker.position);
  Shared shared(*worker.driver, worker.workload, worker.plan, buffers);
  worker.position = {.stage = "bind"};
  if (worker.plan.mode == ReplayMode::live)
    shared.recorded = prepare_recorded(*worker.driver, worker.workload, kernels, buffers);
  if (rebuilds_graphs(worker))
    shared.graphs = build_graphs(*worker.driver, worker.workload, arms, buffers, shared.events, worker.collector.get(),
                                 *worker.writer, worker.position);
  send_numbers(worker, Message::Type::loaded, kernels.load_ns);
  send_numbers(worker, Message::Type::placed, {{"wanted", buffers.wanted()}, {"exact", buffers.exact()}});
  announce_canary(worker);

  EngineOutput output{*worker.writer, worker.collector.get(), {}, worker.readback.bytes()};
  output.progress = [&](uint32_t round, std::optional<uint32_t> request) {
    std::map<std::string, double> numbers{{"round", round}};
    if (request) numbers["request"] = *request;
    send_numbers(worker, Message::Type::progress, std::move(numbers));
  };
  worker.position = {.stage = "launch"};
  switch (worker.plan.mode) {
    case ReplayMode::numeric:
      run_numeric(shared, arms, output);
      break;
    case ReplayMode::timing:
      run_timing(shared, arms, output);
      break;
    case ReplayMode::live:
      run_live(shared, arms, output);
      break;
    case ReplayMode::fidelity:
      run_fidelity(shared, arms, output);
      break;
    case ReplayMode::counters:
      worker.position = {.stage = "counters"};
      run_counters(shared, arms, output, worker.hello.cupti);
      break;
  }
  worker.driver->synchronize_context();
}

void finish(Worker& worker) {
  Message done;
  done.type = Message::Type::done;
  if (worker.collector) {
    done.health = worker.collector->finish(*worker.writer);
    done.collected = true;
  }
  send(worker, done);
  quit(0);
}

// The collector is not asked any more: after a fault its own calls fail, or hang.
[[noreturn]] void report(Worker& worker, FaultEvent event) {
  Message message;
  message.type = Message::Type::fault;
  message.fault = std::move(event);
  send(worker, message);
  message = {};
  message.type = Message::Type::done;
  send(worker, message);
  quit(0);
}

[[noreturn]] void serve() {
  static Worker worker;  // outlives the handlers below; never destroyed
  worker.hello = expect(worker, Message::Type::hello).hello;
  try {
    open_driver(worker);
    read_inputs(worker);
    initialise(worker);
    replay(worker);
    finish(worker);
  } catch (const ThreadFault& fault) {
    report(worker, fault.event);
  } catch (...) {
    report(worker, current_fault(worker.position, worker.driver.get()));
  }
  quit(1);
}

}  // namespace
}  // namespace kgate::worker

int main() {
  using namespace kgate::worker;
  if (::fcntl(kControlFd, F_GETFD) < 0 || ::fcntl(kRecordFd, F_GETFD) < 0) {
    std::fprintf(stderr, "kgate-worker is started by kgate and does nothing on its own\n");
    return 64;
  }
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);  // no module is loaded by its first launch
  serve();
}
