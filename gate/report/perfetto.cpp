// A trace as a timeline that ui.perfetto.dev opens: Chrome's JSON trace events, because they are documented, diffable
// and readable by other viewers too.
//
// Rows are streamed from SQL into the file; only the begin of each launch call is kept (24 bytes), for the arrows to
// its kernels. The format wants the slices of one track to nest. Calls of one thread do; what does not (requests that
// overlap, kernels of one stream in a damaged trace) gets further tracks beside.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "report/report.h"
#include "trace/store.h"

namespace kgate {

namespace {

using nlohmann::ordered_json;

constexpr size_t kMaxLanes = 256;  // tracks side by side for one thread, stream or list of requests

std::string json_text(const std::string& text) {
  return ordered_json(text).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// One row of a query.
class Row {
 public:
  explicit Row(const std::vector<std::optional<std::string>>& values) : values_(values) {}
  bool null(size_t i) const { return !values_[i]; }
  uint64_t number(size_t i) const {
    int64_t value = 0;
    if (values_[i]) std::from_chars(values_[i]->data(), values_[i]->data() + values_[i]->size(), value);
    return static_cast<uint64_t>(value);
  }
  std::string text(size_t i) const { return values_[i].value_or(""); }

 private:
  const std::vector<std::optional<std::string>>& values_;
};

template <typename Each>
void each(const TraceStore& trace, const std::string& sql, Each each_row) {
  trace.query(sql, [&](const auto&, const auto& values) { each_row(Row(values)); }).value_or_throw(Exit::bad_input);
}

// The file, beside its final name until it is whole.
class EventFile {
 public:
  EventFile(const std::filesystem::path& path, uint64_t origin)
      : path_(path),
        partial_(path.string() + ".partial"),
        out_(partial_, std::ios::binary | std::ios::trunc),
        origin_(origin) {}
  ~EventFile() {
    std::error_code ignored;
    if (!finished_) std::filesystem::remove(partial_, ignored);
  }

  void begin(const std::string& other_data) {
    out_ << "{\"displayTimeUnit\":\"ns\",\"otherData\":" << other_data << ",\"traceEvents\":[";
    check();
  }
  void event(const std::string& text) {
    out_ << (first_ ? "\n" : ",\n") << text;
    first_ = false;
    if (!out_) check();
  }
  void finish() {
    out_ << "\n]}\n";
    out_.close();
    check();
    std::error_code error;
    std::filesystem::rename(partial_, path_, error);
    if (error) throw Error(Exit::environment, "cannot write the timeline: " + error.message(), path_.string());
    finished_ = true;
  }
  std::string micros(uint64_t ns) const {  // since the first event of the trace
    uint64_t since = ns > origin_ ? ns - origin_ : 0;
    return fmt::format("{}.{:03}", since / 1000, since % 1000);
  }

 private:
  void check() {
    if (!out_)
      throw Error(Exit::environment, "cannot write the timeline", path_.string(),
                  "name another file, or mend its folder");
  }
  std::filesystem::path path_;
  std::string partial_;
  std::ofstream out_;
  uint64_t origin_;
  bool first_ = true, finished_ = false;
};

enum class Kind : int { rounds, requests, overheads, thread, thread_probes, thread_off_cpu, stream };
std::string track_name(Kind kind, uint64_t key) {
  switch (kind) {
    case Kind::rounds:
      return "rounds";
    case Kind::requests:
      return "requests";
    case Kind::overheads:
      return "the tracer's own work";
    case Kind::thread:
      return fmt::format("thread {}", key);
    case Kind::thread_probes:
      return fmt::format("thread {} as the probes saw it", key);
    case Kind::thread_off_cpu:
      return fmt::format("thread {} off the CPU", key);
    case Kind::stream:
      return fmt::format("device stream {}", key & 0xffffffff);
  }
  return {};
}

// Hands out tracks: per process group, kind and key as many lanes as nesting needs.
class Tracks {
 public:
  explicit Tracks(EventFile& file) : file_(file) {}

  // Within one (group, kind, key) slices come in order of their begin, longer ones first. 0: no lane is free.
  uint32_t place(uint32_t group, Kind kind, uint64_t key, uint64_t begin, uint64_t end) {
    bool nests = kind == Kind::thread || kind == Kind::thread_probes || kind == Kind::thread_off_cpu;
    auto& lanes = lanes_[{group, kind, key}];
    for (auto& lane : lanes) {
      while (!lane.open.empty() && lane.open.back() <= begin) lane.open.pop_back();
      if (!lane.open.empty() && !(nests && end <= lane.open.back())) continue;
      lane.open.push_back(end);
      return lane.track;
    }
    if (lanes.size() == kMaxLanes) return 0;
    lanes.push_back({++last_, {end}});
    std::string name = track_name(kind, key);
    if (lanes.size() > 1) name += fmt::format(" ({})", lanes.size());
    name_track(group, last_, name, static_cast<int>(kind));
    return last_;
  }

 private:
  struct Lane {
    uint32_t track;
    std::vector<uint64_t> open;  // ends of the slices that enclose the next
  };
  void name_track(uint32_t group, uint32_t track, const std::string& name, int order) {
    file_.event(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})", group, track,
                            json_text(name)));
    file_.event(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})",
                            group, track, order * 100000 + static_cast<int>(track)));
  }
  EventFile& file_;
  std::map<std::tuple<uint32_t, Kind, uint64_t>, std::vector<Lane>> lanes_;
  uint32_t last_ = 0;
};

std::string overhead_name(uint64_t kind) {  // CUPTI's CUpti_ActivityOverheadKind
  static constexpr const char* kNames[] = {"unknown",
                                           "activity buffer flush",
                                           "instrumentation",
                                           "resource creation",
                                           "module loading",
                                           "lazy function loading",
                                           "command buffer full",
                                           "activity buffer request",
                                           "UVM activity initialisation"};
  if (kind == 1) return "driver compiler";
  uint64_t index = kind >> 16;
  return (kind & 0xffff) == 0 && index < std::size(kNames) ? kNames[index] : fmt::format("overhead {}", kind);
}

std::string copy_name(const Row& row, size_t kind) {  // CUPTI's CUpti_ActivityMemcpyKind
  if (row.null(kind)) return "memset";
  switch (row.number(kind)) {
    case 1:
      return "copy host to device";
    case 2:
      return "copy device to host";
    case 8:
      return "copy device to device";
    case 10:
      return "copy device to another device";
    default:
      return fmt::format("copy, kind {}", row.number(kind));
  }
}

class Timeline {
 public:
  Timeline(const TraceStore& trace, const TimelineCut& cut, const std::filesystem::path& file)
      : trace_(trace), cut_(cut), origin_(first_event()), file_(file, origin_), tracks_(file_) {}

  TimelineCounts write() {
    ordered_json about = {{"first_event_monotonic_ns", origin_}, {"tier", trace_.info().tier}};
    for (const auto& [key, value] : trace_.info().facts) about[key] = value;
    file_.begin(about.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
    each(trace_, "SELECT process, command, round FROM processes", [&](const Row& row) {
      application_ = true;
      names_[row.number(0)] = fmt::format("{} {}", row.number(0), row.text(1));
    });
    rounds();
    requests();
    overheads();
    calls();
    std::sort(launches_.begin(), launches_.end());
    probes();
    off_cpu();
    device();
    file_.finish();
    return counts_;
  }

 private:
  struct Launch {
    uint32_t group, thread;
    uint64_t begin;
    uint32_t track;
    auto operator<=>(const Launch&) const = default;
  };

  uint64_t first_event() const {
    uint64_t first = UINT64_MAX;
    each(trace_,
         "SELECT MIN(begin_ns) FROM rounds UNION ALL SELECT MIN(start_ns) FROM api_calls UNION ALL "
         "SELECT MIN(start_ns) FROM kernels UNION ALL SELECT MIN(MIN(issue_ns, end_ns)) FROM requests UNION ALL "
         "SELECT MIN(begin_ns) FROM off_cpu UNION ALL SELECT MIN(launch_begin_ns) FROM kernels UNION ALL "
         "SELECT MIN(begin_ns) FROM host_calls UNION ALL SELECT MIN(start_ns) FROM copies",
         [&](const Row& row) {
           if (!row.null(0)) first = std::min(first, row.number(0));
         });
    return first == UINT64_MAX ? 0 : first;
  }

  // The SQL condition of the cut for a row from `begin` to `end`.
  std::string within(const std::string& begin, const std::string& end) const {
    std::string text = begin + " IS NOT NULL AND " + end + " >= " + begin;
    if (cut_.round) text += fmt::format(" AND round = {}", *cut_.round);
    if (cut_.from_ns) text += fmt::format(" AND {} >= {}", end, origin_ + cut_.from_ns);
    if (cut_.for_ns) text += fmt::format(" AND {} < {}", begin, origin_ + cut_.from_ns + *cut_.for_ns);
    return text;
  }

  // The process group of a row: the application's process, or the arm of a replay.
  uint32_t group(const Row& row, size_t arm, size_t process) {
    uint64_t key = application_    ? (row.null(process) ? 0 : row.number(process))
                   : row.null(arm) ? 0
                                   : row.number(arm) + 1;
    auto [at, added] = groups_.try_emplace(key, static_cast<uint32_t>(groups_.size() + 1));
    if (added) {
      std::string name = application_ ? names_[key]
                         : key == 0   ? "outside rounds"
                         : key == 1   ? "baseline (arm 0)"
                                      : fmt::format("candidate (arm {})", key - 1);
      if (name.empty()) name = "unknown process";
      file_.event(fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":{}}}}})", at->second,
                              json_text(name)));
      file_.event(fmt::format(R"({{"ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}}}})",
                              at->second, key == 0 ? 1000000 : key));
    }
    return at->second;
  }
  // The process of a round, as a column of SQL.
  static constexpr const char* kProcessOfRound = "(SELECT MIN(p.process) FROM processes p WHERE p.round = t.round)";

  // 0: there was no track for it.
  uint32_t slice(uint32_t group, Kind kind, uint64_t key, uint64_t begin, uint64_t end, const std::string& name,
                 const ordered_json& args) {
    uint32_t track = tracks_.place(group, kind, key, begin, end);
    if (track == 0) {
      ++counts_.crowded_out;
      return 0;
    }
    ++counts_.slices;
    file_.event(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{}.{:03},"cat":"{}","name":{},"args":{}}})",
                            group, track, file_.micros(begin), (end - begin) / 1000, (end - begin) % 1000,
                            category(kind, args), json_text(name),
                            args.dump(-1, ' ', false, ordered_json::error_handler_t::replace)));
    return track;
  }
  static const char* category(Kind kind, const ordered_json& args) {
    static constexpr const char* kNames[] = {"round", "request", "overhead", "call", "probe", "off_cpu", "device"};
    if (kind == Kind::thread && args.contains("launches")) return "launch";
    if (kind == Kind::stream) return args.contains("grid") ? "kernel" : "copy";
    return kNames[static_cast<int>(kind)];
  }

  void rounds() {
    each(trace_,
         fmt::format("SELECT arm, {} AS process, round, pair, begin_ns, end_ns FROM rounds t WHERE {} "
                     "ORDER BY arm, process, begin_ns, end_ns DESC",
                     kProcessOfRound, within("begin_ns", "end_ns")),
         [&](const Row& row) {
           slice(group(row, 0, 1), Kind::rounds, 0, row.number(4), row.number(5),
                 application_ ? "the process" : fmt::format("round {}", row.number(2)),
                 {{"round", row.number(2)}, {"pair", row.number(3)}});
         });
  }

  void requests() {
    each(trace_,
         fmt::format(
             "SELECT arm, {} AS process, sequence, request, thread, phase, issue_ns, end_ns, arrival_ns, lag_ns, "
             "quarantined, round FROM requests t WHERE {} ORDER BY arm, process, issue_ns, end_ns DESC",
             kProcessOfRound, within("issue_ns", "end_ns")),
         [&](const Row& row) {
           ordered_json args = {{"request", row.number(3)}, {"sequence", row.number(2)}, {"thread", row.number(4)},
                                {"phase", row.text(5)},     {"round", row.number(11)},   {"lag_ns", row.number(9)}};
           if (!row.null(8)) args["response_ns"] = row.number(7) - row.number(8);
           if (row.number(10)) args["quarantined"] = true;
           slice(group(row, 0, 1), Kind::requests, 0, row.number(6), row.number(7),
                 fmt::format("request {}{}", row.number(3), row.text(5) == "measured" ? "" : ", " + row.text(5)), args);
         });
  }

  void overheads() {
    each(trace_,
         fmt::format("SELECT arm, process, kind, thread, start_ns, end_ns FROM overheads t WHERE {} "
                     "ORDER BY arm, process, start_ns, end_ns DESC",
                     within("start_ns", "end_ns")),
         [&](const Row& row) {
           slice(group(row, 0, 1), Kind::overheads, 0, row.number(4), row.number(5), overhead_name(row.number(2)),
                 {{"thread", row.number(3)}});
         });
  }

  // Driver calls; launches that CUPTI did not see as a call stand where the worker or a probe saw them.
  void calls() {
    each(trace_,
         fmt::format(
             "SELECT arm, process, thread, start_ns AS begin_ns, end_ns, name, is_launch, is_sync, correlation_id, "
             "return_value FROM api_calls WHERE {} UNION ALL "
             "SELECT DISTINCT arm, process, thread, launch_begin_ns, launch_end_ns, 'launch, as ' || launch_source || "
             "' saw it', 1, 0, NULL, NULL FROM kernels WHERE launch_source <> 'cupti' AND thread IS NOT NULL AND {} "
             "ORDER BY arm, process, thread, begin_ns, end_ns DESC",
             within("start_ns", "end_ns"), within("launch_begin_ns", "launch_end_ns")),
         [&](const Row& row) {
           uint32_t in = group(row, 0, 1), thread = static_cast<uint32_t>(row.number(2));
           ordered_json args = ordered_json::object();
           if (!row.null(8)) args["correlation"] = row.number(8);
           if (!row.null(9) && row.number(9)) args["result"] = row.number(9);
           bool launches = row.number(6) != 0;
           if (launches) args["launches"] = true;
           if (row.number(7)) args["waits"] = true;
           uint32_t track = slice(in, Kind::thread, thread, row.number(3), row.number(4), row.text(5), args);
           if (launches && track) launches_.push_back({in, thread, row.number(3), track});
         });
  }

  void probes() {
    each(trace_,
         fmt::format("SELECT arm, process, thread, begin_ns, end_ns, name, use FROM host_calls WHERE {} "
                     "ORDER BY arm, process, thread, begin_ns, end_ns DESC",
                     within("begin_ns", "end_ns")),
         [&](const Row& row) {
           slice(group(row, 0, 1), Kind::thread_probes, row.number(2), row.number(3), row.number(4), row.text(5),
                 {{"use", row.text(6)}});
         });
  }

  void off_cpu() {
    each(trace_,
         fmt::format("SELECT arm, process, thread, begin_ns, end_ns, state, run_queue_ns FROM off_cpu "
                     "WHERE state <> {} AND {} ORDER BY arm, process, thread, begin_ns, end_ns DESC",
                     kUnknownState, within("begin_ns", "end_ns")),
         [&](const Row& row) {
           uint32_t in = group(row, 0, 1);
           uint64_t begin = row.number(3), end = row.number(4), state = row.number(5);
           uint64_t waiting = std::min(row.number(6), end - begin);
           slice(in, Kind::thread_off_cpu, row.number(2), begin, end,
                 state == 0   ? "preempted"
                 : state == 2 ? "blocked, uninterruptible"
                              : "blocked",
                 {{"state", state}, {"run_queue_ns", waiting}});
           if (state != 0 && waiting)
             slice(in, Kind::thread_off_cpu, row.number(2), end - waiting, end, "run queue", ordered_json::object());
         });
  }

  void device() {
    each(
        trace_,
        fmt::format(
            "SELECT arm, process, IFNULL(context, 0) AS context, device_stream AS on_stream, start_ns AS at, "
            "start_ns + duration_ns AS until, kernel_name, copy_kind, bytes, correlation_id, thread, launch_begin_ns, "
            "launch_source, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, static_shared, "
            "dynamic_shared, "
            "local_bytes, label, sequence, queue_ns, judged, graph_id, graph_node, round FROM ("
            "SELECT k.arm, k.process, k.context, k.device_stream, k.start_ns, k.duration_ns, n.kernel_name, "
            "NULL AS copy_kind, NULL AS bytes, k.correlation_id, k.thread, k.launch_begin_ns, k.launch_source, "
            "s.grid_x, s.grid_y, s.grid_z, s.block_x, s.block_y, s.block_z, s.registers, s.static_shared, "
            "s.dynamic_shared, s.local_bytes, c.label, k.sequence, k.queue_ns, k.judged, k.graph_id, k.graph_node, "
            "k.round FROM kernels k JOIN kernel_names n USING(kernel) LEFT JOIN launch_shapes s ON s.shape = k.shape "
            "LEFT JOIN launch_classes c ON c.launch_class = k.launch_class UNION ALL "
            "SELECT arm, process, context, device_stream, start_ns, end_ns - start_ns, NULL, copy_kind, bytes, "
            "correlation_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "
            "NULL, NULL, NULL, NULL, round FROM copies) "
            "WHERE {} ORDER BY arm, process, context, on_stream, at, until DESC",
            within("start_ns", "start_ns + duration_ns")),
        [&](const Row& row) { device_slice(row); });
  }

  void device_slice(const Row& row) {
    uint32_t in = group(row, 0, 1);
    uint64_t stream = row.number(2) << 32 | (row.number(3) & 0xffffffff), begin = row.number(4), end = row.number(5);
    ordered_json args = {{"correlation", row.number(9)}};
    if (row.null(6)) {
      args["bytes"] = row.number(8);
      slice(in, Kind::stream, stream, begin, end, copy_name(row, 7), args);
      return;
    }
    args["grid"] = fmt::format("{}x{}x{}", row.number(13), row.number(14), row.number(15));
    args["block"] = fmt::format("{}x{}x{}", row.number(16), row.number(17), row.number(18));
    args["registers"] = row.number(19);
    args["shared_bytes"] = row.number(20) + row.number(21);
    args["local_bytes"] = row.number(22);
    if (!row.null(23)) args["launch_class"] = row.text(23);
    if (!row.null(24)) args["sequence"] = row.number(24);
    if (!row.null(25)) args["queue_ns"] = row.number(25);
    if (row.number(26)) args["judged"] = true;
    if (!row.null(27) && row.number(27)) args["graph"] = row.number(27), args["graph_node"] = row.number(28);
    uint32_t track = slice(in, Kind::stream, stream, begin, end, row.text(6), args);
    if (track) arrow(row, in, track, begin);
  }

  void arrow(const Row& row, uint32_t in, uint32_t track, uint64_t begin) {
    Launch wanted{in, static_cast<uint32_t>(row.number(10)), row.number(11), 0};
    auto launch = std::lower_bound(launches_.begin(), launches_.end(), wanted);
    bool found = !row.null(11) && launch != launches_.end() && launch->group == in && launch->thread == wanted.thread &&
                 launch->begin == wanted.begin;
    if (!found) {
      ++counts_.kernels_without_launch;
      return;
    }
    uint64_t id = ++counts_.flows;
    file_.event(fmt::format(R"({{"ph":"s","pid":{},"tid":{},"ts":{},"id":{},"cat":"launch","name":"launch"}})", in,
                            launch->track, file_.micros(launch->begin), id));
    file_.event(fmt::format(R"({{"ph":"f","bp":"e","pid":{},"tid":{},"ts":{},"id":{},"cat":"launch","name":"launch"}})",
                            in, track, file_.micros(begin), id));
  }

  const TraceStore& trace_;
  const TimelineCut& cut_;
  uint64_t origin_;
  EventFile file_;
  Tracks tracks_;
  TimelineCounts counts_;
  bool application_ = false;
  std::map<uint64_t, std::string> names_;  // processes
  std::map<uint64_t, uint32_t> groups_;
  std::vector<Launch> launches_;
};

}  // namespace

TimelineCounts write_perfetto(const TraceStore& trace, const TimelineCut& cut, const std::filesystem::path& file) {
  return Timeline(trace, cut, file).write();
}

}  // namespace kgate
