// Can eBPF be used here, and what does a hit cost? Measured on a function of this very program, whose first instruction
// is of the same cheap class as the driver's.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "support/text.h"
#include "trace/bpf_program.h"
#include "trace/probes.h"

asm(".text\n.balign 16\n.type kgate_probe_target, @function\n.globl kgate_probe_target\nkgate_probe_target:\n"
    "push %rbp\nmov %rsp, %rbp\npop %rbp\nret\n.size kgate_probe_target, .-kgate_probe_target\n");
extern "C" void kgate_probe_target();

namespace kgate {

namespace {

struct Place {
  std::string file;
  uint64_t offset = 0;
};

// The file and offset behind an address of this process.
bool locate(uint64_t address, Place* place) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0, offset = 0;
    int path = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %*s %lx %*s %*s %n", &begin, &end, &offset, &path) < 3) continue;
    if (address < begin || address >= end || path == 0) continue;
    *place = {line.substr(static_cast<size_t>(path)), address - begin + offset};
    return !place->file.empty() && place->file[0] == '/';
  }
  return false;
}

double ns_a_call(int calls) {
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) kgate_probe_target();
  std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
  return spent.count() / calls;
}

}  // namespace

ProbeSupport probe_support() {
  constexpr int kCalls = 10'000;
  ProbeSupport support;
  Place place;
  if (!locate(reinterpret_cast<uint64_t>(&kgate_probe_target), &place)) {
    support.detail = "cannot find this program's own code in /proc/self/maps";
    return support;
  }
  double bare = ns_a_call(kCalls);
  std::vector<ProbeSymbol> symbols = {
      {"kgate_probe_target", ProbeSymbol::Use::launch, ProbeSymbol::Cost::emulated, place.offset, 0}};
  auto program = trace::BpfProgram::attach(static_cast<int>(::getpid()), place.file, symbols);
  if (!program) {
    support.detail = program.failure().what;
    support.hint = program.failure().hint;
    return support;
  }
  double probed = ns_a_call(kCalls);
  if (uint64_t hits = (*program)->hits(0); hits != kCalls) {
    support.detail = "the probe fired " + std::to_string(hits) + " times in " + std::to_string(kCalls) + " calls";
    support.hint = "Trace in tier T2 on this machine.";
    return support;
  }
  support.ok = true;
  support.ns_per_hit = probed - bare;
  support.detail =
      std::string(trace::attach_name((*program)->mode())) + " + tp_btf, " + format_ns(support.ns_per_hit) + " a call";
  return support;
}

}  // namespace kgate
