#include "candidate/sniff.h"

#include <fmt/format.h>

#include <array>
#include <cctype>

#include "candidate/cubin.h"
#include "candidate/elf_view.h"
#include "support/text.h"

namespace kgate {

namespace {

using namespace std::string_view_literals;

struct Magic {
  std::string_view bytes;
  std::string_view what, hint;
};

constexpr std::string_view kFatbinHint = "extract the cubin or the PTX from it, e.g. with `cuobjdump -xelf all`";

constexpr std::array kForeign{
    Magic{"\x50\xed\x55\xba"sv, "a fatbin", kFatbinHint},
    Magic{"\xb1\x43\x62\x46"sv, "a fatbin wrapper", kFatbinHint},
    Magic{"BC\xc0\xde"sv, "LLVM bitcode", "compile it to PTX first, e.g. with `llc -march=nvptx64`"},
    Magic{"\xde\xc0\x17\x0b"sv, "wrapped LLVM bitcode", "compile it to PTX first, e.g. with `llc -march=nvptx64`"},
    Magic{"ML\xefR"sv, "MLIR bytecode", "lower it to PTX first"},
    Magic{"!<arch>\n"sv, "an ar archive", "extract the object, then its cubin or PTX"},
    Magic{"__CLANG_OFFLOAD_BUNDLE__"sv, "a clang offload bundle", "unbundle it first"},
    Magic{"\x1f\x8b"sv, "gzip data", "decompress it first"},
    Magic{"\x28\xb5\x2f\xfd"sv, "zstd data", "decompress it first"},
    Magic{"BZh"sv, "bzip2 data", "decompress it first"},
    Magic{"\xfd" "7zXZ"sv, "xz data", "decompress it first"},
    Magic{"PK\x03\x04"sv, "a zip archive", "extract the kernel first"},
    Magic{"\x03\x02\x23\x07"sv, "SPIR-V", "kgate judges PTX, cubin and CUDA C++"},
    Magic{"SQLite format 3"sv, "a SQLite file", "workloads and traces are no candidates"},
};

Result<CodeKind> sniff_elf(std::string_view bytes) {
  if (bytes.size() < 20) return Failure{"the ELF file is truncated", {}, {}};
  switch (uint16_t machine = load_u16(bytes, 18)) {
    case kMachineCuda: return CodeKind::cubin;
    case 224: return Failure{"unsupported target: AMD GPU code (HSACO)", {}, "kgate judges kernels for NVIDIA GPUs"};
    case 3:
    case 40:
    case 62:
    case 183:
      return Failure{fmt::format("host code (ELF for {}), not a cubin",
                                 machine == 62 ? "x86-64" : machine == 183 ? "AArch64" : machine == 3 ? "x86" : "Arm"),
                     {}, "if it embeds kernels, extract them, e.g. with `cuobjdump -xelf all`"};
    default: return Failure{fmt::format("unsupported target: ELF machine {}", machine), {}, "a cubin has machine 190"};
  }
}

// PTX begins, after comments, with a directive; text with a .version line anywhere is taken for PTX with something in front.
bool looks_like_ptx(std::string_view bytes) {
  for (size_t at = bytes.find(".version"); at != std::string_view::npos; at = bytes.find(".version", at + 1)) {
    size_t begin = bytes.rfind('\n', at);
    begin = begin == std::string_view::npos ? 0 : begin + 1;
    if (trim(bytes.substr(begin, at - begin)).empty() || trim(bytes.substr(begin, at - begin)).ends_with("*/")) return true;
  }
  return false;
}

std::string_view guess_text(std::string_view bytes) {
  auto has = [&](std::string_view word) { return bytes.find(word) != std::string_view::npos; };
  if (has(".amdgcn_target") || has(".amdhsa_")) return "AMD GPU assembly";
  if (has("target triple")) return "LLVM IR";
  if (has("tt.func") || has("ttg.") || has("module attributes")) return "Triton or MLIR text";
  if (has("__global__")) return "CUDA C++ without the suffix .cu";
  if (trim(bytes).starts_with('{')) return "JSON";
  return "text that is not PTX: it has no .version line";
}

bool is_text(std::string_view bytes) {
  for (unsigned char c : bytes.substr(0, 4096))
    if (c < 0x20 && !std::isspace(c)) return false;
  return true;
}

}  // namespace

Result<CodeKind> sniff(std::string_view bytes) {
  if (bytes.empty()) return Failure{"the file is empty", {}, {}};
  if (bytes.starts_with("\x7f" "ELF")) return sniff_elf(bytes);
  for (const auto& magic : kForeign)
    if (bytes.starts_with(magic.bytes)) return Failure{fmt::format("{}, not a kernel", magic.what), {}, std::string(magic.hint)};
  if (looks_like_ptx(bytes)) return CodeKind::ptx;
  std::string hint = "give PTX (.ptx), a cubin, or CUDA C++ (.cu)";
  if (is_text(bytes)) return Failure{trim(bytes).empty() ? "the file is blank" : std::string(guess_text(bytes)), {}, hint};
  return Failure{"neither PTX nor a cubin: unknown binary data", {}, hint};
}

}  // namespace kgate
