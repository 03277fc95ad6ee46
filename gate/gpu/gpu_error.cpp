// GpuError's one line of text.
#include "gpu/driver.h"

namespace kgate::gpu {

GpuError::GpuError(int code, std::string call, std::string name, std::string detail)
    : code(code), call(std::move(call)), name(std::move(name)), detail(std::move(detail)) {
  text = this->call + ": " + this->name + " (" + std::to_string(code) + ")";
  if (!this->detail.empty()) text += ": " + this->detail;
}

bool GpuError::sticky() const { return result_is_sticky(code); }

}  // namespace kgate::gpu
