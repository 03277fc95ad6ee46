// Does the candidate compute what the reference computes, and touch nothing else?
//
// Baseline and reference run first, each in a worker of its own: a fault there is the user's input or the environment,
// not the candidate. The candidate runs last, twice when it faults: what does not repeat is not held against it. Its
// process never holds an expected result.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "precheck/cases.h"
#include "precheck/faults.h"
#include "precheck/numbers.h"
#include "precheck/precheck.h"
#include "replay/arms.h"
#include "support/fd.h"
#include "support/process.h"
#include "support/text.h"
#include "workload/kgw.h"

namespace kgate {

namespace {

constexpr uint64_t kBatchBytes = uint64_t{256} << 20;  // of one worker's buffers; one case may exceed it
constexpr uint32_t kGuardBytes = 4096;
constexpr std::chrono::milliseconds kRequestTimeout{20'000};  // of one launch: a kernel that takes longer hangs

// What one subject left behind for the cases of a batch.
struct SubjectRun {
  WorkerOutcome outcome;
  Workload workload;
  ReplayPlan plan;
  std::vector<ReadbackRegion> regions;

  // The bytes of buffer `index` after the run, guards apart.
  const char* data(uint32_t index) const {
    return reinterpret_cast<const char*>(outcome.readback.data()) + regions[index].offset + regions[index].guard;
  }
};

class Runner {
 public:
  Runner(const Contract& contract, const gpu::DeviceProperties& device, const PrecheckOptions& options,
         const std::vector<Case>& cases)
      : contract_(contract), device_(device), options_(options), cases_(cases) {}

  SubjectRun run(const Prepared& prepared, Subject subject, size_t first, size_t last) const {
    SubjectRun run;
    run.workload = numeric_workload(contract_, prepared, subject, cases_, first, last);
    TempDir folder("kgate-numeric");
    run.plan.mode = ReplayMode::numeric;
    run.plan.workload = folder.path() / "numeric.kgw";
    if (subject == Subject::candidate)
      run.plan.arms.push_back(candidate_arm(contract_, prepared, run.workload).value_or_throw(Exit::bad_input));
    else
      run.plan.arms.push_back({prepared.label, {}, {}, {}});
    run.plan.rounds.push_back({0, 0, 0});
    run.plan.trace = false;
    run.plan.honour_arrivals = false;
    // The virtual GPU checks every access against the exact allocation; on a real one guard bands catch writes.
    run.plan.guard_bytes = device_.kind == gpu::DeviceKind::virtual_gpu ? 0 : kGuardBytes;
    for (uint32_t i = 0; i < run.workload.buffers.size(); ++i) run.plan.readback.push_back(i);
    run.regions = readback_layout(run.plan, run.workload);
    write_kgw(run.workload, run.plan.workload);
    SessionOptions session = options_.session;
    session.attach_probes = false;
    session.collect_cupti = false;
    session.on_progress = {};
    session.round_timeout = kRequestTimeout;
    run.outcome = run_worker(run.plan, run.workload, session);
    throw_if_interrupted();
    return run;
  }

 private:
  const Contract& contract_;
  const gpu::DeviceProperties& device_;
  const PrecheckOptions& options_;
  const std::vector<Case>& cases_;
};

std::string fault_place(const SubjectRun& run, const std::vector<Case>& cases, size_t first) {
  if (run.outcome.fault && run.outcome.fault->request < run.workload.requests.size())
    return cases[first + run.outcome.fault->request].label;
  return {};
}

// Guard bands and inputs of one case: memory that the candidate had no business to change.
void check_untouched(const Contract& contract, const Case& test_case, const SubjectRun& run, uint32_t buffer,
                     const TensorSlot& slot, std::vector<Finding>& findings) {
  const Param& param = contract.params[slot.param];
  const ReadbackRegion& region = run.regions[buffer];
  const auto* base = reinterpret_cast<const uint8_t*>(run.outcome.readback.data()) + region.offset;
  for (uint64_t i = 0; i < region.guard; ++i)
    for (uint64_t at : {i, region.guard + region.bytes + i})
      if (base[at] != run.plan.guard_value) {
        int64_t offset = static_cast<int64_t>(at) - static_cast<int64_t>(region.guard);
        findings.push_back({"guard_band", "equivalence",
                            fmt::format("wrote outside '{}', at byte {} of {}", param.name, offset, region.bytes),
                            test_case.label, Exit::broken});
        return;
      }
  if (std::get<TensorParam>(param.kind).role != Role::in) return;
  std::string before = input_bytes(contract, test_case, slot.param, slot);
  auto differs = std::mismatch(before.begin(), before.end(), run.data(buffer));
  if (differs.first != before.end())
    findings.push_back({"input_written", "equivalence",
                        fmt::format("changed its input '{}' at byte {}", param.name, differs.first - before.begin()),
                        test_case.label, Exit::broken});
}

std::string comparison_text(const std::string& name, const TensorComparison& c) {
  return fmt::format("{}: {} of {} elements are wrong, worst at [{}]: got {:.9g}, want {:.9g}", name, c.wrong,
                     c.compared, c.worst_index, c.got, c.want);
}

// Elements between the addressed ones belong to somebody else.
void check_gaps(const TensorParam& tensor, const Case& test_case, const std::string& name, const TensorSlot& slot,
                const char* got, const std::string& initial, std::vector<Finding>& findings) {
  std::vector<bool> mine(slot.elements);
  for (uint64_t index : addressed(tensor, test_case.shape)) mine[index] = true;
  uint32_t size = dtype_bytes(tensor.dtype);
  for (uint64_t i = 0; i < slot.elements; ++i) {
    if (mine[i] || std::memcmp(got + i * size, initial.data() + i * size, size) == 0) continue;
    findings.push_back({"gap_written", "equivalence",
                        fmt::format("wrote between the strides of '{}', at element {}", name, i), test_case.label,
                        Exit::broken});
    return;
  }
}

// What the candidate is compared with must have been written itself: poison would agree with poison. One byte is too
// little to tell.
void check_expected(const TensorParam& tensor, const Case& test_case, const std::string& name, const Expected& expected,
                    const std::string& trusted) {
  uint32_t size = expected.wide ? sizeof(double) : dtype_bytes(tensor.dtype);
  if (tensor.role != Role::out || size < 2) return;
  std::string poison(size, static_cast<char>(poison_of(tensor.dtype)));
  uint64_t unwritten = 0, total = 0;
  for (uint64_t index : addressed(tensor, test_case.shape)) {
    ++total;
    unwritten += std::memcmp(expected.data + index * size, poison.data(), size) == 0;
  }
  if (unwritten)
    throw Error(Exit::bad_input,
                fmt::format("the {} leaves {} of {} elements of '{}' unwritten for {}", trusted, unwritten, total, name,
                            test_case.label),
                {}, "do the contract's grid and shapes cover the whole tensor?");
}

// One output tensor of one case.
void check_output(const Contract& contract, const Case& test_case, const TensorSlot& slot, const char* got,
                  const Expected& expected, const char* baseline, PrecheckResult& result) {
  const Param& param = contract.params[slot.param];
  TensorParam tensor = std::get<TensorParam>(param.kind);
  if (test_case.recorded) {  // the workload knows sizes, not shapes: everything that the launch could reach is compared
    tensor.dims = {Expr::constant(static_cast<int64_t>(slot.elements))};
    tensor.strides.clear();
  }
  CompareRule rule;
  auto given = contract.tolerance.find(tensor.dtype);
  rule.by_default = given == contract.tolerance.end();
  rule.tolerance = rule.by_default ? default_tolerance(tensor.dtype) : given->second;
  std::string initial = tensor.role == Role::out ? std::string(slot.bytes, static_cast<char>(poison_of(tensor.dtype)))
                                                 : input_bytes(contract, test_case, slot.param, slot);
  if (!test_case.recorded) {
    check_expected(tensor, test_case, param.name, expected, expected.wide ? "reference" : "baseline");
    check_gaps(tensor, test_case, param.name, slot, got, initial, result.findings);
  }
  TensorComparison c = compare_tensor(tensor, test_case.shape, got, expected, baseline, initial.data(), rule);
  if (c.worst > result.equivalence->worst_error) {
    result.equivalence->worst_error = c.worst;
    result.equivalence->worst_where = fmt::format("{}: {}[{}]", test_case.label, param.name, c.worst_index);
  }
  if (c.wrong == 0) return;
  const char* id = c.stale * 2 >= c.wrong       ? "stale_output"
                   : c.nan_wrong * 2 >= c.wrong ? "nan_mismatch"
                                                : "wrong_numbers";
  std::string text = comparison_text(param.name, c);
  if (c.stale) text += fmt::format("; {} were never written", c.stale);
  result.findings.push_back({id, "equivalence", text, test_case.label, Exit::broken});
}

struct Subjects {
  const Prepared* candidate;
  const Prepared* baseline;
  const Prepared* reference;
};

// Runs what the candidate is compared with; a fault there ends the check.
std::optional<SubjectRun> run_trusted(const Runner& runner, const Prepared* prepared, Subject subject, size_t first,
                                      size_t last, const std::vector<Case>& cases) {
  if (!prepared) return std::nullopt;
  SubjectRun run = runner.run(*prepared, subject, first, last);
  if (run.outcome.end == WorkerEnd::completed) return run;
  Finding finding = finding_of(run.outcome, "equivalence", fault_place(run, cases, first));
  if (run.outcome.end == WorkerEnd::failed_to_start)
    throw Error(Exit::environment, finding.text, {}, "reinstall kgate as a whole; kgate doctor shows what is missing");
  throw Error(finding.exit == Exit::environment ? Exit::environment : Exit::bad_input,
              fmt::format("the {} itself fails: {}{}{}", prepared->label, finding.text,
                          finding.where.empty() ? "" : " for ", finding.where),
              prepared->source.path.string(), "mend it first: a candidate is only judged against what works");
}

// False: the candidate did not get through, and a finding says why.
bool candidate_survives(const Runner& runner, const Prepared& candidate, size_t first, size_t last,
                        const std::vector<Case>& cases, SubjectRun& run, PrecheckResult& result) {
  run = runner.run(candidate, Subject::candidate, first, last);
  if (run.outcome.end == WorkerEnd::completed) return true;
  Finding finding = finding_of(run.outcome, "equivalence", fault_place(run, cases, first));
  SubjectRun again = runner.run(candidate, Subject::candidate, first, last);
  if (again.outcome.end == WorkerEnd::completed) {
    finding.exit = Exit::inconclusive;
    finding.text += "; it did not repeat";
  }
  result.findings.push_back(finding);
  return false;
}

void compare_batch(const Contract& contract, const std::vector<Case>& cases, size_t first, size_t last,
                   const SubjectRun& candidate, const std::optional<SubjectRun>& baseline,
                   const std::optional<SubjectRun>& reference, PrecheckResult& result) {
  uint32_t buffer = 0;
  for (size_t index = first; index < last; ++index) {
    for (const auto& slot : tensor_slots(contract, cases[index])) {
      check_untouched(contract, cases[index], candidate, buffer, slot, result.findings);
      const auto& tensor = std::get<TensorParam>(contract.params[slot.param].kind);
      if (tensor.role == Role::out || tensor.role == Role::inout) {
        const char* of_baseline = baseline ? baseline->data(buffer) : nullptr;
        Expected expected{of_baseline, false};
        if (reference) expected = {reference->data(buffer), is_floating(tensor.dtype)};
        check_output(contract, cases[index], slot, candidate.data(buffer), expected, reference ? of_baseline : nullptr,
                     result);
      }
      ++buffer;
    }
    ++result.equivalence->shapes;
  }
}

void add_launch_cases(const Contract& contract, const Workload& workload, uint64_t seed, std::vector<Case>& cases,
                      PrecheckResult& result) {
  auto judged = judged_launches(workload, contract).value_or_throw(Exit::bad_input);
  auto launches = make_launch_cases(contract, workload, judged, seed).value_or_throw(Exit::bad_input);
  if (launches.cases.size() < launches.distinct)
    result.findings.push_back({"launches_sampled",
                               "equivalence",
                               fmt::format("numbers are compared for {} of {} distinct launches of the workload",
                                           launches.cases.size(), launches.distinct),
                               {},
                               Exit::pass});
  std::move(launches.cases.begin(), launches.cases.end(), std::back_inserter(cases));
}

}  // namespace

void check_equivalence(const Contract& contract, const Prepared& candidate, const Prepared* baseline,
                       const Prepared* reference, const gpu::DeviceProperties& device, const PrecheckOptions& options,
                       PrecheckResult& result) {
  if (!contract.has_shapes) return;
  if (!baseline && !reference)
    throw Error(Exit::bad_input, "there is nothing to compare the numbers with", contract.path.string(),
                "add `reference:` or `baseline:`, or narrow the question with --scope static");
  if (!candidate.executable) {
    result.findings.push_back({"not_executed", "equivalence", "a cubin cannot be executed on the virtual GPU",
                               candidate.source.path.string(), Exit::environment});
    return;
  }
  result.equivalence.emplace();
  auto cases = make_cases(contract, options.seed);
  if (options.workload) add_launch_cases(contract, *options.workload, options.seed, cases, result);
  check_memory(contract, cases, device.free_memory, device.name);
  Runner runner(contract, device, options, cases);
  for (size_t first = 0, last; first < cases.size(); first = last) {
    uint64_t bytes = 0;
    for (last = first;
         last < cases.size() && (last == first || bytes + case_bytes(contract, cases[last]) <= kBatchBytes); ++last)
      bytes += case_bytes(contract, cases[last]);
    if (options.on_progress) options.on_progress(double(first) / double(cases.size()), cases[first].label);
    auto of_reference = run_trusted(runner, reference, Subject::reference, first, last, cases);
    auto of_baseline = run_trusted(runner, baseline, Subject::baseline, first, last, cases);
    SubjectRun of_candidate;
    if (!candidate_survives(runner, candidate, first, last, cases, of_candidate, result)) return;
    compare_batch(contract, cases, first, last, of_candidate, of_baseline, of_reference, result);
    if (exit_of(result.findings) == Exit::broken) return;
  }
}

}  // namespace kgate
