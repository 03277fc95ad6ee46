// The sweep: all slices of a request as begin and end events in time order; between two events the first active part
// gets the time. A request has some tens of slices, a trace some hundred thousand requests.

#include "judge/breakdown.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace kgate {

namespace {

using wire::Phase;
using Key = std::pair<uint32_t, uint32_t>;

uint64_t number(const std::optional<std::string>& text) {
  uint64_t value = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
}

// Rows grouped as the sweep needs them.
struct Index {
  std::map<Key, std::vector<const KernelRow*>> kernels;  // (round, sequence)
  std::map<Key, std::vector<const ApiRow*>> calls;       // (round, sequence)
  std::map<Key, std::vector<const OffCpuRow*>> off_cpu;  // (round, thread), by begin
  std::map<uint32_t, Windows> copies, busy;              // round → by begin; busy: union of its kernels
  bool scheduling = false;

  explicit Index(const TraceRows& rows) {
    for (const auto& row : rows.kernels) {
      if (row.phase == Phase::measured && row.end != 0) kernels[{row.round, row.sequence}].push_back(&row);
      if (row.end > row.start) busy[row.round].emplace_back(row.start, row.end);
    }
    for (const auto& row : rows.api_calls)
      if (row.phase == Phase::measured) calls[{row.round, row.sequence}].push_back(&row);
    for (const auto& row : rows.off_cpu) {
      if (row.state == kUnknownState) continue;  // a whole round's account (tier T2): it has no place in time
      scheduling = true;
      off_cpu[{row.round, row.thread}].push_back(&row);
    }
    for (auto& [key, spans] : off_cpu)
      std::sort(spans.begin(), spans.end(), [](auto* a, auto* b) { return a->begin < b->begin; });
    for (const auto& row : rows.copies) copies[row.round].emplace_back(row.start, row.end);
    for (auto& [round, spans] : copies) spans = merged(spans);
    for (auto& [round, spans] : busy) spans = merged(spans);
  }

  static Windows merged(Windows spans) {
    std::sort(spans.begin(), spans.end());
    Windows out;
    for (auto [begin, end] : spans) {
      if (end <= begin) continue;
      if (out.empty() || begin > out.back().second)
        out.emplace_back(begin, end);
      else
        out.back().second = std::max(out.back().second, end);
    }
    return out;
  }
};

template <typename T, typename Map, typename K>
const T& at_or_empty(const Map& map, const K& key) {
  static const T empty{};
  auto found = map.find(key);
  return found == map.end() ? empty : found->second;
}

void add_off_cpu(const Index& index, Key thread, uint64_t begin, uint64_t end, std::vector<PartSlice>& slices) {
  const auto& spans = at_or_empty<std::vector<const OffCpuRow*>>(index.off_cpu, thread);
  auto span = std::partition_point(spans.begin(), spans.end(), [&](auto* row) { return row->end <= begin; });
  for (; span != spans.end() && (*span)->begin < end; ++span) {
    const OffCpuRow& row = **span;
    if (row.state == 0) {
      slices.push_back({row.begin, row.end, Part::preempted});
      continue;
    }
    uint64_t waiting = std::min(row.run_queue_ns, row.end - row.begin);
    slices.push_back({row.end - waiting, row.end, Part::run_queue});
    slices.push_back({row.begin, row.end - waiting, Part::blocked});
  }
}

// Disjoint and sorted by begin: those that reach into [begin, end).
void add_spans(const Windows& spans, uint64_t begin, uint64_t end, Part part, std::vector<PartSlice>& slices) {
  auto span = std::partition_point(spans.begin(), spans.end(), [&](const auto& s) { return s.second <= begin; });
  for (; span != spans.end() && span->first < end; ++span)
    slices.push_back({std::max(span->first, begin), std::min(span->second, end), part});
}

std::vector<PartSlice> slices_of(const Index& index, const RequestRow& request, const Windows& syncs) {
  std::vector<PartSlice> slices;
  for (const KernelRow* row :
       at_or_empty<std::vector<const KernelRow*>>(index.kernels, Key{request.round, request.sequence})) {
    slices.push_back({row->start, row->end, row->judged ? Part::judged_kernel : Part::other_kernels});
    if (row->launch_end != 0 && row->launch_end < row->start)
      slices.push_back({row->launch_end, row->start, Part::queueing});
  }
  for (const ApiRow* row : at_or_empty<std::vector<const ApiRow*>>(index.calls, Key{request.round, request.sequence}))
    slices.push_back({row->start, row->end,
                      row->is_launch ? Part::launch_calls
                      : row->is_sync ? Part::sync
                                     : Part::other_calls});
  uint64_t begin = request.arrival ? std::min(request.arrival, request.issue) : request.issue;
  if (begin < request.issue) slices.push_back({begin, request.issue, Part::before_issue});
  add_off_cpu(index, {request.round, request.thread}, request.issue, request.end, slices);
  add_spans(at_or_empty<Windows>(index.copies, request.round), request.issue, request.end, Part::copies, slices);
  for (auto [from, to] : syncs)
    add_spans(at_or_empty<Windows>(index.busy, request.round), from, to, Part::foreign_kernels, slices);
  return slices;
}

struct Sample {
  double value;
  Parts parts;
};
using Samples = std::map<uint32_t, std::vector<Sample>>;  // by round

double total(const Parts& parts) {
  double sum = 0;
  for (double part : parts) sum += part;
  return sum;
}

void add_request(const Index& index, const RequestRow& request, Span span, Samples& samples) {
  Windows syncs;
  for (const ApiRow* row : at_or_empty<std::vector<const ApiRow*>>(index.calls, Key{request.round, request.sequence}))
    if (row->is_sync) syncs.emplace_back(row->start, row->end);
  syncs = Index::merged(std::move(syncs));
  Windows windows;
  if (span == Span::sync_stall)
    windows = syncs;
  else
    windows.emplace_back(
        span == Span::response && request.arrival ? std::min(request.arrival, request.issue) : request.issue,
        request.end);
  Parts parts{};
  split(windows, slices_of(index, request, syncs), Part::host, parts);
  samples[request.round].push_back({total(parts), parts});
}

void add_launch_calls(const Index& index, const TraceRows& rows, const Counted& counted, Samples& samples) {
  for (const auto& row : rows.api_calls) {
    if (!row.is_launch || !counted.round_of(row.round, row.sequence, row.phase)) continue;
    std::vector<PartSlice> slices;
    add_off_cpu(index, {row.round, row.thread}, row.start, row.end, slices);
    Parts parts{};
    split({{row.start, row.end}}, slices, Part::launch_calls, parts);
    samples[row.round].push_back({total(parts), parts});
  }
}

Parts mean_parts(std::vector<Sample>& samples, bool tail, uint64_t& used) {
  size_t count = samples.size();
  if (tail) {
    count = std::min(count, std::max<size_t>(10, (count + 99) / 100));
    std::stable_sort(samples.begin(), samples.end(), [](const auto& a, const auto& b) { return a.value > b.value; });
  }
  Parts mean{};
  for (size_t i = 0; i < count; ++i)
    for (size_t part = 0; part < kParts; ++part) mean[part] += samples[i].parts[part] / double(count);
  used = used ? std::min<uint64_t>(used, count) : count;
  return mean;
}

// Means over the pairs that have both arms, of sums a request.
template <typename Name>
class PairMeans {
 public:
  void add(const RoundRow& round, const Name& name, double value) { sums_[round.pair][round.arm != 0][name] += value; }
  void note(const RoundRow& round, double requests) { requests_[round.pair][round.arm != 0] += requests; }

  std::map<Name, PerRequest> means() const {
    std::map<Name, PerRequest> out;
    double pairs = 0;
    for (const auto& [pair, counts] : requests_) pairs += counts[0] > 0 && counts[1] > 0;
    for (const auto& [pair, arms] : sums_) {
      auto counts = requests_.find(pair);
      if (counts == requests_.end() || !(counts->second[0] > 0) || !(counts->second[1] > 0)) continue;
      for (const auto& [name, sum] : arms[0]) out[name].baseline += sum / counts->second[0] / pairs;
      for (const auto& [name, sum] : arms[1]) out[name].candidate += sum / counts->second[1] / pairs;
    }
    return out;
  }

 private:
  std::map<uint32_t, std::array<std::map<Name, double>, 2>> sums_;
  std::map<uint32_t, std::array<double, 2>> requests_;
};

template <typename Name>
PairMeans<Name> pair_means(const TraceRows& rows, const Counted& counted) {
  PairMeans<Name> means;
  for (const auto& round : rows.rounds) means.note(round, counted.requests(round.round));
  return means;
}

}  // namespace

const char* part_name(Part part) {
  static constexpr const char* kNames[] = {"judged kernel",
                                           "other kernels",
                                           "copies",
                                           "queueing",
                                           "kernels of other requests",
                                           "preempted",
                                           "run queue",
                                           "launch calls",
                                           "synchronisation beyond the GPU's work",
                                           "other driver calls",
                                           "blocked",
                                           "waiting for its turn",
                                           "host code between driver calls"};
  static_assert(std::size(kNames) == kParts);
  return kNames[static_cast<size_t>(part)];
}

void split(const Windows& windows, const std::vector<PartSlice>& slices, Part rest, Parts& parts) {
  struct Event {
    uint64_t time;
    size_t part;
    int step;
  };
  for (auto [begin, end] : windows) {
    if (end <= begin) continue;
    std::vector<Event> events;
    for (const auto& slice : slices) {
      uint64_t from = std::max(slice.begin, begin), to = std::min(slice.end, end);
      if (to <= from) continue;
      events.push_back({from, static_cast<size_t>(slice.part), 1});
      events.push_back({to, static_cast<size_t>(slice.part), -1});
    }
    std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.time < b.time; });
    std::array<int, kParts> active{};
    uint64_t reached = begin;
    auto advance = [&](uint64_t to) {
      auto first = std::find_if(active.begin(), active.end(), [](int count) { return count > 0; });
      size_t part = first == active.end() ? static_cast<size_t>(rest) : static_cast<size_t>(first - active.begin());
      parts[part] += double(to - reached);
      reached = to;
    };
    for (const Event& event : events) {
      if (event.time > reached) advance(event.time);
      active[event.part] += event.step;
    }
    advance(end);
  }
}

TraceRows read_rows(const TraceStore& trace) {
  TraceRows rows{trace.rounds(), trace.requests(), trace.kernels(), trace.api_calls(), trace.off_cpu(), {}, false};
  const RunInfo info = trace.info();
  auto of = info.facts.find(kKernelTimeOf);
  rows.sum_requests = of != info.facts.end() && of->second == kKernelTimeOfRequests;
  trace
      .query("SELECT round, start_ns, end_ns FROM copies WHERE round IS NOT NULL",
             [&](const auto&, const auto& values) {
               CopyRow copy{};
               copy.round = static_cast<uint32_t>(number(values[0]));
               copy.start = number(values[1]);
               copy.end = number(values[2]);
               rows.copies.push_back(copy);
             })
      .value_or_throw(Exit::bad_input);
  return rows;
}

Counted::Counted(const TraceRows& rows) {
  for (const auto& round : rows.rounds) rounds_[round.round] = round;
  for (const auto& row : rows.requests)
    if (auto round = rounds_.find(row.round); row.quarantined && round != rounds_.end())
      left_out_[round->second.pair].push_back(row.sequence);
  for (auto& [pair, sequences] : left_out_) std::sort(sequences.begin(), sequences.end());
  for (const auto& row : rows.requests)
    if (round_of(row.round, row.sequence, row.phase)) ++requests_[row.round];
}

const RoundRow* Counted::round_of(uint32_t round, uint32_t sequence, Phase phase) const {
  auto found = rounds_.find(round);
  if (phase != Phase::measured || found == rounds_.end()) return nullptr;
  auto out = left_out_.find(found->second.pair);
  if (out != left_out_.end() && std::binary_search(out->second.begin(), out->second.end(), sequence)) return nullptr;
  return &found->second;
}

double Counted::requests(uint32_t round) const {
  auto found = requests_.find(round);
  return found == requests_.end() ? 0 : found->second;
}

Breakdown break_down(const TraceRows& rows, Span span, bool tail) {
  Index index(rows);
  Counted counted(rows);
  Samples samples;
  if (span == Span::launch_call)
    add_launch_calls(index, rows, counted, samples);
  else
    for (const auto& request : rows.requests)
      if (counted.round_of(request.round, request.sequence, request.phase)) add_request(index, request, span, samples);

  std::map<uint32_t, std::array<std::optional<Parts>, 2>> pairs;
  Breakdown out;
  out.scheduling = index.scheduling;
  for (const auto& round : rows.rounds)
    if (auto found = samples.find(round.round); found != samples.end())
      pairs[round.pair][round.arm != 0] = mean_parts(found->second, tail, out.samples);
  std::erase_if(pairs, [](const auto& pair) { return !pair.second[0] || !pair.second[1]; });
  out.pairs = static_cast<uint32_t>(pairs.size());
  for (const auto& [number, arms] : pairs)
    for (size_t part = 0; part < kParts; ++part) {
      out.baseline[part] += (*arms[0])[part] / double(pairs.size());
      out.candidate[part] += (*arms[1])[part] / double(pairs.size());
    }
  out.baseline_total = total(out.baseline);
  out.candidate_total = total(out.candidate);
  return out;
}

std::map<std::string, KernelDelay> delays_of_others(const TraceRows& rows) {
  Counted counted(rows);
  auto waiting = pair_means<std::string>(rows, counted), running = waiting;
  for (const auto& row : rows.kernels) {
    const RoundRow* round = counted.round_of(row.round, row.sequence, row.phase);
    if (!round || row.judged || row.end == 0) continue;
    uint64_t ready = row.launch_end != 0 ? std::max(row.launch_end, row.previous_end) : row.start;
    uint64_t start = std::max(row.start, ready);
    waiting.add(*round, row.name, double(start - ready));
    running.add(*round, row.name, row.end > start ? double(row.end - start) : 0.0);
  }
  std::map<std::string, KernelDelay> out;
  for (const auto& [name, mean] : waiting.means()) out[name].waiting = mean;
  for (const auto& [name, mean] : running.means()) out[name].running = mean;
  return out;
}

PerRequest judged_time(const TraceRows& rows) {
  Counted counted(rows);
  auto means = pair_means<int>(rows, counted);
  for (const auto& row : rows.kernels)
    if (const RoundRow* round = counted.round_of(row.round, row.sequence, row.phase); round && row.judged && row.end)
      means.add(*round, 0, double(row.end) - double(row.start));
  return means.means()[0];
}

std::map<std::string, PerRequest> calls_by_name(const TraceRows& rows, CallUse kind) {
  Counted counted(rows);
  auto means = pair_means<std::string>(rows, counted);
  for (const auto& row : rows.api_calls) {
    bool wanted = kind == CallUse::launch ? row.is_launch : kind == CallUse::sync ? row.is_sync : row.is_alloc;
    if (const RoundRow* round = counted.round_of(row.round, row.sequence, row.phase); wanted && round)
      means.add(*round, row.name, 1);
  }
  return means.means();
}

std::map<uint32_t, ClassSamples> judged_classes(const TraceRows& rows) {
  Counted counted(rows);
  std::vector<const KernelRow*> order;
  for (const auto& row : rows.kernels)
    if (row.judged && row.end != 0 && counted.round_of(row.round, row.sequence, row.phase)) order.push_back(&row);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) {
    return std::tie(a->round, a->launch_begin) < std::tie(b->round, b->launch_begin);
  });
  std::map<uint32_t, ClassSamples> classes;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::pair<std::vector<double>*, size_t>> last;
  for (const KernelRow* row : order) {
    double duration = double(row->end) - double(row->start);
    auto key = std::make_tuple(row->round, row->sequence, row->launch);
    auto found = last.find(key);
    if (row->item != 0 && found != last.end()) {
      (*found->second.first)[found->second.second] += duration;
      continue;
    }
    ClassSamples& samples = classes[row->launch_class];
    auto& values = row->arm == 0 ? samples.baseline : samples.candidate;
    values.push_back(duration);
    last[key] = {&values, values.size() - 1};
    if (row->arm == 0 || samples.label.empty())
      samples.label = "grid " + std::to_string(row->grid[0]) + "x" + std::to_string(row->grid[1]) + "x" +
                      std::to_string(row->grid[2]) + " block " + std::to_string(row->block[0]) + "x" +
                      std::to_string(row->block[1]) + "x" + std::to_string(row->block[2]);
  }
  return classes;
}

}  // namespace kgate
