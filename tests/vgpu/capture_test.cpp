// Stream capture on the virtual GPU.
#include <cstring>

#include "gpu/graph_abi.h"
#include "samples.h"

namespace kgate {

using namespace gpu;

namespace {

class StreamCapture : public ::testing::Test {
 protected:
  template <typename... Args>
  CUresult call(const char* name, Args... args) {
    auto function = reinterpret_cast<CUresult (*)(Args...)>(driver->symbol(name));
    EXPECT_NE(function, nullptr) << name;
    return function != nullptr ? function(args...) : CUDA_ERROR_NOT_FOUND;
  }
  void begin(CUstream on, unsigned mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    ASSERT_EQ(call("cuStreamBeginCapture_v2", on, mode), CUDA_SUCCESS);
  }
  CUgraph end(CUstream on, CUresult expected = CUDA_SUCCESS) {
    CUgraph graph = nullptr;
    EXPECT_EQ(call("cuStreamEndCapture", on, &graph), expected);
    return graph;
  }
  std::vector<CUgraphNodeType> types(CUgraph graph) {
    CUgraphNode nodes[16];
    size_t count = 16;
    EXPECT_EQ(call("cuGraphGetNodes", graph, &nodes[0], &count), CUDA_SUCCESS);
    std::vector<CUgraphNodeType> out(count);
    for (size_t i = 0; i < count; ++i) call("cuGraphNodeGetType", nodes[i], &out[i]);
    return out;
  }
  size_t edges(CUgraph graph) {
    size_t count = 0;
    EXPECT_EQ(call("cuGraphGetEdges", graph, (CUgraphNode*)nullptr, (CUgraphNode*)nullptr, &count), CUDA_SUCCESS);
    return count;
  }
  unsigned status(CUstream on) {
    unsigned out = 9;
    EXPECT_EQ(call("cuStreamIsCapturing", on, &out), CUDA_SUCCESS);
    return out;
  }
  void launch(CUgraph graph, CUstream on) {
    CUgraphExec executable = nullptr;
    ASSERT_EQ(call("cuGraphInstantiateWithFlags", &executable, graph, uint64_t{0}), CUDA_SUCCESS);
    ASSERT_EQ(call("cuGraphLaunch", executable, on), CUDA_SUCCESS);
  }

  std::unique_ptr<Driver> driver = start_virtual();
  VectorAdd add{*driver, 64};
  CUstream stream = driver->create_stream(), other = driver->create_stream();
  CUevent fork = driver->create_event(), join = driver->create_event();
};

TEST_F(StreamCapture, work_becomes_nodes_and_runs_when_the_graph_is_launched) {
  add.launch.stream = stream;
  std::vector<float> before = add.result();
  begin(stream);
  EXPECT_EQ(status(stream), unsigned{CU_STREAM_CAPTURE_STATUS_ACTIVE});
  driver->fill(add.params.c, 0, 256, stream);
  add.run();
  driver->copy_async(add.params.b, add.params.c, 256, stream);
  CUgraph graph = end(stream);
  EXPECT_EQ(status(stream), unsigned{CU_STREAM_CAPTURE_STATUS_NONE});
  std::vector<float> after(64);
  driver->download(after.data(), add.params.c, 256);
  EXPECT_EQ(std::memcmp(after.data(), before.data(), 256), 0) << "ran while it was captured";
  EXPECT_EQ(types(graph), (std::vector<CUgraphNodeType>{CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_KERNEL,
                                                        CU_GRAPH_NODE_TYPE_MEMCPY}));
  EXPECT_EQ(edges(graph), 2u);
  launch(graph, stream);
  add.expect_right();
}

TEST_F(StreamCapture, a_stream_that_waits_for_a_captured_event_joins) {
  begin(stream);
  driver->fill(add.params.a, 0, 4, stream);
  driver->record_event(fork, stream);
  driver->wait_event(other, fork);
  EXPECT_EQ(status(other), unsigned{CU_STREAM_CAPTURE_STATUS_ACTIVE});
  driver->fill(add.params.b, 0, 4, other);
  driver->fill(add.params.c, 0, 4, stream);
  driver->record_event(join, other);
  driver->wait_event(stream, join);
  driver->fill(add.params.a, 1, 4, stream);
  CUgraph graph = end(stream);
  EXPECT_EQ(types(graph).size(), 4u);
  EXPECT_EQ(edges(graph), 4u);  // a diamond
  EXPECT_EQ(status(other), unsigned{CU_STREAM_CAPTURE_STATUS_NONE});
  EXPECT_EQ(code_of([&] { driver->synchronize_event(join); }), CUDA_ERROR_CAPTURED_EVENT);
  driver->record_event(join, stream);
  driver->synchronize_event(join);
}

TEST_F(StreamCapture, a_stream_that_does_not_come_back_fails_the_capture) {
  begin(stream);
  driver->fill(add.params.a, 0, 4, stream);
  driver->record_event(fork, stream);
  driver->wait_event(other, fork);
  driver->fill(add.params.b, 0, 4, other);
  EXPECT_EQ(call("cuStreamEndCapture", other, (CUgraph*)&fork), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  EXPECT_EQ(end(stream, CUDA_ERROR_STREAM_CAPTURE_UNJOINED), nullptr);
}

TEST_F(StreamCapture, what_a_capture_forbids_breaks_it) {
  begin(stream);
  EXPECT_EQ(code_of([&] { driver->synchronize(stream); }), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(status(stream), unsigned{CU_STREAM_CAPTURE_STATUS_INVALIDATED});
  EXPECT_EQ(code_of([&] { driver->fill(add.params.a, 0, 4, stream); }), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(end(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED), nullptr);
  begin(stream);
  EXPECT_EQ(code_of([&] { driver->allocate(64); }), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  end(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  driver->allocate(64);
  EXPECT_NE(end(stream), nullptr);
  CUstream blocking = driver->create_stream(false, 0);
  begin(blocking, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(code_of([&] { driver->fill(add.params.a, 0, 4, nullptr); }), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  end(blocking, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(StreamCapture, misuse_is_refused) {
  CUgraph graph = nullptr;
  EXPECT_EQ(call("cuStreamEndCapture", stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(call("cuStreamBeginCapture_v2", CUstream{nullptr}, 0u), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(call("cuStreamBeginCapture_v2", stream, 7u), CUDA_ERROR_INVALID_VALUE);
  begin(stream);
  EXPECT_EQ(call("cuStreamBeginCapture_v2", stream, 0u), CUDA_ERROR_ILLEGAL_STATE);
  driver->record_event(join, other);
  EXPECT_EQ(code_of([&] { driver->wait_event(stream, join); }), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  end(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(StreamCapture, where_a_capture_stands_can_be_asked) {
  unsigned now = 9;
  uint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* tips = nullptr;
  size_t count = 9;
  begin(stream);
  driver->fill(add.params.a, 0, 4, stream);
  ASSERT_EQ(call("cuStreamGetCaptureInfo_v2", stream, &now, &id, &graph, &tips, &count), CUDA_SUCCESS);
  EXPECT_EQ(now, unsigned{CU_STREAM_CAPTURE_STATUS_ACTIVE});
  EXPECT_NE(id, 0u);
  ASSERT_EQ(count, 1u);
  CUgraphNodeType type{};
  EXPECT_EQ(call("cuGraphNodeGetType", tips[0], &type), CUDA_SUCCESS);
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_MEMSET);
  EXPECT_EQ(end(stream), graph);
}

TEST_F(StreamCapture, destroying_a_capturing_stream_leaves_nothing_behind) {
  begin(stream);
  driver->destroy_stream(stream);
  driver->allocate(64);  // no capture is under way any more
}

}  // namespace
}  // namespace kgate
