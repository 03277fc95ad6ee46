// Each record is copied out of the shared memory before it is looked at: what has been checked cannot change
// afterwards.
#include "trace/records.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "support/text.h"
#include "trace/counter_sets.h"
#include "trace/nested_calls.h"

namespace kgate::trace {

using namespace wire;

namespace {

constexpr uint64_t kLatest = uint64_t{1} << 62;

bool sane(uint64_t begin, uint64_t end) { return begin <= end && end < kLatest; }

class Reader {
 public:
  explicit Reader(std::span<const std::byte> records) : data_(records) {}

  void read(Records* out) {
    out_ = out;
    for (size_t at = 0; at < data_.size();) {
      RecordHead head;
      if (data_.size() - at < sizeof head) {
        bad("a record is cut off", at);
        break;
      }
      std::memcpy(&head, data_.data() + at, sizeof head);
      if (head.bytes < sizeof head || head.bytes % 8 != 0 || head.bytes > data_.size() - at) {
        bad("record length " + std::to_string(head.bytes), at);
        break;
      }
      if (!take(head, data_.data() + at)) bad("record of kind " + std::to_string(static_cast<int>(head.kind)), at);
      at += head.bytes;
    }
    expand_graphs();
  }

 private:
  void bad(const std::string& what, size_t at) {
    if (out_->bad++ == 0) out_->first_bad = what + " at byte " + std::to_string(at);
  }

  template <typename Record>
  static bool copy(const RecordHead& head, const std::byte* from, Record* to) {
    if (head.bytes != sizeof(Record)) return false;
    std::memcpy(static_cast<void*>(to), from, sizeof(Record));
    to->head = head;
    return true;
  }

  // Device-side records may carry times that CUPTI itself got wrong: counted and left out, not taken for garbage.
  template <typename Record>
  bool take_timed(const RecordHead& head, const std::byte* from, std::vector<Record>* to) {
    Record record;
    if (!copy(head, from, &record)) return false;
    if (sane(record.start, record.end) && record.end != 0)
      to->push_back(record);
    else
      ++out_->invalid_times;
    return true;
  }

  bool take_call(const RecordHead& head, const std::byte* from) {
    if (!take_timed(head, from, &out_->apis)) return false;
    if (!out_->apis.empty()) out_->apis.back().cbid &= ~kNestedCall;
    return true;
  }

  bool take_kernel(const RecordHead& head, const std::byte* from) {
    KernelRecord record;
    if (!copy(head, from, &record)) return false;
    if (!sane(record.start, record.end) || record.end == 0) {
      ++out_->invalid_times;
      record.start = record.end = 0;
    }
    out_->kernels.push_back(record);
    return true;
  }

  // Records whose numbers only bound or label others.
  template <typename Record>
  static bool take_plain(const RecordHead& head, const std::byte* from, std::vector<Record>* to) {
    Record record;
    if (!copy(head, from, &record)) return false;
    to->push_back(record);
    return true;
  }

  bool take_process(const RecordHead& head, const std::byte* from) {
    ProcessRecord record;
    if (!copy(head, from, &record) || (record.end != 0 && !sane(record.begin, record.end)) || record.begin >= kLatest)
      return false;
    out_->processes.push_back(record);
    return true;
  }

  bool take_hardware(const RecordHead& head, const std::byte* from) {
    HardwareCountersRecord record;
    if (!copy(head, from, &record) || record.set >= kCounterSets || record.count > kMaxCountersPerSet) return false;
    out_->hardware.push_back(record);
    return true;
  }

  bool take_round(const RecordHead& head, const std::byte* from) {
    RoundRecord record;
    if (!copy(head, from, &record) || !sane(record.begin, record.end) || head.round == kNoRound) return false;
    out_->rounds.push_back(record);
    return true;
  }

  bool take_request(const RecordHead& head, const std::byte* from) {
    RequestRecord record;
    if (!copy(head, from, &record) || !sane(record.issue, record.end) || record.arrival >= kLatest ||
        record.due >= kLatest || record.lag >= kLatest || record.phase > Phase::measured)
      return false;
    out_->requests.push_back(record);
    return true;
  }

  bool take_launch(const RecordHead& head, const std::byte* from) {
    LaunchRecord record;
    if (!copy(head, from, &record) || !sane(record.begin, record.end) || record.phase > Phase::measured ||
        record.replaced > 1)
      return false;
    record.graph_node = 0;
    out_->launches.push_back(record);
    return true;
  }

  bool take_graph_plan(const RecordHead& head, const std::byte* from) {
    GraphPlanRecord record;
    if (!copy(head, from, &record) || record.replaced > 1 || record.node == 0) return false;
    graph_plans_[{record.arm, record.graph}].push_back(record);
    return true;
  }

  bool take_graph_call(const RecordHead& head, const std::byte* from) {
    GraphCallRecord record;
    if (!copy(head, from, &record) || !sane(record.begin, record.end) || record.phase > Phase::measured) return false;
    out_->graph_calls.push_back({record, 0, 0});
    return true;
  }

  bool take_hash(const RecordHead& head, const std::byte* from) {
    BufferHashRecord record;
    if (!copy(head, from, &record) || record.equal > record.blocks || record.repeated > record.blocks ||
        record.exact > 1)
      return false;
    out_->hashes.push_back(record);
    return true;
  }

  // A launch for each kernel of each graph call. A hostile stream could name many in few bytes, hence the limit.
  void expand_graphs() {
    constexpr size_t kMostLaunches = 1 << 24;
    std::unordered_map<uint32_t, uint32_t> arms;
    for (const RoundRecord& round : out_->rounds) arms.emplace(round.head.round, round.arm);
    for (Records::GraphCall& made : out_->graph_calls) {
      const GraphCallRecord& call = made.record;
      made.first_launch = static_cast<uint32_t>(out_->launches.size());
      auto arm = arms.find(call.head.round);
      auto plan = arm == arms.end() ? graph_plans_.end() : graph_plans_.find({arm->second, call.graph});
      if (plan == graph_plans_.end()) continue;
      if (out_->launches.size() + plan->second.size() > kMostLaunches)
        return bad("graph calls of more than " + std::to_string(kMostLaunches) + " kernels", 0);
      made.launch_count = static_cast<uint32_t>(plan->second.size());
      for (const GraphPlanRecord& node : plan->second) {
        LaunchRecord launch{};
        launch.head = call.head;
        launch.begin = call.begin, launch.end = call.end;
        launch.sequence = call.sequence, launch.request = call.request, launch.call = call.call;
        launch.launch = node.launch, launch.item = node.item, launch.phase = call.phase;
        launch.replaced = node.replaced, launch.thread = call.thread, launch.kernel = node.kernel;
        launch.stream = call.stream, launch.graph_node = node.node;
        out_->launches.push_back(launch);
      }
    }
  }

  bool take_counters(const RecordHead& head, const std::byte* from) {
    VirtualCountersRecord record;
    if (!copy(head, from, &record)) return false;
    for (uint64_t value :
         {record.warp_instructions, record.thread_instructions, record.global_load_sectors, record.global_store_sectors,
          record.global_requests, record.bank_conflicts, record.divergent_branches, record.barriers, record.atomics})
      if (value >= kLatest / 2) return false;
    out_->counters.push_back(record);
    return true;
  }

  bool take_name(const RecordHead& head, const std::byte* from) {
    NameRecord record;
    if (head.bytes < sizeof record) return false;
    std::memcpy(&record, from, sizeof record);
    size_t room = head.bytes - sizeof record;
    if (record.length > kMaxNameBytes || record.length > room || room - record.length >= 8) return false;
    std::string text(reinterpret_cast<const char*>(from) + sizeof record, record.length);
    return out_->names.emplace(record.id, sanitize(text, kMaxNameBytes)).second;
  }

  bool take(const RecordHead& head, const std::byte* from) {
    switch (head.kind) {
      case Kind::round:
        return take_round(head, from);
      case Kind::request:
        return take_request(head, from);
      case Kind::launch:
        return take_launch(head, from);
      case Kind::kernel:
        return take_kernel(head, from);
      case Kind::api:
        return take_call(head, from);
      case Kind::sync:
        return take_timed(head, from, &out_->syncs);
      case Kind::memory:
        return take_timed(head, from, &out_->memories);
      case Kind::overhead:
        return take_timed(head, from, &out_->overheads);
      case Kind::name:
        return take_name(head, from);
      case Kind::virtual_counters:
        return take_counters(head, from);
      case Kind::graph:
        return take_plain(head, from, &out_->graphs);
      case Kind::graph_node:
        return take_plain(head, from, &out_->nodes);
      case Kind::module:
        return take_plain(head, from, &out_->modules);
      case Kind::process:
        return take_process(head, from);
      case Kind::collector:
        return take_plain(head, from, &out_->collectors);
      case Kind::hardware_counters:
        return take_hardware(head, from);
      case Kind::graph_plan:
        return take_graph_plan(head, from);
      case Kind::graph_call:
        return take_graph_call(head, from);
      case Kind::buffer_hash:
        return take_hash(head, from);
    }
    return false;
  }

  std::span<const std::byte> data_;
  Records* out_ = nullptr;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<GraphPlanRecord>> graph_plans_;  // by arm and graph
};

}  // namespace

Records read_records(std::span<const std::byte> memfd) {
  struct PlainHeader {  // wire::Header without the atomics, which cannot be copied
    uint32_t magic, version;
    uint64_t capacity_bytes, used_bytes, lost_records;
  } header{};
  static_assert(sizeof(PlainHeader) == sizeof(Header));
  Records records;
  auto reject = [&](const std::string& why) {
    ++records.bad;
    records.first_bad = why;
    return records;
  };
  if (memfd.size() < sizeof header) return reject("no record header");
  std::memcpy(&header, memfd.data(), sizeof header);
  if (header.magic != kMagic) return reject("the worker wrote no record header");
  if (header.version != kVersion) return reject("record version " + std::to_string(header.version));
  size_t room = memfd.size() - sizeof header;
  if (header.used_bytes > room) return reject("more bytes used than there are");
  records.lost = std::min<uint64_t>(header.lost_records, kLatest);
  Reader(memfd.subspan(sizeof header, header.used_bytes)).read(&records);
  mark_nested_calls(&records);
  return records;
}

}  // namespace kgate::trace
