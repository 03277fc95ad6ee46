// Where the probes go: a small reader of dynamic symbol tables, and a look at each function's first instruction.
//
// A uprobe replaces the first instruction. The kernel emulates some of them (push, nop, jump: 0.6-0.9 us a hit) and
// single-steps the others, which costs 20 us and more in a virtual machine. Such a symbol is refused: the probe would
// be the regression. endbr64 is single-stepped too, but the instruction behind it can be probed instead: no argument
// register has changed there.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "support/error.h"
#include "support/fd.h"
#include "trace/entry_points.h"
#include "trace/probes.h"

namespace kgate::trace {

// Those of `wanted` that the file exports as functions, in the order of `wanted`, offsets ready to be probed. Two names
// of one address are one symbol, with the first of them as its name.
// Failure: not readable, not an ELF file of this machine, no dynamic symbols.
Result<std::vector<ProbeSymbol>> find_probe_symbols(const Fd& library, const std::string& path,
                                                    std::span<const EntryPoint> wanted);
Result<std::vector<ProbeSymbol>> find_probe_symbols(const std::string& path, std::span<const EntryPoint> wanted);

Result<Fd> open_library(const std::string& path);  // for reading

// Which entry points of the table a driver library has, for doctor.
struct EntryPointSurvey {
  size_t exported = 0;                                             // names of the table that it exports
  size_t emulated = 0, emulated_after_endbr = 0, single_step = 0;  // of those names
  size_t aliases = 0;                                              // names that share another one's address
  std::array<size_t, kProbeUses> by_use{};                         // exported names
  std::vector<std::string> single_stepped, absent;                 // names
};
Result<EntryPointSurvey> survey_entry_points(const std::string& path);

// The file behind a library name without a folder ("libcuda.so.1") in a running process: the one that is mapped there
// (libcuda.so.580.159.04). A path is given back as it is.
Result<std::string> library_file(int pid, const std::string& name);

// By the first bytes of a function (at least 9, or up to its end).
ProbeSymbol::Cost probe_cost(std::span<const std::byte> code);
constexpr uint64_t kEndbrBytes = 4;

}  // namespace kgate::trace
