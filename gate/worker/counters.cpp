#include "worker/counters.h"

#include <algorithm>
#include <set>

#include "worker/clock.h"

namespace kgate::worker {

namespace {

[[noreturn]] void no_counters(const Failure& failure) {
  throw WorkerError("no counters", failure.what + (failure.hint.empty() ? "" : "; " + failure.hint));
}

template <typename Value>
Value or_throw(Result<Value> result) {
  if (!result) no_counters(result.failure());
  return std::move(*result);
}

uint32_t most_ranges(const Shared& shared, const std::vector<PreparedArm>& arms) {
  size_t most = 0;
  for (const PreparedArm& arm : arms) {
    size_t ranges = 0;
    for (uint32_t launch : shared.plan.counter_launches) ranges += arm.launches[launch].items.size();
    most = std::max(most, ranges);
  }
  return static_cast<uint32_t>(std::max<size_t>(most, 1));
}

void write_values(RecordWriter::Stage& stage, uint32_t round, uint32_t set,
                  const std::vector<std::pair<uint32_t, uint16_t>>& ranges,
                  const std::vector<std::vector<double>>& values) {
  for (size_t i = 0; i < ranges.size(); ++i) {
    wire::HardwareCountersRecord record{};
    record.head = wire::head<wire::HardwareCountersRecord>(wire::Kind::hardware_counters, round);
    record.launch = ranges[i].first;
    record.item = ranges[i].second;
    record.set = static_cast<uint16_t>(set);
    record.count = static_cast<uint32_t>(values[i].size());
    std::copy(values[i].begin(), values[i].end(), record.values);
    stage.append(record);
  }
}

// One pass over the requests, until every sampled launch has been seen.
void play(Shared& shared, Replayer& replayer, CounterSampler& sampler, Position& position, uint32_t arm) {
  for (uint32_t r = 0; r < shared.workload.requests.size() && !sampler.complete(); ++r) {
    position.stage = nullptr;  // the replayer knows better
    replayer.play_request(r, 0);
    position = {.stage = "counters", .arm = arm, .request = r};
    shared.driver.synchronize_context();
  }
}

gpu::CUcontext current_context(const gpu::Driver& driver) {
  using GetCurrent = gpu::CUresult (*)(gpu::CUcontext*);
  gpu::CUcontext context = nullptr;
  auto get = reinterpret_cast<GetCurrent>(driver.symbol("cuCtxGetCurrent"));
  if (get == nullptr || get(&context) != gpu::CUDA_SUCCESS)
    throw WorkerError("no counters", "the driver does not tell the current context");
  return context;
}

}  // namespace

void CounterSampler::begin_pass() {
  ranges_.clear();
  seen_.clear();
  sampling_ = false;
}

bool CounterSampler::before(uint32_t launch, uint16_t item) {
  auto among = [&](const std::vector<uint32_t>& all) { return std::find(all.begin(), all.end(), launch) != all.end(); };
  if (item == 0) {
    sampling_ = among(launches_) && !among(seen_);
    if (sampling_) seen_.push_back(launch);
  }
  if (!sampling_) return false;
  driver_.synchronize_context();
  or_throw(profiler_.push());
  ranges_.emplace_back(launch, item);
  return true;
}

void CounterSampler::after() {
  driver_.synchronize_context();
  or_throw(profiler_.pop());
}

void run_counters(Shared& shared, const std::vector<PreparedArm>& arms, const EngineOutput& output,
                  const std::string& cupti) {
  Position position{.stage = "counters"};
  Replayer replayer(shared, 0);
  try {
    auto profiler =
        or_throw(RangeProfiler::open(cupti, current_context(shared.driver), shared.driver.properties().ordinal));
    CounterSampler sampler(shared.driver, *profiler, shared.plan.counter_launches);
    shared.sampler = &sampler;
    RecordWriter::Stage own(arms.size() * most_ranges(shared, arms) * sizeof(wire::HardwareCountersRecord) +
                            sizeof(wire::RoundRecord));
    std::set<uint32_t> refused;
    for (const Round& round : shared.plan.rounds) {
      uint32_t set = round.pair / shared.plan.counter_repeats;
      position = {.stage = "restore", .arm = round.arm};
      shared.buffers.restore(nullptr);
      shared.driver.synchronize_context();
      position.stage = "counters";
      // Each pass has images of its own: CUPTI adds to what an image holds.
      auto ready = profiler->configure(trace::counter_set(set), most_ranges(shared, arms));
      if (ready) {
        wire::RoundRecord record{wire::head<wire::RoundRecord>(wire::Kind::round, round.round), now_ns(), 0, round.arm,
                                 round.pair};
        RoundStart start{&arms[round.arm], round.arm, round.round, record.begin};
        replayer.begin(start);
        sampler.begin_pass();
        or_throw(profiler->start());
        play(shared, replayer, sampler, position, round.arm);
        auto values = or_throw(profiler->stop());
        record.end = now_ns();
        own.append(record);
        write_values(own, round.round, set, sampler.ranges(), values);
        output.writer.merge(own);
        output.writer.merge(replayer.stage());
      } else if (refused.insert(set).second) {
        output.writer.append_name(wire::kRefusedSet + set, ready.failure().what);
      }
      output.progress(round.round, std::nullopt);
    }
    shared.sampler = nullptr;
  } catch (...) {
    throw ThreadFault(current_fault(position.stage ? position : replayer.position(), &shared.driver));
  }
}

}  // namespace kgate::worker
