// Names and sizes of PTX's types: one table.
#include <array>
#include <utility>

#include "candidate/ptx.h"

namespace kgate::ptx {

namespace {

struct Row {
  Type type;
  const char* name;
  uint32_t size;
};

constexpr std::array kRows{
    Row{Type::b8, "b8", 1},         Row{Type::b16, "b16", 2},           Row{Type::b32, "b32", 4},
    Row{Type::b64, "b64", 8},       Row{Type::b128, "b128", 16},        Row{Type::u8, "u8", 1},
    Row{Type::u16, "u16", 2},       Row{Type::u32, "u32", 4},           Row{Type::u64, "u64", 8},
    Row{Type::s8, "s8", 1},         Row{Type::s16, "s16", 2},           Row{Type::s32, "s32", 4},
    Row{Type::s64, "s64", 8},       Row{Type::f16, "f16", 2},           Row{Type::f16x2, "f16x2", 4},
    Row{Type::bf16, "bf16", 2},     Row{Type::bf16x2, "bf16x2", 4},     Row{Type::tf32, "tf32", 4},
    Row{Type::f32, "f32", 4},       Row{Type::f64, "f64", 8},           Row{Type::e4m3, "e4m3", 1},
    Row{Type::e5m2, "e5m2", 1},     Row{Type::e4m3x2, "e4m3x2", 2},     Row{Type::e5m2x2, "e5m2x2", 2},
    Row{Type::u16x2, "u16x2", 4},   Row{Type::s16x2, "s16x2", 4},       Row{Type::pred, "pred", 1},
    Row{Type::opaque, "texref", 8}, Row{Type::opaque, "samplerref", 8}, Row{Type::opaque, "surfref", 8},
};

}  // namespace

Type type_named(std::string_view name) {
  for (const Row& row : kRows) {
    if (name == row.name) return row.type;
  }
  return Type::none;
}

const char* type_name(Type type) {
  for (const Row& row : kRows) {
    if (type == row.type) return row.name;
  }
  return "none";
}

uint32_t type_size(Type type) {
  for (const Row& row : kRows) {
    if (type == row.type) return row.size;
  }
  return 0;
}

}  // namespace kgate::ptx
