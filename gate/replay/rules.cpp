// Launches are taken as they are distinct in the workload, while what follows a launch is a matter of each place where
// it is made. A fusion therefore holds only if all places agree; where they do not, saying so is the only honest
// answer.

#include "replay/rules.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "support/text.h"

namespace kgate {

namespace {

constexpr uint32_t kNothing = kNone;

// One place where a launch is made: a call or a node of a graph.
struct Place {
  uint32_t launch = 0;
  uint32_t next = kNothing;  // the place that directly follows on its stream, or in its graph
};

// Ordered on the stream, and in the way of a fusion. Syncs and allocations are the host's; an event that is recorded is
// recorded a little earlier.
bool ends_chain(CallKind kind) {
  switch (kind) {
    case CallKind::copy:
    case CallKind::upload:
    case CallKind::download:
    case CallKind::memset:
    case CallKind::event_wait:
    case CallKind::graph_launch:
    case CallKind::host_function:
      return true;
    default:
      return false;
  }
}

void add_calls(const Workload& workload, std::vector<Place>& places) {
  std::vector<uint32_t> request_of(workload.calls.size(), kNothing);
  for (uint32_t r = 0; r < workload.requests.size(); ++r)
    for (uint32_t call : workload.requests[r].calls) request_of[call] = r;
  struct Last {
    uint32_t place = kNothing, request = kNothing;
  };
  std::map<uint32_t, Last> last;  // by stream
  for (uint32_t c = 0; c < workload.calls.size(); ++c) {
    const Call& call = workload.calls[c];
    if (call.kind != CallKind::launch) {
      if (ends_chain(call.kind)) last.erase(call.stream);
      continue;
    }
    const auto place = static_cast<uint32_t>(places.size());
    places.push_back({call.launch, kNothing});
    Last& before = last[call.stream];
    if (before.place != kNothing && before.request == request_of[c]) places[before.place].next = place;
    before = {place, request_of[c]};
  }
}

// A node follows another if it depends on that one alone and nothing else does.
void add_nodes(const WorkloadGraph& graph, std::vector<Place>& places) {
  std::vector<uint32_t> place_of(graph.nodes.size(), kNothing), dependents(graph.nodes.size(), 0);
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    for (uint32_t before : graph.nodes[n].after) ++dependents[before];
    if (graph.nodes[n].kind != GraphNode::Kind::kernel) continue;
    place_of[n] = static_cast<uint32_t>(places.size());
    places.push_back({graph.nodes[n].launch, kNothing});
  }
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const auto& after = graph.nodes[n].after;
    if (place_of[n] == kNothing || after.size() != 1 || place_of[after[0]] == kNothing) continue;
    if (dependents[after[0]] == 1) places[place_of[after[0]]].next = place_of[n];
  }
}

class Rules {
 public:
  Rules(const Workload& workload, const Contract& contract) : workload_(workload), contract_(contract) {
    add_calls(workload, places_);
    for (const auto& graph : workload.graphs) add_nodes(graph, places_);
    places_of_.resize(workload.launches.size());
    for (uint32_t p = 0; p < places_.size(); ++p) places_of_[places_[p].launch].push_back(p);
    state_.resize(workload.launches.size());
  }

  Result<std::vector<Taken>> take() {
    for (const Replacement& rule : contract_.binding.replacements) {
      const size_t before = taken_.size();
      for (uint32_t launch = 0; launch < state_.size(); ++launch) {
        if (state_[launch] != State::free || !glob_match(rule.kernel_glob, kernel_of(launch))) continue;
        if (auto wrong = take_launch(rule, launch)) return *wrong;
      }
      if (taken_.size() == before) unused_.push_back(&rule);
      if (auto wrong = check_followers(rule)) return *wrong;
    }
    if (contract_.binding.replacements.empty()) take_contract_kernel();
    const bool only_others = !taken_.empty() && workload_.kernels.size() == 1 && !workload_.origin.recorded();
    if (taken_.empty() && unused_.empty()) return never(contract_.kernel, contract_.path.string());
    if (!unused_.empty() && !only_others) return never_taken(*unused_.front());
    return std::move(taken_);
  }

 private:
  enum class State : uint8_t { free, replaced, removed };

  const std::string& kernel_of(uint32_t launch) const {
    return workload_.kernels[workload_.launches[launch].kernel].entry;
  }

  std::string shown(uint32_t launch) const {
    const Dim3& grid = workload_.launches[launch].grid;
    return fmt::format("the launch of '{}' with grid {}x{}x{}", kernel_of(launch), grid.x, grid.y, grid.z);
  }

  void take_contract_kernel() {
    for (uint32_t launch = 0; launch < state_.size(); ++launch)
      if (glob_match(contract_.kernel, kernel_of(launch)) ||
          (!contract_.baseline_entry.empty() && glob_match(contract_.baseline_entry, kernel_of(launch))))
        taken_.push_back({nullptr, {launch}});
  }

  // The launches that follow at a place, if they are the rule's; else empty.
  std::vector<uint32_t> followers(const Replacement& rule, uint32_t place) const {
    std::vector<uint32_t> result;
    for (const std::string& glob : rule.then) {
      place = places_[place].next;
      if (place == kNothing || !glob_match(glob, kernel_of(places_[place].launch))) return {};
      result.push_back(places_[place].launch);
    }
    return result;
  }

  std::optional<Failure> take_launch(const Replacement& rule, uint32_t launch) {
    Taken taken{&rule, {launch}};
    if (!rule.then.empty()) {
      std::set<std::vector<uint32_t>> kinds;
      for (uint32_t place : places_of_[launch]) kinds.insert(followers(rule, place));
      if (kinds.empty() || (kinds.size() == 1 && kinds.begin()->empty())) return std::nullopt;
      if (kinds.size() > 1) return differs(rule, launch, kinds);
      const std::vector<uint32_t>& after = *kinds.begin();
      for (uint32_t follower : after)
        if (follower == launch || state_[follower] == State::replaced)
          return Failure{
              fmt::format("{} would go away with '{}' and is replaced itself", shown(follower), kernel_of(launch)),
              rule.where, kApart};
      for (uint32_t follower : after) state_[follower] = State::removed;
      for (uint32_t place : places_of_[launch])
        for (size_t i = 0; i < after.size(); ++i) covered_.insert(place = places_[place].next);
      taken.launches.insert(taken.launches.end(), after.begin(), after.end());
    }
    state_[launch] = State::replaced;
    taken_.push_back(std::move(taken));
    return std::nullopt;
  }

  Failure differs(const Replacement& rule, uint32_t launch, const std::set<std::vector<uint32_t>>& kinds) const {
    const std::vector<uint32_t>&one = *kinds.begin(), &other = *std::next(kinds.begin());
    std::string what = one.empty() ? fmt::format("{} is not followed by {} everywhere", shown(launch), names(rule))
                                   : fmt::format("{} is followed by different launches: {}", shown(launch),
                                                 first_difference(one, other));
    return {what, rule.where, kApart};
  }

  std::string first_difference(const std::vector<uint32_t>& one, const std::vector<uint32_t>& other) const {
    size_t i = 0;
    while (one[i] == other[i]) ++i;
    if (kernel_of(one[i]) != kernel_of(other[i]))
      return fmt::format("'{}' and '{}'", kernel_of(one[i]), kernel_of(other[i]));
    return fmt::format("'{}' with other arguments or another grid", kernel_of(one[i]));
  }

  static std::string names(const Replacement& rule) {
    std::string text;
    for (const std::string& glob : rule.then) text += fmt::format("{}'{}'", text.empty() ? "" : " then ", glob);
    return text;
  }

  // What goes away must go away everywhere.
  std::optional<Failure> check_followers(const Replacement& rule) const {
    for (const Taken& taken : taken_) {
      if (taken.rule != &rule) continue;
      for (size_t i = 1; i < taken.launches.size(); ++i)
        for (uint32_t place : places_of_[taken.launches[i]])
          if (!covered_.contains(place))
            return Failure{fmt::format("{} follows '{}', and also runs elsewhere", shown(taken.launches[i]),
                                       kernel_of(taken.launches[0])),
                           rule.where, kApart};
    }
    return std::nullopt;
  }

  Failure never(const std::string& glob, const std::string& where) const {
    std::vector<std::string> names;
    for (const auto& kernel : workload_.kernels) names.push_back(kernel.entry);
    auto near = did_you_mean(glob, names);
    return {fmt::format("the workload '{}' never launches '{}'", workload_.name, glob), where,
            near ? "did you mean '" + *near + "'?" : "kgate inspect lists the workload's kernels"};
  }

  Failure never_taken(const Replacement& rule) const {
    bool launched = false;
    for (uint32_t launch = 0; launch < state_.size(); ++launch)
      launched = launched || glob_match(rule.kernel_glob, kernel_of(launch));
    if (!launched) return never(rule.kernel_glob, rule.where);
    if (!rule.then.empty())
      return {fmt::format("the workload '{}' never launches '{}' directly followed by {} on its stream", workload_.name,
                          rule.kernel_glob, names(rule)),
              rule.where, "kgate inspect shows what the workload launches"};
    return {fmt::format("the rules before it take every launch of '{}'", rule.kernel_glob), rule.where,
            "remove the rule, or write it before them"};
  }

  static constexpr const char* kApart =
      "take the launches apart: one rule for each kernel, `with: []` for what goes away";

  const Workload& workload_;
  const Contract& contract_;
  std::vector<Place> places_;
  std::vector<std::vector<uint32_t>> places_of_;  // by launch
  std::vector<State> state_;                      // by launch
  std::set<uint32_t> covered_;                    // places that go away with the one before
  std::vector<Taken> taken_;
  std::vector<const Replacement*> unused_;
};

}  // namespace

Result<std::vector<Taken>> taken_launches(const Workload& workload, const Contract& contract) {
  return Rules(workload, contract).take();
}

}  // namespace kgate
