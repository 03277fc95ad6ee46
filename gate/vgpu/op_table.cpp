// Which variant of the arithmetic handlers runs: AVX2+FMA where the host has it.
#include <cstdlib>
#include <string_view>

#include "vgpu/form.h"

namespace kgate::vgpu {

namespace portable {
Handler select(const Form& form);
}
#if KGATE_HAVE_AVX2_VARIANT
namespace avx2 {
Handler select(const Form& form);
}
#endif

const OpTable& op_table() {
  static const OpTable kPortable{"portable", portable::select};
#if KGATE_HAVE_AVX2_VARIANT
  static const OpTable kAvx2{"avx2", avx2::select};
  static const bool fast = [] {
    const char* forced = std::getenv("KGATE_VGPU_ISA");
    if (forced && std::string_view(forced) == "portable") return false;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("lzcnt");
  }();
  if (fast) return kAvx2;
#endif
  return kPortable;
}

}  // namespace kgate::vgpu
