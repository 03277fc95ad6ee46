// Everything here is a merge of two sorted lists per thread, so that a hostile stream costs n log n and no more.
#include "trace/join.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "trace/driver_calls.h"

namespace kgate::trace {

using namespace wire;

namespace {

// The API record's clock reads lie inside the worker's own; the slack covers the resolution of the two clocks.
constexpr uint64_t kSlack = 1000;  // ns

// A call that can be matched: CUPTI's or the probe's.
struct Interval {
  uint32_t thread, index;
  uint64_t begin, end;
  bool operator<(const Interval& other) const {
    return std::tie(thread, begin, end, index) < std::tie(other.thread, other.begin, other.end, other.index);
  }
};

// For each launch the first unused call of its thread that starts inside it; `assign(launch index, call index)`.
template <typename Assign>
void match_by_time(std::vector<Interval> launches, std::vector<Interval> calls, Assign assign) {
  std::sort(launches.begin(), launches.end());
  std::sort(calls.begin(), calls.end());
  size_t at = 0;
  for (const Interval& launch : launches) {
    uint64_t earliest = launch.begin > kSlack ? launch.begin - kSlack : 0;
    while (at < calls.size() &&
           (calls[at].thread < launch.thread ||
            (calls[at].thread == launch.thread && (calls[at].begin < earliest || calls[at].end < launch.begin))))
      ++at;
    if (at == calls.size()) return;
    if (calls[at].thread == launch.thread && calls[at].begin <= launch.end) assign(launch.index, calls[at++].index);
  }
}

std::vector<Interval> launch_intervals(const Records& records) {
  std::vector<Interval> all;
  all.reserve(records.launches.size());
  for (uint32_t i = 0; i < records.launches.size(); ++i) {
    const LaunchRecord& launch = records.launches[i];
    all.push_back({launch.thread, i, launch.begin, launch.end});
  }
  return all;
}

void match_kernels(const Records& records, Join* join) {
  std::unordered_map<uint32_t, uint32_t> by_correlation;  // the earliest kernel of a correlation id
  by_correlation.reserve(records.kernels.size());
  for (uint32_t i = 0; i < records.kernels.size(); ++i) {
    auto [at, added] = by_correlation.try_emplace(records.kernels[i].correlation, i);
    if (!added && records.kernels[i].start < records.kernels[at->second].start) at->second = i;
  }
  std::vector<bool> used(records.kernels.size());
  for (LaunchMatch& match : join->launches) {
    if (match.api == kNoIndex) continue;
    auto at = by_correlation.find(records.apis[match.api].correlation);
    if (at == by_correlation.end() || used[at->second]) continue;
    match.kernel = at->second;
    used[at->second] = true;
  }
  for (uint32_t i = 0; i < used.size(); ++i)
    if (!used[i]) join->free_kernels.push_back(i);
}

void find_previous_ends(const Records& records, Join* join) {
  struct Work {
    uint32_t stream;
    uint64_t start, end;
    uint32_t kernel;
  };
  std::vector<Work> all;
  for (uint32_t i = 0; i < records.kernels.size(); ++i)
    if (records.kernels[i].end != 0)
      all.push_back({records.kernels[i].stream, records.kernels[i].start, records.kernels[i].end, i});
  for (const MemoryRecord& memory : records.memories)
    all.push_back({memory.stream, memory.start, memory.end, kNoIndex});
  std::sort(all.begin(), all.end(), [](const Work& a, const Work& b) {
    return std::tie(a.stream, a.start, a.end, a.kernel) < std::tie(b.stream, b.start, b.end, b.kernel);
  });
  join->previous_end.assign(records.kernels.size(), 0);
  uint64_t latest = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i > 0 && all[i].stream != all[i - 1].stream) latest = 0;
    if (all[i].kernel != kNoIndex) join->previous_end[all[i].kernel] = latest;
    latest = std::max(latest, all[i].end);
  }
}

}  // namespace

Join join_records(const Records& records, const std::vector<HostEvent>& host_events,
                  const std::vector<ProbeSymbol>& symbols) {
  Join join;
  join.launches.resize(records.launches.size());
  std::vector<Interval> launches = launch_intervals(records), calls;
  for (uint32_t i = 0; i < records.apis.size(); ++i)
    if (is_launch_cbid(records.apis[i].cbid))
      calls.push_back({records.apis[i].thread, i, records.apis[i].start, records.apis[i].end});
  match_by_time(launches, std::move(calls), [&](uint32_t launch, uint32_t api) { join.launches[launch].api = api; });
  calls.clear();
  for (uint32_t i = 0; i < host_events.size(); ++i) {
    const HostEvent& event = host_events[i];
    if (event.kind != HostEventKind::api || event.symbol >= symbols.size()) continue;
    ProbeSymbol::Use use = symbols[event.symbol].use;
    if (use == ProbeSymbol::Use::launch || use == ProbeSymbol::Use::graph_launch)
      calls.push_back({event.thread, i, event.begin, event.end});
  }
  match_by_time(std::move(launches), std::move(calls),
                [&](uint32_t launch, uint32_t host) { join.launches[launch].host = host; });
  match_kernels(records, &join);
  find_previous_ends(records, &join);
  return join;
}

Timeline::Timeline(const Records& records) : records_(records) {
  for (uint32_t i = 0; i < records.rounds.size(); ++i) rounds_by_begin_.push_back(i);
  rounds_by_number_ = rounds_by_begin_;
  for (uint32_t i = 0; i < records.requests.size(); ++i) requests_.push_back(i);
  std::sort(rounds_by_begin_.begin(), rounds_by_begin_.end(),
            [&](uint32_t a, uint32_t b) { return records.rounds[a].begin < records.rounds[b].begin; });
  std::sort(rounds_by_number_.begin(), rounds_by_number_.end(),
            [&](uint32_t a, uint32_t b) { return records.rounds[a].head.round < records.rounds[b].head.round; });
  std::sort(requests_.begin(), requests_.end(), [&](uint32_t a, uint32_t b) {
    const RequestRecord &x = records.requests[a], &y = records.requests[b];
    return std::tie(x.head.round, x.thread, x.issue) < std::tie(y.head.round, y.thread, y.issue);
  });
}

uint32_t Timeline::round_at(uint64_t time) const {
  auto after = std::upper_bound(rounds_by_begin_.begin(), rounds_by_begin_.end(), time,
                                [&](uint64_t t, uint32_t i) { return t < records_.rounds[i].begin; });
  if (after == rounds_by_begin_.begin()) return kNoIndex;
  uint32_t index = *(after - 1);
  return time <= records_.rounds[index].end ? index : kNoIndex;
}

uint32_t Timeline::round_index(uint32_t number) const {
  auto at = std::lower_bound(rounds_by_number_.begin(), rounds_by_number_.end(), number,
                             [&](uint32_t i, uint32_t n) { return records_.rounds[i].head.round < n; });
  return at != rounds_by_number_.end() && records_.rounds[*at].head.round == number ? *at : kNoIndex;
}

uint32_t Timeline::request_at(uint32_t round, uint32_t thread, uint64_t time) const {
  auto after = std::upper_bound(requests_.begin(), requests_.end(), std::tuple(round, thread, time),
                                [&](const std::tuple<uint32_t, uint32_t, uint64_t>& t, uint32_t i) {
                                  const RequestRecord& r = records_.requests[i];
                                  return t < std::tuple(r.head.round, r.thread, r.issue);
                                });
  if (after == requests_.begin()) return kNoIndex;
  const RequestRecord& request = records_.requests[*(after - 1)];
  bool inside = request.head.round == round && request.thread == thread && time <= request.end;
  return inside ? *(after - 1) : kNoIndex;
}

}  // namespace kgate::trace
