// The trace store: events a second from records and host events to the finished file, and what people and the judge ask
// of a trace of a million launches.
#include <benchmark/benchmark.h>

#include <map>

#include "judge/metrics.h"
#include "support/fd.h"
#include "trace/stream.h"

namespace kgate {
namespace {

constexpr uint32_t kThread = 4242;

// A process that launches `launches` kernels on two threads, eight to a request; every call seen by the probes, every
// wait off the CPU.
struct Application {
  test::Stream stream;
  std::vector<HostEvent> host_events;
  uint64_t events = 0;
};

Application application(uint32_t launches) {
  Application app;
  for (uint32_t name = 0; name < 20; ++name) app.stream.name(name, "_Z6kernelILi" + std::to_string(name) + "EEvPfi");
  uint64_t at = 1'000'000'000;
  app.stream.add(wire::Kind::process, wire::kNoRound,
                 wire::ProcessRecord{{}, at, at + uint64_t{launches} * 20'000 + 1'000'000, 77, 1});
  app.stream.add(wire::Kind::collector, wire::kNoRound, wire::CollectorRecord{});
  for (uint32_t i = 0; i < launches; ++i, at += 10'000) {
    uint32_t thread = kThread + i / 8 % 2, correlation = i + 1;
    app.stream.api(at + 100, at + 2'000, correlation, thread);
    app.stream.kernel(at + 15'000, at + 15'000 + 3'000 + i % 977, correlation, i % 20, 4 + i % 5, thread);
    app.host_events.push_back({HostEventKind::api, 0, thread, at, at + 2'100, 0, 0});
    app.events += 3;
    if (i % 8 != 7) continue;
    at += 5'000;
    app.stream.api(at + 100, at + 20'000, 0x80000000u + i, thread, gpu::CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize);
    app.stream.add(wire::Kind::sync, wire::kNoRound,
                   wire::SyncRecord{{}, at + 200, at + 19'000, 3, 0x80000000u + i, thread, 1});
    app.host_events.push_back({HostEventKind::api, 1, thread, at, at + 20'100, 0, 0});
    app.host_events.push_back({HostEventKind::off_cpu, 0, thread, at + 1'000, at + 18'000, 1, 500});
    app.events += 4;
  }
  return app;
}

std::unique_ptr<TraceStore> store_of(const Application& app, const std::filesystem::path& path) {
  auto store = TraceStore::create(path, {"T0", {}}, {});
  ProcessTrace process;
  process.process = 77;
  process.records = app.stream.bytes();
  process.host_events = app.host_events;
  process.symbols = {{"cuLaunchKernel", ProbeSymbol::Use::launch, ProbeSymbol::Cost::emulated, 0, 0},
                     {"cuStreamSynchronize", ProbeSymbol::Use::sync, ProbeSymbol::Cost::emulated, 0, 0}};
  process.probes = ProbeHealth{};
  store->add_process(process);
  return store;
}

void BM_ingest(benchmark::State& state) {
  TempDir dir;
  Application app = application(static_cast<uint32_t>(state.range(0)));
  for (auto _ : state) store_of(app, dir.path() / "a.db");
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(app.events));
}
BENCHMARK(BM_ingest)->Arg(20'000)->Arg(300'000)->Unit(benchmark::kMillisecond)->UseRealTime();

void BM_ingest_and_finish(benchmark::State& state) {
  TempDir dir;
  Application app = application(static_cast<uint32_t>(state.range(0)));
  for (auto _ : state) store_of(app, dir.path() / "a.db")->finish();
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(app.events));
}
BENCHMARK(BM_ingest_and_finish)->Arg(300'000)->Unit(benchmark::kMillisecond)->UseRealTime();

// Made once: a finished trace of a million launches.
const std::filesystem::path& million() {
  static TempDir dir;
  static std::filesystem::path path = [] {
    store_of(application(1'000'000), dir.path() / "million.db")->finish();
    return dir.path() / "million.db";
  }();
  return path;
}

void BM_query_by_name(benchmark::State& state) {
  million();
  for (auto _ : state) {
    auto store = TraceStore::open(million()).value_or_throw(Exit::internal);
    size_t rows = 0;
    auto result = store->query(
        "SELECT kernel_name, COUNT(*), AVG(duration_ns), p99(duration_ns) FROM kernel_launches GROUP BY kernel_name",
        [&](auto&, auto&) { ++rows; });
    if (!result || rows != 20) state.SkipWithError("wrong result");
  }
}
BENCHMARK(BM_query_by_name)->Unit(benchmark::kMillisecond);

void BM_read_kernels(benchmark::State& state) {
  auto store = TraceStore::open(million()).value_or_throw(Exit::internal);
  for (auto _ : state) benchmark::DoNotOptimize(store->kernels().size());
}
BENCHMARK(BM_read_kernels)->Unit(benchmark::kMillisecond);

void BM_measure(benchmark::State& state) {
  auto store = TraceStore::open(million()).value_or_throw(Exit::internal);
  for (auto _ : state) benchmark::DoNotOptimize(measure(*store, false).size());
}
BENCHMARK(BM_measure)->Unit(benchmark::kMillisecond);

void BM_classes(benchmark::State& state) {
  auto store = TraceStore::open(million()).value_or_throw(Exit::internal);
  for (auto _ : state) benchmark::DoNotOptimize(store->classes().size());
}
BENCHMARK(BM_classes)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kgate

BENCHMARK_MAIN();
