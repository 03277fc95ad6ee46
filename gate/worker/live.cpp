#include "worker/live.h"

#include <cstring>

#include "worker/clock.h"

namespace kgate::worker {

LiveSampler::LiveSampler(gpu::Driver& driver, const DeviceBuffers& buffers, const Workload& workload,
                         const ReplayPlan& plan, std::span<std::byte> out)
    : driver_(driver), buffers_(buffers), workload_(workload), plan_(plan), out_(out) {
  if (out_.size() < sizeof(LiveHeader)) throw WorkerError("internal", "a live replay has no memory for its samples");
  *reinterpret_cast<LiveHeader*>(out_.data()) = {};
}

std::optional<uint32_t> LiveSampler::sample_at(uint32_t call, uint32_t node) {
  if (next_ == plan_.samples.size()) return std::nullopt;
  const LiveSample& sample = plan_.samples[next_];
  if (sample.call != call || sample.node != node) return std::nullopt;
  return next_++;
}

void LiveSampler::take(uint32_t sample, bool same, const std::function<void()>& arm,
                       const std::function<void()>& recorded) {
  driver_.synchronize_context();
  auto memory = read_before(sample);
  arm();
  driver_.synchronize_context();
  keep_changes(sample, 0, memory);
  put_back(memory);
  recorded();
  driver_.synchronize_context();
  if (same) keep_changes(sample, 1, memory);
}

std::vector<LiveSampler::Memory> LiveSampler::read_before(uint32_t sample) {
  std::vector<Memory> memory;
  for (uint32_t buffer : plan_.samples[sample].buffers) {
    auto& one = memory.emplace_back(Memory{buffer, std::vector<std::byte>(workload_.buffers[buffer].bytes), {}});
    driver_.download(one.before.data(), buffers_.address(buffer, 0), one.before.size());
  }
  return memory;
}

void LiveSampler::keep_changes(uint32_t sample, uint32_t pass, std::vector<Memory>& memory) {
  auto& header = *reinterpret_cast<LiveHeader*>(out_.data());
  auto* blocks = reinterpret_cast<LiveBlock*>(out_.data() + sizeof(LiveHeader));
  uint64_t room = (out_.size() - sizeof(LiveHeader)) / sizeof(LiveBlock);
  for (Memory& one : memory) {
    one.after.resize(one.before.size());
    driver_.download(one.after.data(), buffers_.address(one.buffer, 0), one.after.size());
    for (uint64_t at = 0; at < one.before.size(); at += kLiveBlockBytes) {
      size_t bytes = std::min<uint64_t>(kLiveBlockBytes, one.before.size() - at);
      if (std::memcmp(one.before.data() + at, one.after.data() + at, bytes) == 0) continue;
      if (header.blocks == room) {
        ++header.lost;
        continue;
      }
      LiveBlock& block = blocks[header.blocks++];
      block = {};
      block.sample = sample;
      block.buffer = one.buffer;
      block.block = at / kLiveBlockBytes;
      block.pass = pass;
      std::memcpy(block.before, one.before.data() + at, bytes);
      std::memcpy(block.after, one.after.data() + at, bytes);
    }
  }
}

void LiveSampler::put_back(std::vector<Memory>& memory) {
  for (Memory& one : memory)
    if (one.before != one.after) driver_.upload(buffers_.address(one.buffer, 0), one.before.data(), one.before.size());
}

void run_live(Shared& shared, const std::vector<PreparedArm>& arms, const EngineOutput& output) {
  Replayer replayer(shared, 0);
  LiveSampler sampler(shared.driver, shared.buffers, shared.workload, shared.plan, output.readback);
  shared.live = &sampler;
  RecordWriter::Stage own(sizeof(wire::RoundRecord));
  Position position{.stage = nullptr};
  const Round& round = shared.plan.rounds.front();
  try {
    wire::RoundRecord record{wire::head<wire::RoundRecord>(wire::Kind::round, round.round), now_ns(), 0, round.arm,
                             round.pair};
    RoundStart start{&arms[round.arm], round.arm, round.round, record.begin};
    replayer.begin(start);
    replayer.play_in_order([&](uint32_t request) {
      position = {.stage = "sync", .arm = round.arm, .request = request, .launch = replayer.suspect()};
      shared.driver.synchronize_context();
      output.progress(round.round, request);
      position.stage = nullptr;  // the replayer knows better
    });
    record.end = now_ns();
    own.append(record);
    output.writer.merge(own);
    output.writer.merge(replayer.stage());
    output.progress(round.round, std::nullopt);
  } catch (...) {
    throw ThreadFault(current_fault(position.stage ? position : replayer.position(), &shared.driver));
  }
  shared.live = nullptr;
}

}  // namespace kgate::worker
