#include "precheck/live.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "precheck/faults.h"
#include "precheck/live_compare.h"
#include "replay/live_samples.h"
#include "support/process.h"
#include "support/text.h"

namespace kgate {

namespace {

constexpr uint64_t kEverything = uint64_t{256} << 20;  // written memory up to which all of it is compared
constexpr uint64_t kMaxBlocks = (uint64_t{2} << 30) / sizeof(LiveBlock);
constexpr std::chrono::milliseconds kSampleTimeout{60'000};
constexpr size_t kRandomSamples = 4;  // of a class, beside the last

struct Site {
  uint32_t call, node, launch;
};

std::vector<Site> launch_sites(const Workload& workload) {
  std::vector<Site> sites;
  for (uint32_t c = 0; c < workload.calls.size(); ++c) {
    const Call& call = workload.calls[c];
    if (call.kind == CallKind::launch) sites.push_back({c, kNone, call.launch});
    if (call.kind != CallKind::graph_launch) continue;
    const auto& nodes = workload.graphs[call.graph].nodes;
    for (uint32_t n = 0; n < nodes.size(); ++n)
      if (nodes[n].kind == GraphNode::Kind::kernel) sites.push_back({c, n, nodes[n].launch});
  }
  return sites;
}

// A launch that is not replaced by something, or whose successor goes away with it, cannot be compared by itself.
bool stands_alone(const Arm& arm, const Workload& workload, uint32_t launch) {
  auto found = arm.replace.find(launch);
  if (found == arm.replace.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [&](const ArmItem& item) {
    return item.kind == ArmItem::Kind::launch ||
           (item.kind == ArmItem::Kind::memset && item.buffer < workload.buffers.size());
  });
}

bool deletes_anything(const Arm& arm) {
  return std::any_of(arm.replace.begin(), arm.replace.end(), [](const auto& entry) { return entry.second.empty(); });
}

std::vector<uint32_t> memory_of(const Workload& workload, const Arm& arm, uint32_t launch) {
  uint64_t written = 0;
  std::set<uint32_t> all, reached;
  for (uint32_t b = 0; b < workload.buffers.size(); ++b) {
    if (!workload.buffers[b].written) continue;
    all.insert(b);
    written += workload.buffers[b].bytes;
  }
  if (written <= kEverything) return {all.begin(), all.end()};
  auto add = [&](uint32_t buffer) {
    if (buffer < workload.buffers.size() && workload.buffers[buffer].written) reached.insert(buffer);
  };
  for (const Relocation& r : workload.launches[launch].relocations) add(r.buffer);
  for (const ArmItem& item : arm.replace.at(launch)) {
    if (item.kind == ArmItem::Kind::memset) add(item.buffer);
    for (const Relocation& r : item.launch.relocations) add(r.buffer);
  }
  return {reached.begin(), reached.end()};
}

class Runner {
 public:
  Runner(const Workload& workload, const LiveOptions& options, std::vector<LiveSample> samples)
      : workload_(workload), options_(options) {
    plan_.mode = ReplayMode::live;
    plan_.workload = options.workload;
    plan_.rounds.push_back({0, 0, 0});
    plan_.trace = false;
    plan_.honour_arrivals = false;
    plan_.samples = std::move(samples);
    place_as_recorded(plan_, workload);
    uint64_t blocks = 0;
    for (const LiveSample& sample : plan_.samples)
      for (uint32_t buffer : sample.buffers)
        blocks += 2 * ((workload.buffers[buffer].bytes + kLiveBlockBytes - 1) / kLiveBlockBytes);
    plan_.live_blocks = std::min(blocks, kMaxBlocks);
  }

  const ReplayPlan& plan() const { return plan_; }

  WorkerOutcome run(const Arm& arm) {
    plan_.arms = {arm};
    SessionOptions session = options_.session;
    session.attach_probes = false;
    session.collect_cupti = false;
    session.on_progress = {};
    session.round_timeout = kSampleTimeout;
    WorkerOutcome outcome = run_worker(plan_, workload_, session);
    throw_if_interrupted();
    return outcome;
  }

 private:
  const Workload& workload_;
  const LiveOptions& options_;
  ReplayPlan plan_;
};

std::string place_of(const Workload& workload, const LiveSample& sample) {
  const Call& call = workload.calls[sample.call];
  uint32_t launch = sample.node == kNone ? call.launch : workload.graphs[call.graph].nodes[sample.node].launch;
  const LaunchSpec& spec = workload.launches[launch];
  return fmt::format("{} <<<{}x{}x{}, {}x{}x{}>>> at call {}{}", sanitize(workload.kernels[spec.kernel].entry, 80),
                     spec.grid.x, spec.grid.y, spec.grid.z, spec.block.x, spec.block.y, spec.block.z, sample.call,
                     sample.node == kNone ? "" : fmt::format(", node {}", sample.node));
}

std::string fault_place(const WorkerOutcome& outcome, const Workload& workload) {
  if (!outcome.fault || outcome.fault->request >= workload.requests.size()) return {};
  return fmt::format("request {} of the recording", outcome.fault->request);
}

LiveResult blocks_of(const WorkerOutcome& outcome, const ReplayPlan& plan, const Workload& workload) {
  auto blocks = read_live(outcome.readback.bytes(), plan, workload);
  if (!blocks) throw Error(Exit::internal, blocks.failure().what, blocks.failure().where);
  if (blocks->lost)
    throw Error(Exit::environment,
                fmt::format("the sampled launches change {} more than kgate compares",
                            format_bytes(static_cast<double>(blocks->lost * kLiveBlockBytes))),
                {}, "record a shorter slice, or judge a kernel that writes less");
  return std::move(*blocks);
}

// The candidate, and once more when it faults: what does not repeat is not held against it.
std::optional<WorkerOutcome> run_candidate(Runner& runner, const Arm& arm, const Workload& workload,
                                           PrecheckResult& result) {
  WorkerOutcome outcome = runner.run(arm);
  if (outcome.end == WorkerEnd::completed) return outcome;
  Finding finding = finding_of(outcome, "equivalence", fault_place(outcome, workload));
  if (runner.run(arm).end == WorkerEnd::completed) {
    finding.exit = Exit::inconclusive;
    finding.text += "; it did not repeat";
  }
  result.findings.push_back(finding);
  return std::nullopt;
}

}  // namespace

std::vector<LiveSample> choose_samples(const Workload& workload, const Arm& candidate, uint64_t seed) {
  using Class = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint64_t, uint32_t>;
  std::map<Class, std::vector<Site>> classes;
  for (const Site& site : launch_sites(workload)) {
    if (!stands_alone(candidate, workload, site.launch)) continue;
    const LaunchSpec& l = workload.launches[site.launch];
    classes[{l.kernel, l.grid.x, l.grid.y, l.grid.z, l.block.count(), l.shared}].push_back(site);
  }
  std::mt19937_64 random(seed);
  std::vector<Site> last, others;
  for (auto& [key, sites] : classes) {
    last.push_back(sites.back());
    sites.pop_back();
    for (size_t i = 0; i < kRandomSamples && !sites.empty(); ++i) {
      size_t at = random() % sites.size();
      others.push_back(sites[at]);
      sites.erase(sites.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  std::shuffle(last.begin(), last.end(), random);
  std::shuffle(others.begin(), others.end(), random);
  last.insert(last.end(), others.begin(), others.end());
  if (last.size() > kMaxLiveSamples) last.resize(kMaxLiveSamples);
  std::sort(last.begin(), last.end(), [](const Site& a, const Site& b) {
    return std::pair(a.call, a.node + 1) < std::pair(b.call, b.node + 1);  // kNone + 1 is 0
  });
  std::vector<LiveSample> samples;
  for (const Site& site : last) samples.push_back({site.call, site.node, memory_of(workload, candidate, site.launch)});
  return samples;
}

void check_live(const Contract& contract, const Workload& workload, const Comparison& comparison,
                const LiveOptions& options, PrecheckResult& result) {
  const Arm& candidate = comparison.arms.back();
  if (deletes_anything(candidate)) {
    result.findings.push_back(
        {"not_compared", "equivalence",
         "a rule takes launches away (fusion or deletion), whose memory has no counterpart in the recording" +
             std::string(contract.has_shapes ? "; the contract's shapes are compared" : ""),
         contract.path.string(), contract.has_shapes ? Exit::pass : Exit::environment});
    return;
  }
  auto samples = choose_samples(workload, candidate, options.seed);
  if (samples.empty()) {
    result.findings.push_back({"not_compared", "equivalence", "no launch of the recording can be compared",
                               workload.name, Exit::environment});
    return;
  }
  if (!result.equivalence) result.equivalence.emplace();
  Runner runner(workload, options, samples);
  if (options.on_progress) options.on_progress(0, "the recorded kernel on the recording");
  WorkerOutcome anchor = runner.run(Arm{"recorded", {}, {}, {}});
  if (anchor.end != WorkerEnd::completed) {
    Finding finding = finding_of(anchor, "equivalence", fault_place(anchor, workload));
    bool placed = anchor.fault && anchor.fault->name == "other addresses";
    throw Error(placed || finding.exit == Exit::environment ? Exit::environment : Exit::bad_input,
                "the recording does not replay: " + finding.text, workload.name,
                placed ? "record it again on this machine; kgate inspect says what it needs"
                       : "kgate inspect says what could not be recorded");
  }
  LiveResult expected = blocks_of(anchor, runner.plan(), workload);
  if (options.on_progress) options.on_progress(0.5, "the candidate on the recording");
  auto of_candidate = run_candidate(runner, candidate, workload, result);
  if (!of_candidate) return;
  LiveResult got = blocks_of(*of_candidate, runner.plan(), workload);
  for (uint32_t s = 0; s < samples.size(); ++s) {
    compare_sample(contract, workload, samples[s], s, expected, got, place_of(workload, samples[s]), result);
    ++result.equivalence->shapes;
    if (exit_of(result.findings) == Exit::broken) return;
  }
}

}  // namespace kgate
