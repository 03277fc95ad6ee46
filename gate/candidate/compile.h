// From source to machine code, always in a limited child: compilers crash, hang and eat memory on generated input.
// ptxas where there is one, else nvJitLink (dlopen'ed in a helper process); NVRTC for CUDA C++.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "candidate/candidate.h"

namespace kgate {

enum class Assembler { automatic, ptxas, nvjitlink };  // automatic: ptxas where there is one

enum class CompileOutcome { ok, rejected, crashed, timed_out, no_compiler };

struct CompileResult {
  CompileOutcome outcome = CompileOutcome::no_compiler;
  std::string compiler;      // "ptxas 13.0.88", "nvJitLink 13.0"; what was looked for when there is none
  std::string command;       // the command line that repeats it
  std::string log;           // kept whole (up to 1 MiB)
  std::string first_error;   // one line, "line 12: Unknown symbol '%r2'"; empty when ok
  std::string image;         // the cubin (from PTX) or the PTX (from CUDA C++)
};

struct CompileOptions {
  int arch = 0;                                    // 90 for sm_90; 0: the target that the PTX names (at least sm_75)
  bool arch_specific = false;                      // sm_90a
  std::chrono::milliseconds timeout{60'000};
  uint64_t memory_bytes = uint64_t{8} << 30;       // address space of the compiler
  Assembler assembler = Assembler::automatic;
};

// PTX text → cubin. Spills and registers are parsed from the verbose log by resource_usage(). The `a` or `f` of the PTX's
// own target is kept when `arch` is that target. $KGATE_PTXAS and $KGATE_NVJITLINK name the compiler to use instead of
// the first one found, $KGATE_COMPILE the helper program that hosts nvJitLink and NVRTC.
CompileResult assemble(const std::string& ptx, const CompileOptions& options);

// CUDA C++ → PTX by NVRTC in a child process; #include looks beside `file_name` and in the toolkit. arch 0: compute_75.
CompileResult compile_cuda(const std::string& source, const std::string& file_name, const CompileOptions& options);

// Figures of `entry` in the verbose log of assemble(); nullopt when the log does not speak of it.
struct ResourceUsage {
  std::optional<uint32_t> registers, stack_bytes, spill_store_bytes, spill_load_bytes, static_shared, barriers;
};
std::optional<ResourceUsage> resource_usage(const std::string& log, const std::string& entry);

// Theoretical occupancy from a table of the architectures' limits (sm_75 to sm_121); nullopt for an unknown architecture or
// an impossible block. `shared_bytes` is static + dynamic, without the reserved part. 0 blocks: the launch would be refused.
struct Occupancy {
  int blocks_per_sm = 0;
  double fraction = 0;        // of the SM's warps
  const char* limiter = "";   // "registers", "shared memory", "warps", "blocks", "barriers"
};
std::optional<Occupancy> theoretical_occupancy(int arch, uint32_t registers, uint32_t shared_bytes, uint32_t block_threads,
                                               uint32_t barriers = 0);

// What is installed here, for doctor and for error texts; empty when absent.
struct CompilersFound {
  std::string ptxas, nvjitlink, nvrtc;  // "path (version)"
};
CompilersFound find_compilers();

}  // namespace kgate
