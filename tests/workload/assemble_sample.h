// Builds recordings by hand, record by record, as workload/recording.h lays them out.
#pragma once

#include <cstring>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "support/fd.h"
#include "workload/assemble.h"
#include "workload/recording.h"

namespace kgate::test {

using namespace recording;

constexpr const char* kRecordedPtx = R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry add_one(.param .u64 x, .param .u32 n) { ret; }
.visible .entry mul_two(.param .u64 x, .param .align 8 .b8 s[24]) { ret; }
)";

class Recorded {
 public:
  Recorded() {
    DeviceRecord device = make<DeviceRecord>(Kind::device);
    std::strcpy(device.name, "Test GPU");
    device.cc_major = 9, device.sm_count = 132, device.driver_version = 13000, device.sched_flags = 4;
    add(device);
    module(kRecordedPtx, 0x111);
    function(0xf1, 0x111, "add_one", {{0, 8}, {8, 4}});
    function(0xf2, 0x111, "mul_two", {{0, 8}, {8, 24}});
  }

  // ---- records, in file order; sequence and times count on by themselves --------------------------------------------
  uint32_t thread = 100;
  uint64_t sequence = 0, now = 1000;
  uint64_t gap = 100, duration = 10;  // of the next calls
  int32_t result = 0;
  uint16_t flags = 0;

  template <typename T>
  T make(Kind kind) {
    T record{};
    Head& head = reinterpret_cast<Head&>(record);
    head.kind = kind, head.flags = flags, head.thread = thread, head.result = result;
    head.sequence = ++sequence;
    head.begin = now += gap;
    head.end = now += duration;
    return record;
  }
  template <typename T>
  size_t add(const T& record, std::string tail = {}) {
    tail.resize((tail.size() + 7) / 8 * 8);
    const size_t at = bytes_.size();
    bytes_.append(reinterpret_cast<const char*>(&record), sizeof record);
    bytes_ += tail;
    const auto all = static_cast<uint32_t>(sizeof record + tail.size());
    std::memcpy(bytes_.data() + at + offsetof(Head, bytes), &all, sizeof all);
    return at;
  }
  BlobRef blob(std::string_view content) {
    const BlobRef ref{blobs_.size(), content.size()};
    blobs_ += content;
    return ref;
  }

  void module(std::string_view image, uint64_t handle, uint64_t load = 0, std::string_view cubin = {},
              uint64_t library = 0) {
    auto record = make<ModuleRecord>(Kind::module);
    record.module = handle, record.load = load, record.library = library;
    if (!image.empty()) record.image = blob(image);
    if (!cubin.empty()) record.cubin = blob(cubin);
    add(record);
  }
  void function(uint64_t handle, uint64_t in, const std::string& name,
                std::vector<std::pair<uint32_t, uint32_t>> params, uint64_t library = 0) {
    auto record = make<FunctionRecord>(Kind::function);
    record.function = handle, record.module = in, record.library = library;
    record.param_count = static_cast<uint32_t>(params.size());
    record.name_length = static_cast<uint32_t>(name.size());
    std::string tail(reinterpret_cast<const char*>(params.data()), params.size() * 8);
    add(record, tail + name);
  }
  void note(const std::string& text, bool refused = false) {
    auto record = make<NoteRecord>(Kind::note);
    record.length = static_cast<uint32_t>(text.size()), record.refused = refused;
    add(record, text);
  }
  void alloc(uint64_t address, uint64_t size, Memory memory = Memory::device, bool existing = false) {
    auto record = make<AllocRecord>(Kind::alloc);
    record.address = address, record.size = size, record.memory = memory, record.existing = existing;
    add(record);
  }
  void free(uint64_t address, bool async = false) {
    auto record = make<FreeRecord>(Kind::free);
    record.address = address, record.async = async;
    add(record);
  }
  void stream(uint64_t handle, uint32_t stream_flags = 1, int32_t priority = 0) {
    auto record = make<StreamRecord>(Kind::stream);
    record.stream = handle, record.flags = stream_flags, record.priority = priority;
    add(record);
  }
  void handle(Kind kind, uint64_t handle) {
    auto record = make<HandleRecord>(kind);
    record.handle = handle;
    add(record);
  }
  static std::string add_one_params(uint64_t x, uint32_t n = 4) {
    std::string params(12, '\0');
    std::memcpy(params.data(), &x, 8);
    std::memcpy(params.data() + 8, &n, 4);
    return params;
  }
  void launch(uint64_t function, std::string params, uint64_t on = 0) {
    auto record = make<LaunchRecord>(Kind::launch);
    record.function = function, record.stream = on;
    record.grid[0] = record.grid[1] = record.grid[2] = 1;
    record.block[0] = 32, record.block[1] = record.block[2] = 1;
    record.param_bytes = static_cast<uint32_t>(params.size());
    add(record, std::move(params));
  }
  void launch_add(uint64_t x, uint64_t on = 0) { launch(0xf1, add_one_params(x), on); }
  void sync(uint64_t on = 0) {
    auto record = make<StreamCallRecord>(Kind::stream_sync);
    record.stream = on;
    add(record);
  }
  void context_sync() {
    auto head = make<Head>(Kind::context_sync);
    add(head);
  }
  void on_stream(Kind kind, uint64_t on) {
    auto record = make<StreamCallRecord>(kind);
    record.stream = on;
    add(record);
  }
  void event(Kind kind, uint64_t which, uint64_t on = 0) {
    auto record = make<EventRecord>(kind);
    record.event = which, record.stream = on;
    add(record);
  }
  CopyRecord copy(uint64_t dst, uint64_t src, uint64_t bytes, Side dst_side, Side src_side) {
    auto record = make<CopyRecord>(Kind::copy);
    record.dst = dst, record.src = src, record.bytes = bytes, record.rows = 1;
    record.dst_side = dst_side, record.src_side = src_side;
    return record;
  }
  void range(Kind kind, const std::string& name = {}, uint64_t id = 0) {
    if (kind == Kind::range_pop) {
      auto head = make<Head>(kind);
      add(head);
      return;
    }
    auto record = make<RangeRecord>(kind);
    record.id = id, record.length = static_cast<uint32_t>(name.size());
    add(record, name);
  }
  void begin() { add(make<SliceRecord>(Kind::slice_begin)); }
  void end() { add(make<SliceRecord>(Kind::slice_end)); }
  void snapshot(uint64_t address, std::string_view content) {
    auto record = make<SnapshotRecord>(Kind::snapshot);
    record.address = address, record.size = content.size(), record.content = blob(content);
    add(record);
  }
  void end_snapshot(uint64_t address, uint64_t size, const std::vector<uint64_t>& hashes) {
    auto record = make<SnapshotRecord>(Kind::snapshot);
    record.address = address, record.size = size, record.at_end = 1;
    record.content = blob({reinterpret_cast<const char*>(hashes.data()), hashes.size() * 8});
    add(record);
  }

  struct GraphNodeSpec {
    Node node{};
    std::vector<uint32_t> after{};
    std::string params{};
  };
  void graph(uint64_t exec, std::vector<GraphNodeSpec> nodes) {
    auto record = make<GraphRecord>(Kind::graph);
    record.graph = exec, record.node_count = static_cast<uint32_t>(nodes.size());
    std::string tail;
    for (GraphNodeSpec& spec : nodes) {
      spec.node.after_count = static_cast<uint32_t>(spec.after.size());
      spec.node.param_bytes = static_cast<uint32_t>(spec.params.size());
      tail.append(reinterpret_cast<const char*>(&spec.node), sizeof spec.node);
      tail.append(reinterpret_cast<const char*>(spec.after.data()), spec.after.size() * 4);
      tail.resize((tail.size() + 7) / 8 * 8);
      tail += spec.params;
      tail.resize((tail.size() + 7) / 8 * 8);
    }
    add(record, tail);
  }
  GraphNodeSpec kernel_node(uint64_t x, std::vector<uint32_t> after = {}) {
    GraphNodeSpec spec;
    spec.node.kind = NodeKind::kernel, spec.node.function = 0xf1;
    for (auto* extent : {spec.node.grid, spec.node.block}) extent[0] = extent[1] = extent[2] = 1;
    spec.after = std::move(after), spec.params = add_one_params(x);
    return spec;
  }
  void graph_launch(uint64_t exec, uint64_t on = 0) {
    auto record = make<GraphLaunchRecord>(Kind::graph_launch);
    record.graph = exec, record.stream = on;
    add(record);
  }

  // ---- files
  // -----------------------------------------------------------------------------------------------------------
  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  uint64_t complete = 1;
  std::string& bytes() { return bytes_; }

  std::filesystem::path write(size_t cut_records = 0, size_t cut_blobs = 0) {
    FileHeader header{magic, version, 4242, bytes_.size(), complete};
    std::ofstream(path(), std::ios::binary)
        .write(reinterpret_cast<const char*>(&header), sizeof header)
        .write(bytes_.data(), static_cast<std::streamsize>(bytes_.size() - cut_records));
    std::ofstream(folder_.path() / "app.blobs", std::ios::binary)
        .write(blobs_.data(), static_cast<std::streamsize>(blobs_.size() - cut_blobs));
    return path();
  }
  Assembled assemble(const AssembleOptions& options = {}) { return kgate::assemble(write(), options); }
  std::filesystem::path path() const { return folder_.path() / "app.kgrec"; }

 private:
  TempDir folder_{"kgate-test"};
  std::string bytes_, blobs_;
};

constexpr uint64_t kBase = 0x7f0000000000;

}  // namespace kgate::test
