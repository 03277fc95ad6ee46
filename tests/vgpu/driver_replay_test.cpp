// What a replay asks of gate/gpu's Driver beyond launches and plain copies, on the virtual GPU.
#include <numeric>

#include "collector.h"
#include "gpu/graph.h"

namespace kgate {
namespace {

class DriverReplay : public CuptiTest {
 protected:
  std::vector<uint8_t> read(CUdeviceptr from, size_t bytes) {
    std::vector<uint8_t> out(bytes);
    driver->download(out.data(), from, bytes);
    return out;
  }
  CUstream named(uintptr_t value) { return reinterpret_cast<CUstream>(value); }
};

TEST_F(DriverReplay, streams_keep_their_kind_and_priority) {
  CUstream stream = driver->create_stream(false, -2);
  unsigned flags = 9;
  int priority = 9;
  reinterpret_cast<CUresult (*)(CUstream, unsigned*)>(driver->symbol("cuStreamGetFlags"))(stream, &flags);
  reinterpret_cast<CUresult (*)(CUstream, int*)>(driver->symbol("cuStreamGetPriority"))(stream, &priority);
  EXPECT_EQ(flags, unsigned{CU_STREAM_DEFAULT});
  EXPECT_EQ(priority, -2);
}

TEST_F(DriverReplay, the_default_streams_are_two) {
  VectorAdd add(*driver, 64);
  enable();
  for (uintptr_t stream : {uintptr_t{0}, kStreamLegacy, kStreamPerThread}) {
    add.launch.stream = named(stream);
    add.run();
  }
  flush();
  ASSERT_EQ(Collector::kernels.size(), 3u);
  EXPECT_EQ(Collector::kernels[0].streamId, Collector::kernels[1].streamId);
  EXPECT_NE(Collector::kernels[0].streamId, Collector::kernels[2].streamId);
}

TEST_F(DriverReplay, page_locked_memory_is_copied_in_order_of_a_stream) {
  CUstream stream = driver->create_stream(true, 0);
  auto* host = static_cast<uint8_t*>(driver->allocate_host(64));
  std::iota(host, host + 64, uint8_t{1});
  CUdeviceptr p = driver->allocate_async(64, stream);
  enable();
  driver->upload_async(p, host, 64, stream);
  std::fill_n(host, 64, uint8_t{0});
  driver->download_async(host, p, 64, stream);
  driver->synchronize(stream);
  flush();
  EXPECT_EQ(host[63], 64);
  ASSERT_EQ(Collector::copies.size(), 2u);
  EXPECT_EQ(Collector::copies[0].srcKind, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
  driver->free_async(p, stream);
  driver->free_host(host);
  EXPECT_EQ(code_of([&] { driver->free_host(host); }), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverReplay, rectangles_move_between_pitches_and_to_the_host) {
  CUdeviceptr a = driver->allocate(64), b = driver->allocate(64);
  std::vector<uint8_t> bytes(64);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  driver->upload(a, bytes.data(), 64);
  driver->fill(b, 0xee, 64, nullptr);
  Rectangle across;
  across.bytes = 2, across.rows = 2, across.to = b, across.to_pitch = 4, across.from = a, across.from_pitch = 16;
  driver->copy(across, driver->create_stream());
  EXPECT_EQ(read(b, 7), (std::vector<uint8_t>{0, 1, 0xee, 0xee, 16, 17, 0xee}));
  uint8_t host[4] = {};
  Rectangle down;
  down.bytes = 2, down.rows = 2, down.to_host = host, down.to_pitch = 2, down.from = a + 1, down.from_pitch = 16;
  driver->copy(down, std::nullopt);
  EXPECT_EQ(std::vector<uint8_t>(host, host + 4), (std::vector<uint8_t>{1, 2, 17, 18}));
  Rectangle row;  // the pitches of one row say nothing
  row.bytes = 4, row.to = b, row.from = a + 8;
  driver->copy(row, std::nullopt);
  EXPECT_EQ(read(b, 4), (std::vector<uint8_t>{8, 9, 10, 11}));
  down.from = a + 40;
  EXPECT_EQ(code_of([&] { driver->copy(down, std::nullopt); }), 0);
  down.rows = 3;
  EXPECT_EQ(code_of([&] { driver->copy(down, std::nullopt); }), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverReplay, fills_have_units_and_rows) {
  CUdeviceptr a = driver->allocate(32);
  for (uint32_t unit : {1u, 2u, 4u}) {
    for (uint64_t rows : {uint64_t{1}, uint64_t{2}}) {
      SCOPED_TRACE(std::to_string(unit) + " bytes, rows: " + std::to_string(rows));
      driver->fill(a, 0xee, 32, nullptr);
      Fill fill;
      fill.to = a, fill.value = 0x04030201, fill.unit = unit, fill.count = 1, fill.rows = rows, fill.pitch = 16;
      driver->fill(fill, nullptr);
      std::vector<uint8_t> expected(32, 0xee);
      for (uint64_t row = 0; row < rows; ++row)
        for (uint32_t i = 0; i < unit; ++i) expected[row * 16 + i] = static_cast<uint8_t>(i + 1);
      EXPECT_EQ(read(a, 32), expected);
    }
  }
}

TEST_F(DriverReplay, launch_attributes_reach_the_driver) {
  VectorAdd add(*driver, 64);
  add.launch.grid = {1, 1, 1};
  add.launch.cooperative = add.launch.programmatic = true;
  enable();
  add.run();
  flush();
  add.expect_right();
  ASSERT_EQ(Collector::kernels.size(), 1u);
  EXPECT_EQ(Collector::kernels[0].launchType, CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE);
  EXPECT_EQ(Collector::calls[0].cbid, unsigned{CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx});
  add.launch.grid = {2, 1, 1};
  EXPECT_EQ(code_of([&] { add.run(); }), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(DriverReplay, a_host_function_takes_its_place_in_a_stream) {
  enable();
  driver->host_function(nullptr);
  flush();
  ASSERT_EQ(Collector::calls.size(), 1u);
  EXPECT_EQ(Collector::calls[0].cbid, unsigned{CUPTI_DRIVER_TRACE_CBID_cuLaunchHostFunc});
}

TEST_F(DriverReplay, graphs_are_built_and_launched) {
  VectorAdd add(*driver, 64);
  CUevent event = driver->create_event();
  CUgraphExec executable = nullptr;
  {
    Graph graph(*driver);
    Fill zero;
    zero.to = add.params.b, zero.unit = 4, zero.count = 64;
    CUgraphNode cleared = graph.add_memset(zero, {});
    add.launch.programmatic = true;
    CUgraphNode summed = graph.add_kernel(add.launch, add.params.bytes(), {&cleared, 1});
    Rectangle back;
    back.bytes = 256, back.to = add.params.b, back.from = add.params.c;
    CUgraphNode copied = graph.add_copy(back, {&summed, 1});
    CUgraphNode both[] = {graph.add_host_function({&copied, 1}), graph.add_event_record(event, {&copied, 1})};
    CUgraphNode joined = graph.add_empty(both);
    graph.add_event_wait(event, {&joined, 1});
    executable = graph.instantiate();
  }
  enable();
  driver->launch(executable, driver->create_stream());
  flush();
  std::vector<float> b(64);
  driver->download(b.data(), add.params.b, 256);
  EXPECT_EQ(b[63], 63.0f);
  ASSERT_EQ(Collector::kernels.size(), 1u);
  ASSERT_EQ(Collector::fills.size(), 1u);
  EXPECT_EQ(Collector::fills[0].graphId, Collector::kernels[0].graphId);
  EXPECT_NE(Collector::fills[0].graphNodeId, Collector::kernels[0].graphNodeId);
}

TEST_F(DriverReplay, a_graph_refuses_what_the_driver_refuses) {
  VectorAdd add(*driver, 64);
  Graph graph(*driver), other(*driver);
  CUgraphNode foreign = other.add_empty({});
  EXPECT_EQ(code_of([&] { graph.add_empty({&foreign, 1}); }), CUDA_ERROR_INVALID_VALUE);
  Fill wild;
  wild.to = 0x1234, wild.count = 1;
  EXPECT_EQ(code_of([&] { graph.add_memset(wild, {}); }), CUDA_ERROR_INVALID_VALUE);
  add.launch.block = {2000, 1, 1};
  EXPECT_EQ(code_of([&] { graph.add_kernel(add.launch, add.params.bytes(), {}); }), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverReplay, addresses_can_be_taken_where_they_are_granted_and_given_back) {
  constexpr size_t kGranule = size_t{2} << 20;
  constexpr CUdeviceptr kFar = uint64_t{0x31} << 40;
  EXPECT_EQ(driver->reserve(kFar, 2 * kGranule), kFar);
  CUdeviceptr elsewhere = driver->reserve(kFar, kGranule);
  EXPECT_NE(elsewhere, kFar);
  EXPECT_FALSE(driver->reserve_at(kFar, kGranule));
  driver->map(elsewhere, kGranule);
  driver->fill(elsewhere, 1, kGranule, nullptr);
  EXPECT_EQ(code_of([&] { driver->unreserve(elsewhere, kGranule); }), CUDA_ERROR_INVALID_VALUE) << "still mapped";
  driver->unmap(elsewhere, kGranule);
  driver->unreserve(elsewhere, kGranule);
  driver->unreserve(kFar, 2 * kGranule);
  EXPECT_TRUE(driver->reserve_at(kFar, kGranule));
  EXPECT_EQ(code_of([&] { driver->reserve(0, 100); }), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace kgate
