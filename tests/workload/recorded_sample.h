// A small workload as a recording gives it: contents in chunks, host data, graphs, every kind of stream, pitches,
// allocations, where it was recorded and how faithful its replay was.
#pragma once

#include <map>

#include "support/hash.h"
#include "workload/kgw.h"
#include "workload/kgw_chunks.h"

namespace kgate::test {

struct RecordedSample {
  Workload workload;
  std::map<Sha256Digest, std::string> chunks;
  std::string weights;  // of buffer 0, 2.5 chunks, the second of which is zeros

  ChunkSource source() const {
    return [this](const Sha256Digest& digest) { return chunks.at(digest); };
  }
  ContentChunks cut(const std::string& bytes) {
    ContentChunks content;
    for (size_t at = 0; at < bytes.size(); at += kChunkBytes) {
      const std::string chunk = bytes.substr(at, kChunkBytes);
      if (chunk.find_first_not_of('\0') == std::string::npos) {
        content.chunks.emplace_back();
        continue;
      }
      content.chunks.push_back(sha256_digest(chunk));
      chunks[content.chunks.back()] = chunk;
    }
    return content;
  }
};

inline GraphNode graph_node(GraphNode::Kind kind, std::vector<uint32_t> after) {
  GraphNode node;
  node.kind = kind;
  node.after = std::move(after);
  return node;
}

inline WorkloadGraph recorded_graph() {
  using Kind = GraphNode::Kind;
  WorkloadGraph graph;
  graph.nodes = {graph_node(Kind::empty, {}),          graph_node(Kind::kernel, {0}),
                 graph_node(Kind::memset, {0}),        graph_node(Kind::copy, {1, 2}),
                 graph_node(Kind::event_record, {3}),  graph_node(Kind::event_wait, {0}),
                 graph_node(Kind::host_function, {4}), graph_node(Kind::kernel, {5, 6})};
  graph.nodes[1].launch = 0;
  graph.nodes[7].launch = 1;
  GraphNode& fill = graph.nodes[2];
  fill.dst = 1, fill.dst_offset = 64, fill.bytes = 32, fill.pitch = {4, 128, 0}, fill.value = 0xffff, fill.unit = 2;
  GraphNode& copy = graph.nodes[3];
  copy.dst = 1, copy.src = 2, copy.bytes = 100, copy.pitch = {8, 256, 100};
  graph.nodes[4].event = 0;
  graph.nodes[5].event = 1;
  return graph;
}

inline std::vector<Call> recorded_calls() {
  std::vector<Call> calls;
  const auto add = [&](CallKind kind, uint32_t thread, uint32_t stream) -> Call& {
    Call call;
    call.kind = kind, call.thread = thread, call.stream = stream;
    call.host_gap_ns = 100 * calls.size();
    return calls.emplace_back(std::move(call));
  };
  Call* call = &add(CallKind::alloc, 0, 0);  // 0
  call->allocation = 0, call->bytes = 4096, call->async = true;
  call = &add(CallKind::upload, 1, 3);  // 1: 2 rows of 32 bytes
  call->dst = 1, call->bytes = 32, call->pitch = {2, 512, 32}, call->payload = 0, call->async = call->pinned = true;
  call = &add(CallKind::launch, 0, 0);  // 2
  call->launch = 0, call->after = {1};
  call = &add(CallKind::graph_launch, 0, 1);  // 3
  call->graph = 0;
  call = &add(CallKind::upload, 1, 2);  // 4
  call->dst = 0, call->bytes = kChunkBytes + 4096, call->payload = 1;
  call = &add(CallKind::memset, 0, 0);  // 5
  call->dst = 2, call->bytes = 400, call->value = 0x3f800000, call->unit = 4;
  call = &add(CallKind::host_function, 0, 0);  // 6
  call = &add(CallKind::free, 0, 0);           // 7
  call->allocation = 0, call->async = true;
  call = &add(CallKind::download, 0, 0);  // 8
  call->src = 1, call->src_offset = 8, call->bytes = 16, call->pitch = {3, 16, 64}, call->pinned = true;
  call = &add(CallKind::alloc, 1, 0);  // 9: the same allocation again
  call->allocation = 0, call->bytes = 8192;
  call = &add(CallKind::upload, 1, 3);  // 10: zeros
  call->dst = 1, call->bytes = 8, call->payload = 2;
  call = &add(CallKind::free, 1, 0);  // 11
  call->allocation = 0, call->after = {8};
  add(CallKind::context_sync, 1, 0);  // 12
  return calls;
}

inline RecordedSample recorded_sample() {
  RecordedSample sample;
  Workload& w = sample.workload;
  w.name = "recorded";
  w.threads = 2, w.events = 2;
  w.streams = {
      {StreamKind::non_blocking, -2}, {StreamKind::blocking, 0}, {StreamKind::legacy, 0}, {StreamKind::per_thread, 0}};
  w.addresses = Addresses::unknown;
  w.origin = {"NVIDIA H200",
              90,
              132,
              13000,
              "./serve --model tiny",
              "2026-03-01T12:00:00Z",
              {"managed memory is replayed as device memory"}};
  const std::string image =
      "\x7f"
      "ELF machine code of a kernel";
  w.modules = {{"cubin 0", image, sha256(image), ".version 8.0\n.target sm_80\n"}};
  w.kernels = {{0, "gemm", {{0, 8}, {8, 8}}, 16}, {0, "done", {}, 0}};
  sample.weights.assign(2 * kChunkBytes + kChunkBytes / 2, '\0');
  for (size_t i = 0; i < kChunkBytes; ++i) sample.weights[i] = static_cast<char>(i * 2654435761u >> 13);
  sample.weights.back() = 7;
  w.buffers = {{"weights", sample.weights.size(), 512, 0x7f0000000000, true, sample.cut(sample.weights)},
               {"out", 4096, 256, 0x7f0001000000, true, ContentZeros{}},
               {"ids", 5000, 8, 0x7f0002000000, true, ContentBytes{"\1\2\3"}}};
  w.buffers[1].end_hashes = {0xfedcba9876543210};
  w.buffers[2].end_hashes = {1, 2};
  std::string large(kChunkBytes + 4096, 'u');
  w.payloads = {{64, ContentBytes{std::string(64, 'p')}}, {large.size(), sample.cut(large)}, {8, ContentZeros{}}};
  LaunchSpec gemm;
  gemm.grid = {132, 1, 1}, gemm.block = {128, 2, 1}, gemm.cluster = {2, 1, 1}, gemm.shared = 65536;
  gemm.programmatic = true;
  gemm.params.assign(16, std::byte{9});
  gemm.relocations = {{0, 0, 4096}, {8, 1, 0}};
  LaunchSpec done;
  done.kernel = 1, done.grid = {1, 1, 1}, done.block = {32, 1, 1}, done.cooperative = true;
  w.launches = {gemm, done};
  w.graphs = {recorded_graph()};
  w.calls = recorded_calls();
  w.requests = {{0, 0, {0, 2, 3, 5}}, {0, 1, {1, 4}}, {0, 0, {6, 7, 8}}, {0, 1, {9, 10, 11, 12}}};
  w.fidelity = {{"NVIDIA H200, driver 13.0", 100, 98, 3, 2, 97}};
  return sample;
}

}  // namespace kgate::test
