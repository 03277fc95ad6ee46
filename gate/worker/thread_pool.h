// The threads of a timed replay. They are made once and parked between rounds (worker/engine.h says why).
#pragma once

#include <barrier>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "worker/clock.h"
#include "worker/engine.h"

namespace kgate::worker {

constexpr uint64_t kLead = 300'000;  // ns between waking the threads and the first moment of the arrival clock

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

// One round: memory restored, requests replayed, everything waited for, records handed over.
void play_round(Shared& shared, ThreadPool& pool, const std::vector<PreparedArm>& arms, const Round& round,
                const EngineOutput& output);

}  // namespace kgate::worker
