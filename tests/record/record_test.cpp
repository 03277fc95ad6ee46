// Each kind of call leaves the record that says what was asked of the driver.
#include <algorithm>
#include <map>
#include <set>

#include "app.h"

namespace kgate::test {
namespace {

using namespace recording;

std::string add_params(uint64_t data, uint32_t n) {
  std::string params(12, '\0');
  std::memcpy(params.data(), &data, 8);
  std::memcpy(params.data() + 8, &n, 4);
  return params;
}

std::string params_of(const OneRecord& launch) {
  return std::string(launch.tail(sizeof(LaunchRecord)).substr(0, launch.as<LaunchRecord>().param_bytes));
}

std::string name_of(const RecordedFile& file, uint64_t function) {
  for (const OneRecord& record : file.of(Kind::function)) {
    const auto f = record.as<FunctionRecord>();
    if (f.function == function)
      return std::string(record.tail(sizeof f).substr(size_t{f.param_count} * 8, f.name_length));
  }
  return {};
}

TEST_F(RecordApp, each_kind_of_call_leaves_its_record) {
  ASSERT_EQ(run("calls"), 0) << error_;
  const RecordedFile file = recorded();
  EXPECT_EQ(file.header.magic, kMagic);
  EXPECT_EQ(file.header.complete, 1u);
  EXPECT_TRUE(file.whole);
  const uint64_t a = printed()[0], b = printed()[1];

  const auto launches = file.of(Kind::launch);
  ASSERT_EQ(launches.size(), 2u);
  const auto add = launches[0].as<LaunchRecord>(), fill = launches[1].as<LaunchRecord>();
  EXPECT_EQ(name_of(file, add.function), "add");
  EXPECT_EQ(name_of(file, fill.function), "fill");
  EXPECT_EQ(params_of(launches[0]), add_params(a, 5));
  EXPECT_EQ(params_of(launches[1]), add_params(b, 9));
  EXPECT_EQ(add.grid[0], 1u);
  EXPECT_EQ(add.block[0], 32u);
  EXPECT_EQ(add.cluster[0], 0u);
  EXPECT_EQ(fill.stream, 2u);  // the thread's own
  const auto streams = file.of(Kind::stream);
  ASSERT_EQ(streams.size(), 1u);
  EXPECT_EQ(streams[0].as<StreamRecord>().stream, add.stream);
  EXPECT_EQ(streams[0].as<StreamRecord>().flags, 1u);

  const auto copies = file.of(Kind::copy);
  ASSERT_EQ(copies.size(), 3u);
  const auto up = copies[0].as<CopyRecord>(), across = copies[1].as<CopyRecord>(), down = copies[2].as<CopyRecord>();
  EXPECT_EQ(up.dst, a);
  EXPECT_EQ(up.src_side, Side::pageable);
  EXPECT_EQ(up.rows, 1u);
  const std::string payload = file.blob(up.payload);
  ASSERT_EQ(payload.size(), 128u);
  uint32_t first = 0;
  std::memcpy(&first, payload.data(), 4);
  EXPECT_EQ(first, 1000u);
  EXPECT_EQ(across.src_side, Side::device);
  EXPECT_EQ(across.dst, b);
  EXPECT_EQ(across.stream, add.stream);
  EXPECT_EQ(across.async, 1u);
  EXPECT_EQ(across.payload.bytes, 0u);
  EXPECT_EQ(down.dst_side, Side::pageable);
  EXPECT_EQ(down.src, a);

  const auto sets = file.of(Kind::memset);
  ASSERT_EQ(sets.size(), 1u);
  const auto set = sets[0].as<MemsetRecord>();
  EXPECT_EQ(set.dst, b);
  EXPECT_EQ(set.count, 64u);
  EXPECT_EQ(set.unit, 4u);
  EXPECT_EQ(set.value, 7u);
  EXPECT_EQ(set.async, 0u);

  const auto recorded_event = file.of(Kind::event_record), waited = file.of(Kind::event_wait);
  ASSERT_EQ(recorded_event.size(), 1u);
  ASSERT_EQ(waited.size(), 1u);
  EXPECT_EQ(recorded_event[0].as<EventRecord>().stream, add.stream);
  EXPECT_EQ(waited[0].as<EventRecord>().stream, 0u);
  EXPECT_EQ(waited[0].as<EventRecord>().event, recorded_event[0].as<EventRecord>().event);
  for (Kind kind : {Kind::event_sync, Kind::stream_sync, Kind::context_sync, Kind::stream_destroyed,
                    Kind::event_destroyed, Kind::free, Kind::device, Kind::slice_begin, Kind::slice_end})
    EXPECT_EQ(file.of(kind).size(), 1u) << static_cast<int>(kind);
  EXPECT_EQ(file.of(Kind::free)[0].as<FreeRecord>().address, b);
  EXPECT_TRUE(file.notes(true).empty()) << file.notes(true)[0];
}

TEST_F(RecordApp, sequence_and_times_are_those_of_the_calls) {
  ASSERT_EQ(run("calls"), 0) << error_;
  const RecordedFile file = recorded();
  std::set<uint64_t> seen;
  uint64_t last = 0;
  for (const OneRecord& record : file.records) {
    EXPECT_TRUE(seen.insert(record.head.sequence).second);
    EXPECT_LE(record.head.begin, record.head.end);
    EXPECT_NE(record.head.begin, 0u);
    EXPECT_EQ(record.head.flags & kCaptured, 0);
    if (record.head.kind != Kind::launch && record.head.kind != Kind::copy) continue;
    EXPECT_GE(record.head.begin, last);
    last = record.head.end;
  }
}

TEST_F(RecordApp, a_function_is_described_before_its_first_launch) {
  ASSERT_EQ(run("calls"), 0) << error_;
  const RecordedFile file = recorded();
  const auto functions = file.of(Kind::function);
  ASSERT_EQ(functions.size(), 2u);
  const auto f = functions[0].as<FunctionRecord>();
  ASSERT_EQ(f.param_count, 2u);
  uint32_t layout[4];
  std::memcpy(layout, functions[0].bytes.data() + sizeof f, sizeof layout);
  EXPECT_EQ(std::vector<uint32_t>(layout, layout + 4), (std::vector<uint32_t>{0, 8, 8, 4}));
  EXPECT_LT(file.position(Kind::module), file.position(Kind::function));
  EXPECT_LT(file.position(Kind::function), file.position(Kind::launch));
}

TEST_F(RecordApp, a_module_is_kept_as_it_was_handed_over_and_as_it_was_compiled) {
  ASSERT_EQ(run("calls"), 0) << error_;
  const RecordedFile file = recorded();
  uint64_t load = 0, loads = 0, compiled = 0;
  for (const OneRecord& record : file.of(Kind::module)) {
    const auto module = record.as<ModuleRecord>();
    if (module.image.bytes != 0) {
      ++loads;
      load = module.load;
      EXPECT_NE(module.module, 0u);
      EXPECT_TRUE(file.blob(module.image).starts_with(".version 7.0"));
    } else {
      ++compiled;
      EXPECT_NE(module.cubin.bytes, 0u);
      EXPECT_EQ(load == 0 || module.load == load, true);
      load = module.load;
    }
  }
  EXPECT_EQ(loads, 1u);
  EXPECT_EQ(compiled, 1u);
  EXPECT_NE(load, 0u);
}

TEST_F(RecordApp, parameters_in_one_block_and_launch_attributes_are_kept) {
  ASSERT_EQ(run("extra"), 0) << error_;
  const RecordedFile file = recorded();
  const auto launches = file.of(Kind::launch);
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(params_of(launches[0]).substr(8, 4), std::string("M\0\0\0", 4));
  EXPECT_EQ(params_of(launches[1]).substr(8, 4), std::string("N\0\0\0", 4));
  EXPECT_EQ(launches[0].as<LaunchRecord>().programmatic, 0u);
  EXPECT_EQ(launches[1].as<LaunchRecord>().programmatic, 1u);
}

TEST_F(RecordApp, threads_keep_their_own_order) {
  ASSERT_EQ(run("threads 500"), 0) << error_;
  const RecordedFile file = recorded();
  EXPECT_TRUE(file.whole);
  std::map<uint32_t, std::vector<const OneRecord*>> by_thread;
  const auto launches = file.of(Kind::launch);
  for (const OneRecord& record : launches) by_thread[record.head.thread].push_back(&record);
  ASSERT_EQ(by_thread.size(), 2u);
  for (auto& [thread, records] : by_thread) {
    std::sort(records.begin(), records.end(), [](auto* x, auto* y) { return x->head.sequence < y->head.sequence; });
    ASSERT_EQ(records.size(), 500u);
    for (uint32_t i = 0; i < 500; ++i) {
      uint32_t n = 0;
      std::memcpy(&n, params_of(*records[i]).data() + 8, 4);
      ASSERT_EQ(n, i + 1);
    }
  }
  EXPECT_EQ(file.of(Kind::stream_sync).size(), 100u);
}

TEST_F(RecordApp, memory_is_known_by_kind_and_copies_by_their_sides) {
  const int status = run("memory");
  if (status == kMissing) GTEST_SKIP() << error_;
  ASSERT_EQ(status, 0) << error_;
  const RecordedFile file = recorded();
  std::istringstream in(out_);
  uint64_t a, pitched, pitch, pinned, registered, async;
  std::string p, r;
  in >> std::hex >> a >> pitched >> std::dec >> pitch >> p >> r >> std::hex >> async;
  pinned = std::stoull(p, nullptr, 16), registered = std::stoull(r, nullptr, 16);
  std::map<uint64_t, AllocRecord> allocations;
  for (const OneRecord& record : file.of(Kind::alloc))
    allocations[record.as<AllocRecord>().address] = record.as<AllocRecord>();
  EXPECT_EQ(allocations[a].size, 200u);
  EXPECT_EQ(allocations[a].memory, Memory::device);
  EXPECT_EQ(allocations[pitched].size, pitch * 3);
  EXPECT_EQ(allocations[pinned].memory, Memory::pinned_host);
  EXPECT_EQ(allocations[registered].memory, Memory::registered_host);
  EXPECT_EQ(allocations[async].memory, Memory::async);
  const auto copies = file.of(Kind::copy);
  ASSERT_EQ(copies.size(), 3u);
  EXPECT_EQ(copies[0].as<CopyRecord>().src_side, Side::pinned);
  EXPECT_EQ(copies[1].as<CopyRecord>().src_side, Side::pinned);
  const auto box = copies[2].as<CopyRecord>();
  EXPECT_EQ(box.dst, pitched + 4);
  EXPECT_EQ(box.rows, 3u);
  EXPECT_EQ(box.bytes, 4u);
  EXPECT_EQ(box.dst_pitch, pitch);
  EXPECT_EQ(file.blob(box.payload), "aaaabbbbcccc");
  uint64_t async_frees = 0;
  for (const OneRecord& record : file.of(Kind::free)) async_frees += record.as<FreeRecord>().async;
  EXPECT_EQ(async_frees, 1u);
  EXPECT_EQ(file.of(Kind::free).size(), 4u);
  bool managed = false;
  for (const auto& [address, alloc] : allocations) managed |= address != 0 && alloc.memory == Memory::managed;
  EXPECT_EQ(file.notes(true).size(), managed ? 1u : 0u);
}

TEST_F(RecordApp, a_mapping_is_memory_until_it_is_unmapped) {
  const int status = run("mapped");
  if (status == kMissing) GTEST_SKIP() << error_;
  ASSERT_EQ(status, 0) << error_;
  const RecordedFile file = recorded();
  const auto allocations = file.of(Kind::alloc), frees = file.of(Kind::free);
  ASSERT_EQ(allocations.size(), 2u);
  EXPECT_EQ(allocations[0].as<AllocRecord>().memory, Memory::mapped);
  ASSERT_EQ(frees.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(frees[i].as<FreeRecord>().address, allocations[i].as<AllocRecord>().address);
  EXPECT_EQ(file.of(Kind::snapshot).size(), 2u);  // at the begin; at the end there are none
}

TEST_F(RecordApp, calls_that_fail_are_recorded_with_their_result) {
  ASSERT_EQ(run("odd"), 0) << error_;
  const RecordedFile file = recorded();
  const auto launches = file.of(Kind::launch);
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_NE(launches[0].head.result, 0);
  EXPECT_EQ(launches[1].head.result, 0);
  ASSERT_EQ(file.of(Kind::free).size(), 1u);
  EXPECT_NE(file.of(Kind::free)[0].head.result, 0);
}

TEST_F(RecordApp, work_in_a_second_context_is_refused_by_name) {
  ASSERT_EQ(run("contexts"), 0) << error_;
  const RecordedFile file = recorded();
  const auto refused = file.notes(true);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_NE(refused[0].find("more than one context"), std::string::npos) << refused[0];
}

// ---- graphs --------------------------------------------------------------------------------------------------------

struct OneNode {
  Node node;
  std::vector<uint32_t> after;
  std::string params;
};

std::vector<OneNode> nodes_of(const OneRecord& record) {
  std::vector<OneNode> nodes(record.as<GraphRecord>().node_count);
  size_t at = sizeof(GraphRecord);
  const auto padded = [](size_t bytes) { return (bytes + 7) / 8 * 8; };
  for (OneNode& one : nodes) {
    std::memcpy(&one.node, record.bytes.data() + at, sizeof one.node);
    at += sizeof one.node;
    one.after.resize(one.node.after_count);
    std::memcpy(one.after.data(), record.bytes.data() + at, one.after.size() * 4);
    at += padded(one.after.size() * 4);
    one.params = record.bytes.substr(at, one.node.param_bytes);
    at += padded(one.node.param_bytes);
  }
  EXPECT_EQ(at, record.bytes.size());
  return nodes;
}

TEST_F(RecordApp, a_graph_is_flattened_into_nodes_in_order) {
  const int status = run("graph");
  if (status == kMissing) GTEST_SKIP() << error_;
  ASSERT_EQ(status, 0) << error_;
  const RecordedFile file = recorded();
  const uint64_t a = printed()[0], b = printed()[1];
  const auto graphs = file.of(Kind::graph), launches = file.of(Kind::graph_launch);
  ASSERT_EQ(graphs.size(), 1u);
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0].as<GraphLaunchRecord>().graph, graphs[0].as<GraphRecord>().graph);
  EXPECT_EQ(file.of(Kind::graph_destroyed).size(), 1u);
  const auto nodes = nodes_of(graphs[0]);
  ASSERT_EQ(nodes.size(), 6u);
  std::map<NodeKind, size_t> index;
  size_t kernels[2] = {9, 9};
  for (size_t i = 0; i < nodes.size(); ++i) {
    index[nodes[i].node.kind] = i;
    for (uint32_t before : nodes[i].after) EXPECT_LT(before, i);
    if (nodes[i].node.kind == NodeKind::kernel) kernels[name_of(file, nodes[i].node.function) == "add"] = i;
  }
  ASSERT_NE(kernels[0], 9u);
  ASSERT_NE(kernels[1], 9u);
  const OneNode &fill = nodes[kernels[0]], &add = nodes[kernels[1]], &set = nodes[index[NodeKind::memset]],
                &copy = nodes[index[NodeKind::copy]];
  EXPECT_EQ(fill.params, add_params(a, 1));
  EXPECT_EQ(add.params, add_params(a, 2));
  EXPECT_EQ(add.node.block[0], 32u);
  EXPECT_EQ(add.after.size(), 2u);  // what the child node came after
  EXPECT_EQ(copy.after, std::vector<uint32_t>{static_cast<uint32_t>(kernels[1])});
  EXPECT_EQ(copy.node.src, a);
  EXPECT_EQ(copy.node.dst, b);
  EXPECT_EQ(copy.node.bytes, 128u);
  EXPECT_EQ(set.node.dst, b);
  EXPECT_EQ(set.node.bytes, 64u);
  EXPECT_EQ(set.node.unit, 4u);
  EXPECT_EQ(set.node.value, 5u);
  EXPECT_TRUE(index.contains(NodeKind::empty));
  EXPECT_TRUE(index.contains(NodeKind::host_function));
  EXPECT_TRUE(file.notes(true).empty());
}

TEST_F(RecordApp, captured_calls_are_marked_and_the_graph_is_read) {
  const int status = run("capture");
  if (status == kMissing) GTEST_SKIP() << error_;
  ASSERT_EQ(status, 0) << error_;
  const RecordedFile file = recorded();
  size_t captured = 0, ran = 0;
  for (const OneRecord& record : file.of(Kind::launch)) ++((record.head.flags & kCaptured) ? captured : ran);
  EXPECT_EQ(captured, 2u);
  EXPECT_EQ(ran, 1u);
  for (Kind kind : {Kind::event_record, Kind::event_wait})
    for (const OneRecord& record : file.of(kind)) EXPECT_EQ(record.head.flags & kCaptured, kCaptured);
  for (const OneRecord& record : file.of(Kind::graph_launch)) EXPECT_EQ(record.head.flags & kCaptured, 0);
  EXPECT_EQ(file.of(Kind::graph_launch).size(), 2u);
  const auto graphs = file.of(Kind::graph);
  ASSERT_EQ(graphs.size(), 1u);
  EXPECT_EQ(nodes_of(graphs[0]).size(), 2u);
}

}  // namespace
}  // namespace kgate::test
