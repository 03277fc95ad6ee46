#include "workload/assemble.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "support/text.h"
#include "workload/assemble_edges.h"
#include "workload/assemble_file.h"
#include "workload/assemble_memory.h"
#include "workload/assemble_scene.h"
#include "workload/assemble_timeline.h"

namespace kgate {

using namespace assembly;
using namespace recording;

namespace {

constexpr uint32_t kSchedBlockingSync = 4, kSchedMask = 7;  // CU_CTX_SCHED_*

class Assembler {
 public:
  Assembler(std::shared_ptr<const RecordFile> file, const AssembleOptions& options)
      : file_(std::move(file)), options_(options), chunks_(std::make_shared<Chunks>(file_)) {}

  Assembled run() {
    const Timeline timeline = read_timeline(*file_, options_.request_range, notes_);
    if (!options_.request_range.empty() && timeline.spans.empty())
      throw Error(Exit::environment, "no NVTX range named " + sanitize(options_.request_range, 200) + " was entered",
                  {}, "leave --request-range away to cut requests at host syncs");
    const auto requests = find_requests(timeline, options_.requests);
    DeviceMemory memory(file_, timeline, *chunks_, notes_);
    add_calls(timeline, requests, memory);
    check_kernels();
    fill_buffers(memory);
    add_after_edges(workload(), times_, constant_);
    drop_unreached(memory);
    if (cut_)
      for (Buffer& buffer : workload().buffers) buffer.end_hashes.clear();
    add_origin();
    if (auto valid = validate(workload()); !valid)
      throw Error(Exit::bad_input, "does not make a workload: " + valid.failure().where + ": " + valid.failure().what,
                  file_->path());
    workload().sha256 = workload_hash(workload());
    out_.complete = timeline.ended;
    out_.chunk = [chunks = chunks_](const Sha256Digest& digest) { return chunks->read(digest); };
    return std::move(out_);
  }

 private:
  Workload& workload() { return out_.workload; }

  void add_calls(const Timeline& timeline, const std::vector<RawRequest>& requests, DeviceMemory& memory) {
    std::vector<uint32_t> index(timeline.calls.size(), kNone);
    for (const RawRequest& request : requests)
      for (uint32_t call : request.calls) index[call] = 0;
    cut_ = std::find(index.begin(), index.end(), kNone) != index.end();
    Scene scene(file_, timeline, memory, *chunks_, workload(), notes_);
    std::set<uint32_t> made;  // allocations
    for (uint32_t i = 0; i < timeline.calls.size(); ++i) {
      if (index[i] == kNone) continue;
      RawCall raw = timeline.calls[i];
      if (raw.kind == CallKind::alloc) made.insert(raw.allocation);
      // Of memory that a request which was cut off had allocated, as of memory older than the slice.
      if (raw.kind == CallKind::free && !made.contains(raw.allocation)) {
        index[i] = kNone;
        if (RecordFile::as<FreeRecord>(*raw.record).async != 0) continue;
        raw.kind = CallKind::context_sync;
        raw.allocation = kNone;
      }
      index[i] = static_cast<uint32_t>(workload().calls.size());
      scene.add(raw);
      const Head& head = timeline.calls[i].record->head;
      times_.push_back({head.begin, head.end});
    }
    scene.throw_refusals();
    if (workload().streams.empty()) workload().streams.emplace_back();
    for (const RawRequest& from : requests) {
      Request request;
      for (uint32_t call : from.calls)
        if (index[call] != kNone) request.calls.push_back(index[call]);
      if (request.calls.empty()) continue;
      request.thread = workload().calls[request.calls.front()].thread;
      workload().requests.push_back(std::move(request));
    }
    launches_ = scene.kernel_launches();
    reach_ = scene.reach();
  }

  void check_kernels() {
    std::vector<std::string> names;
    for (size_t kernel = 0; kernel < launches_.size(); ++kernel) {
      out_.launches += launches_[kernel];
      if (launches_[kernel] != 0) names.push_back(workload().kernels[kernel].entry);
    }
    if (names.empty())
      throw Error(Exit::environment, "no kernel is launched in the slice", {},
                  "check --from and --for against what the application does, for instance with kgate trace");
    if (options_.kernel.empty()) return;
    for (const std::string& name : names)
      if (glob_match(options_.kernel, name)) return;
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    std::string hint;
    const auto near = did_you_mean(options_.kernel, names);
    const auto inside = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
      return name.find(options_.kernel) != std::string::npos;
    });
    if (near || inside != names.end()) {
      hint = "did you mean '" + sanitize(near ? *near : *inside, 200) + "'?";
    } else {
      hint = "the slice launches ";
      for (size_t i = 0; i < std::min<size_t>(names.size(), 10); ++i) hint += (i ? ", " : "") + sanitize(names[i], 100);
      if (names.size() > 10) hint += " and " + std::to_string(names.size() - 10) + " more";
    }
    throw Error(Exit::environment, "the slice launches no kernel '" + sanitize(options_.kernel, 200) + "'", {}, hint);
  }

  // From the buffers that calls name, on to those that their contents point to. The rest stays unread.
  void fill_buffers(DeviceMemory& memory) {
    filled_.resize(memory.size());
    constant_.resize(memory.size());
    std::vector<uint32_t> open(reach_.any.begin(), reach_.any.end());
    std::vector<bool> seen(memory.size());
    for (uint32_t index : open) seen[index] = true;
    while (!open.empty()) {
      const uint32_t index = open.back();
      open.pop_back();
      auto filled = memory.fill(index, [&](uint32_t other) {
        reach_.written.insert(other);
        if (seen[other]) return;
        seen[other] = true;
        open.push_back(other);
      });
      constant_[index] = filled.unchanged && !reach_.filled.contains(index);
      if (filled.recorded) out_.content_bytes += filled.buffer.bytes;
      filled_[index] = std::move(filled.buffer);
    }
  }

  void drop_unreached(const DeviceMemory& memory) {
    std::vector<uint32_t> now(memory.size(), kNone);
    for (uint32_t i = 0; i < memory.size(); ++i) {
      if (!filled_[i]) {
        out_.dropped_bytes += memory.bytes(i);
        continue;
      }
      now[i] = static_cast<uint32_t>(workload().buffers.size());
      filled_[i]->written = reach_.written.contains(i);
      workload().buffers.push_back(std::move(*filled_[i]));
    }
    if (out_.dropped_bytes != 0)
      notes_.add(format_bytes(static_cast<double>(out_.dropped_bytes)) +
                 " of allocations that nothing in the slice reaches are left out");
    const auto renumber = [&](uint32_t& buffer) {
      if (buffer != kNone) buffer = now[buffer];
    };
    for (LaunchSpec& launch : workload().launches)
      for (Relocation& relocation : launch.relocations) renumber(relocation.buffer);
    for (Call& call : workload().calls) renumber(call.dst), renumber(call.src);
    for (WorkloadGraph& graph : workload().graphs)
      for (GraphNode& node : graph.nodes) renumber(node.dst), renumber(node.src);
  }

  void add_origin() {
    Workload& w = workload();
    w.name = sanitize(options_.name, 200);
    w.arrivals = Arrivals::closed;
    w.addresses = Addresses::unknown;
    w.origin.device = "unknown";
    for (const Record& record : file_->records()) {
      if (record.head.kind != Kind::device) continue;
      const auto device = RecordFile::as<DeviceRecord>(record);
      if (device.cc_major < 1 || device.cc_major > 99 || device.cc_minor < 0 || device.cc_minor > 9 ||
          device.sm_count < 0 || device.driver_version < 0)
        throw Error(Exit::bad_input, "describes a device that cannot be", file_->path());
      w.origin.device = sanitize({device.name, strnlen(device.name, sizeof device.name)});
      w.origin.arch = device.cc_major * 10 + device.cc_minor;
      w.origin.sm_count = device.sm_count;
      w.origin.driver_version = device.driver_version;
      w.blocking_sync = (device.sched_flags & kSchedMask) == kSchedBlockingSync;
      if (device.aslr != 0)
        notes_.add("addresses were randomised in the application: its sandbox, or itself, does not let them stay");
      break;
    }
    w.origin.command = sanitize(options_.command, 2000);
    w.origin.begun = sanitize(options_.begun, 40);
    w.origin.notes = notes_.all();
  }

  std::shared_ptr<const RecordFile> file_;
  const AssembleOptions& options_;
  std::shared_ptr<Chunks> chunks_;
  Notes notes_;
  Assembled out_;
  std::vector<CallTime> times_;
  std::vector<uint64_t> launches_;
  Scene::Reach reach_;
  std::vector<std::optional<Buffer>> filled_;
  std::vector<bool> constant_;
  bool cut_ = false;
};

}  // namespace

Assembled assemble(const std::filesystem::path& records, const AssembleOptions& options) {
  auto file = RecordFile::open(records).value_or_throw(Exit::bad_input);
  return Assembler(std::make_shared<const RecordFile>(std::move(file)), options).run();
}

Result<RecordedProcess> recorded_process(const std::filesystem::path& records) {
  auto file = RecordFile::open(records);
  if (!file) return file.failure();
  RecordedProcess out;
  out.process = file->process();
  for (const Record& record : file->records()) {
    if (out.begin_ns == 0) out.begin_ns = record.head.begin;
    out.used_cuda |= record.head.kind == Kind::device;
    out.launches += record.head.kind == Kind::launch || record.head.kind == Kind::graph_launch;
    if (record.head.kind == Kind::function) out.kernels.emplace_back(RecordFile::name(record));
  }
  std::sort(out.kernels.begin(), out.kernels.end());
  out.kernels.erase(std::unique(out.kernels.begin(), out.kernels.end()), out.kernels.end());
  return out;
}

}  // namespace kgate
