#include "worker/placement.h"

#include <algorithm>
#include <map>
#include <set>

namespace kgate::worker {

namespace {

constexpr uint64_t kUnit = uint64_t{32} << 20;    // of reservations, see the header
constexpr uint64_t kGranule = uint64_t{2} << 20;  // of mappings

class Placer {
 public:
  Placer(gpu::Driver& driver, const Workload& workload)
      : driver_(driver), workload_(workload), done_(workload.buffers.size()) {
    placed_.address.resize(workload.buffers.size());
  }

  PlacedBuffers run(bool shifted) {
    for (const Buffer& buffer : workload_.buffers) placed_.wanted += buffer.address != 0 && buffer.bytes != 0;
    if (!shifted) {
      map_at_addresses();
      repeat_allocations();
    }
    for (uint32_t b = 0; b < done_.size(); ++b)
      if (!done_[b] && workload_.buffers[b].bytes != 0) elsewhere(b, shifted);
    return std::move(placed_);
  }

 private:
  void keep(uint32_t b, gpu::CUdeviceptr address) {
    done_[b] = true;
    placed_.address[b] = address;
    placed_.exact += workload_.buffers[b].address == address;
  }

  // Buffers come in the order in which the program allocated them. Small ones share blocks that the driver keeps for
  // itself, where no reservation is granted: only an allocation like the program's finds the place again.
  void repeat_allocations() {
    for (uint32_t b = 0; b < done_.size(); ++b) {
      const Buffer& buffer = workload_.buffers[b];
      if (done_[b] || buffer.address == 0 || buffer.bytes == 0) continue;
      gpu::CUdeviceptr got = driver_.allocate(buffer.bytes);
      if (got == buffer.address)
        keep(b, got);
      else
        driver_.free(got);
    }
  }

  // Reserves the units that the remaining buffers touch and maps the granules that they use. A buffer is placed when
  // all its units were granted.
  void map_at_addresses() {
    std::set<uint64_t> units;
    for (uint32_t b = 0; b < done_.size(); ++b) {
      const Buffer& buffer = workload_.buffers[b];
      if (done_[b] || buffer.address == 0 || buffer.bytes == 0) continue;
      for (uint64_t unit = buffer.address / kUnit * kUnit; unit < buffer.address + buffer.bytes; unit += kUnit)
        units.insert(unit);
    }
    std::set<uint64_t> granted;
    for (uint64_t unit : units)
      if (driver_.reserve_at(unit, kUnit)) granted.insert(unit);
    std::map<uint64_t, std::set<uint64_t>> used;  // unit → granules
    for (uint32_t b = 0; b < done_.size(); ++b) {
      const Buffer& buffer = workload_.buffers[b];
      if (done_[b] || buffer.address == 0 || buffer.bytes == 0) continue;
      bool all = true;
      for (uint64_t unit = buffer.address / kUnit * kUnit; unit < buffer.address + buffer.bytes; unit += kUnit)
        all = all && granted.contains(unit);
      if (!all) continue;
      for (uint64_t at = buffer.address / kGranule * kGranule; at < buffer.address + buffer.bytes; at += kGranule)
        used[at / kUnit * kUnit].insert(at);
      keep(b, buffer.address);
    }
    for (const auto& [unit, granules] : used) map_runs(granules);
  }

  void map_runs(const std::set<uint64_t>& granules) {
    uint64_t begin = *granules.begin(), end = begin;
    for (uint64_t at : granules) {
      if (at != end) {
        driver_.map(begin, end - begin);
        begin = at;
      }
      end = at + kGranule;
    }
    driver_.map(begin, end - begin);
  }

  void elsewhere(uint32_t b, bool shifted) {
    const Buffer& buffer = workload_.buffers[b];
    uint64_t align = std::max<uint64_t>(buffer.align, 256);
    uint64_t slack = align > 256 ? align : 0;
    // A shifted buffer that landed on its own address would prove nothing: an allocation is put in its way.
    gpu::CUdeviceptr got = driver_.allocate(buffer.bytes + slack);
    if (shifted && (got + align - 1) / align * align == buffer.address) got = driver_.allocate(buffer.bytes + slack);
    keep(b, (got + align - 1) / align * align);
  }

  gpu::Driver& driver_;
  const Workload& workload_;
  std::vector<bool> done_;
  PlacedBuffers placed_;
};

}  // namespace

PlacedBuffers place_recorded(gpu::Driver& driver, const Workload& workload, bool shifted) {
  return Placer(driver, workload).run(shifted);
}

}  // namespace kgate::worker
