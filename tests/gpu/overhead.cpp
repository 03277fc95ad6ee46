// What does tracing cost? Replays a workload under each step of the ladder (nothing, eBPF, then one kind of CUPTI
// record after the other), each in a worker of its own, and compares with the untraced run beside it. Prints Markdown.
//
//   kgate-overhead [--device auto] [--pairs 24] [--warmup 200] [--requests 1000] WORKLOAD...
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstdio>

#include "judge/metrics.h"
#include "replay/session.h"
#include "support/fd.h"
#include "trace/records.h"
#include "workload/build.h"
#include "workload/kgw.h"

namespace kgate {
namespace {

struct Step {
  const char* name;
  bool probes, cupti;
  Collect collect;
};
constexpr Step kLadder[] = {
    {"bare", false, false, {}},
    {"eBPF", true, false, {}},
    {"+ CUPTI kernels", true, true, {true, false, false, false, false}},
    {"+ driver calls", true, true, {true, true, false, false, false}},
    {"+ synchronisations", true, true, {true, true, true, false, false}},
    {"all (+ copies, overhead)", true, true, {}},
};
constexpr size_t kSteps = std::size(kLadder);

struct Options {
  std::string device = "auto";
  uint32_t pairs = 24, warmup = 200, requests = 1000;
  std::vector<std::string> workloads;
};

struct Round {
  double p50 = 0, p99 = 0;  // ns, of a request's service time by the worker's own clock
  uint64_t lost = 0;        // records of any kind, on either side
};

Round measure_round(const WorkerOutcome& outcome) {
  trace::Records records = trace::read_records(outcome.records.bytes());
  std::vector<double> service;
  for (const auto& request : records.requests)
    if (request.phase == wire::Phase::measured) service.push_back(double(request.end - request.issue));
  Round round{quantile(service, 0.5), quantile(service, 0.99), records.lost};
  if (outcome.probes) round.lost += outcome.probes->lost_api + outcome.probes->lost_sched + outcome.probes->lost_fork;
  if (outcome.collector) round.lost += outcome.collector->dropped + outcome.collector->buffers_exhausted;
  return round;
}

Round run_step(const Step& step, const Workload& workload, const std::filesystem::path& file, const Options& options,
               const gpu::DeviceChoice& device) {
  ReplayPlan plan;
  plan.workload = file;
  plan.arms = {Arm{"baseline", {}, {}, {}}};
  plan.rounds = {{0, 0, 0}};
  plan.warmup_requests = options.warmup;
  plan.measured_requests = options.requests;
  plan.trace = step.probes || step.cupti;
  plan.honour_arrivals = device.kind == gpu::DeviceKind::real;
  SessionOptions session;
  session.device = device;
  session.attach_probes = step.probes;
  session.collect_cupti = step.cupti;
  session.collect = step.collect;
  WorkerOutcome outcome = run_worker(plan, workload, session);
  if (outcome.end != WorkerEnd::completed)
    throw Error(Exit::environment, "the replay failed: " + outcome.detail, step.name);
  if (step.probes && !outcome.probes) throw Error(Exit::environment, "no eBPF: " + outcome.probe_failure, step.name);
  return measure_round(outcome);
}

// The mean ratio to bare over the pairs, with its two-sided 95 % interval.
std::string ratio(const std::vector<Round>& traced, const std::vector<Round>& bare, double Round::*quantity) {
  std::vector<double> logs;
  for (size_t i = 0; i < traced.size(); ++i) logs.push_back(std::log(traced[i].*quantity / bare[i].*quantity));
  double mean = 0, squares = 0, n = double(logs.size());
  for (double value : logs) mean += value / n;
  for (double value : logs) squares += (value - mean) * (value - mean);
  double half = n > 1 ? boost::math::quantile(boost::math::students_t(n - 1), 0.975) * std::sqrt(squares / (n - 1) / n)
                      : INFINITY;
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", std::exp(mean), std::exp(mean - half), std::exp(mean + half));
}

double median(std::vector<Round> rounds, double Round::*quantity) {
  std::vector<double> values;
  for (const Round& round : rounds) values.push_back(round.*quantity);
  return quantile(values, 0.5);
}

void run_ladder(const std::string& path, const Options& options, const gpu::DeviceChoice& device) {
  Workload workload = load_workload(path);
  TempDir folder("kgate-overhead");
  auto file = folder.path() / "workload.kgw";
  write_kgw(workload, file);
  std::vector<std::vector<Round>> rounds(kSteps);
  for (uint32_t pair = 0; pair < options.pairs; ++pair)
    for (size_t i = 0; i < kSteps; ++i) {
      size_t step = (i + pair) % kSteps;  // each step takes each place equally often
      rounds[step].push_back(run_step(kLadder[step], workload, file, options, device));
    }
  fmt::print("\n## {}\n\n{} pairs, a round of {} + {} requests each.\n\n", workload.name, options.pairs, options.warmup,
             options.requests);
  fmt::print("| traced | p50, us | p99, us | p50 / bare | p99 / bare | lost |\n|---|---|---|---|---|---|\n");
  for (size_t step = 0; step < kSteps; ++step) {
    uint64_t lost = 0;
    for (const Round& round : rounds[step]) lost += round.lost;
    bool bare = step == 0;
    fmt::print("| {} | {:.2f} | {:.2f} | {} | {} | {} |\n", kLadder[step].name, median(rounds[step], &Round::p50) / 1e3,
               median(rounds[step], &Round::p99) / 1e3, bare ? "1" : ratio(rounds[step], rounds[0], &Round::p50),
               bare ? "1" : ratio(rounds[step], rounds[0], &Round::p99), lost);
  }
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app{"what tracing costs, step by step"};
  app.add_option("--device", options.device);
  app.add_option("--pairs", options.pairs)->check(CLI::Range(1u, 1000u));
  app.add_option("--warmup", options.warmup);
  app.add_option("--requests", options.requests)->check(CLI::Range(1u, 1000000u));
  app.add_option("workloads", options.workloads)->required();
  CLI11_PARSE(app, argc, argv);
  auto device = gpu::choose_device(options.device).value_or_throw(Exit::environment);
  for (const auto& workload : options.workloads) run_ladder(workload, options, device);
  return 0;
}

}  // namespace
}  // namespace kgate

int main(int argc, char** argv) {
  try {
    return kgate::run(argc, argv);
  } catch (const kgate::Error& error) {
    std::fprintf(stderr, "error: %s (%s)\n", error.failure().what.c_str(), error.failure().where.c_str());
    return static_cast<int>(error.code());
  }
}
