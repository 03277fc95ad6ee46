// From a form to its handler, within one variant.
#include "vgpu/ops_lanes.h"

namespace kgate::vgpu::KGATE_ISA {

namespace {

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) {
    if (op == name) return true;
  }
  return false;
}

}  // namespace

Handler select(const Form& form) {
  std::string_view op = form.op;
  if (is_one_of(op, {"mov", "pack", "unpack"})) return select_move(form);
  if (op == "cvt") return select_convert(form);
  if (is_one_of(op, {"setp", "set", "selp", "slct"}) || form.type == Type::pred) return select_compare(form);
  if (is_one_of(op, {"ex2", "lg2", "sin", "cos", "tanh", "rsqrt"})) return select_math(form);
  if (is_one_of(op, {"popc", "clz", "brev", "bfind", "bfe", "bfi", "prmt", "lop3", "shf"})) return select_bits(form);
  switch (form.type) {
    case Type::f32:
    case Type::f64:
      return select_float(form);
    case Type::f16:
    case Type::f16x2:
    case Type::bf16:
    case Type::bf16x2:
      return select_half(form);
    default:
      break;
  }
  if (is_one_of(op, {"mul", "mad", "mul24", "mad24", "div", "rem", "addc", "subc", "madc", "dp4a", "dp2a"}) ||
      form.cc) {
    return select_wide_integer(form);
  }
  return select_integer(form);
}

}  // namespace kgate::vgpu::KGATE_ISA
