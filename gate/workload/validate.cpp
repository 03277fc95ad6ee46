// The rules that every workload obeys before anything else looks at it. Workloads come from untrusted files, so each
// index, offset and length is checked here, once; the replay engine then indexes without looking.
#include <algorithm>
#include <bit>

#include "support/hash.h"
#include "workload/limits.h"
#include "workload/validate_parts.h"

namespace kgate {

using namespace cap;
using namespace validation;

namespace {

Check check_streams(const Workload& w) {
  size_t legacy = 0;
  for (size_t i = 0; i < w.streams.size(); ++i) {
    const WorkloadStream& stream = w.streams[i];
    if (stream.kind > StreamKind::per_thread) return at("streams", i, "is of an unknown kind");
    if (stream.priority < -kMaxPriority || stream.priority > kMaxPriority)
      return at("streams", i, "its priority is out of range");
    const bool created = stream.kind == StreamKind::non_blocking || stream.kind == StreamKind::blocking;
    if (!created && stream.priority != 0) return at("streams", i, "is a default stream, which has no priority");
    if (stream.kind == StreamKind::legacy && ++legacy > 1) return at("streams", i, "is a second legacy stream");
  }
  return {};
}

Check check_head(const Workload& w) {
  const auto bad = [](std::string what) { return Failure{std::move(what), "workload", {}}; };
  if (!good_text(w.name, true)) return bad("the name holds control characters or is too long");
  if (w.threads < 1 || w.threads > kMaxThreads)
    return bad(str(w.threads) + " threads; 1 to " + str(kMaxThreads) + " are possible");
  if (w.streams.empty() || w.streams.size() > kMaxStreams)
    return bad(str(w.streams.size()) + " streams; 1 to " + str(kMaxStreams) + " are possible");
  if (w.events > kMaxEvents) return bad(str(w.events) + " events; at most " + str(kMaxEvents) + " are possible");
  if (w.arrivals != Arrivals::external && w.arrivals != Arrivals::closed) return bad("unknown kind of arrivals");
  if (w.period_ns > kMaxTime) return bad("the period of " + str(w.period_ns) + " ns is out of range");
  if (w.requests.empty()) return bad("no requests");
  if (auto c = check_count("modules", w.modules.size(), kMaxModules)) return c;
  if (auto c = check_count("kernels", w.kernels.size(), kMaxKernels)) return c;
  if (auto c = check_count("buffers", w.buffers.size(), kMaxBuffers)) return c;
  if (auto c = check_count("payloads", w.payloads.size(), kMaxPayloads)) return c;
  if (auto c = check_count("graphs", w.graphs.size(), kMaxGraphs)) return c;
  if (auto c = check_count("launches", w.launches.size(), kMaxLaunches)) return c;
  if (auto c = check_count("calls", w.calls.size(), kMaxCalls)) return c;
  return check_count("requests", w.requests.size(), kMaxCalls);
}

Check check_modules(const Workload& w, ContentBytesUsed& used) {
  for (size_t i = 0; i < w.modules.size(); ++i) {
    const WorkloadModule& module = w.modules[i];
    if (!good_text(module.name, false)) return at("modules", i, "has no usable name");
    if (module.image.empty()) return at("modules", i, "has no image");
    if (module.image.size() > kMaxBlobBytes || module.portable.size() > kMaxBlobBytes)
      return at("modules", i, "the image is too large");
    used.blobs += module.image.size() + module.portable.size();
    if (module.sha256 != sha256(module.image)) return at("modules", i, "sha256 is not that of the image");
  }
  return {};
}

Check check_kernels(const Workload& w) {
  size_t params = 0;
  for (size_t i = 0; i < w.kernels.size(); ++i) {
    const WorkloadKernel& kernel = w.kernels[i];
    if (kernel.module >= w.modules.size()) return at("kernels", i, "module " + str(kernel.module) + " does not exist");
    if (!good_text(kernel.entry, false)) return at("kernels", i, "has no usable entry name");
    if (kernel.param_bytes > kMaxParamBytes)
      return at("kernels", i, str(kernel.param_bytes) + " parameter bytes are too many");
    if (kernel.params.size() > kMaxKernelParams || (params += kernel.params.size()) > kMaxAllKernelParams)
      return at("kernels", i, "has too many parameters");
    uint64_t end = 0;
    for (const auto& [offset, size] : kernel.params) {
      if (size == 0) return at("kernels", i, "a parameter at offset " + str(offset) + " has no size");
      if (offset < end) return at("kernels", i, "parameters overlap or are out of order at offset " + str(offset));
      end = uint64_t{offset} + size;
      if (end > kernel.param_bytes)
        return at("kernels", i, "a parameter at offset " + str(offset) + " ends past the block");
    }
  }
  return {};
}

Check check_buffers(const Workload& w, ContentBytesUsed& used) {
  uint64_t total = 0, hashes = 0;
  std::vector<std::pair<uint64_t, size_t>> placed;
  for (size_t i = 0; i < w.buffers.size(); ++i) {
    const Buffer& buffer = w.buffers[i];
    if (!good_text(buffer.name, true)) return at("buffers", i, "has no usable name");
    if (buffer.bytes < 1 || buffer.bytes > kMaxBufferBytes)
      return at("buffers", i, "its size of " + str(buffer.bytes) + " bytes is out of range");
    total += buffer.bytes;
    if (total > kMaxAllBufferBytes) return at("buffers", i, "the buffers are too large together");
    if (!std::has_single_bit(buffer.align) || buffer.align > kMaxAlign)
      return at("buffers", i,
                "an alignment of " + str(buffer.align) + " is not a power of two up to " + str(kMaxAlign));
    if (buffer.address % buffer.align != 0)
      return at("buffers", i, "its address is not aligned to " + str(buffer.align));
    if (buffer.address > kMaxAddress - buffer.bytes) return at("buffers", i, "its address is out of range");
    if (std::string problem = content_problem(buffer.content, buffer.bytes, used); !problem.empty())
      return at("buffers", i, problem);
    const uint64_t blocks = (buffer.bytes + kHashBlockBytes - 1) / kHashBlockBytes;
    if (!buffer.end_hashes.empty() && buffer.end_hashes.size() != blocks)
      return at("buffers", i, "has " + str(buffer.end_hashes.size()) + " end hashes; its size asks for " + str(blocks));
    hashes += buffer.end_hashes.size();
    if (hashes > kMaxAllEndHashes) return at("buffers", i, "there are too many end hashes together");
    if (buffer.address != 0) placed.emplace_back(buffer.address, i);
  }
  std::sort(placed.begin(), placed.end());
  for (size_t i = 1; i < placed.size(); ++i)
    if (placed[i - 1].first + w.buffers[placed[i - 1].second].bytes > placed[i].first)
      return at("buffers", placed[i].second,
                "overlaps buffer " + str(placed[i - 1].second) + " at its recorded address");
  return {};
}

std::string extent_problem(const LaunchSpec& launch) {
  const Dim3 &grid = launch.grid, &block = launch.block, &cluster = launch.cluster;
  if (grid.x < 1 || grid.y < 1 || grid.z < 1 || grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535)
    return "the grid is out of range";
  if (block.x < 1 || block.y < 1 || block.z < 1 || block.x > 1024 || block.y > 1024 || block.z > 64 ||
      block.count() > 1024)
    return "the block is out of range";
  if (launch.shared > kMaxSharedBytes) return str(launch.shared) + " bytes of dynamic shared memory are too many";
  if (cluster == Dim3{0, 0, 0}) return "";
  if (cluster.x < 1 || cluster.y < 1 || cluster.z < 1 || cluster.x > kMaxClusterBlocks ||
      cluster.y > kMaxClusterBlocks || cluster.z > kMaxClusterBlocks || cluster.count() > kMaxClusterBlocks)
    return "the cluster is out of range";
  if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0)
    return "the grid is not a multiple of the cluster";
  return "";
}

Check check_launches(const Workload& w) {
  size_t param_bytes = 0, relocations = 0;
  for (size_t i = 0; i < w.launches.size(); ++i) {
    const LaunchSpec& launch = w.launches[i];
    if (launch.kernel >= w.kernels.size()) return at("launches", i, "kernel " + str(launch.kernel) + " does not exist");
    if (std::string problem = extent_problem(launch); !problem.empty()) return at("launches", i, problem);
    const uint32_t expected = w.kernels[launch.kernel].param_bytes;
    if (launch.params.size() != expected)
      return at("launches", i, str(launch.params.size()) + " parameter bytes; the kernel takes " + str(expected));
    param_bytes += expected;
    relocations += launch.relocations.size();
    if (param_bytes > kMaxAllParamBytes) return at("launches", i, "the parameter blocks are too large together");
    if (relocations > kMaxAllRelocations) return at("launches", i, "too many relocations");
    uint64_t end = 0;
    for (const Relocation& r : launch.relocations) {
      if (r.param_offset < end)
        return at("launches", i, "relocations overlap or are out of order at offset " + str(r.param_offset));
      end = uint64_t{r.param_offset} + 8;
      if (end > expected)
        return at("launches", i, "a relocation at offset " + str(r.param_offset) + " ends past the parameters");
      if (r.buffer >= w.buffers.size()) return at("launches", i, "buffer " + str(r.buffer) + " does not exist");
      if (r.delta < 0 || static_cast<uint64_t>(r.delta) > w.buffers[r.buffer].bytes)
        return at("launches", i, "a pointer leaves buffer " + str(r.buffer));
    }
  }
  return {};
}

}  // namespace

Result<std::monostate> validate(const Workload& workload) {
  ContentBytesUsed used;
  if (auto c = check_head(workload)) return *c;
  if (auto c = check_origin(workload)) return *c;
  if (auto c = check_streams(workload)) return *c;
  if (auto c = check_modules(workload, used)) return *c;
  if (auto c = check_kernels(workload)) return *c;
  if (auto c = check_buffers(workload, used)) return *c;
  if (auto c = check_payloads(workload, used)) return *c;
  if (used.blobs > kMaxAllBlobBytes) return Failure{"images and contents are too large together", "workload", {}};
  if (auto c = check_launches(workload)) return *c;
  if (auto c = check_graphs(workload)) return *c;
  if (auto c = check_calls(workload)) return *c;
  if (auto c = check_requests(workload)) return *c;
  return std::monostate{};
}

}  // namespace kgate
