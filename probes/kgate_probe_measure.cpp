#include "probes/kgate_probe_measure.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

#include "probes/kgate_probe_program.h"

asm(".text\n.balign 16\n.type kgate_probe_target, @function\n.globl kgate_probe_target\nkgate_probe_target:\n"
    "push %rbp\nmov %rsp, %rbp\npop %rbp\nret\n.size kgate_probe_target, .-kgate_probe_target\n");
extern "C" void kgate_probe_target();

namespace kgate::probe {

bool find_call_site(CallSite* site) {
  auto address = reinterpret_cast<uint64_t>(&kgate_probe_target);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0, offset = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %*s %lx", &begin, &end, &offset) < 3) continue;
    if (address < begin || address >= end) continue;
    *site = {"/proc/self/exe", address - begin + offset};
    return true;
  }
  return false;
}

double ns_per_call() {
  std::array<double, 5> batches{};
  constexpr int kCalls = kOwnCalls / static_cast<int>(batches.size());
  for (double& batch : batches) {
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) kgate_probe_target();
    batch = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / kCalls;
  }
  std::sort(batches.begin(), batches.end());
  return batches[batches.size() / 2];
}

std::optional<Failure> check_own_hits(int ring_map, int hits_map) {
  uint64_t events = 0;
  auto count = [](void* sum, void*, size_t) {
    ++*static_cast<uint64_t*>(sum);
    return 0;
  };
  ring_buffer* ring = ring_buffer__new(ring_map, count, &events, nullptr);
  if (ring == nullptr) return bpf_failure("cannot map the ring buffer", errno);
  ring_buffer__consume(ring);
  ring_buffer__free(ring);
  auto hits = sum_over_cpus(hits_map, KGATE_OWN_SYMBOL);
  if (!hits) return hits.failure();
  if (*hits == kOwnCalls && events == kOwnCalls) return {};
  return Failure{"a probe fired " + std::to_string(*hits) + " times in " + std::to_string(kOwnCalls) +
                     " calls and wrote " + std::to_string(events) + " events",
                 "eBPF", "Trace in tier T2 on this machine."};
}

Result<uint64_t> sum_over_cpus(int map, uint32_t index) {
  int cpus = libbpf_num_possible_cpus();
  if (cpus < 1) return bpf_failure("cannot count the processors", -cpus);
  std::vector<uint64_t> values(static_cast<size_t>(cpus));
  if (bpf_map_lookup_elem(map, &index, values.data()) != 0) return bpf_failure("cannot read a counter", errno);
  uint64_t sum = 0;
  for (uint64_t value : values) sum += value;
  return sum;
}

}  // namespace kgate::probe
