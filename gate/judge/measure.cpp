// From the rows of a trace to one value a metric, round and arm. Everything here is a fold over measured rows; which
// rows are measured, joined and quarantined was settled when the trace was written.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "judge/metrics.h"

namespace kgate {

namespace {

using wire::Phase;

// What one round contributes, before it is reduced to values.
struct RoundData {
  uint32_t arm = 0, pair = 0;
  std::vector<double> service, response, kernel_time, launch_api, queue_wait;
  double others_delay = 0, preempted = 0, runqueue = 0, blocked = 0;
  std::map<uint32_t, std::vector<std::pair<uint64_t, uint64_t>>> syncs;  // by thread
  uint64_t requests = 0, launches = 0, sync_calls = 0, alloc_calls = 0;
  bool has_api = false, has_off_cpu = false, has_switches = false, has_kernels = false;
  double instructions = 0, sectors = 0, conflicts = 0, divergence = 0;
  uint64_t virtual_launches = 0;
  uint64_t first_issue = UINT64_MAX, last_end = 0;  // of the measured part: what the host did outside is not counted
  std::set<uint32_t> threads;                       // that issued its requests
};

using Rounds = std::map<uint32_t, RoundData>;
// Requests (by position in the round) that the pair leaves out, because one of its arms saw them disturbed.
using Quarantine = std::map<uint32_t, std::set<uint32_t>>;  // pair → sequences

Quarantine quarantined(const std::vector<RequestRow>& requests, const Rounds& rounds) {
  Quarantine left_out;
  for (const auto& row : requests)
    if (row.quarantined)
      if (auto round = rounds.find(row.round); round != rounds.end()) left_out[round->second.pair].insert(row.sequence);
  return left_out;
}

// The measured, not quarantined round data that `row` belongs to; null otherwise.
template <typename Row>
RoundData* round_of(const Row& row, Rounds& rounds, const Quarantine& left_out) {
  if (row.phase != Phase::measured) return nullptr;
  auto found = rounds.find(row.round);
  if (found == rounds.end()) return nullptr;
  auto out = left_out.find(found->second.pair);
  if (out != left_out.end() && out->second.contains(row.sequence)) return nullptr;
  return &found->second;
}

void add_requests(const std::vector<RequestRow>& rows, bool external, Rounds& rounds, const Quarantine& left_out) {
  for (const auto& row : rows) {
    RoundData* data = round_of(row, rounds, left_out);
    if (!data) continue;
    ++data->requests;
    data->first_issue = std::min(data->first_issue, row.issue);
    data->last_end = std::max(data->last_end, row.end);
    data->threads.insert(row.thread);
    data->service.push_back(double(row.end) - double(row.issue));
    if (external) data->response.push_back(double(row.end) - double(row.arrival));
  }
}

// One launch of the judged kernel as the workload asked for it: the GPU time of everything that replaced it.
struct JudgedLaunch {
  const KernelRow* first;
  double duration;
};

using Kernels = std::vector<const KernelRow*>;

Kernels in_launch_order(const std::vector<KernelRow>& rows) {
  Kernels order;
  order.reserve(rows.size());
  for (const KernelRow& row : rows) order.push_back(&row);
  std::stable_sort(order.begin(), order.end(), [](const KernelRow* a, const KernelRow* b) {
    return std::tie(a->round, a->launch_begin) < std::tie(b->round, b->launch_begin);
  });
  return order;
}

// ArmKernels::sum_requests.
bool of_requests(const TraceStore& trace) {
  auto facts = trace.info().facts;
  auto found = facts.find(kKernelTimeOf);
  return found != facts.end() && found->second == kKernelTimeOfRequests;
}

// `rows` in the order of their launch. Item 0 opens a launch; later items of the same request and launch add to it.
std::vector<JudgedLaunch> judged_launches(const Kernels& rows) {
  bool several = std::any_of(rows.begin(), rows.end(), [](const KernelRow* row) { return row->item != 0; });
  std::vector<JudgedLaunch> launches;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, size_t> open;  // (round, sequence, launch) → index
  for (const KernelRow* row : rows) {
    if (!row->judged || row->end == 0) continue;  // no device record: the trace's health says so
    double duration = double(row->end) - double(row->start);
    auto key = std::make_tuple(row->round, row->sequence, row->launch);
    auto found = row->item != 0 ? open.find(key) : open.end();
    if (found != open.end()) {
      launches[found->second].duration += duration;
    } else {
      if (several) open[key] = launches.size();
      launches.push_back({row, duration});
    }
  }
  return launches;
}

// From when on only the GPU kept the kernel waiting, to its end. Where that is the end of its launch, a host time, the
// value is off by how far the clocks differ; that is the same in both arms of a pair and cancels out between them.
double delay_of(const KernelRow& row) {
  uint64_t ready = row.launch_end != 0 ? std::max(row.launch_end, row.previous_end) : row.start;
  return row.end > ready ? double(row.end - ready) : 0.0;
}

void add_kernels(const Kernels& rows, Rounds& rounds, const Quarantine& left_out) {
  for (const KernelRow* row : rows) {
    RoundData* data = round_of(*row, rounds, left_out);
    if (!data || row->end == 0) continue;
    data->has_kernels = true;
    if (row->queue_ns) data->queue_wait.push_back(double(*row->queue_ns));
    if (!row->judged) data->others_delay += delay_of(*row);
  }
}

void add_launch_times(const Kernels& rows, Rounds& rounds, const Quarantine& left_out) {
  for (const auto& launch : judged_launches(rows))
    if (RoundData* data = round_of(*launch.first, rounds, left_out)) data->kernel_time.push_back(launch.duration);
}

// Where launches have no partner in the other arm (a fusion, a deletion, several kernels), a request has: what its
// judged launches take together, 0 where nothing is launched in their place. Requests of the workload that launch no
// judged kernel in either arm do not count.
void add_request_times(const Kernels& kernels, const std::vector<RequestRow>& requests, Rounds& rounds,
                       const Quarantine& left_out) {
  std::map<std::pair<uint32_t, uint32_t>, double> sums;  // (round, sequence)
  std::set<uint32_t> judged;
  for (const KernelRow* row : kernels) {
    if (!row->judged || row->end == 0) continue;
    sums[{row->round, row->sequence}] += double(row->end) - double(row->start);
    judged.insert(row->request);
  }
  for (const RequestRow& row : requests) {
    RoundData* data = judged.contains(row.request) ? round_of(row, rounds, left_out) : nullptr;
    if (!data) continue;
    auto sum = sums.find({row.round, row.sequence});
    data->kernel_time.push_back(sum == sums.end() ? 0 : sum->second);
  }
}

void add_api_calls(const std::vector<ApiRow>& rows, Rounds& rounds, const Quarantine& left_out) {
  for (const auto& row : rows) {
    RoundData* data = round_of(row, rounds, left_out);
    if (!data) continue;
    data->has_api = true;
    if (row.is_launch) {
      ++data->launches;
      data->launch_api.push_back(double(row.end) - double(row.start));
    }
    if (row.is_sync) {
      ++data->sync_calls;
      data->syncs[row.thread].emplace_back(row.start, row.end);
    }
    data->alloc_calls += row.is_alloc;
  }
}

// CUPTI's records of waits lie inside the calls that wait; where a call waits that is not known to, they are all there
// is.
void add_syncs(const std::vector<SyncRow>& rows, Rounds& rounds, const Quarantine& left_out) {
  for (const auto& row : rows)
    if (row.waits)
      if (RoundData* data = round_of(row, rounds, left_out)) data->syncs[row.thread].emplace_back(row.start, row.end);
}

// Length of the part of [begin, end) that lies in the measured part of the round.
double inside(const RoundData& data, uint64_t begin, uint64_t end) {
  begin = std::max(begin, data.first_issue), end = std::min(end, data.last_end);
  return end > begin ? double(end - begin) : 0.0;
}

void add_off_cpu(const std::vector<OffCpuRow>& rows, Rounds& rounds) {
  for (const auto& row : rows) {
    auto found = rounds.find(row.round);
    if (found == rounds.end()) continue;
    RoundData& data = found->second;
    data.has_off_cpu = true;
    if (row.state == kUnknownState) {  // a whole round's account, warm-up included (tier T2)
      data.runqueue += double(row.run_queue_ns);
      continue;
    }
    data.has_switches = true;
    if (!data.threads.contains(row.thread) || row.end < row.begin) continue;
    uint64_t awake = row.end - std::min(row.run_queue_ns, row.end - row.begin);  // a run-queue wait ends the span
    data.runqueue += inside(data, awake, row.end);
    if (row.state == 0)
      data.preempted += inside(data, row.begin, row.end);
    else
      data.blocked += inside(data, row.begin, awake);
  }
}

void add_virtual(const std::vector<VirtualRow>& rows, Rounds& rounds) {
  for (const auto& row : rows) {
    auto found = rounds.find(row.round);
    if (row.phase != Phase::measured || found == rounds.end() || !row.judged) continue;
    RoundData& data = found->second;
    ++data.virtual_launches;
    data.instructions += double(row.thread_instructions);
    data.sectors += double(row.sectors);
    data.conflicts += double(row.bank_conflicts);
    data.divergence += double(row.divergent_branches);
  }
}

// Puts one value of one round into the table.
class Tabulator {
 public:
  explicit Tabulator(MetricTable& table) : table_(table) {}

  void value(std::string_view id, const RoundData& data, double value, uint64_t samples) {
    MetricSeries& series = table_[std::string(id)];
    auto pair =
        std::find_if(series.pairs.begin(), series.pairs.end(), [&](const auto& p) { return p.pair == data.pair; });
    if (pair == series.pairs.end())
      pair = series.pairs.insert(series.pairs.end(), {data.pair, std::nullopt, std::nullopt});
    (data.arm == 0 ? pair->baseline : pair->candidate) = value;
    series.samples_per_round = series.samples_per_round ? std::min(series.samples_per_round, samples) : samples;
  }

  void quantiles(std::string_view stem, const RoundData& data, std::vector<double> samples,
                 std::initializer_list<double> qs) {
    if (samples.empty()) return;
    for (double q : qs) {
      std::string id = fmt::format("{}.p{:.0f}", stem, q * 100);
      if (find_metric(id)) value(id, data, quantile(samples, q), samples.size());
    }
  }

 private:
  MetricTable& table_;
};

void tabulate(const RoundData& data, bool counted, Tabulator& out) {
  out.quantiles("service", data, data.service, {0.5, 0.99});
  out.quantiles("response", data, data.response, {0.5, 0.99});
  out.quantiles("kernel_time", data, data.kernel_time, {0.5, 0.99});
  out.quantiles("launch_api", data, data.launch_api, {0.99});
  if (data.has_kernels) out.quantiles("queue_wait", data, data.queue_wait, {0.99});
  double requests = double(data.requests);
  if (data.requests && data.has_kernels) out.value("others.delay", data, data.others_delay / requests, data.requests);
  if (data.requests && data.has_api) {
    uint64_t stalled = 0;
    for (const auto& [thread, intervals] : data.syncs) stalled += union_length(intervals);
    out.value("sync_stall", data, double(stalled) / requests, data.requests);
    out.value("sync_count", data, double(data.sync_calls) / requests, data.requests);
    out.value("launch_count", data, double(data.launches) / requests, data.requests);
    out.value("alloc_count", data, double(data.alloc_calls) / requests, data.requests);
  }
  if (data.requests && data.has_off_cpu) {
    if (data.has_switches) {
      out.value("preempted", data, data.preempted / requests, data.requests);
      out.value("blocked", data, data.blocked / requests, data.requests);
    }
    out.value("runqueue", data, data.runqueue / requests, data.requests);
  }
  if (uint64_t samples = std::max<uint64_t>(data.virtual_launches, counted ? 1 : 0)) {
    out.value("virtual.instructions", data, data.instructions, samples);
    out.value("virtual.sectors", data, data.sectors, samples);
    out.value("virtual.bank_conflicts", data, data.conflicts, samples);
    out.value("virtual.divergence", data, data.divergence, samples);
  }
}

}  // namespace

MetricTable measure(const TraceStore& trace, bool external) {
  Rounds rounds;
  for (const auto& row : trace.rounds()) {
    rounds[row.round].arm = row.arm;
    rounds[row.round].pair = row.pair;
  }
  auto requests = trace.requests();
  Quarantine left_out = quarantined(requests, rounds);
  add_requests(requests, external, rounds, left_out);
  auto kernels = trace.kernels(false);
  const Kernels in_order = in_launch_order(kernels);
  add_kernels(in_order, rounds, left_out);
  const bool summed = of_requests(trace);
  if (summed)
    add_request_times(in_order, requests, rounds, left_out);
  else
    add_launch_times(in_order, rounds, left_out);
  add_api_calls(trace.api_calls(), rounds, left_out);
  add_syncs(trace.syncs(), rounds, left_out);
  add_off_cpu(trace.off_cpu(), rounds);
  add_virtual(trace.virtual_counts(), rounds);

  std::set<uint32_t> distinct;
  for (const auto& row : requests)
    if (row.phase == Phase::measured) distinct.insert(row.request);

  MetricTable table;
  Tabulator tabulator(table);
  // An arm that launches nothing in place of the judged launches counts nothing, and that is a count.
  const bool counted = summed && std::any_of(rounds.begin(), rounds.end(),
                                             [](const auto& round) { return round.second.virtual_launches > 0; });
  for (const auto& [number, data] : rounds) tabulate(data, counted, tabulator);
  for (auto& [id, series] : table) {
    series.distinct_requests = distinct.size();
    std::sort(series.pairs.begin(), series.pairs.end(), [](const auto& a, const auto& b) { return a.pair < b.pair; });
  }
  return table;
}

HealthRow lag_health(const TraceStore& trace, bool external) {
  std::vector<double> lags, times;
  for (const auto& row : trace.requests()) {
    if (row.phase != Phase::measured) continue;
    lags.push_back(double(row.lag));
    times.push_back(double(row.end) - double(external ? row.arrival : row.issue));
  }
  HealthRow health{"lag_share_of_p99", 0, 0.10, ""};
  if (lags.empty()) {
    health.value = INFINITY;
    health.note = "no measured request";
    return health;
  }
  double lag = quantile(lags, 0.99), time = quantile(times, 0.99);
  health.value = time > 0 ? lag / time : 1;
  health.note = fmt::format("p99 of issue - due is {:.1f} us, p99 of {} is {:.1f} us", lag / 1e3,
                            external ? "response" : "service", time / 1e3);
  return health;
}

std::vector<ClassTime> class_times(const TraceStore& trace) {
  struct Samples {
    std::vector<double> baseline, candidate;
    std::string label;
  };
  if (of_requests(trace)) return {};  // a launch has no partner
  std::map<uint32_t, Samples> classes;
  auto rows = trace.kernels(false);
  size_t total = 0;
  Rounds rounds;
  for (const auto& row : trace.rounds()) rounds[row.round].pair = row.pair;
  Quarantine left_out = quarantined(trace.requests(), rounds);
  for (const auto& launch : judged_launches(in_launch_order(rows))) {
    const KernelRow& row = *launch.first;
    if (!round_of(row, rounds, left_out)) continue;
    auto& samples = classes[row.launch];
    (row.arm == 0 ? samples.baseline : samples.candidate).push_back(launch.duration);
    total += row.arm == 0;
    if (row.arm == 0)
      samples.label = fmt::format("grid {}x{}x{} block {}x{}x{}", row.grid[0], row.grid[1], row.grid[2], row.block[0],
                                  row.block[1], row.block[2]);
  }
  std::vector<ClassTime> times;
  for (auto& [launch, samples] : classes) {
    ClassTime time;
    time.launch = launch;
    time.label = samples.label;
    time.share = total ? double(samples.baseline.size()) / double(total) : 0;
    time.baseline_p50 = quantile(samples.baseline, 0.5);
    time.candidate_p50 = quantile(samples.candidate, 0.5);
    times.push_back(time);
  }
  return times;
}

}  // namespace kgate
