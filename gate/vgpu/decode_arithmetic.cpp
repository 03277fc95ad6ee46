// Instructions that compute: their forms, their operands' widths, their handlers.
#include <algorithm>

#include "vgpu/convert.h"
#include "vgpu/decode.h"
#include "vgpu/handlers.h"

namespace kgate::vgpu {

using Kind = ptx::Operand::Kind;
using ptx::type_size;

namespace {

template <class E>
using Names = std::map<std::string_view, E>;

const Names<Round>& rounds() {
  static const Names<Round> kNames{{"rn", Round::rn},   {"rz", Round::rz},   {"rm", Round::rm},
                                   {"rp", Round::rp},   {"rna", Round::rna}, {"rni", Round::rni},
                                   {"rzi", Round::rzi}, {"rmi", Round::rmi}, {"rpi", Round::rpi}};
  return kNames;
}

const Names<Compare>& compares() {
  static const Names<Compare> kNames{
      {"eq", Compare::eq},   {"ne", Compare::ne},   {"lt", Compare::lt},   {"le", Compare::le},   {"gt", Compare::gt},
      {"ge", Compare::ge},   {"lo", Compare::lo},   {"ls", Compare::ls},   {"hi", Compare::hi},   {"hs", Compare::hs},
      {"equ", Compare::equ}, {"neu", Compare::neu}, {"ltu", Compare::ltu}, {"leu", Compare::leu}, {"gtu", Compare::gtu},
      {"geu", Compare::geu}, {"num", Compare::num}, {"nan", Compare::nan}};
  return kNames;
}

const Names<Bool>& bools() {
  static const Names<Bool> kNames{{"and", Bool::and_}, {"or", Bool::or_}, {"xor", Bool::xor_}};
  return kNames;
}

const Names<bool Form::*>& switches() {
  static const Names<bool Form::*> kNames{{"ftz", &Form::ftz},   {"sat", &Form::sat}, {"satfinite", &Form::satfinite},
                                          {"relu", &Form::relu}, {"NaN", &Form::nan}, {"approx", &Form::approx},
                                          {"full", &Form::full}, {"cc", &Form::cc},   {"clamp", &Form::clamp},
                                          {"wrap", &Form::wrap}};
  return kNames;
}

constexpr std::string_view kModes[] = {"l", "r", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16", "shiftamt"};

enum class Shape { one, two, three, shift, count, extract, insert };

const Names<Shape>& shapes() {
  static const Names<Shape> kNames{
      {"add", Shape::two},    {"sub", Shape::two},     {"mul", Shape::two},     {"mul24", Shape::two},
      {"div", Shape::two},    {"rem", Shape::two},     {"min", Shape::two},     {"max", Shape::two},
      {"and", Shape::two},    {"or", Shape::two},      {"xor", Shape::two},     {"copysign", Shape::two},
      {"neg", Shape::one},    {"abs", Shape::one},     {"not", Shape::one},     {"cnot", Shape::one},
      {"brev", Shape::one},   {"ex2", Shape::one},     {"lg2", Shape::one},     {"sin", Shape::one},
      {"cos", Shape::one},    {"tanh", Shape::one},    {"rcp", Shape::one},     {"rsqrt", Shape::one},
      {"sqrt", Shape::one},   {"fma", Shape::three},   {"mad", Shape::three},   {"mad24", Shape::three},
      {"sad", Shape::three},  {"prmt", Shape::three},  {"shf", Shape::three},   {"dp4a", Shape::three},
      {"dp2a", Shape::three}, {"shl", Shape::shift},   {"shr", Shape::shift},   {"popc", Shape::count},
      {"clz", Shape::count},  {"bfind", Shape::count}, {"bfe", Shape::extract}, {"bfi", Shape::insert}};
  return kNames;
}

}  // namespace

Form Decoder::form_of(const S& s) const {
  Form form;
  form.op = s.opcode;
  bool compares_values = form.op == "setp" || form.op == "set";
  for (const std::string& modifier : s.modifiers) {
    std::string_view name = modifier;
    if (Type type = ptx::type_named(name); type != Type::none) {
      if (form.type == Type::none) form.type = type;
      form.from = type;
    } else if (auto round = rounds().find(name); round != rounds().end()) {
      form.round = round->second;
    } else if (auto compare = compares().find(name); compares_values && compare != compares().end()) {
      form.compare = compare->second;
    } else if (auto combine = bools().find(name); compares_values && combine != bools().end()) {
      form.combine = combine->second;
    } else if (auto flag = switches().find(name); flag != switches().end()) {
      form.*flag->second = true;
    } else if (name == "lo" || name == "hi" || name == "wide") {
      form.part = name == "lo" ? Part::lo : name == "hi" ? Part::hi : Part::wide;
    } else if (std::find(std::begin(kModes), std::end(kModes), name) != std::end(kModes)) {
      form.mode = name;
    } else {
      throw Unsupported{"'" + s.opcode + "' with ." + modifier};
    }
  }
  if (form.type == Type::none) throw Unsupported{"'" + s.opcode + "' without a type"};
  return form;
}

void Decoder::choose(const Form& form, Insn& out) const {
  out.handler = op_table().select(form);
  if (!out.handler) {
    std::string shown = std::string(form.op) + " on ." + ptx::type_name(form.type);
    if (form.from != form.type) shown += std::string(" and .") + ptx::type_name(form.from);
    throw Unsupported{"this form of " + shown};
  }
}

bool Decoder::arithmetic(const S& s, Insn& out) {
  if (s.opcode == "mov") return mov(s, out), true;
  if (s.opcode == "cvt") return cvt(s, out), true;
  if (s.opcode == "lop3") {
    need(s, 5);
    if (!has(s, "b32") || s.modifiers.size() != 1 || s.operands[4].kind != Kind::integer)
      throw Unsupported{"this form of lop3"};
    out.d = destination(s.operands[0], 4);
    out.a = source(s.operands[1], 4), out.b = source(s.operands[2], 4), out.c = source(s.operands[3], 4);
    out.imm = static_cast<int64_t>(s.operands[4].bits & 0xff);
    Form form;
    form.op = "lop3";
    return choose(form, out), true;
  }
  bool predicates = s.opcode == "and" || s.opcode == "or" || s.opcode == "xor" || s.opcode == "not";
  if (predicates && has(s, "pred")) {
    need(s, s.opcode == "not" ? 2 : 3);
    int64_t flip_a = 0, flip_b = 0;
    out.d = predicate_destination(s.operands[0]);
    out.a = predicate_source(s.operands[1], flip_a);
    if (s.opcode != "not") out.b = predicate_source(s.operands[2], flip_b);
    out.flags = (flip_a ? 1u : 0u) | (flip_b ? 2u : 0u);
    return choose(form_of(s), out), true;
  }
  static const std::string_view kOthers[] = {"setp", "set", "selp", "slct", "addc", "subc", "madc"};
  auto shape = shapes().find(s.opcode);
  bool other = std::find(std::begin(kOthers), std::end(kOthers), s.opcode) != std::end(kOthers);
  if (shape == shapes().end() && !other) return false;
  Form form = form_of(s);
  uint32_t width = type_size(form.type);
  if (width < 2 || width > 8) throw Unsupported{"'" + s.opcode + "' on ." + ptx::type_name(form.type)};
  if (form.op == "setp" || form.op == "set") return setp(s, form, out), true;
  if (form.cc || form.op == "addc" || form.op == "subc" || form.op == "madc") return carry(s, form, out), true;
  const auto& o = s.operands;
  auto src = [&](size_t i, uint32_t w) { return source(o.at(i), w, form.type); };
  if (form.op == "selp" || form.op == "slct") {
    need(s, 4);
    out.d = destination(o[0], width);
    out.a = src(1, width), out.b = src(2, width);
    out.c = form.op == "selp" ? predicate_source(o[3], out.imm) : source(o[3], 4, form.from);
    return choose(form, out), true;
  }
  bool dot = form.op == "dp4a" || form.op == "dp2a";
  uint32_t wide = form.part == Part::wide ? width * 2 : width;
  switch (shape->second) {
    case Shape::one:
      need(s, 2);
      out.a = src(1, width);
      break;
    case Shape::two:
      need(s, 3);
      out.a = src(1, width), out.b = src(2, width);
      break;
    case Shape::three:
      need(s, 4);
      out.a = src(1, width), out.b = src(2, width), out.c = src(3, dot ? 4 : wide);
      break;
    case Shape::shift:
      need(s, 3);
      out.a = src(1, width), out.b = source(o[2], 4);
      break;
    case Shape::count:
      need(s, 2);
      out.a = src(1, width), wide = 4;
      break;
    case Shape::extract:
      need(s, 4);
      out.a = src(1, width), out.b = source(o[2], 4), out.c = source(o[3], 4);
      break;
    case Shape::insert:
      need(s, 5);
      out.a = src(1, width), out.b = src(2, width), out.c = source(o[3], 4), out.imm = source(o[4], 4);
      break;
  }
  out.d = destination(o[0], wide);
  choose(form, out);
  return true;
}

void Decoder::carry(const S& s, const Form& form, Insn& out) {
  bool multiply = form.op == "mad" || form.op == "madc";
  uint32_t width = type_size(form.type);
  need(s, multiply ? 4 : 3);
  out.d = destination(s.operands[0], width);
  out.a = source(s.operands[1], width), out.b = source(s.operands[2], width);
  if (multiply) out.c = source(s.operands[3], width);
  bool in = form.op.back() == 'c' && form.op != "mad";
  out.flags = (in ? 1u : 0u) | (form.cc ? 2u : 0u) | (form.op.starts_with("sub") ? 4u : 0u);
  if (multiply) {
    if (form.part != Part::lo && form.part != Part::hi) throw Unsupported{"this form of " + s.opcode};
    out.flags |= form.part == Part::lo ? 8u : 16u;
  }
  choose(form, out);
}

void Decoder::setp(const S& s, const Form& form, Insn& out) {
  need(s, form.combine == Bool::none ? 3 : 4);
  const O& result = s.operands[0];
  bool pairs = form.from == Type::f16x2 || form.from == Type::bf16x2;
  uint32_t width = type_size(form.from), second = 0;
  if (form.op == "set") {
    if (form.type != Type::u32 && form.type != Type::s32 && form.type != Type::b32 && form.type != Type::f32) {
      throw Unsupported{std::string("set to .") + ptx::type_name(form.type)};
    }
    out.d = destination(result, 4);
    second = form.type == Type::f32;
  } else if (result.kind == Kind::pair) {
    out.d = predicate_destination(result.items[0]);
    second = predicate_destination(result.items[1]);
  } else {
    out.d = predicate_destination(result);
    if (pairs) throw Unsupported{"setp on pairs with one result"};
  }
  out.a = source(s.operands[1], width, form.from), out.b = source(s.operands[2], width, form.from);
  if (form.combine != Bool::none) out.c = predicate_source(s.operands[3], out.imm);
  out.flags = static_cast<uint32_t>(form.combine) | second << 8;
  out.hint = static_cast<uint32_t>(form.compare);
  choose(form, out);
}

void Decoder::mov(const S& s, Insn& out) {
  need(s, 2);
  Form form = form_of(s);
  const O &to = s.operands[0], &from = s.operands[1];
  if (form.type == Type::pred) {
    out.d = predicate_destination(to);
    int64_t flip = 0;
    out.a = predicate_source(from, flip);
    if (flip != 0) {
      form.op = "not";
      out.flags = 0;
    }
    return choose(form, out);
  }
  uint32_t width = type_size(form.type);
  if (to.kind == Kind::vector || from.kind == Kind::vector) {
    const O& vector = to.kind == Kind::vector ? to : from;
    size_t count = vector.items.size();
    bool packing = from.kind == Kind::vector;
    if ((packing && to.kind == Kind::vector) || count < 2 || width % count != 0) throw Unsupported{"this vector mov"};
    uint32_t element = width / static_cast<uint32_t>(count);
    Extra& more = extra(out);
    for (const O& item : vector.items) {
      uint32_t actual = 0;
      bool sink = item.kind == Kind::sink && !packing;
      more.regs.push_back(sink      ? 0
                          : packing ? any_source(item, element, actual)
                                    : any_destination(item, element, actual));
      more.widths.push_back(static_cast<uint8_t>(sink ? 0 : actual));
    }
    out.flags = element;
    (packing ? out.d : out.a) = packing ? destination(to, width) : source(from, width);
    form.op = packing ? "pack" : "unpack";
    return choose(form, out);
  }
  bool is_clock = from.kind == Kind::special &&
                  (from.name.starts_with("%clock") || from.name.starts_with("%globaltimer")) &&
                  from.name != "%clock_hi";
  if (is_clock) {
    out.d = destination(to, width);
    if (width != 4 && width != 8) throw Unsupported{"a clock of this width"};
    out.handler = clock_handler(width == 8);
    return;
  }
  out.d = destination(to, width);
  out.a = source(from, width, form.type);
  choose(form, out);
}

void Decoder::cvt(const S& s, Insn& out) {
  need(s, 2, 3);
  Form form = form_of(s);
  uint32_t to_size = type_size(form.type), from_size = type_size(form.from), to = 0, from = 0;
  bool two = s.operands.size() == 3;
  bool packs =
      form.type == Type::f16x2 || form.type == Type::bf16x2 || form.type == Type::e4m3x2 || form.type == Type::e5m2x2;
  if (two != (packs && form.from == Type::f32)) throw Unsupported{"cvt with these operands"};
  out.d = any_destination(s.operands[0], to_size, to);
  out.a = any_source(s.operands[1], from_size, from);
  if (two) out.b = source(s.operands[2], from_size, form.from);
  if (packs && (to != to_size || from != from_size)) throw Unsupported{"a packed cvt between these registers"};
  form.exact = to == to_size && from == from_size;
  out.flags = from | to << 8;
  uint32_t modifiers = 0;
  if (form.ftz) modifiers |= kConvertFtz;
  if (form.sat) modifiers |= kConvertSat;
  if (form.relu) modifiers |= kConvertRelu;
  if (form.satfinite) modifiers |= kConvertSatfinite;
  out.imm = modifiers | static_cast<uint32_t>(form.round) << 16;
  choose(form, out);
}

}  // namespace kgate::vgpu
