// Everything here is a merge of two sorted lists per thread, so that a hostile stream costs n log n and no more.
#include "trace/join.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "trace/driver_calls.h"
#include "trace/graphs.h"

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

// Driver calls that the worker made: launches, and behind their indices the graph calls.
std::vector<Interval> launch_intervals(const Records& records) {
  std::vector<Interval> all;
  all.reserve(records.launches.size());
  auto launches = static_cast<uint32_t>(records.launches.size());
  for (uint32_t i = 0; i < launches; ++i) {
    const LaunchRecord& launch = records.launches[i];
    if (launch.graph_node == 0) all.push_back({launch.thread, i, launch.begin, launch.end});
  }
  for (uint32_t i = 0; i < records.graph_calls.size(); ++i) {
    const GraphCallRecord& call = records.graph_calls[i].record;
    all.push_back({call.thread, launches + i, call.begin, call.end});
  }
  return all;
}

// What was found for a launch interval goes to the launch, or to all kernels of the graph call.
template <typename Assign>
void assign_call(const Records& records, uint32_t interval, Join* join, Assign assign) {
  if (interval < join->launches.size()) return assign(join->launches[interval]);
  const Records::GraphCall& call = records.graph_calls[interval - join->launches.size()];
  for (uint32_t i = 0; i < call.launch_count; ++i) assign(join->launches[call.first_launch + i]);
}

// A record with a correlation id.
struct Correlated {
  uint32_t correlation, index;
  uint64_t start;
  bool operator<(const Correlated& other) const {
    return std::tie(correlation, start, index) < std::tie(other.correlation, other.start, other.index);
  }
};

template <typename Record>
std::vector<Correlated> by_correlation(const std::vector<Record>& records) {
  std::vector<Correlated> all;
  all.reserve(records.size());
  for (uint32_t i = 0; i < records.size(); ++i) all.push_back({records[i].correlation, i, records[i].start});
  if (!std::is_sorted(all.begin(), all.end())) std::sort(all.begin(), all.end());
  return all;
}

// For each record the call with its id that started last before it. The first call of an id takes what comes before
// all of them, too: clocks differ, and how many kernels start too early is counted elsewhere.
std::vector<uint32_t> calls_of(const std::vector<Correlated>& records, const std::vector<Correlated>& calls,
                               size_t count) {
  std::vector<uint32_t> found(count, kNoIndex);
  size_t at = 0;
  for (const Correlated& record : records) {
    while (at < calls.size() && calls[at].correlation < record.correlation) ++at;
    while (at + 1 < calls.size() && calls[at + 1].correlation == record.correlation &&
           calls[at + 1].start <= record.start)
      ++at;
    if (at < calls.size() && calls[at].correlation == record.correlation) found[record.index] = calls[at].index;
  }
  return found;
}

void match_kernels(const Records& records, Join* join) {
  std::vector<Correlated> calls = by_correlation(records.apis), kernels = by_correlation(records.kernels);
  join->kernel_api = calls_of(kernels, calls, records.kernels.size());
  join->sync_api = calls_of(by_correlation(records.syncs), calls, records.syncs.size());
  if (!records.outer.empty())
    for (std::vector<uint32_t>* found : {&join->kernel_api, &join->sync_api})
      for (uint32_t& api : *found)
        if (api != kNoIndex) api = records.outer[api];
  join->api_kernel.assign(records.apis.size(), kNoIndex);
  for (const Correlated& kernel : kernels)
    if (uint32_t api = join->kernel_api[kernel.index]; api != kNoIndex && join->api_kernel[api] == kNoIndex)
      join->api_kernel[api] = kernel.index;
  std::vector<bool> used(records.kernels.size());
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> of_graphs;  // by call and node
  if (!records.graph_calls.empty())
    for (uint32_t i = 0; i < records.kernels.size(); ++i)
      if (uint64_t node = graph_node(records.kernels[i]); node != 0 && join->kernel_api[i] != kNoIndex)
        of_graphs.emplace(std::pair(join->kernel_api[i], node), i);
  for (uint32_t i = 0; i < join->launches.size(); ++i) {
    LaunchMatch& match = join->launches[i];
    if (match.api == kNoIndex) continue;
    if (uint64_t node = records.launches[i].graph_node; node != 0) {
      auto kernel = of_graphs.find({match.api, node});
      match.kernel = kernel == of_graphs.end() ? kNoIndex : kernel->second;
    } else {
      match.kernel = join->api_kernel[match.api];
    }
    if (match.kernel != kNoIndex) used[match.kernel] = true;
  }
  for (uint32_t i = 0; i < used.size(); ++i)
    if (!used[i]) join->free_kernels.push_back(i);
}

void find_previous_ends(const Records& records, Join* join) {
  struct Work {
    uint64_t stream;
    uint64_t start, end;
    uint32_t kernel;
    bool operator<(const Work& other) const {
      return std::tie(stream, start, end, kernel) < std::tie(other.stream, other.start, other.end, other.kernel);
    }
  };
  std::vector<Work> all;
  all.reserve(records.kernels.size() + records.memories.size());
  auto stream_of = [](uint32_t context, uint32_t stream) { return uint64_t{context} << 32 | stream; };
  for (uint32_t i = 0; i < records.kernels.size(); ++i) {
    const KernelRecord& kernel = records.kernels[i];
    if (kernel.end != 0) all.push_back({stream_of(kernel.context, kernel.stream), kernel.start, kernel.end, i});
  }
  for (const MemoryRecord& memory : records.memories)
    all.push_back({stream_of(memory.context, memory.stream), memory.start, memory.end, kNoIndex});
  std::sort(all.begin(), all.end());
  join->previous_end.assign(records.kernels.size(), 0);
  uint64_t latest = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i > 0 && all[i].stream != all[i - 1].stream) latest = 0;
    if (all[i].kernel != kNoIndex) join->previous_end[all[i].kernel] = latest;
    latest = std::max(latest, all[i].end);
  }
}

// Of an application: a call of the runtime encloses what the probes saw, which encloses a call of the driver.
void match_calls_and_hosts(const Records& records, std::vector<Interval> calls, std::vector<Interval> hosts,
                           Join* join) {
  join->api_host.assign(records.apis.size(), kNoIndex);
  auto driver_s = std::stable_partition(calls.begin(), calls.end(), [&](const Interval& call) {
    return (records.apis[call.index].cbid & kRuntimeCall) != 0;
  });
  std::vector<Interval> of_runtime(calls.begin(), driver_s), of_driver(driver_s, calls.end());
  std::vector<uint32_t> used;
  match_by_time(std::move(of_runtime), hosts, [&](uint32_t api, uint32_t host) {
    join->api_host[api] = host;
    used.push_back(host);
  });
  std::sort(used.begin(), used.end());
  std::erase_if(hosts, [&](const Interval& host) { return std::binary_search(used.begin(), used.end(), host.index); });
  match_by_time(std::move(hosts), std::move(of_driver),
                [&](uint32_t host, uint32_t api) { join->api_host[api] = host; });
}

bool launches(ProbeSymbol::Use use) { return use == ProbeSymbol::Use::launch || use == ProbeSymbol::Use::graph_launch; }

}  // namespace

std::vector<uint32_t> host_launches(const std::vector<HostEvent>& host_events,
                                    const std::vector<ProbeSymbol>& symbols) {
  std::vector<Interval> all;
  for (uint32_t i = 0; i < host_events.size(); ++i) {
    const HostEvent& event = host_events[i];
    if (event.kind == HostEventKind::api && event.symbol < symbols.size() && launches(symbols[event.symbol].use))
      all.push_back({event.thread, i, event.begin, event.end});
  }
  std::sort(all.begin(), all.end(), [](const Interval& a, const Interval& b) {
    return std::tie(a.thread, a.begin, b.end, a.index) < std::tie(b.thread, b.begin, a.end, b.index);
  });
  std::vector<uint32_t> outer;
  const Interval* around = nullptr;
  for (const Interval& one : all) {
    if (around && around->thread == one.thread && one.end <= around->end) continue;
    outer.push_back(one.index);
    around = &one;
  }
  return outer;
}

Join join_records(const Records& records, const std::vector<HostEvent>& host_events,
                  const std::vector<ProbeSymbol>& symbols) {
  Join join;
  join.launches.resize(records.launches.size());
  std::vector<Interval> launches = launch_intervals(records), calls, hosts;
  for (uint32_t i = 0; i < records.apis.size(); ++i)
    if (is_launch_cbid(records.apis[i].cbid))
      calls.push_back({records.apis[i].thread, i, records.apis[i].start, records.apis[i].end});
  for (uint32_t i : host_launches(host_events, symbols))
    hosts.push_back({host_events[i].thread, i, host_events[i].begin, host_events[i].end});
  if (launches.empty()) {
    match_calls_and_hosts(records, std::move(calls), std::move(hosts), &join);
  } else {
    match_by_time(launches, std::move(calls), [&](uint32_t launch, uint32_t api) {
      assign_call(records, launch, &join, [&](LaunchMatch& match) { match.api = api; });
    });
    match_by_time(std::move(launches), std::move(hosts), [&](uint32_t launch, uint32_t host) {
      assign_call(records, launch, &join, [&](LaunchMatch& match) { match.host = host; });
    });
  }
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
  if (last_round_ != kNoIndex && records_.rounds[last_round_].begin <= time && time <= records_.rounds[last_round_].end)
    return last_round_;
  auto after = std::upper_bound(rounds_by_begin_.begin(), rounds_by_begin_.end(), time,
                                [&](uint64_t t, uint32_t i) { return t < records_.rounds[i].begin; });
  if (after == rounds_by_begin_.begin()) return kNoIndex;
  uint32_t index = *(after - 1);
  return time <= records_.rounds[index].end ? last_round_ = index : kNoIndex;
}

uint32_t Timeline::round_index(uint32_t number) const {
  if (last_number_ != kNoIndex && records_.rounds[last_number_].head.round == number) return last_number_;
  auto at = std::lower_bound(rounds_by_number_.begin(), rounds_by_number_.end(), number,
                             [&](uint32_t i, uint32_t n) { return records_.rounds[i].head.round < n; });
  return at != rounds_by_number_.end() && records_.rounds[*at].head.round == number ? last_number_ = *at : kNoIndex;
}

uint32_t Timeline::request_at(uint32_t round, uint32_t thread, uint64_t time) const {
  auto holds = [&](size_t position) {
    if (position >= requests_.size()) return false;
    const RequestRecord& r = records_.requests[requests_[position]];
    return r.head.round == round && r.thread == thread && r.issue <= time && time <= r.end;
  };
  for (size_t position : {last_request_, last_request_ + 1})
    if (holds(position)) return requests_[last_request_ = position];
  auto after = std::upper_bound(requests_.begin(), requests_.end(), std::tuple(round, thread, time),
                                [&](const std::tuple<uint32_t, uint32_t, uint64_t>& t, uint32_t i) {
                                  const RequestRecord& r = records_.requests[i];
                                  return t < std::tuple(r.head.round, r.thread, r.issue);
                                });
  if (after == requests_.begin()) return kNoIndex;
  auto position = static_cast<size_t>(after - requests_.begin()) - 1;
  return holds(position) ? requests_[last_request_ = position] : kNoIndex;
}

}  // namespace kgate::trace
