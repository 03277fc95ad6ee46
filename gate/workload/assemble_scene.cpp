#include "workload/assemble_scene.h"

#include <algorithm>

#include "support/hash.h"
#include "support/text.h"
#include "workload/limits.h"

namespace kgate::assembly {

using namespace recording;

namespace {

constexpr uint64_t kSmallPayload = 64 << 10;  // kept in memory; larger ones stay in the recording

Dim3 dim(const uint32_t (&extent)[3]) { return {extent[0], extent[1], extent[2]}; }

template <typename T>
uint32_t numbered(std::map<T, uint32_t>& known, const T& key) {
  return known.try_emplace(key, static_cast<uint32_t>(known.size())).first->second;
}

void append(std::string& key, uint32_t value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); }

// Of a rectangle, first to last byte; ~0: no memory is that large.
uint64_t extent(uint64_t bytes, uint64_t rows, uint64_t pitch) {
  const auto all = static_cast<unsigned __int128>(rows - 1) * (rows > 1 ? pitch : 0) + bytes;
  return all > cap::kMaxAddress ? ~uint64_t{0} : static_cast<uint64_t>(all);
}

}  // namespace

Scene::Scene(std::shared_ptr<const RecordFile> file, const Timeline& timeline, DeviceMemory& memory, Chunks& chunks,
             Workload& workload, Notes& notes)
    : file_(std::move(file)),
      timeline_(timeline),
      memory_(memory),
      chunks_(chunks),
      workload_(workload),
      notes_(notes),
      code_(*file_, workload, notes) {
  workload_.streams.clear();
}

void Scene::throw_refusals() const {
  if (refusals_.empty()) return;
  std::string all = "the slice holds what cannot be replayed:";
  for (const std::string& refusal : refusals_) all += "\n  " + refusal;
  throw Error(Exit::environment, all, {}, "record a part of the run without it: --from, --for, --requests");
}

uint32_t Scene::thread(uint32_t os_thread) {
  const uint32_t index = numbered(threads_, os_thread);
  workload_.threads = static_cast<uint32_t>(threads_.size());
  return index;
}

uint32_t Scene::stream(uint32_t of_timeline) {
  const auto [at, fresh] = streams_.try_emplace(of_timeline, static_cast<uint32_t>(workload_.streams.size()));
  if (fresh) workload_.streams.push_back(timeline_.streams[of_timeline]);
  return at->second;
}

uint32_t Scene::event(uint64_t handle) {
  const uint32_t index = numbered(events_, handle);
  workload_.events = static_cast<uint32_t>(events_.size());
  return index;
}

// ---- launches ------------------------------------------------------------------------------------------------------

// Words that point into device memory. A parameter below 8 bytes is no pointer; what is one in a larger structure is
// not known, so that each of its words is looked at.
void Scene::relocate(LaunchSpec& spec, const WorkloadKernel& kernel) {
  for (const auto& [offset, size] : kernel.params) {
    if (size < 8) continue;
    for (uint32_t at = (offset + 7) / 8 * 8; at + 8 <= offset + size; at += 8) {
      uint64_t word = 0;
      std::memcpy(&word, spec.params.data() + at, sizeof word);
      if (const auto place = memory_.find_pointer(word)) {
        spec.relocations.push_back({at, place->buffer, static_cast<int64_t>(place->offset)});
        reach_.any.insert(place->buffer);
        reach_.written.insert(place->buffer);
      } else if (memory_.is_foreign(word)) {
        const std::string what =
            "kernel " + sanitize(kernel.entry, 200) + " gets a pointer to host memory or to another process's memory";
        if (size == 8)
          refuse(what);
        else
          notes_.add(what + " inside a structure, which may be chance: replayed as it is");
      }
    }
  }
}

uint32_t Scene::launch(uint64_t function, uint64_t time, const Extents& extents, std::string_view params) {
  LaunchSpec spec;
  spec.kernel = code_.kernel(function, time);
  const WorkloadKernel& kernel = workload_.kernels[spec.kernel];
  spec.grid = extents.grid, spec.block = extents.block, spec.cluster = extents.cluster;
  spec.shared = extents.shared, spec.cooperative = extents.cooperative, spec.programmatic = extents.programmatic;
  if (params.size() < kernel.param_bytes)
    throw Error(Exit::bad_input,
                "holds a launch of " + sanitize(kernel.entry, 200) + " with " + std::to_string(params.size()) +
                    " parameter bytes; the kernel takes " + std::to_string(kernel.param_bytes),
                file_->path());
  if (kernel.params.empty() && !params.empty())
    notes_.add("the parameters of kernel " + sanitize(kernel.entry, 200) + " are not known: replayed without any");
  params = params.substr(0, kernel.param_bytes);
  std::string key;
  append(key, spec.kernel);
  for (const Dim3& d : {spec.grid, spec.block, spec.cluster}) append(key, d.x), append(key, d.y), append(key, d.z);
  append(key, spec.shared);
  append(key, uint32_t{spec.cooperative} << 1 | uint32_t{spec.programmatic});
  key += params;
  const auto [at, fresh] = launches_.try_emplace(std::move(key), static_cast<uint32_t>(workload_.launches.size()));
  if (!fresh) return at->second;
  const auto bytes = std::as_bytes(std::span(params));
  spec.params.assign(bytes.begin(), bytes.end());
  relocate(spec, kernel);
  workload_.launches.push_back(std::move(spec));
  return at->second;
}

// ---- memory --------------------------------------------------------------------------------------------------------

bool Scene::place(const Rectangle& rectangle, bool written, const char* what, uint32_t& buffer, uint64_t& offset) {
  const auto found = memory_.find_range(rectangle.address, extent(rectangle.bytes, rectangle.rows, rectangle.pitch));
  if (!found) {
    refuse(std::string(what) + " memory that is no known allocation, such as a variable of a module");
    return false;
  }
  buffer = found->buffer, offset = found->offset;
  reach_.any.insert(buffer);
  if (written) reach_.written.insert(buffer), reach_.filled.insert(buffer);
  return true;
}

uint32_t Scene::payload(const CopyRecord& copy) {
  const auto all = static_cast<unsigned __int128>(copy.bytes) * copy.rows;
  if (copy.payload.bytes == 0 || all != copy.payload.bytes || !file_->whole(copy.payload)) {
    notes_.add(
        "host data of some copies to the device was not recorded: the first content of the buffer is sent instead");
    return kNone;
  }
  Payload payload;
  payload.bytes = copy.payload.bytes;
  std::string key;
  const auto found = [&](uint32_t buffer) { reach_.any.insert(buffer), reach_.written.insert(buffer); };
  if (payload.bytes <= kSmallPayload) {
    std::string bytes = file_->blob(copy.payload);
    memory_.scan(std::as_bytes(std::span(bytes)), found);
    key = bytes;
    payload.content = ContentBytes{std::move(bytes)};
  } else {
    ContentChunks chunks;
    std::string content;
    for (uint64_t at = 0; at < payload.bytes; at += kChunkBytes) {
      const uint64_t bytes = std::min(kChunkBytes, payload.bytes - at);
      chunks.chunks.push_back(chunks_.add(bytes, {{0, copy.payload.offset + at, bytes}}, content));
      memory_.scan(std::as_bytes(std::span(content)), found);
      key.append(reinterpret_cast<const char*>(chunks.chunks.back().data()), sizeof(Sha256Digest));
    }
    payload.content = std::move(chunks);
  }
  key = sha256(key) + std::to_string(payload.bytes);
  const auto [at, fresh] = payloads_.try_emplace(key, static_cast<uint32_t>(workload_.payloads.size()));
  if (fresh) workload_.payloads.push_back(std::move(payload));
  return at->second;
}

void Scene::copy(const Record& record, Call& call) {
  const auto copy = RecordFile::as<CopyRecord>(record);
  const bool many = copy.rows > 1;
  call.bytes = copy.bytes;
  call.pitch = {copy.rows, many ? copy.dst_pitch : 0, many ? copy.src_pitch : 0};
  call.async = copy.async != 0;
  if (call.kind != CallKind::download &&
      !place({copy.dst, copy.bytes, copy.rows, copy.dst_pitch}, true, "a copy fills", call.dst, call.dst_offset))
    return;
  if (call.kind != CallKind::upload &&
      !place({copy.src, copy.bytes, copy.rows, copy.src_pitch}, false, "a copy reads", call.src, call.src_offset))
    return;
  // The host side is packed, whatever the program's own rows were.
  if (call.kind == CallKind::upload) {
    call.pinned = copy.src_side == Side::pinned;
    call.payload = payload(copy);
    if (many) call.pitch.src = copy.bytes;
  } else if (call.kind == CallKind::download) {
    call.pinned = copy.dst_side == Side::pinned;
    if (many) call.pitch.dst = copy.bytes;
  }
}

void Scene::memset(const Record& record, Call& call) {
  const auto fill = RecordFile::as<MemsetRecord>(record);
  if (fill.unit != 1 && fill.unit != 2 && fill.unit != 4)
    throw Error(Exit::bad_input, "holds a memset of elements of " + std::to_string(fill.unit) + " bytes",
                file_->path());
  if (fill.count > cap::kMaxAddress / fill.unit) return refuse("a memset fills more memory than there is");
  call.bytes = fill.count * fill.unit;
  call.pitch = {fill.rows, fill.rows > 1 ? fill.pitch : 0, 0};
  call.value = fill.value;
  call.unit = static_cast<uint8_t>(fill.unit);
  call.async = fill.async != 0;
  place({fill.dst, call.bytes, fill.rows, fill.pitch}, true, "a memset fills", call.dst, call.dst_offset);
}

// ---- graphs --------------------------------------------------------------------------------------------------------

void Scene::node(const Node& node, std::string_view params, uint64_t time, GraphNode& out) {
  const bool many = node.rows > 1;
  const uint64_t rows = std::max<uint64_t>(node.rows, 1);
  switch (node.kind) {
    case NodeKind::kernel:
      out.kind = GraphNode::Kind::kernel;
      out.launch = launch(
          node.function, time,
          {dim(node.grid), dim(node.block), dim(node.cluster), node.shared, node.cooperative != 0, false}, params);
      return;
    case NodeKind::copy:
      out.kind = GraphNode::Kind::copy;
      out.bytes = node.bytes;
      out.pitch = {rows, many ? node.dst_pitch : 0, many ? node.src_pitch : 0};
      place({node.dst, node.bytes, rows, node.dst_pitch}, true, "a copy inside a CUDA graph fills host memory, or",
            out.dst, out.dst_offset);
      place({node.src, node.bytes, rows, node.src_pitch}, false, "a copy inside a CUDA graph reads host memory, or",
            out.src, out.src_offset);
      return;
    case NodeKind::memset:
      out.kind = GraphNode::Kind::memset;
      out.bytes = node.bytes;
      out.pitch = {rows, many ? node.dst_pitch : 0, 0};
      out.value = node.value;
      if (node.unit != 1 && node.unit != 2 && node.unit != 4)
        throw Error(Exit::bad_input, "holds a memset of elements of " + std::to_string(node.unit) + " bytes",
                    file_->path());
      out.unit = static_cast<uint8_t>(node.unit);
      place({node.dst, node.bytes, rows, node.dst_pitch}, true, "a memset inside a CUDA graph fills", out.dst,
            out.dst_offset);
      return;
    case NodeKind::event_record:
    case NodeKind::event_wait:
      out.kind = node.kind == NodeKind::event_record ? GraphNode::Kind::event_record : GraphNode::Kind::event_wait;
      out.event = event(node.event);
      return;
    case NodeKind::host_function:
      out.kind = GraphNode::Kind::host_function;
      return;
    case NodeKind::empty:
      out.kind = GraphNode::Kind::empty;
      return;
  }
  refuse("a CUDA graph has a node of a kind that cannot be replayed");
}

uint32_t Scene::graph(const Record& record) {
  if (const auto known = graphs_.find(&record); known != graphs_.end()) return known->second;
  const auto graph = RecordFile::as<GraphRecord>(record);
  std::string_view rest = RecordFile::tail(record, sizeof graph);
  WorkloadGraph out;
  out.nodes.resize(graph.node_count);
  for (GraphNode& to : out.nodes) {
    Node from;
    std::memcpy(&from, rest.data(), sizeof from);
    rest.remove_prefix(sizeof from);
    to.after.resize(from.after_count);
    if (from.after_count != 0) std::memcpy(to.after.data(), rest.data(), size_t{from.after_count} * 4);
    std::sort(to.after.begin(), to.after.end());
    to.after.erase(std::unique(to.after.begin(), to.after.end()), to.after.end());
    rest.remove_prefix((size_t{from.after_count} * 4 + 7) / 8 * 8);
    node(from, rest.substr(0, from.param_bytes), record.head.end, to);
    rest.remove_prefix((size_t{from.param_bytes} + 7) / 8 * 8);
  }
  workload_.graphs.push_back(std::move(out));
  return graphs_[&record] = static_cast<uint32_t>(workload_.graphs.size() - 1);
}

// ---- calls ---------------------------------------------------------------------------------------------------------

void Scene::add(const RawCall& raw) {
  Call call;
  call.kind = raw.kind;
  call.thread = thread(raw.thread);
  call.stream = stream(raw.stream);
  call.host_gap_ns = raw.host_gap_ns;
  const auto count = [&](uint32_t launched) {
    const uint32_t kernel = workload_.launches[launched].kernel;
    kernel_launches_.resize(std::max<size_t>(kernel_launches_.size(), kernel + 1));
    ++kernel_launches_[kernel];
  };
  switch (raw.kind) {
    case CallKind::launch: {
      const auto record = RecordFile::as<LaunchRecord>(*raw.record);
      call.launch = launch(record.function, raw.record->head.end,
                           {dim(record.grid), dim(record.block), dim(record.cluster), record.shared,
                            record.cooperative != 0, record.programmatic != 0},
                           RecordFile::tail(*raw.record, sizeof record).substr(0, record.param_bytes));
      count(call.launch);
      break;
    }
    case CallKind::copy:
    case CallKind::upload:
    case CallKind::download:
      copy(*raw.record, call);
      break;
    case CallKind::memset:
      memset(*raw.record, call);
      break;
    case CallKind::event_record:
    case CallKind::event_wait:
    case CallKind::event_sync:
      call.event = event(raw.event);
      break;
    case CallKind::graph_launch:
      call.graph = graph(*raw.graph);
      for (const GraphNode& node : workload_.graphs[call.graph].nodes)
        if (node.launch != kNone) count(node.launch);
      break;
    case CallKind::alloc: {
      const auto record = RecordFile::as<AllocRecord>(*raw.record);
      call.bytes = record.size;
      call.async = record.memory == Memory::async;
      call.allocation = numbered(allocations_, raw.allocation);
      break;
    }
    case CallKind::free:
      call.async = RecordFile::as<FreeRecord>(*raw.record).async != 0;
      call.allocation = numbered(allocations_, raw.allocation);
      break;
    case CallKind::stream_sync:
    case CallKind::context_sync:
    case CallKind::host_function:
      break;
  }
  workload_.calls.push_back(std::move(call));
}

}  // namespace kgate::assembly
