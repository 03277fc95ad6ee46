#include "worker/engine.h"

#include <mutex>

#include "worker/clock.h"

namespace kgate::worker {

namespace {

constexpr uint64_t kLead = 300'000;  // ns between waking the threads and the first moment of the arrival clock

// Buffers as they were, before the round begins; the copies' own records belong to no round.
void restore(Shared& shared, uint32_t arm, const EngineOutput& output) {
  try {
    shared.buffers.restore(shared.streams[0]);
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

// One replayer a workload thread, each on an OS thread of its own that lives as long as this.
class ThreadPool {
 public:
  explicit ThreadPool(Shared& shared)
      : shared_(shared), begin_(shared.workload.threads + 1), end_(shared.workload.threads + 1) {
    for (uint32_t t = 0; t < shared.workload.threads; ++t) replayers_.push_back(std::make_unique<Replayer>(shared, t));
    for (auto& replayer : replayers_) threads_.emplace_back([this, &replayer = *replayer] { serve(replayer); });
  }

  ~ThreadPool() {
    quit_ = true;
    begin_.arrive_and_wait();
    for (auto& thread : threads_) thread.join();
  }

  // Plays one round on all threads. Throws the first fault.
  void play(RoundStart start) {
    start_ = start;
    start_.origin = now_ns() + kLead;
    begin_.arrive_and_wait();
    end_.arrive_and_wait();
    if (fault_) throw ThreadFault(*fault_);
  }

  std::vector<std::unique_ptr<Replayer>>& replayers() { return replayers_; }

 private:
  void serve(Replayer& replayer) {
    sharpen_sleeps();
    guarded(replayer, [&] { shared_.driver.make_current(); });
    for (;;) {
      begin_.arrive_and_wait();
      if (quit_) return;
      if (!shared_.stop) guarded(replayer, [&] { replayer.play(start_); });
      end_.arrive_and_wait();
    }
  }

  template <typename Body>
  void guarded(Replayer& replayer, Body body) {
    try {
      body();
    } catch (...) {
      FaultEvent event = current_fault(replayer.position(), &shared_.driver);
      std::lock_guard lock(fault_mutex_);
      if (!fault_) fault_ = std::move(event);
      shared_.stop = true;
    }
  }

  Shared& shared_;
  std::vector<std::unique_ptr<Replayer>> replayers_;
  std::barrier<> begin_, end_;
  RoundStart start_;   // written between end_ and begin_, read between begin_ and end_
  bool quit_ = false;  // likewise
  std::mutex fault_mutex_;
  std::optional<FaultEvent> fault_;
  std::vector<std::thread> threads_;
};

}  // namespace

void run_timing(Shared& shared, const std::vector<PreparedArm>& arms, const EngineOutput& output) {
  ThreadPool pool(shared);
  RecordWriter::Stage own(sizeof(wire::RoundRecord));
  for (const Round& round : shared.plan.rounds) {
    restore(shared, round.arm, output);
    shared.begin_round();
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
    output.progress(round.round, std::nullopt);
  }
}

}  // namespace kgate::worker
