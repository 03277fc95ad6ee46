// Both arms share one worker (same buffers, addresses, streams): between processes even kernel time moves by several
// percent. On the virtual GPU counts are exact, so two pairs show them and whether they vary; on a real one the looks
// of judge/statistics.h decide when to stop.

#include "cli/replay_run.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstring>

#include "cli/gpu_watch.h"
#include "cli/side_passes.h"
#include "judge/explain.h"
#include "precheck/cases.h"
#include "precheck/faults.h"
#include "support/process.h"

namespace kgate {

namespace {

constexpr uint32_t kPairsPerWorker = 6;
constexpr uint32_t kVirtualPairs = 2;

class Replayer {
 public:
  Replayer(const ReplayRequest& request, Verdict& verdict)
      : request_(request), verdict_(verdict), comparison_(*request.comparison) {}

  std::unique_ptr<TraceStore> run() {
    store_ = TraceStore::create(request_.trace, run_info(), comparison_.names);
    Looks looks;
    std::vector<uint32_t> planned;
    if (is_virtual())
      planned = {kVirtualPairs};
    else
      for (uint32_t pairs : looks.pairs)
        if (pairs <= request_.max_pairs) planned.push_back(pairs);
    if (!is_virtual() && (planned.empty() || planned.back() != request_.max_pairs))
      planned.push_back(request_.max_pairs);
    if (!is_virtual()) watch_.emplace(request_.device.properties.uuid, verdict_);
    if (!is_virtual()) bare_ = bare_service(plan(1), *request_.workload, request_.device);
    throw_if_interrupted();
    for (size_t look = 0; look < planned.size(); ++look) {
      while (pairs_ < planned[look])
        if (!run_block(std::min(kPairsPerWorker, planned[look] - pairs_), planned.back())) return finish();
      judge_so_far(looks.alpha / static_cast<double>(planned.size()));
      if (result_.outcome != Outcome::inconclusive) break;
    }
    verdict_.findings.insert(verdict_.findings.end(), result_.findings.begin(), result_.findings.end());
    verdict_.metrics = result_.metrics;
    explain(*store_, verdict_.metrics);
    verdict_.deciding = result_.deciding;
    if (!is_virtual()) verdict_.classes = labelled(class_times(*store_));
    if (request_.counters) {
      if (request_.on_progress) request_.on_progress(1, "hardware counters");
      CounterPass pass = run_counter_pass(comparison_, *request_.workload, request_.workload_file, request_.device);
      throw_if_interrupted();
      add_counters(pass, *request_.workload, *store_, verdict_);
    }
    return finish();
  }

 private:
  bool is_virtual() const { return request_.device.kind == gpu::DeviceKind::virtual_gpu; }
  bool external() const { return request_.workload->arrivals == Arrivals::external; }

  RunInfo run_info() const {
    RunInfo info;
    const auto& device = request_.device.properties;
    info.facts["device"] = device.name;
    info.facts["device_uuid"] = device.uuid;
    info.facts["driver_version"] = std::to_string(device.driver_version);
    info.facts["workload"] = request_.workload->name;
    info.facts["workload_sha256"] = request_.workload->sha256;
    if (request_.baseline) info.facts["baseline_kernel_id"] = request_.baseline->kernel_id;
    info.facts["candidate_kernel_id"] = request_.candidate->kernel_id;
    info.facts["candidate_sha256"] = request_.candidate->source.sha256;
    info.facts["seed"] = std::to_string(request_.seed);
    info.facts["command"] = request_.command;
    utsname kernel{};
    if (uname(&kernel) == 0) info.facts["kernel_release"] = kernel.release;
    return info;
  }

  ReplayPlan plan(uint32_t pairs) const {
    ReplayPlan plan;
    plan.mode = ReplayMode::timing;
    plan.workload = request_.workload_file;
    plan.arms = comparison_.arms;
    plan.rounds = abba_rounds(pairs_, pairs, pairs_ * 2, request_.seed);
    plan.warmup_requests = request_.warmup;
    plan.measured_requests = request_.requests;
    plan.honour_arrivals = !is_virtual();
    plan.judged = comparison_.judged;
    plan.speed = request_.speed;
    place_as_recorded(plan, *request_.workload);
    return plan;
  }

  // One fresh worker. False: the run is over, and a finding says why.
  bool run_block(uint32_t pairs, uint32_t planned) {
    SessionOptions options;
    options.device = request_.device;
    if (watch_) watch_->begin_block();
    options.on_progress = [&](uint32_t rounds) {
      if (watch_) watch_->end_round(pairs_ * 2 + rounds - 1);
      if (request_.on_progress)
        request_.on_progress((pairs_ + rounds / 2.0) / planned,
                             fmt::format("pair {} of at most {}", pairs_ + rounds / 2 + 1, planned));
    };
    WorkerOutcome outcome = run_worker(plan(pairs), *request_.workload, options);
    throw_if_interrupted();
    if (outcome.end != WorkerEnd::completed) {
      verdict_.findings.push_back(attribute(outcome, pairs, options));
      return false;
    }
    if (!note_tier(outcome)) return false;
    const ProbeHealth* probes = outcome.probes && tier_ == "T0" ? &*outcome.probes : nullptr;
    const CollectorHealth* collector = outcome.collector ? &*outcome.collector : nullptr;
    store_->add_block(outcome.records.bytes(), outcome.host_events, outcome.symbols, probes, collector);
    pairs_ += pairs;
    return true;
  }

  // Whose fault is it? The baseline must survive the same steps, and the fault must repeat, before the candidate is
  // broken.
  Finding attribute(const WorkerOutcome& outcome, uint32_t pairs, const SessionOptions& options) const {
    Finding finding = finding_of(outcome, "replay", place_of(outcome));
    if (finding.exit != Exit::broken) return finding;
    ReplayPlan alone = plan(pairs);
    std::erase_if(alone.rounds, [](const Round& round) { return round.arm != 0; });
    WorkerOutcome baseline = run_worker(alone, *request_.workload, options);
    throw_if_interrupted();
    if (baseline.end != WorkerEnd::completed)
      throw Error(Exit::bad_input,
                  "the baseline itself fails in the workload: " + finding_of(baseline, "replay", "").text,
                  request_.baseline ? request_.baseline->source.path.string() : request_.workload->name,
                  "mend it first: a candidate is only judged against what works");
    WorkerOutcome again = run_worker(plan(pairs), *request_.workload, options);
    throw_if_interrupted();
    if (again.end == WorkerEnd::completed) {
      finding.exit = Exit::inconclusive;
      finding.text += "; it did not repeat";
    }
    return finding;
  }

  std::string place_of(const WorkerOutcome& outcome) const {
    if (!outcome.fault) return {};
    std::string arm = outcome.fault->arm < comparison_.arms.size() ? comparison_.arms[outcome.fault->arm].label : "?";
    return fmt::format("{} arm, stage {}", arm, outcome.fault->stage);
  }

  bool note_tier(const WorkerOutcome& outcome) {
    bool device_side = outcome.collector.has_value();
    std::string tier = !device_side ? "none" : outcome.probes && outcome.canary_ok ? "T0" : "T2";
    std::string why = !device_side ? "no CUPTI was found" : outcome.probe_failure;
    if (why.empty() && tier != "T0")
      why = "the probes did not see the canary's launch and synchronisation exactly once each";
    if (tier_.empty()) tier_ = tier;
    verdict_.facts["tier"] = tier_;
    if (tier_ != "T0" && !why.empty()) verdict_.facts["tier_reason"] = why;
    store_->set_fact("tier", tier_);
    if (tier != tier_)
      return refuse(fmt::format("the tracing tier changed from {} to {} between workers: {}", tier_, tier, why));
    if (!device_side) return refuse("there is no device-side tracing: " + why);
    if (request_.require_tier == "T0" && tier != "T0")
      return refuse("tier T0 was required, and " + tier + " was reached: " + why);
    return true;
  }

  bool refuse(const std::string& text) {
    verdict_.findings.push_back({"tier", "trace", text, {}, Exit::environment});
    return false;
  }

  void judge_so_far(double alpha) {
    table_ = measure(*store_, external());
    JudgeInput input;
    input.metrics = &table_;
    input.statics = request_.statics;
    input.limits = request_.limits;
    input.health = store_->health();
    if (!is_virtual()) {
      input.health.push_back(lag_ = lag_health(*store_, external()));
      input.health.push_back(slowed_ = watch_->health());
      if (auto traced = median_service(); bare_ && traced)
        input.health.push_back(perturbation_ = perturbation_health(*bare_, *traced));
    }
    input.alpha = alpha;
    input.virtual_device = is_virtual();
    result_ = judge(input);
  }

  // The baseline's service.p50, median over rounds.
  std::optional<double> median_service() const {
    std::vector<double> values;
    if (auto series = table_.find("service.p50"); series != table_.end())
      for (const auto& pair : series->second.pairs)
        if (pair.baseline) values.push_back(*pair.baseline);
    if (values.empty()) return {};
    return quantile(values, 0.5);
  }

  // Grid and block are often the same for all; the scalars of the launch tell the shapes apart.
  std::vector<ClassTime> labelled(std::vector<ClassTime> classes) const {
    for (auto& c : classes) {
      const LaunchSpec& launch = request_.workload->launches[c.launch];
      std::string scalars;
      for (auto [offset, size] : request_.workload->kernels[launch.kernel].params) {
        bool address = std::any_of(launch.relocations.begin(), launch.relocations.end(),
                                   [at = offset](const Relocation& r) { return r.param_offset == at; });
        if (address || size > 8 || offset + size > launch.params.size()) continue;
        int64_t value = 0;
        std::memcpy(&value, launch.params.data() + offset, size);
        scalars += fmt::format("{}{}", scalars.empty() ? "" : ", ", value);
      }
      if (!scalars.empty()) c.label += fmt::format(" ({})", scalars);
    }
    return classes;
  }

  std::unique_ptr<TraceStore> finish() {
    verdict_.pairs = pairs_;
    if (watch_) watch_->store(*store_);
    for (const HealthRow& row : {lag_, slowed_, perturbation_})
      if (!row.name.empty()) store_->add_health(row);
    verdict_.health = store_->health();
    if (!perturbation_.name.empty()) verdict_.facts["perturbation"] = fmt::format("{:.2f}", perturbation_.value);
    verdict_.facts["warmup_requests"] = std::to_string(request_.warmup);
    verdict_.facts["requests_per_round"] = std::to_string(request_.requests);
    for (const auto& [id, series] : table_)
      verdict_.facts["distinct_requests"] = std::to_string(series.distinct_requests);
    if (pairs_ == 0) return nullptr;  // nothing was measured: no trace is left that looks like one
    verdict_.facts["trace"] = request_.trace.string();
    return std::move(store_);
  }

  const ReplayRequest& request_;
  Verdict& verdict_;
  const Comparison& comparison_;
  std::unique_ptr<TraceStore> store_;
  MetricTable table_;
  JudgeResult result_;
  HealthRow lag_, slowed_, perturbation_;
  std::optional<GpuWatch> watch_;  // of a real GPU
  std::optional<double> bare_;     // ns; nothing on the virtual GPU, whose times are the host's
  std::string tier_;
  uint32_t pairs_ = 0;
};

}  // namespace

std::unique_ptr<TraceStore> run_replay(const ReplayRequest& request, Verdict& verdict) {
  return Replayer(request, verdict).run();
}

Workload contract_workload(const Contract& contract, const Prepared& baseline, uint64_t seed) {
  std::vector<Case> cases = make_cases(contract, seed);
  std::erase_if(cases, [](const Case& c) { return c.special; });
  Workload workload = numeric_workload(contract, baseline, Subject::baseline, cases, 0, cases.size());
  workload.name = "contract " + contract.kernel;
  std::vector<Call> calls;
  for (auto& request : workload.requests) {
    Call launch = workload.calls[request.calls.front()];
    Call sync;
    sync.kind = CallKind::stream_sync;
    const auto first = static_cast<uint32_t>(calls.size());
    request.calls = {first, first + 1};
    calls.push_back(launch);
    calls.push_back(sync);
  }
  workload.calls = std::move(calls);
  workload.sha256 = workload_hash(workload);
  return workload;
}

}  // namespace kgate
