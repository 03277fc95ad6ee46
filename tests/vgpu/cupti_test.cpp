// The record stream of a healthy session.
#include <unistd.h>

#include <map>
#include <set>
#include <thread>

#include "collector.h"

namespace kgate {
namespace {

using C = Collector;

const CUpti_ActivityAPI* call_of(uint32_t correlation) {
  for (const CUpti_ActivityAPI& call : C::calls) {
    if (call.correlationId == correlation) return &call;
  }
  return nullptr;
}

TEST_F(CuptiTest, says_the_version_whose_layouts_it_writes) {
  uint32_t version = 0;
  EXPECT_EQ(cupti.cuptiGetVersion(&version), CUPTI_SUCCESS);
  EXPECT_EQ(version, 130001u);
  const char* text = nullptr;
  EXPECT_EQ(cupti.cuptiGetResultString(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, &text), CUPTI_SUCCESS);
  EXPECT_STREQ(text, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED");
}

TEST_F(CuptiTest, every_launch_has_a_kernel_record_inside_its_call) {
  VectorAdd add(*driver);
  add.launch.stream = driver->create_stream();
  enable();
  uint64_t before = monotonic();
  for (int i = 0; i < 10; ++i) add.run();
  driver->synchronize(add.launch.stream);
  uint64_t after = monotonic();
  flush();
  ASSERT_EQ(C::kernels.size(), 10u);
  std::set<uint32_t> correlations;
  for (const CUpti_ActivityKernel10& kernel : C::kernels) {
    correlations.insert(kernel.correlationId);
    const CUpti_ActivityAPI* call = call_of(kernel.correlationId);
    ASSERT_NE(call, nullptr);
    EXPECT_EQ(call->cbid, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
    EXPECT_EQ(call->returnValue, 0u);
    EXPECT_EQ(call->threadId, static_cast<uint32_t>(gettid()));
    EXPECT_LE(before, call->start);
    EXPECT_LE(call->start, kernel.start);
    EXPECT_LT(kernel.start, kernel.end);
    EXPECT_LE(kernel.end, call->end);
    EXPECT_LE(call->end, after);
    EXPECT_STREQ(kernel.name, "vector_add");
    EXPECT_EQ(kernel.gridX, 8);
    EXPECT_EQ(kernel.blockX, 128);
    EXPECT_EQ(kernel.registersPerThread, 0);
    EXPECT_NE(kernel.streamId, 7u);  // not the default stream
  }
  EXPECT_EQ(correlations.size(), 10u);
  EXPECT_EQ(C::dropped, 0u);
}

TEST_F(CuptiTest, waits_have_synchronization_records) {
  gpu::CUstream stream = driver->create_stream();
  gpu::CUevent event = driver->create_event();
  enable();
  driver->record_event(event, stream);
  driver->wait_event(stream, event);
  driver->synchronize_event(event);
  driver->synchronize(stream);
  driver->synchronize_context();
  flush();
  ASSERT_EQ(C::syncs.size(), 4u);
  EXPECT_EQ(C::syncs[0].type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
  EXPECT_EQ(C::syncs[1].type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);
  EXPECT_EQ(C::syncs[2].type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE);
  EXPECT_EQ(C::syncs[3].type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
  EXPECT_EQ(C::syncs[0].streamId, C::syncs[2].streamId);
  EXPECT_EQ(C::syncs[0].cudaEventId, C::syncs[1].cudaEventId);
  EXPECT_EQ(C::syncs[3].streamId, kCuptiNotApplicable);
  for (const auto& sync : C::syncs) {
    const CUpti_ActivityAPI* call = call_of(sync.correlationId);
    ASSERT_NE(call, nullptr);
    EXPECT_LE(call->start, sync.start);
    EXPECT_LE(sync.start, sync.end);
    EXPECT_LE(sync.end, call->end);
  }
}

TEST_F(CuptiTest, copies_and_fills_have_records) {
  gpu::CUdeviceptr a = driver->allocate(256), b = driver->allocate(256);
  char host[256] = {};
  enable();
  driver->upload(a, host, 256);
  driver->copy_async(b, a, 128, nullptr);
  driver->download(host, b, 64);
  driver->fill(a, 7, 32, nullptr);
  flush();
  ASSERT_EQ(C::copies.size(), 3u);
  EXPECT_EQ(C::copies[0].copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
  EXPECT_EQ(C::copies[0].srcKind, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
  EXPECT_EQ(C::copies[0].bytes, 256u);
  EXPECT_EQ(C::copies[1].copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
  EXPECT_EQ(C::copies[1].flags, CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC);
  EXPECT_EQ(C::copies[2].copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
  EXPECT_EQ(C::copies[2].bytes, 64u);
  ASSERT_EQ(C::fills.size(), 1u);
  EXPECT_EQ(C::fills[0].value, 7u);
  EXPECT_EQ(C::fills[0].bytes, 32u);
}

TEST_F(CuptiTest, a_failed_call_keeps_its_code_and_leaves_no_kernel_record) {
  VectorAdd add(*driver);
  add.launch.grid = {0, 1, 1};
  enable();
  EXPECT_EQ(code_of([&] { add.run(); }), CUDA_ERROR_INVALID_VALUE);
  flush();
  EXPECT_TRUE(C::kernels.empty());
  ASSERT_EQ(C::calls.size(), 1u);
  EXPECT_EQ(C::calls[0].returnValue, static_cast<uint32_t>(CUDA_ERROR_INVALID_VALUE));
}

TEST_F(CuptiTest, nothing_is_recorded_while_nothing_is_enabled) {
  VectorAdd add(*driver);
  add.run();
  flush();
  EXPECT_EQ(C::requested, 0);
  EXPECT_EQ(C::completed, 0);
}

TEST_F(CuptiTest, full_buffers_go_back_and_nothing_is_lost) {
  VectorAdd add(*driver, 32);
  C::buffer_bytes = 600;  // two kernel records, or a few of others
  enable();
  for (int i = 0; i < 40; ++i) add.run();
  flush();
  EXPECT_EQ(C::kernels.size(), 40u);
  EXPECT_EQ(C::calls.size(), 40u);
  EXPECT_EQ(C::dropped, 0u);
  EXPECT_GT(C::completed, 15);
  EXPECT_EQ(C::requested, C::completed);  // every buffer came back
  EXPECT_FALSE(C::overheads.empty());     // and each request is on record
}

TEST_F(CuptiTest, a_limit_on_records_is_kept) {
  VectorAdd add(*driver, 32);
  C::max_records = 1;
  ASSERT_EQ(cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
  for (int i = 0; i < 5; ++i) add.run();
  flush();
  EXPECT_EQ(C::kernels.size(), 5u);
  EXPECT_EQ(C::completed, 5);
}

TEST_F(CuptiTest, a_flush_returns_what_there_is_and_a_forced_one_every_buffer) {
  VectorAdd add(*driver, 32);
  ASSERT_EQ(cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
  add.run();
  flush();
  EXPECT_EQ(C::kernels.size(), 1u);
  flush();
  EXPECT_EQ(C::completed, 1);  // nothing new, nothing returned
  EXPECT_EQ(cupti.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), CUPTI_SUCCESS);
  EXPECT_EQ(C::requested, C::completed);
  EXPECT_EQ(C::kernels.size(), 1u);
}

TEST_F(CuptiTest, kernel_names_outlive_their_module) {
  {
    VectorAdd add(*driver, 32);
    enable();
    add.run();
    driver->unload_module(add.module);
  }
  flush();
  ASSERT_EQ(C::kernels.size(), 1u);
  EXPECT_STREQ(C::kernels[0].name, "vector_add");
}

TEST_F(CuptiTest, threads_are_recorded_apart) {
  constexpr int kThreads = 4, kLaunches = 50;
  std::vector<std::unique_ptr<VectorAdd>> adds;
  for (int i = 0; i < kThreads; ++i) adds.push_back(std::make_unique<VectorAdd>(*driver, 32));
  C::buffer_bytes = 1000;
  enable();
  std::vector<std::thread> threads;
  for (auto& add : adds) {
    threads.emplace_back([&, add = add.get()] {
      driver->make_current();
      for (int i = 0; i < kLaunches; ++i) add->run();
    });
  }
  for (std::thread& thread : threads) thread.join();
  cupti.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  EXPECT_EQ(C::kernels.size(), size_t{kThreads * kLaunches});
  std::map<uint32_t, int> launches;
  std::set<uint32_t> correlations;
  for (const auto& kernel : C::kernels) {
    const CUpti_ActivityAPI* call = call_of(kernel.correlationId);
    ASSERT_NE(call, nullptr);
    ++launches[call->threadId];
    correlations.insert(kernel.correlationId);
  }
  EXPECT_EQ(correlations.size(), C::kernels.size());
  EXPECT_EQ(launches.size(), size_t{kThreads});
  for (auto [thread, count] : launches) EXPECT_EQ(count, kLaunches);
  EXPECT_EQ(C::requested, C::completed);
  EXPECT_EQ(C::dropped, 0u);
}

TEST_F(CuptiTest, attributes_are_kept_and_checked) {
  uint8_t off = 0, value = 9;
  size_t size = 1;
  EXPECT_EQ(cupti.cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &off),
            CUPTI_SUCCESS);
  EXPECT_EQ(cupti.cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &value),
            CUPTI_SUCCESS);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(cupti.cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &off),
            CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
  EXPECT_EQ(cupti.cuptiActivitySetAttribute(static_cast<CUpti_ActivityAttribute>(77), &size, &off),
            CUPTI_ERROR_INVALID_PARAMETER);
}

}  // namespace
}  // namespace kgate
