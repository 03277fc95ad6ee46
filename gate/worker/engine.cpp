#include "worker/engine.h"

#include "worker/clock.h"
#include "worker/thread_pool.h"

namespace kgate::worker {

namespace {

// Buffers as they were, before the round begins; the copies' own records belong to no round.
void restore(Shared& shared, uint32_t arm, const EngineOutput& output) {
  try {
    shared.free_scratch();
    shared.buffers.restore(nullptr);
    shared.driver.synchronize_context();
  } catch (...) {
    throw ThreadFault(current_fault({.stage = "restore", .arm = arm}, &shared.driver));
  }
  if (output.collector) output.collector->drain(output.writer, wire::kNoRound);
}

wire::RoundRecord open_round(const Round& round) {
  wire::RoundRecord record{};
  record.head = wire::head<wire::RoundRecord>(wire::Kind::round, round.round);
  record.arm = round.arm;
  record.pair = round.pair;
  record.begin = now_ns();
  return record;
}

}  // namespace

void play_round(Shared& shared, ThreadPool& pool, const std::vector<PreparedArm>& arms, const Round& round,
                const EngineOutput& output) {
  restore(shared, round.arm, output);
  shared.begin_round();
  RecordWriter::Stage own(sizeof(wire::RoundRecord));
  wire::RoundRecord record = open_round(round);
  pool.play({.arm = &arms[round.arm], .arm_index = round.arm, .round = round.round});
  try {
    shared.driver.synchronize_context();
  } catch (...) {
    throw ThreadFault(current_fault({.stage = "sync", .arm = round.arm}, &shared.driver));
  }
  record.end = now_ns();
  own.append(record);
  output.writer.merge(own);
  for (auto& replayer : pool.replayers()) output.writer.merge(replayer->stage());
  if (output.collector) output.collector->drain(output.writer, round.round);
}

void run_timing(Shared& shared, const std::vector<PreparedArm>& arms, const EngineOutput& output) {
  ThreadPool pool(shared);
  for (const Round& round : shared.plan.rounds) {
    play_round(shared, pool, arms, round, output);
    output.progress(round.round, std::nullopt);
  }
}

}  // namespace kgate::worker
