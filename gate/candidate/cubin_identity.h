// kernel_id of machine code: equal for the same code whatever the kernel, the file or its lines are called.
//
// Counted: the architecture, the launch figures (registers, shared memory, stack, barriers, parameters, block limits), the
// bytes of .text, the constants of the kernel except the parameter bank, the module's constants and global data with
// the symbols in them, relocations (place, type, addend, what they point to), and every function reached through them.
// Not counted: the names of functions and of function-local statics, the file hashes that nvcc puts into
// the names of internal symbols, debug sections, notes, and the .nv.merc/.nv.capmerc copies of sm_100+, which change with
// line information while the machine code does not. Module data is counted whole, so a kernel gets another
// identity when data of a neighbour changes: that costs a measurement, never a false "identical".
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "candidate/candidate.h"
#include "candidate/elf_view.h"

namespace kgate {

// Where the driver writes the parameters inside constant bank 0.
struct ParamBank {
  uint32_t base = 0, size = 0;
};

class CubinIdentity {
 public:
  explicit CubinIdentity(const ElfView& elf) : elf_(elf) {}

  // Of the kernel whose code is section `text` and which is called `name`.
  Result<std::string> kernel_id(size_t text, std::string_view name, const std::string& figures, const ParamBank& params);

 private:
  struct CodeDigest {
    std::string hex;
    std::vector<size_t> callees;  // text sections, in the order of the relocations
  };
  Result<const CodeDigest*> code(size_t section);
  Result<const CodeDigest*> module_data();
  std::string describe_target(const ElfRelocation& relocation, std::vector<size_t>& callees) const;

  const ElfView& elf_;
  std::map<size_t, CodeDigest> code_;  // a section's digest is made once, however many kernels call it
  std::optional<CodeDigest> data_;
};

// A symbol's name without what compilers derive from file names; "" for function-local statics.
std::string canonical_symbol(std::string_view name);

}  // namespace kgate
