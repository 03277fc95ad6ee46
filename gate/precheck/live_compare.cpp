#include "precheck/live_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "precheck/numbers.h"

namespace kgate {

namespace {

using Key = std::pair<uint32_t, uint64_t>;  // buffer, block
using Blocks = std::map<Key, const LiveBlock*>;

Blocks of_sample(const LiveResult& result, uint32_t sample, uint32_t pass) {
  Blocks blocks;
  for (const LiveBlock* block : result.blocks)
    if (block->sample == sample && block->pass == pass) blocks[{block->buffer, block->block}] = block;
  return blocks;
}

// Memory that begins where a parameter points.
struct Region {
  uint32_t buffer;
  uint64_t begin;
  const Param* param;
  const TensorParam* tensor;
};

std::vector<Region> regions_of(const Contract& contract, const Workload& workload, const LaunchSpec& launch) {
  std::vector<Region> regions;
  const auto& slots = workload.kernels[launch.kernel].params;
  if (contract.params.size() != slots.size()) return regions;  // not described parameter by parameter
  for (size_t i = 0; i < slots.size(); ++i) {
    const auto* tensor = std::get_if<TensorParam>(&contract.params[i].kind);
    if (tensor == nullptr) continue;
    for (const Relocation& r : launch.relocations)
      if (r.param_offset == slots[i].first)
        regions.push_back({r.buffer, static_cast<uint64_t>(r.delta), &contract.params[i], tensor});
  }
  return regions;
}

const Region* region_at(const std::vector<Region>& regions, uint32_t buffer, uint64_t byte) {
  const Region* best = nullptr;
  for (const Region& region : regions)
    if (region.buffer == buffer && region.begin <= byte && (best == nullptr || region.begin > best->begin))
      best = &region;
  return best;
}

struct Wrong {
  uint64_t count = 0, nan = 0, stale = 0, outside = 0, bits = 0;
  double worst = -1;
  std::string text;              // of the worst
  const Param* input = nullptr;  // an input that was changed
};

class Comparer {
 public:
  Comparer(const Contract& contract, std::vector<Region> regions) : contract_(contract), regions_(std::move(regions)) {}

  // `before`: what was there; `want`, `got`: what the recorded kernel and the candidate left.
  void compare(Key key, const std::byte* before, const std::byte* want, const std::byte* got, bool outside) {
    for (uint64_t at = 0; at < kLiveBlockBytes;) {
      uint64_t byte = key.second * kLiveBlockBytes + at;
      const Region* region = region_at(regions_, key.first, byte);
      uint32_t size = region ? dtype_bytes(region->tensor->dtype) : 1;
      // An element that is not whole in this block is compared by its bits.
      bool whole = region != nullptr && (byte - region->begin) % size == 0 && at + size <= kLiveBlockBytes;
      size_t step = whole ? size : 1;
      if (std::memcmp(want + at, got + at, step) != 0) {
        bool untouched = std::memcmp(before + at, got + at, step) == 0;
        if (whole)
          element(*region, byte, want + at, got + at, untouched, outside);
        else
          bits(key, byte, want[at], got[at], untouched, outside);
      }
      at += step;
    }
  }

  bool typed(Key key) const { return region_at(regions_, key.first, key.second * kLiveBlockBytes) != nullptr; }
  const Wrong& wrong() const { return wrong_; }
  double worst_passed() const { return worst_passed_; }

 private:
  void note(bool untouched, bool outside) {
    ++wrong_.count;
    wrong_.stale += untouched;
    wrong_.outside += outside;
  }

  void element(const Region& region, uint64_t byte, const std::byte* want, const std::byte* got, bool untouched,
               bool outside) {
    Dtype dtype = region.tensor->dtype;
    double w = load_element(dtype, reinterpret_cast<const char*>(want), 0);
    double g = load_element(dtype, reinterpret_cast<const char*>(got), 0);
    auto given = contract_.tolerance.find(dtype);
    Tolerance tolerance = given != contract_.tolerance.end() ? given->second : default_tolerance(dtype);
    bool nan = std::isnan(w) != std::isnan(g);
    double error = 0;
    if (std::isnan(w) && std::isnan(g)) {
      error = 0;
    } else if (nan || std::isinf(w) || std::isinf(g)) {
      error = w == g ? 0 : INFINITY;
    } else {
      double allowed = tolerance.atol + tolerance.rtol * std::fabs(w);
      error = w == g ? 0 : allowed > 0 ? std::fabs(g - w) / allowed : INFINITY;
    }
    if (region.tensor->role == Role::in) {
      wrong_.input = region.param;
      error = INFINITY;
    }
    if (error <= 1) {
      worst_passed_ = std::max(worst_passed_, error);
      return;
    }
    note(untouched, outside);
    wrong_.nan += nan;
    if (error <= wrong_.worst) return;
    wrong_.worst = error;
    wrong_.text = fmt::format("{}[{}]: got {:.9g}, want {:.9g}", region.param->name,
                              (byte - region.begin) / dtype_bytes(dtype), g, w);
  }

  void bits(Key key, uint64_t byte, std::byte want, std::byte got, bool untouched, bool outside) {
    note(untouched, outside);
    if (wrong_.bits++ == 0 && wrong_.worst < 0)
      wrong_.text = fmt::format("byte {} of buffer {}: got 0x{:02x}, want 0x{:02x}", byte, key.first,
                                std::to_integer<unsigned>(got), std::to_integer<unsigned>(want));
  }

  const Contract& contract_;
  std::vector<Region> regions_;
  Wrong wrong_;
  double worst_passed_ = 0;
};

const LiveBlock* find(const Blocks& blocks, Key key) {
  auto at = blocks.find(key);
  return at == blocks.end() ? nullptr : at->second;
}

void report(const Wrong& wrong, const std::string& place, PrecheckResult& result) {
  if (wrong.count == 0) return;
  const char* id = wrong.input                      ? "input_written"
                   : wrong.stale * 2 >= wrong.count ? "stale_output"
                   : wrong.nan * 2 >= wrong.count   ? "nan_mismatch"
                                                    : "wrong_numbers";
  std::string text = fmt::format("{} {} {} from what the workload's own kernel leaves, worst {}", wrong.count,
                                 wrong.bits == wrong.count ? "bytes" : "elements",
                                 wrong.count == 1 ? "differs" : "differ", wrong.text);
  if (wrong.input) text = fmt::format("changed its input '{}'; {}", wrong.input->name, text);
  if (wrong.outside) text += fmt::format("; {} lie where it changes nothing", wrong.outside);
  if (wrong.stale) text += fmt::format("; {} were left as they were", wrong.stale);
  if (wrong.bits) text += "; give dtypes and tolerances in a contract if bits may differ (kgate init)";
  result.findings.push_back({id, "equivalence", text, place, Exit::broken});
}

}  // namespace

void compare_sample(const Contract& contract, const Workload& workload, const LiveSample& sample, uint32_t index,
                    const LiveResult& expected, const LiveResult& got, const std::string& place,
                    PrecheckResult& result) {
  const Call& call = workload.calls[sample.call];
  uint32_t launch = sample.node == kNone ? call.launch : workload.graphs[call.graph].nodes[sample.node].launch;
  Comparer comparer(contract, regions_of(contract, workload, workload.launches[launch]));
  Blocks want = of_sample(expected, index, 0), again = of_sample(expected, index, 1), have = of_sample(got, index, 0);
  std::set<Key> keys;
  for (const Blocks* blocks : {&want, &have})
    for (const auto& [key, block] : *blocks) keys.insert(key);
  uint64_t unstable = 0;
  for (Key key : keys) {
    const LiveBlock *w = find(want, key), *r = find(again, key), *g = find(have, key);
    bool repeats =
        (w == nullptr) == (r == nullptr) && (w == nullptr || std::memcmp(w->after, r->after, kLiveBlockBytes) == 0);
    // What other kernels left may differ from run to run, too.
    if (w && g && std::memcmp(w->before, g->before, kLiveBlockBytes) != 0) repeats = false;
    if (!repeats && !comparer.typed(key)) {
      ++unstable;
      continue;
    }
    const std::byte* before = w ? w->before : g->before;
    comparer.compare(key, before, w ? w->after : before, g ? g->after : before, w == nullptr);
  }
  result.equivalence->worst_error = std::max(result.equivalence->worst_error, comparer.worst_passed());
  report(comparer.wrong(), place, result);
  if (unstable != 0 && comparer.wrong().count == 0)
    result.findings.push_back(
        {"not_repeatable", "equivalence",
         fmt::format(
             "{} blocks of {} bytes differ between two runs of the recorded kernel itself, and the contract does "
             "not say what they hold",
             unstable, kLiveBlockBytes),
         place + "; give dtypes in a contract (kgate init)", Exit::inconclusive});
}

}  // namespace kgate
