// The whole tracer on a device: probes attached from outside, CUPTI inside, one joined trace, nothing lost. Runs on the
// real driver with CUPTI where there are both, and on the virtual GPU where its library was built; skipped, with the
// reason, elsewhere.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu/driver.h"
#include "stream.h"
#include "support/fd.h"
#include "trace/collector.h"
#include "trace/probes.h"
#include "trace/store.h"

namespace kgate {
namespace {

constexpr size_t kRecordBytes = 32 << 20;
constexpr uint32_t kRounds = 2, kRequests = 200, kLaunches = 3;

constexpr char kPtx[] = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry count_up(.param .u64 out)
{
  .reg .u64 %rd<4>;
  .reg .u32 %r<4>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r2, [%rd3];
  add.u32 %r2, %r2, 1;
  st.global.u32 [%rd3], %r2;
  ret;
}
)";

uint64_t now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

struct Report {  // from the child, beside the records
  bool failed = false;
  char error[400] = {};
  CollectorHealth health;  // only its numbers cross the socket
};

void replay(gpu::Driver& driver, CuptiCollector& collector, RecordWriter& writer) {
  driver.initialise(0);
  gpu::CUmodule module = driver.load_module(std::as_bytes(std::span(kPtx)));
  gpu::Launch launch;
  launch.function = driver.function(module, "count_up");
  launch.grid = {1, 1, 1}, launch.block = {32, 1, 1};
  launch.stream = driver.create_stream();
  gpu::CUdeviceptr data = driver.allocate(4096);
  driver.fill(data, 0, 4096, launch.stream);
  auto params = std::as_bytes(std::span(&data, 1));
  driver.launch(launch, params);
  driver.synchronize(launch.stream);
  collector.drain(writer, wire::kNoRound);

  auto thread = static_cast<uint32_t>(syscall(SYS_gettid));
  RecordWriter::Stage stage(4 << 20);
  for (uint32_t round = 0; round < kRounds; ++round) {
    uint64_t began = now();
    for (uint32_t i = 0; i < kRequests; ++i) {
      wire::RequestRecord request{};
      request.head = wire::head<wire::RequestRecord>(wire::Kind::request, round);
      request.issue = request.due = now();
      request.request = request.sequence = i, request.thread = thread, request.phase = wire::Phase::measured;
      for (uint32_t k = 0; k < kLaunches; ++k) {
        wire::LaunchRecord record{};
        record.head = wire::head<wire::LaunchRecord>(wire::Kind::launch, round);
        record.begin = now();
        driver.launch(launch, params);
        record.end = now();
        record.sequence = record.request = i, record.phase = wire::Phase::measured, record.thread = thread;
        stage.append(record);
      }
      driver.synchronize(launch.stream);
      request.end = now();
      stage.append(request);
    }
    wire::RoundRecord record{wire::head<wire::RoundRecord>(wire::Kind::round, round), began, now(), 0, round};
    stage.append(record);
    driver.synchronize_context();
    writer.merge(stage);
    collector.drain(writer, round);
  }
}

// What the worker does, in small.
[[noreturn]] void child(const std::string& library, const std::string& cupti, const Fd& memfd, int socket) {
  Report report;
  auto fail = [&](const std::string& why) {
    report.failed = true;
    why.copy(report.error, sizeof report.error - 1);
  };
  auto driver = gpu::Driver::open(library);
  auto writer = RecordWriter::open(memfd, kRecordBytes);
  char byte = 'r';
  (void)!write(socket, &byte, 1);
  (void)!read(socket, &byte, 1);  // probes are attached
  auto collector = CuptiCollector::start(cupti);
  if (!driver)
    fail(driver.failure().what);
  else if (!writer)
    fail(writer.failure().what);
  else if (!collector)
    fail(collector.failure().what);
  else {
    try {
      replay(**driver, **collector, **writer);
      report.health = (*collector)->finish(**writer);
    } catch (const std::exception& error) {
      fail(error.what());
    }
  }
  uint64_t numbers[] = {report.failed,
                        report.health.dropped,
                        report.health.forced,
                        report.health.invalid_times,
                        report.health.unknown_records,
                        report.health.buffers_exhausted,
                        static_cast<uint64_t>(report.health.clock_offset_begin),
                        static_cast<uint64_t>(report.health.clock_offset_end),
                        report.health.clock_half_width};
  (void)!write(socket, numbers, sizeof numbers);
  (void)!write(socket, report.error, sizeof report.error);
  _exit(0);
}

void trace_device(const std::string& library, const std::string& cupti) {
  Fd memfd = std::move(*make_memfd("records", kRecordBytes));
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
  pid_t pid = fork();
  if (pid == 0) child(library, cupti, memfd, sockets[1]);
  close(sockets[1]);
  char byte;
  ASSERT_EQ(read(sockets[0], &byte, 1), 1);
  auto probes = HostProbes::attach(pid, library);
  (void)!write(sockets[0], &byte, 1);
  uint64_t n[9] = {};
  char error[400] = {};
  (void)!read(sockets[0], n, sizeof n);
  (void)!read(sockets[0], error, sizeof error);
  waitpid(pid, nullptr, 0);
  ASSERT_EQ(n[0], 0u) << error;
  CollectorHealth health;
  health.dropped = n[1], health.forced = n[2], health.invalid_times = n[3], health.unknown_records = n[4];
  health.buffers_exhausted = n[5], health.clock_offset_begin = static_cast<int64_t>(n[6]);
  health.clock_offset_end = static_cast<int64_t>(n[7]), health.clock_half_width = n[8];

  TempDir dir;
  ArmKernels plan;
  plan.workload_kernels = {{"count_up", "id"}};
  plan.arm_kernels = {{}};
  plan.judged_launch = {true}, plan.launch_kernel = {0};
  auto store = TraceStore::create(dir.path() / "run.kgt", {"T0", {}}, plan);
  auto mapping = Mapping::of(memfd, kRecordBytes, false);
  std::vector<HostEvent> events;
  std::vector<ProbeSymbol> symbols;
  std::optional<ProbeHealth> probe_health;
  if (probes)
    events = (*probes)->take(), symbols = (*probes)->symbols(), probe_health = (*probes)->health();
  else
    std::printf("without probes: %s\n", probes.failure().what.c_str());
  store->add_block(mapping->bytes(), events, symbols, probe_health ? &*probe_health : nullptr, &health);
  for (const HealthRow& row : store->health()) {
    std::printf("%-30s %12.6g  limit %g  %s\n", row.name.c_str(), row.value, row.limit, row.note.c_str());
    EXPECT_TRUE(row.ok()) << row.name << " " << row.value << " " << row.note;
  }
  std::printf("clock offset %lld ns, half width %llu ns\n", static_cast<long long>(n[6]),
              static_cast<unsigned long long>(n[8]));
  size_t timed = 0;
  for (const KernelRow& row : store->kernels()) timed += row.phase == wire::Phase::measured && row.end > row.start;
  EXPECT_EQ(timed, kRounds * kRequests * kLaunches);
  if (probes) {
    EXPECT_EQ((*probes)->hits(ProbeSymbol::Use::launch), kRounds * kRequests * kLaunches + 1);
  }
  for (const char* sql :
       {"SELECT kernel_name, COUNT(*), p50(duration_ns), p99(duration_ns), p50(launch_ns), p50(queue_ns) FROM "
        "kernel_launches",
        "SELECT name, phase, COUNT(*), p50(end_ns - start_ns) FROM api_calls GROUP BY name, phase",
        "SELECT name, COUNT(*), p50(end_ns - begin_ns) FROM host_calls GROUP BY name",
        "SELECT kind, COUNT(*), SUM(end_ns - start_ns), SUM(round IS NOT NULL) FROM overheads GROUP BY kind",
        "SELECT type, COUNT(*), p50(end_ns - start_ns) FROM syncs GROUP BY type",
        "SELECT p50(service_ns), p99(service_ns) FROM requests",
        "SELECT state, COUNT(*), SUM(end_ns - begin_ns) FROM off_cpu WHERE round IS NOT NULL GROUP BY state"}) {
    auto done = store->query(sql, [](auto&, auto& values) {
      for (auto& v : values) std::printf("%s | ", v.value_or("NULL").c_str());
      std::printf("\n");
    });
    ASSERT_TRUE(done) << done.failure().what;
  }
  EXPECT_EQ(store->api_calls().empty(), false);
}

TEST(Device, trace_of_the_real_gpu_is_whole) {
  if (std::string cupti = find_cupti(); cupti.empty())
    GTEST_SKIP() << "no CUPTI on this machine";
  else if (auto device = gpu::choose_device("gpu"); !device)
    GTEST_SKIP() << device.failure().what;
  else
    trace_device(device->properties.library.empty() ? device->library : device->properties.library, cupti);
}

TEST(Device, trace_of_the_virtual_gpu_is_whole) {
  std::string library = gpu::virtual_library_path();
  if (access(library.c_str(), R_OK) != 0) GTEST_SKIP() << "no " << library;
  trace_device(library, library);
}

}  // namespace
}  // namespace kgate
