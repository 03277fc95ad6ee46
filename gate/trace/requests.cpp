// Both questions are answered by one walk over the driver calls in order of time, thread by thread or over all threads
// at once: a capture that one thread began records what others launch into its streams, too.
#include "trace/requests.h"

#include <algorithm>
#include <tuple>

#include "trace/driver_calls.h"

namespace kgate::trace {

using namespace wire;

std::vector<RequestRecord> requests_of(const std::vector<ApiRecord>& calls, uint32_t round) {
  std::vector<uint32_t> order(calls.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::tie(calls[a].thread, calls[a].start, calls[a].end, a) <
           std::tie(calls[b].thread, calls[b].start, calls[b].end, b);
  });
  std::vector<RequestRecord> requests;
  uint64_t issue = 0;  // 0: nothing asked for since the last synchronisation
  bool launched = false;
  for (size_t i = 0; i < order.size(); ++i) {
    const ApiRecord& call = calls[order[i]];
    if (i > 0 && calls[order[i - 1]].thread != call.thread) issue = 0, launched = false;
    const DriverCall& kind = driver_call(call.cbid);
    if (kind.is_work && issue == 0) issue = call.start;
    launched |= kind.is_launch;
    if (!kind.is_sync) continue;
    if (launched) {
      RequestRecord request{};
      request.head = head<RequestRecord>(Kind::request, round);
      request.due = request.issue = issue, request.end = std::max(call.end, issue);
      request.thread = call.thread, request.phase = Phase::measured;
      requests.push_back(request);
    }
    issue = 0, launched = false;
  }
  std::stable_sort(requests.begin(), requests.end(),
                   [](const RequestRecord& a, const RequestRecord& b) { return a.issue < b.issue; });
  for (uint32_t i = 0; i < requests.size(); ++i) requests[i].sequence = requests[i].request = i;
  return requests;
}

EmptyLaunches empty_launches(const Records& records, const Join& join) {
  struct Moment {
    uint64_t time;
    int change;  // of the number of captures that are going on
    bool operator<(const Moment& other) const { return std::tie(time, change) < std::tie(other.time, other.change); }
  };
  std::vector<Moment> captures;
  std::vector<uint64_t> empty;  // begin of each call that no node explains
  std::vector<std::pair<uint32_t, uint64_t>> nodes;
  for (const GraphNodeRecord& node : records.nodes)
    if (node.kernel != 0) nodes.push_back({node.thread, node.time});
  std::sort(nodes.begin(), nodes.end());
  EmptyLaunches count;
  for (uint32_t i = 0; i < records.apis.size(); ++i) {
    const ApiRecord& api = records.apis[i];
    const DriverCall& kind = driver_call(api.cbid);
    if (kind.ends_capture) captures.push_back({api.end, -1});  // also when it fails
    if (api.result != 0) continue;
    if (kind.begins_capture) captures.push_back({api.start, 1});
    if (!kind.is_launch || kind.is_graph_launch || join.api_kernel[i] != kNoIndex) continue;
    auto node = std::lower_bound(nodes.begin(), nodes.end(), std::pair(api.thread, api.start));
    if (node != nodes.end() && node->first == api.thread && node->second <= api.end)
      ++count.captured;
    else
      empty.push_back(api.start);
  }
  std::sort(captures.begin(), captures.end());
  std::sort(empty.begin(), empty.end());
  size_t at = 0;
  int open = 0;
  for (uint64_t begin : empty) {
    for (; at < captures.size() && captures[at].time <= begin; ++at) open = std::max(open + captures[at].change, 0);
    ++(open > 0 ? count.unexplained : count.lost);
  }
  return count;
}

}  // namespace kgate::trace
