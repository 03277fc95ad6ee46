// Hand-made record streams: what a worker would have written, or what a broken one might.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "gpu/cupti_abi.h"
#include "trace/store.h"
#include "trace/wire.h"

namespace kgate::test {

class Stream {
 public:
  Stream() : bytes_(sizeof(wire::Header)) { set_header(wire::kMagic, wire::kVersion); }

  template <typename Record>
  Stream& add(wire::Kind kind, uint32_t round, Record record) {
    record.head = wire::head<Record>(kind, round);
    return raw(&record, sizeof record);
  }
  Stream& raw(const void* data, size_t size) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + size);
    set_used(bytes_.size() - sizeof(wire::Header));
    return *this;
  }
  Stream& name(uint32_t id, std::string text) {
    size_t length = text.size();
    text.resize((length + 7) / 8 * 8);
    wire::NameRecord record{{wire::Kind::name, static_cast<uint16_t>(sizeof record + text.size()), wire::kNoRound},
                            id,
                            static_cast<uint32_t>(length)};
    raw(&record, sizeof record);
    return raw(text.data(), text.size());
  }
  Stream& round(uint32_t number, uint32_t arm, uint64_t begin, uint64_t end, uint32_t pair = 0) {
    return add(wire::Kind::round, number, wire::RoundRecord{{}, begin, end, arm, pair});
  }
  Stream& request(uint32_t round, uint32_t sequence, uint64_t issue, uint64_t end, uint32_t thread = 7,
                  wire::Phase phase = wire::Phase::measured) {
    wire::RequestRecord r{};
    r.due = r.issue = issue, r.end = end, r.request = sequence, r.sequence = sequence, r.thread = thread,
    r.phase = phase;
    return add(wire::Kind::request, round, r);
  }
  Stream& launch(uint32_t round, uint32_t sequence, uint64_t begin, uint64_t end, uint32_t thread = 7,
                 uint32_t index = 0, wire::Phase phase = wire::Phase::measured) {
    wire::LaunchRecord r{};
    r.begin = begin, r.end = end, r.sequence = r.request = sequence, r.launch = index, r.phase = phase,
    r.thread = thread;
    return add(wire::Kind::launch, round, r);
  }
  Stream& api(uint64_t start, uint64_t end, uint32_t correlation, uint32_t thread = 7,
              uint32_t cbid = gpu::CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel) {
    return add(wire::Kind::api, 0, wire::ApiRecord{{}, start, end, cbid, correlation, thread, 0});
  }
  Stream& kernel(uint64_t start, uint64_t end, uint32_t correlation, uint32_t name = 1, uint32_t grid = 4,
                 uint32_t stream = 1) {
    wire::KernelRecord r{};
    r.start = start, r.end = end, r.correlation = correlation, r.name = name, r.registers = 32, r.stream = stream;
    for (int i = 0; i < 3; ++i) r.grid[i] = r.block[i] = 1;
    r.grid[0] = grid, r.block[0] = 128;
    return add(wire::Kind::kernel, 0, r);
  }
  // A launch, its API record and its kernel, all well.
  Stream& whole(uint32_t round, uint32_t sequence, uint64_t at, uint32_t correlation, uint64_t duration = 100) {
    request(round, sequence, at, at + 500 + duration);
    launch(round, sequence, at + 10, at + 30);
    api(at + 12, at + 28, correlation);
    return kernel(at + 40, at + 40 + duration, correlation);
  }

  void set_header(uint32_t magic, uint32_t version) {
    std::memcpy(bytes_.data(), &magic, 4);
    std::memcpy(bytes_.data() + 4, &version, 4);
  }
  void set_used(uint64_t used) { std::memcpy(bytes_.data() + 16, &used, 8); }
  void set_lost(uint64_t lost) { std::memcpy(bytes_.data() + 24, &lost, 8); }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<std::byte>& mutable_bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// One workload kernel "k" (launch 0), and "v2", the only kernel of arm 1.
inline ArmKernels one_kernel(uint32_t launches = 1) {
  ArmKernels plan;
  plan.workload_kernels = {{"k", "id-k"}};
  plan.arm_kernels = {{}, {{"v2", "id-v2"}}};
  plan.judged_launch.assign(launches, true);
  plan.launch_kernel.assign(launches, 0);
  return plan;
}

inline double health_of(const TraceStore& store, const std::string& name) {
  for (const HealthRow& row : store.health())
    if (row.name == name) return row.value;
  return -1;
}

}  // namespace kgate::test
