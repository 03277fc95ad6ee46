// Where the CUDA compilers are: a toolkit is optional, so everything is looked for at run time.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kgate {

// Folders of installed toolkits, the default first, then the newest: /usr/local/cuda, /usr/local/cuda-13.0, ...
std::vector<std::string> toolkit_roots();

// $KGATE_PTXAS, PATH, the toolkits. A variable that names no program gives nullopt: it is not silently overruled.
std::optional<std::string> find_ptxas();
std::string ptxas_version(const std::string& path);  // "13.0.88", or "" when it does not say

// kgate-compile, the program that hosts nvJitLink and NVRTC: $KGATE_COMPILE, else beside this program.
std::optional<std::string> find_compile_helper();

// What dlopen should try for `stem` ("nvJitLink", "nvrtc"), in order; `override_variable` alone when it is set.
std::vector<std::string> library_candidates(const std::string& stem, const char* override_variable);

}  // namespace kgate
