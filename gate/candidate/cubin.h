// What a cubin says about its kernels, read without a GPU and without cuobjdump.
//
// Two ABIs: CUDA <= 12 (EI_OSABI 0x33, EI_ABIVERSION 7) and CUDA 13 (0x41, 8). They differ in where the architecture, the
// toolkit and the registers are stored; the .nv.info records are the same. Facts were measured on ptxas 13.0 output for
// sm_75 to sm_120; the older header layout follows LLVM's BinaryFormat/ELF.h and public cubins.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "candidate/candidate.h"

namespace kgate {

struct Cubin {
  int arch = 0;         // 90 for sm_90
  std::string target;   // "sm_90a"; an `a` or `f` that the file does not record is missing
  std::string toolkit;  // "13.0", empty when the file does not say
  std::vector<Entry> entries;
};

constexpr uint16_t kMachineCuda = 190;

// The failure's `where` is empty: the caller knows the file's name.
Result<Cubin> read_cubin(std::string_view bytes);

}  // namespace kgate
