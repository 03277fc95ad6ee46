#include "worker/buffers.h"

#include <unistd.h>

#include <algorithm>

#include "support/text.h"
#include "worker/faults.h"
#include "worker/placement.h"
#include "workload/content.h"

namespace kgate::worker {

namespace {

constexpr uint64_t kDriverAlign = 256;   // of every cuMemAlloc
constexpr uint64_t kReserve = 64 << 20;  // device memory that is left to kernels' local memory and the driver

// Content that a fill makes needs no copy to restore it.
const uint8_t* constant_byte(const Content& content) {
  static constexpr uint8_t zero = 0;
  if (std::holds_alternative<ContentZeros>(content)) return &zero;
  if (auto* poison = std::get_if<ContentPoison>(&content)) return &poison->value;
  return nullptr;
}

uint64_t footprint(const Buffer& buffer, uint64_t guard) {
  uint64_t align = std::max<uint64_t>(buffer.align, kDriverAlign);
  if (guard > 0) return 2 * guard + buffer.bytes + align;
  return align > kDriverAlign ? buffer.bytes + align : buffer.bytes;
}

uint64_t available_host_memory() {
  return static_cast<uint64_t>(::sysconf(_SC_AVPHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

[[noreturn]] void too_small(const char* what, uint64_t needs, uint64_t device, const std::string& rest = {}) {
  throw WorkerError("out of memory", std::string(what) + " needs " + format_bytes(static_cast<double>(needs)) +
                                         ", free " + format_bytes(static_cast<double>(device)) + " on the device" +
                                         rest);
}

}  // namespace

DeviceBuffers::DeviceBuffers(gpu::Driver& driver, const Workload& workload, const ReplayPlan& plan)
    : driver_(driver),
      workload_(workload),
      guard_(plan.guard_bytes),
      guard_value_(plan.guard_value),
      placed_(workload.buffers.size()) {
  uint64_t needs = 0, copies = 0;
  for (const Buffer& buffer : workload.buffers) {
    needs += footprint(buffer, guard_);
    if (buffer.written && !constant_byte(buffer.content)) copies += buffer.bytes;
  }
  for (const Arm& arm : plan.arms)
    for (const Buffer& workspace : arm.workspaces) needs += footprint(workspace, 0);
  uint64_t free = driver.free_memory();
  if (needs > free) too_small("the workload's buffers", needs, free);
  if (plan.placement == Placement::anywhere) {
    for (uint32_t b = 0; b < placed_.size(); ++b) place(b);
  } else {
    place_as_recorded(plan);
  }
  for (const Arm& arm : plan.arms) {
    auto& own = workspaces_.emplace_back();
    for (const Buffer& workspace : arm.workspaces) {
      const uint8_t* value = constant_byte(workspace.content);
      if (value == nullptr) throw WorkerError("internal", "a workspace holds content");
      own.push_back({driver.allocate(workspace.bytes), workspace.bytes, *value});
      driver.fill(own.back().address, own.back().value, own.back().bytes, nullptr);
    }
  }

  bool restorable = plan.mode != ReplayMode::numeric || plan.rounds.size() > 1;  // numeric: not before the first round
  free = driver.free_memory();
  bool on_device = copies + kReserve <= free;
  if (restorable && !on_device && copies > available_host_memory() / 2)
    too_small("restoring the written buffers", copies, free,
              " and " + format_bytes(static_cast<double>(available_host_memory())) + " in host memory");

  std::vector<bool> uploaded(placed_.size());
  for (const Call& call : workload.calls)
    if (call.kind == CallKind::upload && call.payload == kNone) uploaded[call.dst] = true;
  for (uint32_t b = 0; b < placed_.size(); ++b) {
    const Buffer& buffer = workload.buffers[b];
    bool keep = restorable && buffer.written && !constant_byte(buffer.content);
    fill(b, keep && on_device, (keep && !on_device) || uploaded[b]);
  }
  driver.synchronize_context();
}

void DeviceBuffers::place_as_recorded(const ReplayPlan& plan) {
  PlacedBuffers placed = place_recorded(driver_, workload_, plan.placement == Placement::shifted);
  for (uint32_t b = 0; b < placed_.size(); ++b) placed_[b].address = placed.address[b];
  wanted_ = placed.wanted;
  exact_ = placed.exact;
  if (plan.require_exact && exact_ < wanted_)
    throw WorkerError("other addresses", "the driver granted " + std::to_string(exact_) + " of " +
                                             std::to_string(wanted_) +
                                             " buffers their recorded address; the recording needs all of them");
}

void DeviceBuffers::place(uint32_t b) {
  const Buffer& buffer = workload_.buffers[b];
  if (buffer.bytes == 0) return;
  uint64_t align = std::max<uint64_t>(buffer.align, kDriverAlign);
  uint64_t base = driver_.allocate(footprint(buffer, guard_)) + guard_;
  placed_[b].address = (base + align - 1) / align * align;
}

void DeviceBuffers::fill(uint32_t b, bool keep_on_device, bool keep_on_host) {
  const Buffer& buffer = workload_.buffers[b];
  Placed& placed = placed_[b];
  if (buffer.bytes == 0) return;
  fill_guards(b, nullptr);
  const uint8_t* constant = constant_byte(buffer.content);
  if (constant) driver_.fill(placed.address, *constant, buffer.bytes, nullptr);
  if (constant && !keep_on_host) return;
  std::vector<std::byte> content(buffer.bytes);
  materialise(buffer.content, content, workload_.source);
  driver_.upload(placed.address, content.data(), content.size());
  if (keep_on_device) {
    placed.pristine = driver_.allocate(buffer.bytes);
    driver_.upload(placed.pristine, content.data(), content.size());
  }
  if (keep_on_host) placed.host = std::move(content);
}

void DeviceBuffers::fill_guards(uint32_t b, gpu::CUstream stream) {
  if (guard_ == 0) return;
  driver_.fill(placed_[b].address - guard_, guard_value_, guard_, stream);
  driver_.fill(placed_[b].address + workload_.buffers[b].bytes, guard_value_, guard_, stream);
}

void DeviceBuffers::restore(gpu::CUstream stream) {
  for (const auto& arm : workspaces_)
    for (const Workspace& workspace : arm) driver_.fill(workspace.address, workspace.value, workspace.bytes, stream);
  for (uint32_t b = 0; b < placed_.size(); ++b) {
    const Buffer& buffer = workload_.buffers[b];
    const Placed& placed = placed_[b];
    if (buffer.bytes == 0) continue;
    fill_guards(b, stream);
    if (!buffer.written) continue;
    if (const uint8_t* constant = constant_byte(buffer.content))
      driver_.fill(placed.address, *constant, buffer.bytes, stream);
    else if (placed.pristine)
      driver_.copy_async(placed.address, placed.pristine, buffer.bytes, stream);
    else
      driver_.upload(placed.address, placed.host.data(), buffer.bytes);
  }
}

void DeviceBuffers::read_back(const ReadbackRegion& region, std::span<std::byte> out) {
  if (region.bytes == 0) {
    std::fill(out.begin(), out.end(), static_cast<std::byte>(guard_value_));
    return;
  }
  driver_.download(out.data(), placed_[region.buffer].address - region.guard, 2 * region.guard + region.bytes);
}

}  // namespace kgate::worker
