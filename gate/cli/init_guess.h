// What the parameters of a recorded kernel may be, guessed: from its C++ name, from what its PTX does with each
// address, and from which of them were addresses in the recorded launches. Nobody is to rely on it unread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workload/workload.h"

namespace kgate::cli {

struct GuessedParam {
  uint32_t offset = 0, size = 0;
  bool pointer = false;    // an address in some recorded launch, or by the C++ name
  bool structure = false;  // neither an address nor a number: a contract has no word for it
  std::string dtype;       // of the elements, or of the scalar
  std::string role;        // of a tensor: in, out, inout
  std::string why;         // where dtype and role come from, for people
};

// In order. `kernel` is a position in Workload::kernels.
std::vector<GuessedParam> guess_params(const Workload& workload, uint32_t kernel);

}  // namespace kgate::cli
