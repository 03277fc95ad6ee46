// C++ names of kernels for people: "_Z4axpyIfEvT_" → "void axpy<float>(float)".
#pragma once

#include <string>
#include <vector>

namespace kgate::trace {

// In the order of `names`. A name that is not mangled, does not demangle, or whose plain form is past 4096 bytes stays
// itself.
std::vector<std::string> demangle(const std::vector<std::string>& names);

}  // namespace kgate::trace
