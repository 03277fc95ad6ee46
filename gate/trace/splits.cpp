// Calls and spans of a thread are both walked in order of time. Spans of a thread do not overlap; calls may nest, and a
// nested call looks at the spans again that its outer one saw.
#include "trace/splits.h"

#include <algorithm>
#include <tuple>

namespace kgate::trace {

namespace {

uint64_t overlap(uint64_t a_begin, uint64_t a_end, uint64_t b_begin, uint64_t b_end) {
  uint64_t begin = std::max(a_begin, b_begin), end = std::min(a_end, b_end);
  return end > begin ? end - begin : 0;
}

void add(const HostEvent& call, const HostEvent& span, Split* split) {
  if (span.state == 0) {
    split->preempted += overlap(call.begin, call.end, span.begin, span.end);
    return;
  }
  uint64_t queued = std::min(span.run_queue_ns, span.end - span.begin);
  split->blocked += overlap(call.begin, call.end, span.begin, span.end - queued);
  split->run_queue += overlap(call.begin, call.end, span.end - queued, span.end);
}

}  // namespace

std::vector<Split> split_calls(const std::vector<HostEvent>& events) {
  std::vector<uint32_t> calls, spans;
  for (uint32_t i = 0; i < events.size(); ++i) {
    const HostEvent& event = events[i];
    if (event.kind == HostEventKind::api && event.end > event.begin) calls.push_back(i);
    if (event.kind == HostEventKind::off_cpu && event.state != kUnknownState && event.end > event.begin)
      spans.push_back(i);
  }
  auto earlier = [&](uint32_t a, uint32_t b) {
    return std::tie(events[a].thread, events[a].begin, a) < std::tie(events[b].thread, events[b].begin, b);
  };
  std::sort(calls.begin(), calls.end(), earlier);
  std::sort(spans.begin(), spans.end(), earlier);
  std::vector<Split> splits(events.size());
  size_t first = 0;  // the first span that may still reach into a call
  for (uint32_t index : calls) {
    const HostEvent& call = events[index];
    while (first < spans.size() &&
           (events[spans[first]].thread < call.thread ||
            (events[spans[first]].thread == call.thread && events[spans[first]].end <= call.begin)))
      ++first;
    for (size_t at = first; at < spans.size(); ++at) {
      const HostEvent& span = events[spans[at]];
      if (span.thread != call.thread || span.begin >= call.end) break;
      add(call, span, &splits[index]);
    }
  }
  return splits;
}

}  // namespace kgate::trace
