// A process has one session, so that each test runs its collector in a child of its own.
#include "trace/collector.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fake_cupti.h"
#include "trace/cupti_buffers.h"
#include "trace/records.h"

namespace kgate {
namespace {

using namespace gpu;

template <typename Body>
bool passes_in_child(Body body) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    body();
    fflush(stdout);
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// The fake library, a record memfd and a started collector.
struct Session {
  static constexpr size_t kBytes = 8 << 20;
  void* fake = dlopen(KGATE_FAKE_CUPTI, RTLD_NOW);
  Fd memfd = std::move(*make_memfd("records", kBytes));
  std::unique_ptr<RecordWriter> writer = std::move(*RecordWriter::open(memfd, kBytes));
  std::unique_ptr<CuptiCollector> collector;

  explicit Session(const ResourceListener* listener = nullptr) {
    auto started =
        listener ? CuptiCollector::start(KGATE_FAKE_CUPTI, *listener) : CuptiCollector::start(KGATE_FAKE_CUPTI);
    if (started)
      collector = std::move(*started);
    else
      ADD_FAILURE() << started.failure().what;
  }
  template <typename F>
  F* call(const char* name) {
    return reinterpret_cast<F*>(dlsym(fake, name));
  }
  template <typename Record>
  void emit(const Record& record) {
    call<void(const void*, size_t)>("fake_cupti_emit")(&record, sizeof record);
  }
  template <typename Record>
  void hold(const Record& record) {
    call<void(const void*, size_t)>("fake_cupti_hold")(&record, sizeof record);
  }
  std::string log() { return call<const char*()>("fake_cupti_log")(); }
  trace::Records records() {
    auto mapping = Mapping::of(memfd, kBytes, false);
    return trace::read_records(mapping->bytes());
  }
};

CUpti_ActivityKernel10 kernel(uint64_t start, uint64_t end, const char* name = "k") {
  CUpti_ActivityKernel10 k{};
  k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  k.start = start, k.end = end, k.name = name, k.correlationId = 5, k.registersPerThread = 40, k.gridX = 3,
  k.blockX = 64;
  return k;
}

TEST(Collector, calls_cupti_in_the_one_order_that_loses_nothing) {
  EXPECT_TRUE(passes_in_child([] {
    Session s;
    EXPECT_EQ(s.log(),
              "thread_id:1 timestamp attribute:9 attribute:5 callbacks enable:10 enable:4 enable:38 enable:17 enable:1 "
              "enable:2 all_sync ");
    s.collector->finish(*s.writer);
    EXPECT_TRUE(s.log().ends_with("all_sync flush:0 flush:1 ")) << s.log();
  }));
}

TEST(Collector, every_kind_arrives_with_its_fields) {
  EXPECT_TRUE(passes_in_child([] {
    Session s;
    std::string name = "softmax";
    s.emit(kernel(100, 200, name.c_str()));
    CUpti_ActivityAPI api{};
    api.kind = CUPTI_ACTIVITY_KIND_DRIVER, api.cbid = 307, api.start = 10, api.end = 20, api.threadId = 77,
    api.correlationId = 5;
    s.emit(api);
    CUpti_ActivitySynchronization2 sync{};
    sync.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, sync.type = 3, sync.start = 30, sync.end = 40, sync.streamId = 7;
    s.emit(sync);
    CUpti_ActivityMemcpy6 copy{};
    copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY, copy.copyKind = 1, copy.bytes = 4096, copy.start = 50, copy.end = 60;
    s.emit(copy);
    CUpti_ActivityMemset4 set{};
    set.kind = CUPTI_ACTIVITY_KIND_MEMSET, set.bytes = 64, set.start = 70, set.end = 80;
    s.emit(set);
    CUpti_ActivityOverhead3 overhead{};
    overhead.kind = CUPTI_ACTIVITY_KIND_OVERHEAD, overhead.overheadKind = 65536, overhead.objectId[1] = 9,
    overhead.start = 1, overhead.end = 2;
    s.emit(overhead);
    s.collector->drain(*s.writer, 4);
    name = "gone!!!";  // CUPTI's text is only borrowed
    CollectorHealth health = s.collector->finish(*s.writer);
    trace::Records r = s.records();
    ASSERT_EQ(r.bad, 0u) << r.first_bad;
    ASSERT_EQ(r.kernels.size(), 1u);
    EXPECT_EQ(r.kernels[0].head.round, 4u);
    EXPECT_EQ(r.kernels[0].registers, 40);
    EXPECT_EQ(r.kernels[0].grid[0], 3u);
    EXPECT_EQ(r.names.at(r.kernels[0].name), "softmax");
    ASSERT_EQ(r.apis.size(), 1u);
    EXPECT_EQ(r.apis[0].thread, 77u);
    ASSERT_EQ(r.syncs.size(), 1u);
    EXPECT_EQ(r.syncs[0].stream, 7u);
    ASSERT_EQ(r.memories.size(), 2u);
    EXPECT_EQ(r.memories[1].copy_kind, 0xffffffffu);
    ASSERT_EQ(r.overheads.size(), 1u);
    EXPECT_EQ(r.overheads[0].thread, 9u);
    EXPECT_EQ(health.invalid_times + health.forced + health.dropped + health.unknown_records + health.buffers_exhausted,
              0u);
  }));
}

TEST(Collector, names_are_told_apart_by_content_and_written_once) {
  EXPECT_TRUE(passes_in_child([] {
    Session s;
    char shared[8] = "a";
    s.emit(kernel(1, 2, shared));
    s.collector->drain(*s.writer, 0);
    shared[0] = 'b';  // a reloaded module put another name at the same address
    s.emit(kernel(3, 4, shared));
    s.emit(kernel(5, 6, "a"));
    s.collector->finish(*s.writer);
    trace::Records r = s.records();
    ASSERT_EQ(r.kernels.size(), 3u);
    EXPECT_EQ(r.names.at(r.kernels[1].name), "b");
    EXPECT_EQ(r.kernels[0].name, r.kernels[2].name);
    EXPECT_EQ(r.names.size(), 2u);
  }));
}

TEST(Collector, losses_are_counted) {
  EXPECT_TRUE(passes_in_child([] {
    Session s;
    s.call<void(size_t)>("fake_cupti_set_dropped")(3);
    s.emit(kernel(0, 0));
    s.emit(kernel(20, 10));
    CUpti_Activity unknown[4]{};
    unknown[0].kind = CUPTI_ACTIVITY_KIND_MARKER;
    s.emit(unknown);
    s.hold(kernel(7, 8));
    s.collector->drain(*s.writer, 0);
    s.call<void(size_t)>("fake_cupti_set_dropped")(4);
    CollectorHealth health = s.collector->finish(*s.writer);
    EXPECT_EQ(health.dropped, 7u);
    EXPECT_EQ(health.invalid_times, 2u);
    EXPECT_EQ(health.unknown_records, 1u);
    EXPECT_EQ(health.forced, 1u);
  }));
}

TEST(Collector, empty_pool_discards_and_counts_and_is_refilled_by_draining) {
  EXPECT_TRUE(passes_in_child([] {
    Session s;
    size_t each = trace::CuptiBuffers::kBytes / sizeof(CUpti_ActivityKernel10);
    for (size_t i = 0; i < (trace::CuptiBuffers::kCount + 2) * each; ++i) s.emit(kernel(1, 2));
    s.collector->drain(*s.writer, 0);
    s.emit(kernel(3, 4));
    CollectorHealth health = s.collector->finish(*s.writer);
    EXPECT_GT(health.buffers_exhausted, 0u);
    trace::Records r = s.records();
    EXPECT_EQ(r.bad, 0u);
    EXPECT_GT(r.lost, 0u);  // the memfd is smaller than the pool
    EXPECT_GT(r.kernels.size(), 10'000u);
  }));
}

// In an application.

uint32_t heard;
void listen(void* user, int, uint32_t id, const void*) { heard = user == &heard ? id : 0; }

TEST(Collector, a_listener_stays_subscribed_and_is_told_before_anything_is_recorded) {
  EXPECT_TRUE(passes_in_child([] {
    ResourceListener listener{listen, &heard, {1, 6, 18}};
    Session s(&listener);
    EXPECT_TRUE(s.log().starts_with("callback:3:1 callback:3:6 callback:3:18 thread_id:1 ")) << s.log();
    EXPECT_EQ(s.call<int(uint32_t, const void*)>("fake_cupti_call")(6, nullptr), 1);
    EXPECT_EQ(heard, 6u);
    EXPECT_EQ(s.collector->graph_id(reinterpret_cast<CUgraphExec>(42)), 42u);
  }));
  EXPECT_TRUE(passes_in_child([] {
    Session s;  // a worker only asks
    EXPECT_EQ(s.call<int(uint32_t, const void*)>("fake_cupti_call")(6, nullptr), 0);
  }));
}

TEST(Collector, an_application_s_runtime_calls_are_told_from_the_driver_s) {
  EXPECT_TRUE(passes_in_child([] {
    ResourceListener listener{listen, nullptr, {}};
    Session s(&listener);
    EXPECT_NE(s.log().find(" enable:4 enable:5 "), std::string::npos) << s.log();
    for (auto [kind, cbid] : {std::pair{CUPTI_ACTIVITY_KIND_RUNTIME, 502u},
                              {CUPTI_ACTIVITY_KIND_RUNTIME, 503u},
                              {CUPTI_ACTIVITY_KIND_RUNTIME, 211u},
                              {CUPTI_ACTIVITY_KIND_DRIVER, 211u}}) {
      CUpti_ActivityAPI api{};
      api.kind = kind, api.cbid = cbid, api.start = 10, api.end = 20, api.threadId = 77, api.correlationId = 5;
      s.emit(api);
    }
    s.collector->finish(*s.writer);
    trace::Records r = s.records();
    ASSERT_EQ(r.apis.size(), 2u);  // without what <<<>>> calls besides its launch
    EXPECT_EQ(r.apis[0].cbid, 211u | wire::kRuntimeCall);
    EXPECT_EQ(r.apis[1].cbid & ~wire::kNestedCall, 211u);
    EXPECT_EQ(r.apis[0].correlation, 5u);
  }));
}

TEST(Collector, callbacks_that_cannot_be_had_are_a_refusal) {
  EXPECT_TRUE(passes_in_child([] {
    setenv("FAKE_CUPTI_NO_CALLBACKS", "1", 1);
    auto started = CuptiCollector::start(KGATE_FAKE_CUPTI, ResourceListener{listen, nullptr, {6}});
    ASSERT_FALSE(started);
    EXPECT_NE(started.failure().what.find("cuptiEnableCallback(6)"), std::string::npos) << started.failure().what;
  }));
}

TEST(Collector, what_the_tracer_itself_calls_is_left_out_with_its_synchronisation) {
  EXPECT_TRUE(passes_in_child([] {
    ResourceListener listener{listen, nullptr, {}};
    Session s(&listener);
    auto call = [&](uint32_t thread, uint64_t start, uint64_t end, uint32_t correlation) {
      CUpti_ActivitySynchronization2 sync{};  // comes before the record of its call
      sync.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, sync.type = 4, sync.start = start, sync.end = end;
      sync.correlationId = correlation;
      s.emit(sync);
      CUpti_ActivityAPI api{};
      api.kind = CUPTI_ACTIVITY_KIND_DRIVER, api.cbid = 17, api.start = start, api.end = end, api.threadId = thread;
      api.correlationId = correlation;
      s.emit(api);
    };
    s.collector->hide(7, 100, 200);
    call(7, 110, 120, 1);
    call(7, 190, 210, 2);  // not inside
    call(8, 110, 120, 3);  // another thread's
    s.collector->drain(*s.writer, 0);
    s.collector->finish(*s.writer);
    trace::Records r = s.records();
    ASSERT_EQ(r.apis.size(), 2u);
    EXPECT_EQ(r.apis[0].correlation, 2u);
    EXPECT_EQ(r.apis[1].correlation, 3u);
    ASSERT_EQ(r.syncs.size(), 2u);
    EXPECT_EQ(r.syncs[0].correlation, 2u);
  }));
}

TEST(Collector, an_application_of_many_threads_finds_a_buffer_for_each) {
  auto buffers = std::make_unique<trace::CuptiBuffers>(256, 256 << 10, false);
  ASSERT_TRUE(buffers->mapped());
  EXPECT_FALSE(buffers->asked());
  std::vector<uint8_t*> all;
  for (size_t i = 0; i < 256; ++i) {
    uint8_t* buffer = nullptr;
    size_t size = 0;
    buffers->request(&buffer, &size);
    ASSERT_EQ(size, size_t{256} << 10);
    buffer[0] = buffer[size - 1] = 1;
    all.push_back(buffer);
  }
  EXPECT_TRUE(buffers->asked());
  EXPECT_EQ(buffers->exhausted(), 0u);
  uint8_t* discard = nullptr;
  size_t size = 0;
  buffers->request(&discard, &size);
  EXPECT_NE(discard, nullptr);
  EXPECT_EQ(buffers->exhausted(), 1u);
  buffers->complete(nullptr, 0, discard, 8);
  for (uint8_t* buffer : all) buffers->complete(nullptr, 0, buffer, 8);
  size_t drained = 0;
  buffers->drain([&](uint8_t*, size_t valid, CUcontext, uint32_t) { drained += valid; });
  EXPECT_EQ(drained, 256u * 8);
  buffers->request(&discard, &size);
  EXPECT_EQ(size, size_t{256} << 10);
}

TEST(Collector, clock_is_the_monotonic_one) {
  EXPECT_TRUE(passes_in_child([] {
    Session s;
    CollectorHealth health = s.collector->finish(*s.writer);
    EXPECT_LE(std::llabs(health.clock_offset_begin), static_cast<long long>(health.clock_half_width));
    EXPECT_LT(health.clock_half_width, 1'000'000u);
  }));
}

TEST(Collector, forked_child_leaves_the_parents_records_alone) {
  EXPECT_TRUE(passes_in_child([] {
    Session s;
    s.emit(kernel(1, 2));
    pid_t child = fork();
    if (child == 0) {
      s.emit(kernel(3, 4));
      s.collector->drain(*s.writer, 0);
      s.collector->finish(*s.writer);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    EXPECT_TRUE(s.records().kernels.empty());
    s.collector->finish(*s.writer);
    EXPECT_EQ(s.records().kernels.size(), 1u);
  }));
}

TEST(Collector, second_session_in_a_process_is_refused) {
  EXPECT_TRUE(passes_in_child([] {
    Session s;
    auto second = CuptiCollector::start(KGATE_FAKE_CUPTI);
    ASSERT_FALSE(second);
    EXPECT_NE(second.failure().what.find("session"), std::string::npos);
  }));
}

std::string refusal(const char* variable, const char* value) {
  setenv(variable, value, 1);
  auto started = CuptiCollector::start(KGATE_FAKE_CUPTI);
  unsetenv(variable);
  return started ? "started" : started.failure().what;
}

TEST(Collector, other_major_versions_are_refused_by_name) {
  EXPECT_TRUE(passes_in_child([] {
    EXPECT_NE(refusal("FAKE_CUPTI_VERSION", "28").find("CUDA 12 or older"), std::string::npos);
    EXPECT_NE(refusal("FAKE_CUPTI_VERSION", "140100").find("CUPTI 14.1"), std::string::npos);
    EXPECT_EQ(refusal("FAKE_CUPTI_VERSION", "130301"), "started");
  }));
}

TEST(Collector, other_subscriber_is_named) {
  EXPECT_TRUE(passes_in_child(
      [] { EXPECT_NE(refusal("FAKE_CUPTI_OTHER", "CUPTI for nsys").find("CUPTI for nsys"), std::string::npos); }));
}

TEST(Collector, whatever_is_no_cupti_is_refused_with_a_hint) {
  for (const char* path : {"/nonexistent/libcupti.so", "libm.so.6", "/proc/self/maps"}) {
    auto started = CuptiCollector::start(path);
    ASSERT_FALSE(started) << path;
    EXPECT_FALSE(started.failure().hint.empty());
  }
}

TEST(FindCupti, environment_comes_first_even_when_it_is_wrong) {
  setenv("KGATE_CUPTI", "/nonexistent/libcupti.so", 1);
  EXPECT_EQ(find_cupti(), "/nonexistent/libcupti.so");
  unsetenv("KGATE_CUPTI");
}

}  // namespace
}  // namespace kgate
