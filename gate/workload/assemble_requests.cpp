// Which calls make one request. With ranges: those of its thread from push to pop, those before it as its preparation.
// Without: up to the host's next wait for work that it asked for.
//
// A thread that never waits, or never enters a range, has no requests of its own: its calls are cut where the busiest
// thread's requests begin, so that a loop over requests keeps both in step and the calls stay near those that they
// belong with.
#include <algorithm>
#include <map>

#include "workload/assemble_timeline.h"

namespace kgate::assembly {

namespace {

bool is_work(CallKind kind) { return kind == CallKind::launch || kind == CallKind::graph_launch; }

bool is_wait(const RawCall& call) {
  if (call.kind == CallKind::download) return RecordFile::as<recording::CopyRecord>(*call.record).async == 0;
  return call.kind == CallKind::stream_sync || call.kind == CallKind::event_sync || call.kind == CallKind::context_sync;
}

using Requests = std::vector<std::vector<uint32_t>>;

Requests by_waits(const Timeline& timeline, const std::vector<uint32_t>& calls) {
  Requests requests;
  std::vector<uint32_t> open;
  bool work = false;
  for (uint32_t index : calls) {
    open.push_back(index);
    work |= is_work(timeline.calls[index].kind);
    if (!work || !is_wait(timeline.calls[index])) continue;
    requests.push_back(std::move(open));
    open.clear();
    work = false;
  }
  if (!requests.empty()) requests.back().insert(requests.back().end(), open.begin(), open.end());
  return requests;
}

// `spans` of the thread, by begin; they do not overlap.
Requests by_spans(const Timeline& timeline, const std::vector<uint32_t>& calls, const std::vector<Span>& spans) {
  Requests requests;
  std::vector<uint32_t> open;
  size_t at = 0;
  bool inside = false;
  const auto close = [&] {
    if (inside) requests.push_back(std::move(open));
    if (inside) open.clear();
    inside = false;
  };
  for (uint32_t index : calls) {
    const uint64_t sequence = timeline.calls[index].record->head.sequence;
    while (at < spans.size() && spans[at].end < sequence) {
      close();
      ++at;
    }
    open.push_back(index);
    if (at < spans.size() && spans[at].begin < sequence) inside = true;
  }
  close();
  if (!requests.empty()) requests.back().insert(requests.back().end(), open.begin(), open.end());
  return requests;
}

// Cut where the requests of the leading thread begin.
Requests beside(const std::vector<uint32_t>& calls, const Requests& leading) {
  Requests parts(std::max<size_t>(leading.size(), 1));
  size_t at = 0;
  for (uint32_t index : calls) {
    while (at + 1 < leading.size() && leading[at + 1].front() < index) ++at;
    parts[at].push_back(index);
  }
  return parts;
}

}  // namespace

std::vector<RawRequest> find_requests(const Timeline& timeline, uint64_t limit) {
  std::map<uint32_t, std::vector<uint32_t>> threads;
  for (uint32_t i = 0; i < timeline.calls.size(); ++i) threads[timeline.calls[i].thread].push_back(i);
  std::map<uint32_t, std::vector<Span>> spans;
  for (const Span& span : timeline.spans) spans[span.thread].push_back(span);
  std::vector<RawRequest> all;
  Requests leading;
  std::vector<uint32_t> helpers;  // threads without requests
  for (const auto& [thread, calls] : threads) {
    const Requests own = timeline.spans.empty() ? by_waits(timeline, calls) : by_spans(timeline, calls, spans[thread]);
    if (own.empty()) helpers.push_back(thread);
    if (own.size() > leading.size()) leading = own;
    for (const auto& request : own) all.push_back({thread, request});
  }
  const auto by_first_call = [](const RawRequest& a, const RawRequest& b) { return a.calls.front() < b.calls.front(); };
  std::sort(all.begin(), all.end(), by_first_call);
  uint32_t last = kNone;  // call of the requests that are kept
  if (limit != 0 && all.size() > limit) {
    all.resize(limit);
    last = 0;
    for (const RawRequest& request : all) last = std::max(last, request.calls.back());
  }
  for (uint32_t thread : helpers)
    for (auto& part : beside(threads[thread], leading)) {
      std::erase_if(part, [&](uint32_t index) { return index > last; });
      if (!part.empty()) all.push_back({thread, std::move(part)});
    }
  std::sort(all.begin(), all.end(), by_first_call);
  return all;
}

}  // namespace kgate::assembly
