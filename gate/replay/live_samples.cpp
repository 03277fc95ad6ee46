#include "replay/live_samples.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace kgate {

Result<LiveResult> read_live(std::span<const std::byte> memory, const ReplayPlan& plan, const Workload& workload) {
  auto bad = [](const std::string& what) { return Failure{what, "samples of a live replay", {}}; };
  LiveHeader header;
  if (memory.size() < sizeof header) return bad("there is no header");
  std::memcpy(&header, memory.data(), sizeof header);
  if (header.blocks > (memory.size() - sizeof header) / sizeof(LiveBlock)) return bad("more blocks than there is room");
  LiveResult result;
  result.lost = header.lost;
  const auto* blocks = reinterpret_cast<const LiveBlock*>(memory.data() + sizeof header);
  for (uint64_t i = 0; i < header.blocks; ++i) {
    const LiveBlock& block = blocks[i];
    if (block.sample >= plan.samples.size() || block.pass > 1) return bad("a block of a sample that does not exist");
    const auto& buffers = plan.samples[block.sample].buffers;
    if (std::find(buffers.begin(), buffers.end(), block.buffer) == buffers.end())
      return bad("a block of a buffer that the sample does not read");
    if (block.block >= (workload.buffers[block.buffer].bytes + kLiveBlockBytes - 1) / kLiveBlockBytes)
      return bad("a block past the end of its buffer");
    result.blocks.push_back(&block);
  }
  auto place = [](const LiveBlock* b) { return std::tuple(b->sample, b->pass, b->buffer, b->block); };
  std::sort(result.blocks.begin(), result.blocks.end(),
            [&](const LiveBlock* a, const LiveBlock* b) { return place(a) < place(b); });
  for (size_t i = 1; i < result.blocks.size(); ++i)
    if (place(result.blocks[i - 1]) == place(result.blocks[i])) return bad("a block twice");
  return result;
}

}  // namespace kgate
