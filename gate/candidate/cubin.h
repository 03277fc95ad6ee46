// What a cubin says about its kernels, read without a GPU and without cuobjdump.
//
// Two ABIs: the old one (EI_OSABI 0x33, EI_ABIVERSION 7; CUDA 12 up to sm_90) and the new one (0x41, 8; CUDA 12.8 for sm_100
// and later, CUDA 13 for everything). They differ in where the architecture, the toolkit, the registers and the barriers
// are stored; the .nv.info records are the same. Measured on the output of ptxas 11.8, 12.3, 12.8 and 13.0.
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
