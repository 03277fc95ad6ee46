// The largest finite values are those of the encodings in support/float_formats.h.
#include "workload/element.h"

#include <array>
#include <cfloat>

namespace kgate {

namespace {
constexpr double kMaxI64 = 9223372036854774784.0;   // the largest double below 2^63
constexpr double kMaxU64 = 18446744073709549568.0;  // the largest double below 2^64
constexpr double kMaxBf16 = 3.3895313892515355e38;
constexpr double kMaxTf32 = 3.4011621342146535e38;

constexpr auto kFloating = ElementKind::floating;
constexpr auto kInteger = ElementKind::integer;

constexpr std::array kElements = {
    Element{"f64", 8, kFloating, -DBL_MAX, DBL_MAX},
    Element{"f32", 4, kFloating, -FLT_MAX, FLT_MAX},
    Element{"tf32", 4, kFloating, -kMaxTf32, kMaxTf32},
    Element{"f16", 2, kFloating, -65504, 65504},
    Element{"bf16", 2, kFloating, -kMaxBf16, kMaxBf16},
    Element{"e4m3", 1, kFloating, -448, 448},
    Element{"e5m2", 1, kFloating, -57344, 57344},
    Element{"i8", 1, kInteger, -128, 127},
    Element{"i16", 2, kInteger, -32768, 32767},
    Element{"i32", 4, kInteger, -2147483648.0, 2147483647},
    Element{"i64", 8, kInteger, -9223372036854775808.0, kMaxI64},
    Element{"u8", 1, kInteger, 0, 255},
    Element{"u16", 2, kInteger, 0, 65535},
    Element{"u32", 4, kInteger, 0, 4294967295.0},
    Element{"u64", 8, kInteger, 0, kMaxU64},
    Element{"bool", 1, ElementKind::boolean, 0, 1},
};
}  // namespace

const Element* element_named(std::string_view name) {
  for (const Element& element : kElements)
    if (name == element.name) return &element;
  return nullptr;
}

std::vector<std::string> element_names() {
  std::vector<std::string> names;
  for (const Element& element : kElements) names.emplace_back(element.name);
  return names;
}

}  // namespace kgate
