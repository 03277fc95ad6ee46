#include "replay/fidelity_run.h"

#include "support/process.h"
#include "support/text.h"
#include "trace/records.h"

namespace kgate {

namespace {

struct Replay {
  WorkerOutcome outcome;
  uint64_t blocks = 0, equal = 0, repeated = 0;  // of the last round
};

Replay replay(const Workload& workload, const std::filesystem::path& kgw, const SessionOptions& options,
              Placement placement, uint32_t rounds) {
  ReplayPlan plan;
  plan.mode = ReplayMode::fidelity;
  plan.workload = kgw;
  plan.arms = {Arm{"recorded", {}, {}, {}}};
  for (uint32_t round = 0; round < rounds; ++round) plan.rounds.push_back({0, round, round});
  plan.trace = false;
  plan.placement = placement;
  SessionOptions session = options;
  session.attach_probes = false;
  session.collect_cupti = false;
  session.on_progress = {};
  Replay made;
  made.outcome = run_worker(plan, workload, session);
  throw_if_interrupted();
  for (const auto& hash : trace::read_records(made.outcome.records.bytes()).hashes) {
    if (hash.head.round != rounds - 1) continue;
    made.blocks += hash.blocks;
    made.equal += hash.equal;
    made.repeated += hash.repeated;
  }
  return made;
}

std::string share(uint64_t part, uint64_t whole) { return std::to_string(part) + " of " + std::to_string(whole); }

}  // namespace

Result<FidelityAnswer> measure_fidelity(const Workload& workload, const std::filesystem::path& kgw,
                                        const SessionOptions& session) {
  Replay exact = replay(workload, kgw, session, Placement::recorded, 2);
  if (exact.outcome.end != WorkerEnd::completed)
    return Failure{std::string("the recording does not replay: ") + worker_end_name(exact.outcome.end) + ", " +
                       exact.outcome.detail,
                   kgw.string(), "kgate inspect says what could not be recorded"};
  Replay shifted = replay(workload, kgw, session, Placement::shifted, 1);
  FidelityAnswer answer;
  const auto& device = session.device.properties;
  answer.fidelity.device = device.name + ", driver " + std::to_string(device.driver_version / 1000) + "." +
                           std::to_string(device.driver_version % 1000 / 10);
  answer.fidelity.blocks = exact.blocks;
  answer.fidelity.equal = exact.equal;
  answer.fidelity.buffers = exact.outcome.wanted;
  answer.fidelity.exact = exact.outcome.exact;
  answer.text = share(exact.equal, exact.blocks) + " blocks of memory as recorded, " +
                share(exact.outcome.exact, exact.outcome.wanted) + " buffers at their recorded address";
  if (exact.repeated < exact.blocks)
    answer.text += "; " + std::to_string(exact.blocks - exact.repeated) + " blocks differ from replay to replay";
  if (exact.blocks == 0) {
    answer.text += "; nothing says whether it depends on its addresses, so they are kept";
    return answer;
  }
  // What differs from replay to replay cannot speak for or against the addresses.
  uint64_t unstable = exact.blocks - exact.repeated;
  if (exact.equal == 0) {
    answer.text += "; it does not leave what the recording left, and its addresses are kept";
    return answer;
  }
  bool same = shifted.outcome.end == WorkerEnd::completed && shifted.equal + unstable >= exact.equal;
  answer.fidelity.shifted_equal = shifted.equal;
  answer.addresses = same ? Addresses::relocatable : Addresses::pinned;
  answer.text += same ? "; it gives the same with all addresses shifted"
                 : shifted.outcome.end == WorkerEnd::completed
                     ? "; with all addresses shifted only " + share(shifted.equal, shifted.blocks) + " are equal"
                     : "; with all addresses shifted it fails (" + sanitize(shifted.outcome.detail, 120) + ")";
  return answer;
}

}  // namespace kgate
