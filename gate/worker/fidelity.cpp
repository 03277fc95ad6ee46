#include "worker/fidelity.h"

#include "worker/thread_pool.h"
#include "workload/block_hash.h"

namespace kgate::worker {

namespace {

using Hashes = std::vector<std::vector<uint64_t>>;  // by buffer; empty where none were recorded

Hashes read_hashes(Shared& shared) {
  Hashes hashes(shared.workload.buffers.size());
  std::vector<std::byte> memory;
  for (uint32_t b = 0; b < hashes.size(); ++b) {
    const Buffer& buffer = shared.workload.buffers[b];
    if (buffer.end_hashes.empty()) continue;
    memory.resize(buffer.bytes);
    shared.driver.download(memory.data(), shared.buffers.address(b, 0), memory.size());
    hashes[b] = block_hashes(memory, kHashBlockBytes);
  }
  return hashes;
}

uint64_t equal(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  uint64_t count = 0;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) count += a[i] == b[i];
  return count;
}

void write_hashes(Shared& shared, uint32_t round, const Hashes& now, const Hashes& first, RecordWriter& writer) {
  for (uint32_t b = 0; b < now.size(); ++b) {
    wire::BufferHashRecord record{};
    record.head = wire::head<wire::BufferHashRecord>(wire::Kind::buffer_hash, round);
    record.buffer = b;
    record.exact = shared.buffers.is_exact(b);
    record.blocks = now[b].size();
    record.equal = equal(now[b], shared.workload.buffers[b].end_hashes);
    record.repeated = equal(now[b], first[b]);
    writer.append(record);
  }
}

}  // namespace

void run_fidelity(Shared& shared, const std::vector<PreparedArm>& arms, const EngineOutput& output) {
  ThreadPool pool(shared);
  std::optional<Hashes> first;
  for (const Round& round : shared.plan.rounds) {
    play_round(shared, pool, arms, round, output);
    try {
      Hashes now = read_hashes(shared);
      if (!first) first = now;
      write_hashes(shared, round.round, now, *first, output.writer);
    } catch (...) {
      throw ThreadFault(current_fault({.stage = "readback", .arm = round.arm}, &shared.driver));
    }
    output.progress(round.round, std::nullopt);
  }
}

}  // namespace kgate::worker
