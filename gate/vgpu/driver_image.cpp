// Tells module images apart, and turns the reader's failures into the codes of the driver's JIT.
#include "vgpu/driver_image.h"

#include <charconv>
#include <cstring>

namespace kgate::vgpu {

ImageKind image_kind(const void* image) {
  // Byte by byte up to the first difference: a PTX text may be shorter than a magic number.
  auto starts_with = [&](const char* magic) { return std::strncmp(static_cast<const char*>(image), magic, 4) == 0; };
  if (starts_with("\x7f" "ELF")) return ImageKind::cubin;
  if (starts_with("\x50\xed\x55\xba") || starts_with("\xb1\x43\x62\x46")) return ImageKind::fatbin;
  return ImageKind::ptx;
}

int target_of(std::string_view ptx) {
  size_t at = ptx.find(".target");
  if (at == std::string_view::npos) return 0;
  at = ptx.find("sm_", at);
  if (at == std::string_view::npos) return 0;
  int sm = 0;
  std::from_chars(ptx.data() + at + 3, ptx.data() + ptx.size(), sm);
  return sm;
}

gpu::CUresult load_error(const Failure& failure) {
  if (failure.what.starts_with("Unsupported .version")) return gpu::CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  if (failure.what.starts_with("Unsupported .target")) return gpu::CUDA_ERROR_NO_BINARY_FOR_GPU;
  return gpu::CUDA_ERROR_INVALID_PTX;
}

uint32_t line_of(std::string_view where) {
  size_t at = where.rfind("line ");
  if (at == std::string_view::npos) return 0;
  uint32_t line = 0;
  std::from_chars(where.data() + at + 5, where.data() + where.size(), line);
  return line;
}

}  // namespace kgate::vgpu
