// Elements of tensors as doubles, and the comparison of one output tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "contract/contract.h"

namespace kgate {

double load_element(Dtype dtype, const char* data, uint64_t index);         // integers exact up to 2^53
void store_element(Dtype dtype, char* data, uint64_t index, double value);  // rounded to nearest even

// Offsets (in elements) that a tensor addresses in a shape, row-major.
std::vector<uint64_t> addressed(const TensorParam& tensor, const Environment& shape);

// What a tensor should hold. Floating tensors of the reference are f64; everything else is in the tensor's dtype.
struct Expected {
  const char* data = nullptr;
  bool wide = false;  // f64 elements
};

struct TensorComparison {
  uint64_t compared = 0;
  uint64_t wrong = 0, nan_wrong = 0, stale = 0;  // stale: among `wrong`, still the poison that it was filled with
  double worst = 0;          // largest |difference| / tolerance; infinite for NaN and Inf mismatches
  uint64_t worst_index = 0;  // element offset
  double got = 0, want = 0;  // there
};

struct CompareRule {
  Tolerance tolerance;
  bool by_default = true;  // the contract gave none: the baseline's own error widens it, up to ten times
};

// `baseline`: what the baseline computed from the same input (tensor's dtype), or null. Where it disagrees with the
// reference about NaN or Inf, the candidate may follow either. `initial`: the bytes before the run, to tell stale
// elements.
TensorComparison compare_tensor(const TensorParam& tensor, const Environment& shape, const char* got,
                                const Expected& expected, const char* baseline, const char* initial,
                                const CompareRule& rule);

}  // namespace kgate
