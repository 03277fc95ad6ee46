// C++ names of kernels for people: "_Z4axpyIfEvT_" → "void axpy<float>(float)".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kgate::trace {

// In the order of `names`. A name that is not mangled, does not demangle, or whose plain form is past 4096 bytes stays
// itself.
std::vector<std::string> demangle(const std::vector<std::string>& names);

// For a column of `width` bytes (at least 16): without return type and parameters; where that is too long still, its
// beginning and its end. "void axpy<float>(float)" → "axpy<float>".
std::string short_kernel_name(std::string_view demangled, size_t width);

}  // namespace kgate::trace
