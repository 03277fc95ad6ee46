// What works: gate/gpu's Driver drives the virtual GPU as it would a real one.
#include <atomic>
#include <thread>

#include "samples.h"

namespace kgate {
namespace {

TEST(VirtualDriver, says_what_it_is) {
  auto driver = start_virtual();
  const gpu::DeviceProperties& p = driver->properties();
  EXPECT_TRUE(driver->is_virtual());
  EXPECT_EQ(p.kind, gpu::DeviceKind::virtual_gpu);
  EXPECT_EQ(p.name, "kgate virtual GPU");
  EXPECT_EQ(p.arch(), 90);
  EXPECT_EQ(p.uuid.size(), 32u);
  EXPECT_EQ(p.driver_version, 13000);
  EXPECT_EQ(p.max_threads_per_block, 1024);
  EXPECT_EQ(p.total_memory, uint64_t{2} << 30);
  EXPECT_EQ(p.free_memory, p.total_memory);
  EXPECT_EQ(p.library, std::string(KGATE_TEST_VGPU));
}

TEST(VirtualDriver, adds_two_vectors) {
  auto driver = start_virtual();
  VectorAdd add(*driver);
  add.run();
  driver->synchronize(nullptr);
  add.expect_right();
}

TEST(VirtualDriver, counts_the_last_launch) {
  auto driver = start_virtual();
  VectorAdd add(*driver, 128);
  add.run();
  auto first = driver->last_launch_counters();
  add.run();
  auto second = driver->last_launch_counters();
  ASSERT_TRUE(first && second);
  EXPECT_GT(first->warp_instructions, 0u);
  EXPECT_EQ(second->launches, first->launches + 1);
  EXPECT_EQ(second->warp_instructions, first->warp_instructions);  // the same launch counts the same
}

TEST(VirtualDriver, reports_parameters_as_the_entry_declares_them) {
  auto driver = start_virtual();
  gpu::CUmodule module = driver->load_module(image(kVectorAdd));
  auto parameters = driver->parameters(driver->function(module, "vector_add"));
  ASSERT_TRUE(parameters);
  using Pairs = std::vector<std::pair<size_t, size_t>>;
  EXPECT_EQ(*parameters, (Pairs{{0, 8}, {8, 8}, {16, 8}, {24, 4}}));
  driver->unload_module(module);
}

TEST(VirtualDriver, copies_and_fills_on_the_device) {
  auto driver = start_virtual();
  gpu::CUdeviceptr a = driver->allocate(64), b = driver->allocate(64);
  driver->fill(a, 0x5a, 64, nullptr);
  driver->copy_async(b, a, 64, nullptr);
  std::vector<unsigned char> bytes(64);
  driver->download(bytes.data(), b, 64);
  EXPECT_EQ(bytes, std::vector<unsigned char>(64, 0x5a));
  driver->free(a);
  driver->free(b);
  EXPECT_EQ(driver->free_memory(), driver->properties().total_memory);
}

TEST(VirtualDriver, streams_and_events_order_work) {
  auto driver = start_virtual();
  VectorAdd add(*driver);
  gpu::CUstream one = driver->create_stream(), two = driver->create_stream();
  gpu::CUevent done = driver->create_event();
  add.launch.stream = one;
  add.run();
  driver->record_event(done, one);
  driver->wait_event(two, done);
  driver->synchronize_event(done);
  driver->synchronize(two);
  driver->synchronize_context();
  add.expect_right();
  driver->destroy_stream(one);
  driver->destroy_stream(two);
}

TEST(VirtualDriver, threads_launch_at_the_same_time) {
  auto driver = start_virtual();
  constexpr int kThreads = 4, kLaunches = 25;
  std::vector<std::unique_ptr<VectorAdd>> adds;
  for (int i = 0; i < kThreads; ++i) adds.push_back(std::make_unique<VectorAdd>(*driver, 200 + 50 * i));
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (auto& add : adds) {
    threads.emplace_back([&, add = add.get()] {
      try {
        driver->make_current();
        add->launch.stream = driver->create_stream();
        for (int i = 0; i < kLaunches; ++i) add->run();
        driver->synchronize(add->launch.stream);
      } catch (const std::exception&) {
        ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  for (auto& add : adds) add->expect_right();
}

TEST(VirtualDriver, memory_size_comes_from_the_environment) {
  ScopedEnv env("KGATE_VGPU_MEMORY", "3M");
  auto driver = start_virtual();
  EXPECT_EQ(driver->properties().total_memory, uint64_t{3} << 20);
}

TEST(VirtualDriver, takes_what_the_launch_attribute_allows_of_shared_memory) {
  auto driver = start_virtual();
  VectorAdd add(*driver);
  add.launch.shared = 100 << 10;
  EXPECT_EQ(code_of([&] { add.run(); }), gpu::CUDA_ERROR_INVALID_VALUE);
  driver->allow_dynamic_shared(add.launch.function, 100 << 10);
  EXPECT_EQ(code_of([&] { add.run(); }), 0);
  EXPECT_EQ(code_of([&] { driver->allow_dynamic_shared(add.launch.function, 300 << 10); }),
            gpu::CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace kgate
