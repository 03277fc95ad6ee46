// The rules that every workload obeys before anything else looks at it. Workloads come from untrusted files, so each
// index, offset and length is checked here, once; the replay engine then indexes without looking.
#include <algorithm>
#include <bit>
#include <cmath>

#include "support/hash.h"
#include "support/text.h"
#include "workload/element.h"
#include "workload/limits.h"
#include "workload/workload.h"

namespace kgate {

using namespace cap;

namespace {

using Check = std::optional<Failure>;

std::string str(uint64_t value) { return std::to_string(value); }

Failure at(const char* table, size_t index, std::string what) {
  return Failure{std::move(what), std::string(table) + " " + str(index), {}};
}

Check check_count(const char* table, size_t count, size_t cap) {
  if (count <= cap) return {};
  return Failure{str(count) + " " + table + "; at most " + str(cap) + " are read", table, {}};
}

// Names go to the driver and into reports: no control characters, which also keeps NUL out of C strings.
bool good_name(const std::string& name, bool may_be_empty) {
  if (name.empty()) return may_be_empty;
  return name.size() <= kMaxName &&
         std::none_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

Check check_head(const Workload& w) {
  const auto bad = [](std::string what) { return Failure{std::move(what), "workload", {}}; };
  if (!good_name(w.name, true)) return bad("the name holds control characters or is too long");
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
  if (auto c = check_count("launches", w.launches.size(), kMaxLaunches)) return c;
  if (auto c = check_count("calls", w.calls.size(), kMaxCalls)) return c;
  return check_count("requests", w.requests.size(), kMaxCalls);
}

Check check_modules(const Workload& w, uint64_t& blob_bytes) {
  for (size_t i = 0; i < w.modules.size(); ++i) {
    const WorkloadModule& module = w.modules[i];
    if (!good_name(module.name, false)) return at("modules", i, "has no usable name");
    if (module.image.empty()) return at("modules", i, "has no image");
    if (module.image.size() > kMaxBlobBytes) return at("modules", i, "the image is too large");
    blob_bytes += module.image.size();
    if (module.sha256 != sha256(module.image)) return at("modules", i, "sha256 is not that of the image");
  }
  return {};
}

Check check_kernels(const Workload& w) {
  size_t params = 0;
  for (size_t i = 0; i < w.kernels.size(); ++i) {
    const WorkloadKernel& kernel = w.kernels[i];
    if (kernel.module >= w.modules.size()) return at("kernels", i, "module " + str(kernel.module) + " does not exist");
    if (!good_name(kernel.entry, false)) return at("kernels", i, "has no usable entry name");
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

std::string content_problem(const Buffer& buffer, uint64_t& blob_bytes) {
  if (buffer.content.valueless_by_exception()) return "has no content";
  if (const auto* bytes = std::get_if<ContentBytes>(&buffer.content)) {
    blob_bytes += bytes->bytes.size();
    if (bytes->bytes.size() > buffer.bytes) return "its content is longer than the buffer";
    return bytes->bytes.size() > kMaxBlobBytes ? "its content is too large" : "";
  }
  const auto* random = std::get_if<ContentRandom>(&buffer.content);
  if (!random) return "";
  const Element* element = element_named(random->dtype);
  if (!element) return "unknown dtype \"" + sanitize(random->dtype, 40) + "\"";
  if (buffer.bytes % element->bytes != 0) return "is not a whole number of " + random->dtype + " elements";
  const double low = random->low, high = random->high;
  if (!std::isfinite(low) || !std::isfinite(high) || !std::isfinite(high - low) || low > high)
    return "the range of its random content is not a range";
  if (low < element->lowest || high > element->highest)
    return "the range of its random content does not fit " + random->dtype;
  if (element->kind != ElementKind::floating && (low != std::floor(low) || high != std::floor(high)))
    return "the range of its random content must be whole numbers";
  return "";
}

Check check_buffers(const Workload& w, uint64_t& blob_bytes) {
  uint64_t total = 0;
  std::vector<std::pair<uint64_t, size_t>> placed;
  for (size_t i = 0; i < w.buffers.size(); ++i) {
    const Buffer& buffer = w.buffers[i];
    if (!good_name(buffer.name, true)) return at("buffers", i, "has no usable name");
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
    if (std::string problem = content_problem(buffer, blob_bytes); !problem.empty()) return at("buffers", i, problem);
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

bool uses_dst(CallKind kind) { return kind == CallKind::copy || kind == CallKind::upload || kind == CallKind::memset; }
bool uses_src(CallKind kind) { return kind == CallKind::copy || kind == CallKind::download; }
bool uses_event(CallKind kind) {
  return kind == CallKind::event_record || kind == CallKind::event_wait || kind == CallKind::event_sync;
}

std::string range_problem(const Workload& w, const char* side, bool used, uint32_t buffer, uint64_t offset,
                          uint64_t bytes) {
  if (!used) return buffer == kNone && offset == 0 ? "" : std::string("has a ") + side + " that its kind does not take";
  if (buffer >= w.buffers.size()) return std::string(side) + " buffer " + str(buffer) + " does not exist";
  const uint64_t size = w.buffers[buffer].bytes;
  if (offset > size || bytes > size - offset) return "leaves its " + std::string(side) + " buffer " + str(buffer);
  return "";
}

// What `kind` does not use must be unset, so that equal calls have equal fields.
std::string call_problem(const Workload& w, const Call& call) {
  if (call.kind > CallKind::context_sync) return "is of an unknown kind";
  if (call.thread >= w.threads) return "thread " + str(call.thread) + " does not exist";
  if (call.stream >= w.streams.size()) return "stream " + str(call.stream) + " does not exist";
  if (call.host_gap_ns > kMaxTime) return "its host gap is out of range";
  if (call.kind == CallKind::launch ? call.launch >= w.launches.size() : call.launch != kNone)
    return "launch " + str(call.launch) + " does not exist or is not its own";
  if (uses_event(call.kind) ? call.event >= w.events : call.event != kNone)
    return "event " + str(call.event) + " does not exist or is not its own";
  const bool dst = uses_dst(call.kind), src = uses_src(call.kind);
  if (std::string p = range_problem(w, "destination", dst, call.dst, call.dst_offset, call.bytes); !p.empty()) return p;
  if (std::string p = range_problem(w, "source", src, call.src, call.src_offset, call.bytes); !p.empty()) return p;
  if ((dst || src) != (call.bytes > 0)) return "its size of " + str(call.bytes) + " bytes does not fit its kind";
  if (call.kind != CallKind::memset && call.value != 0) return "has a value that its kind does not take";
  if (dst && !w.buffers[call.dst].written)
    return "writes buffer " + str(call.dst) + ", which is marked as never written";
  if (dst && src && call.dst == call.src && call.dst_offset < call.src_offset + call.bytes &&
      call.src_offset < call.dst_offset + call.bytes)
    return "copies between overlapping ranges";
  return "";
}

// Each thread keeps its calls in index order and every edge points backwards, so there can be no cycle.
std::string after_problem(const Workload& w, size_t index) {
  const Call& call = w.calls[index];
  if (call.after.size() > kMaxAfter) return "waits for too many calls";
  for (size_t k = 0; k < call.after.size(); ++k) {
    const uint32_t before = call.after[k];
    if (before >= index) return "waits for call " + str(before) + ", which is not before it";
    if (w.calls[before].thread == call.thread) return "waits for call " + str(before) + " of its own thread";
    if (k > 0 && call.after[k - 1] >= before) return "its waits are not in ascending order";
  }
  return "";
}

Check check_calls(const Workload& w) {
  size_t edges = 0;
  for (size_t i = 0; i < w.calls.size(); ++i) {
    if (std::string problem = call_problem(w, w.calls[i]); !problem.empty()) return at("calls", i, problem);
    if (std::string problem = after_problem(w, i); !problem.empty()) return at("calls", i, problem);
    edges += w.calls[i].after.size();
    if (edges > kMaxAllAfter) return at("calls", i, "too many `after` edges");
  }
  return {};
}

Check check_requests(const Workload& w) {
  uint64_t last_arrival = 0;
  std::vector<bool> taken(w.calls.size());
  for (size_t i = 0; i < w.requests.size(); ++i) {
    const Request& request = w.requests[i];
    if (request.thread >= w.threads) return at("requests", i, "thread " + str(request.thread) + " does not exist");
    if (request.calls.empty()) return at("requests", i, "has no calls");
    for (size_t k = 0; k < request.calls.size(); ++k) {
      const uint32_t c = request.calls[k];
      if (c >= w.calls.size()) return at("requests", i, "call " + str(c) + " does not exist");
      if (k > 0 && request.calls[k - 1] >= c) return at("requests", i, "its calls are not in ascending order");
      if (w.calls[c].thread != request.thread) return at("requests", i, "call " + str(c) + " is on another thread");
      if (taken[c]) return at("requests", i, "call " + str(c) + " belongs to another request");
      taken[c] = true;
    }
    if (w.arrivals == Arrivals::closed && request.arrival_ns != 0)
      return at("requests", i, "has an arrival though arrivals are closed");
    if (request.arrival_ns < last_arrival) return at("requests", i, "arrives before the request before it");
    last_arrival = request.arrival_ns;
  }
  if (const auto free = std::find(taken.begin(), taken.end(), false); free != taken.end())
    return at("calls", static_cast<size_t>(free - taken.begin()), "belongs to no request");
  if (last_arrival > w.period_ns) return Failure{"the period ends before the last arrival", "workload", {}};
  if (w.arrivals == Arrivals::external && w.period_ns == 0)
    return Failure{"external arrivals need a period", "workload", {}};
  return {};
}

}  // namespace

Result<std::monostate> validate(const Workload& workload) {
  uint64_t blob_bytes = 0;
  if (auto c = check_head(workload)) return *c;
  if (auto c = check_modules(workload, blob_bytes)) return *c;
  if (auto c = check_kernels(workload)) return *c;
  if (auto c = check_buffers(workload, blob_bytes)) return *c;
  if (blob_bytes > kMaxAllBlobBytes) return Failure{"images and contents are too large together", "workload", {}};
  if (auto c = check_launches(workload)) return *c;
  if (auto c = check_calls(workload)) return *c;
  if (auto c = check_requests(workload)) return *c;
  return std::monostate{};
}

}  // namespace kgate
