// Numeric mode: what does each arm compute? One thread makes every call once, in order, and synchronises after each
// request, so that a fault names its request and nothing depends on how threads interleave.
#include "worker/clock.h"
#include "worker/engine.h"

namespace kgate::worker {

namespace {

void read_back(Shared& shared, const std::vector<ReadbackRegion>& regions, size_t first, std::span<std::byte> out) {
  for (size_t i = first; i < first + shared.plan.readback.size(); ++i) {
    const ReadbackRegion& region = regions[i];
    shared.buffers.read_back(region, out.subspan(region.offset, 2 * region.guard + region.bytes));
  }
}

}  // namespace

void run_numeric(Shared& shared, const std::vector<PreparedArm>& arms, const EngineOutput& output) {
  const Workload& workload = shared.workload;
  auto regions = readback_layout(shared.plan, workload);
  Replayer replayer(shared, 0);
  RecordWriter::Stage own(sizeof(wire::RoundRecord));
  Position position;
  try {
    for (size_t i = 0; i < shared.plan.rounds.size(); ++i) {
      const Round& round = shared.plan.rounds[i];
      position = {.stage = "restore", .arm = round.arm};
      if (i > 0) shared.buffers.restore(nullptr);
      shared.driver.synchronize_context();
      if (output.collector) output.collector->drain(output.writer, wire::kNoRound);

      wire::RoundRecord record{wire::head<wire::RoundRecord>(wire::Kind::round, round.round), now_ns(), 0, round.arm,
                               round.pair};
      RoundStart start{&arms[round.arm], round.arm, round.round, record.begin};
      replayer.begin(start);
      position.stage = nullptr;  // the replayer knows better
      replayer.play_in_order([&](uint32_t request) {
        position = {.stage = "sync", .arm = round.arm, .request = request, .launch = replayer.suspect()};
        shared.driver.synchronize_context();
        output.progress(round.round, request);
        position.stage = nullptr;
      });
      record.end = now_ns();
      own.append(record);
      output.writer.merge(own);
      output.writer.merge(replayer.stage());
      if (output.collector) output.collector->drain(output.writer, round.round);
      position = {.stage = "readback", .arm = round.arm};
      read_back(shared, regions, i * shared.plan.readback.size(), output.readback);
      output.progress(round.round, std::nullopt);
    }
  } catch (...) {
    throw ThreadFault(current_fault(position.stage ? position : replayer.position(), &shared.driver));
  }
}

}  // namespace kgate::worker
