// The part of nvJitLink's and NVRTC's C ABI that kgate-compile calls, declared here so that kgate builds without a toolkit.
// A test compares it with the installed headers. Both libraries are found with dlopen.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kgate::nvjitlink {

using Handle = struct nvJitLinkOpaque*;
constexpr int kInputPtx = 2;
constexpr int kErrorPtxCompile = 4;

using Create = int(Handle*, uint32_t option_count, const char** options);
using AddData = int(Handle, int input_type, const void* data, size_t size, const char* name);
using Complete = int(Handle);
using Destroy = int(Handle*);
using GetSize = int(Handle, size_t*);
using GetBytes = int(Handle, void*);
using Version = int(unsigned* major, unsigned* minor);

inline const char* result_name(int code) {
  switch (code) {
    case 1: return "unrecognized option";
    case 2: return "missing -arch";
    case 3: return "invalid input";
    case kErrorPtxCompile: return "PTX does not compile";
    case 6: return "internal error";
    case 13: return "architecture mismatch";
    case 16: return "unrecognized -arch";
    case 17: return "unsupported -arch";
    default: return "see nvJitLinkResult";
  }
}

}  // namespace kgate::nvjitlink

namespace kgate::nvrtc {

using Program = struct nvrtcOpaque*;

using Create = int(Program*, const char* source, const char* name, int headers, const char* const* texts,
                   const char* const* names);
using Destroy = int(Program*);
using Compile = int(Program, int option_count, const char* const* options);
using GetSize = int(Program, size_t*);
using GetBytes = int(Program, char*);
using Version = int(int* major, int* minor);

}  // namespace kgate::nvrtc
