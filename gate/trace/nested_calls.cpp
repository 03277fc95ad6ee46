// By time first: in order of thread and begin, with the calls that are still open on a stack. What CUPTI's clock reads
// have put out of each other's reach is then found by correlation id.
#include "trace/nested_calls.h"

#include <algorithm>
#include <tuple>

#include "trace/driver_calls.h"

namespace kgate::trace {

using namespace wire;

namespace {

bool is_runtime(const ApiRecord& call) { return (call.cbid & kRuntimeCall) != 0; }

bool says_all_of(const ApiRecord& outer, const ApiRecord& inner) {
  const DriverCall &o = driver_call(outer.cbid), &i = driver_call(inner.cbid);
  auto covers = [](bool outer_is, bool inner_is) { return outer_is || !inner_is; };
  return covers(o.is_launch, i.is_launch) && covers(o.is_graph_launch, i.is_graph_launch) &&
         covers(o.is_sync, i.is_sync) && covers(o.is_alloc, i.is_alloc) && covers(o.is_work, i.is_work) &&
         covers(o.begins_capture, i.begins_capture) && covers(o.ends_capture, i.ends_capture);
}

class Nesting {
 public:
  explicit Nesting(Records* records) : calls_(records->apis), outer_(records->outer) {
    outer_.resize(calls_.size());
    for (uint32_t i = 0; i < outer_.size(); ++i) order_.push_back(outer_[i] = i);
  }

  void find_by_time() {
    std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
      const ApiRecord &x = calls_[a], &y = calls_[b];
      return std::tuple(x.thread, x.start, y.end, !is_runtime(x), a) <
             std::tuple(y.thread, y.start, x.end, !is_runtime(y), b);
    });
    std::vector<uint32_t> open;  // runtime calls, outermost first
    for (uint32_t index : order_) {
      const ApiRecord& call = calls_[index];
      while (!open.empty() && (calls_[open.back()].thread != call.thread || calls_[open.back()].end < call.end))
        open.pop_back();
      for (size_t depth = 0; depth < open.size() && outer_[index] == index; ++depth)
        if (says_all_of(calls_[open[depth]], call)) outer_[index] = open[depth];
      if (is_runtime(call) && open.size() < kMaxDepth) open.push_back(index);
    }
  }

  void find_by_correlation() {
    std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
      const ApiRecord &x = calls_[a], &y = calls_[b];
      return std::tuple(x.correlation, x.thread, !is_runtime(x), x.start, a) <
             std::tuple(y.correlation, y.thread, !is_runtime(y), y.start, b);
    });
    size_t first = 0, runtime = 0;  // of the calls with one id in one thread: the runtime's, then the driver's
    for (size_t at = 0; at < order_.size(); ++at) {
      const ApiRecord& call = calls_[order_[at]];
      const ApiRecord& head = calls_[order_[first]];
      if (head.correlation != call.correlation || head.thread != call.thread) first = runtime = at;
      if (is_runtime(call)) {
        runtime = at + 1;
        continue;
      }
      if (outer_[order_[at]] != order_[at]) continue;
      // Ids wrap: of the runtime's calls with this one, the last that began before this call ended.
      auto after = std::upper_bound(order_.begin() + static_cast<ptrdiff_t>(first),
                                    order_.begin() + static_cast<ptrdiff_t>(runtime), call.end,
                                    [&](uint64_t end, uint32_t index) { return end < calls_[index].start; });
      if (after == order_.begin() + static_cast<ptrdiff_t>(first)) continue;
      uint32_t outer = *(after - 1);
      if (calls_[outer].end >= call.start && says_all_of(calls_[outer], call)) outer_[order_[at]] = outer_[outer];
    }
  }

  void mark() {
    for (uint32_t i = 0; i < outer_.size(); ++i)
      if (outer_[i] != i) calls_[i].cbid |= kNestedCall;
  }

 private:
  static constexpr size_t kMaxDepth = 16;  // a hostile stream may nest at will

  std::vector<ApiRecord>& calls_;
  std::vector<uint32_t>& outer_;
  std::vector<uint32_t> order_;
};

}  // namespace

void mark_nested_calls(Records* records) {
  if (std::none_of(records->apis.begin(), records->apis.end(), is_runtime)) return;
  Nesting nesting(records);
  nesting.find_by_time();
  nesting.find_by_correlation();
  nesting.mark();
}

}  // namespace kgate::trace
