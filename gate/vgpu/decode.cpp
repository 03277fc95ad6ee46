// Layout of registers and frames, and operands. Registers, locals and arguments of every function that the entry may
// call have places of their own: without recursion (which is refused) a frame needs no stack.
#include "vgpu/decode.h"

#include <algorithm>

#include "vgpu/handlers.h"

namespace kgate::vgpu {

using Kind = ptx::Operand::Kind;
using ptx::type_size;

namespace {

constexpr uint32_t kMostRegisterBytes = 1u << 24;
constexpr uint32_t kMostLocalBytes = 1u << 24;

uint32_t register_width(Type type) { return std::max<uint32_t>(type_size(type), 2); }

const std::map<std::string, SpecialKind, std::less<>>& special_names() {
  static const std::map<std::string, SpecialKind, std::less<>> kNames{
      {"%tid.x", SpecialKind::tid_x},
      {"%tid.y", SpecialKind::tid_y},
      {"%tid.z", SpecialKind::tid_z},
      {"%ntid.x", SpecialKind::ntid_x},
      {"%ntid.y", SpecialKind::ntid_y},
      {"%ntid.z", SpecialKind::ntid_z},
      {"%ctaid.x", SpecialKind::ctaid_x},
      {"%ctaid.y", SpecialKind::ctaid_y},
      {"%ctaid.z", SpecialKind::ctaid_z},
      {"%nctaid.x", SpecialKind::nctaid_x},
      {"%nctaid.y", SpecialKind::nctaid_y},
      {"%nctaid.z", SpecialKind::nctaid_z},
      {"%laneid", SpecialKind::laneid},
      {"%warpid", SpecialKind::warpid},
      {"%nwarpid", SpecialKind::nwarpid},
      {"%smid", SpecialKind::smid},
      {"%nsmid", SpecialKind::nsmid},
      {"%gridid", SpecialKind::gridid},
      {"%lanemask_eq", SpecialKind::mask_eq},
      {"%lanemask_le", SpecialKind::mask_le},
      {"%lanemask_lt", SpecialKind::mask_lt},
      {"%lanemask_ge", SpecialKind::mask_ge},
      {"%lanemask_gt", SpecialKind::mask_gt},
      {"%dynamic_smem_size", SpecialKind::dynamic_shared},
      {"%total_smem_size", SpecialKind::total_shared},
      {"%aggr_smem_size", SpecialKind::total_shared},
      {"%is_explicit_cluster", SpecialKind::zero},
      {"%cluster_ctarank", SpecialKind::zero},
      {"%cluster_nctarank", SpecialKind::one},
      {"%cluster_ctaid.x", SpecialKind::zero},
      {"%cluster_ctaid.y", SpecialKind::zero},
      {"%cluster_ctaid.z", SpecialKind::zero},
      {"%cluster_nctaid.x", SpecialKind::one},
      {"%cluster_nctaid.y", SpecialKind::one},
      {"%cluster_nctaid.z", SpecialKind::one},
      {"%clusterid.x", SpecialKind::ctaid_x},
      {"%clusterid.y", SpecialKind::ctaid_y},
      {"%clusterid.z", SpecialKind::ctaid_z},
      {"%nclusterid.x", SpecialKind::nctaid_x},
      {"%nclusterid.y", SpecialKind::nctaid_y},
      {"%nclusterid.z", SpecialKind::nctaid_z},
      {"%tid", SpecialKind::tid_x},
      {"%ntid", SpecialKind::ntid_x},
      {"%ctaid", SpecialKind::ctaid_x},
      {"%nctaid", SpecialKind::nctaid_x},
  };
  return kNames;
}

}  // namespace

bool has(const ptx::Statement& s, std::string_view modifier) {
  return std::find(s.modifiers.begin(), s.modifiers.end(), modifier) != s.modifiers.end();
}

Decoder::Decoder(const ptx::Module& module, const ptx::Function& entry, const std::vector<uint64_t>& addresses)
    : module_(module), entry_(entry), addresses_(addresses), code_(std::make_unique<Code>()) {}

std::unique_ptr<Code> Decoder::run() {
  code_->module = &module_;
  code_->entry = &entry_;
  code_->register_bytes = kFirstFree;
  code_->static_shared = entry_.static_shared;
  shared_ = ptx::shared_layout(module_, entry_);
  uint32_t total = 0;
  for (const ptx::Function* function : ptx::reachable(module_, entry_)) {
    if (function->is_declaration) continue;
    lay_out(*function);
    frames_.back().first = total;
    total += static_cast<uint32_t>(function->statements.size()) + 1;
  }
  code_->insns.resize(total);
  code_->statements.resize(total);
  for (const Frame& frame : frames_) decode_function(frame);
  code_->local_bytes = (code_->local_bytes + 15) / 16 * 16;
  return std::move(code_);
}

uint32_t Decoder::new_register(uint32_t width) {
  if (width == 0) {  // a predicate: sixteen share a line
    if (next_predicate_ == predicates_end_) {
      next_predicate_ = code_->register_bytes;
      predicates_end_ = next_predicate_ + 64;
      code_->register_bytes += 64;
    }
    next_predicate_ += 4;
    return next_predicate_ - 4;
  }
  uint32_t offset = code_->register_bytes;
  if (offset >= kMostRegisterBytes)
    throw Error(Exit::bad_input, "'" + entry_.name + "' uses more registers than the virtual GPU has");
  code_->register_bytes += width * 32;
  return offset;
}

void Decoder::lay_out(const ptx::Function& function) {
  Frame frame;
  frame.function = &function;
  for (const ptx::Register& reg : function.registers) {
    bool is_predicate = reg.type == Type::pred;
    frame.width.push_back(is_predicate ? 0 : register_width(reg.type));
    frame.offset.push_back(new_register(frame.width.back()));
  }
  auto in_local = [&](uint64_t size, uint32_t align) {
    align = std::max<uint32_t>(align, 1);
    uint64_t offset = (uint64_t{code_->local_bytes} + align - 1) / align * align;
    if (offset + size > kMostLocalBytes)
      throw Error(Exit::bad_input, "'" + entry_.name + "' uses more than 16 MiB of local memory");
    code_->local_bytes = static_cast<uint32_t>(offset + size);
    return static_cast<uint32_t>(offset);
  };
  for (const ptx::Variable& variable : function.variables) {
    uint32_t offset = 0;
    if (variable.space == ptx::Space::shared) {
      for (const ptx::SharedSlot& slot : shared_) {
        if (slot.variable == &variable) offset = slot.offset;
      }
    } else {
      offset = in_local(variable.size, variable.align);
    }
    frame.variable.push_back(offset);
  }
  if (!function.is_entry) {
    for (const ptx::Param& param : function.params) frame.param.push_back(in_local(param.size, param.align));
    for (const ptx::Param& param : function.returns) frame.param.push_back(in_local(param.size, param.align));
    frame.return_register = new_register(8);
  }
  frames_.push_back(std::move(frame));
}

void Decoder::decode_function(const Frame& frame) {
  frame_ = &frame;
  const auto& statements = frame.function->statements;
  for (size_t i = 0; i < statements.size(); ++i) {
    Insn& out = code_->insns[frame.first + i];
    const S& s = statements[i];
    code_->statements[frame.first + i] = &s;
    try {
      decode_statement(s, out);
    } catch (const Unsupported& reason) {
      out = Insn{};
      extra(out).text = "not executed here: " + reason.what;
      out.handler = unsupported_handler();
    }
    if (s.guard >= 0) {
      out.guard = frame.offset[static_cast<size_t>(s.guard)];
      out.guard_flip = s.guard_negated ? ~0u : 0;
    }
  }
  Insn& end = code_->insns[frame.first + statements.size()];
  end.handler = frame.function->is_entry ? exit_handler() : return_handler();
  end.a = frame.return_register;
}

void Decoder::decode_statement(const S& s, Insn& out) {
  if (control(s, out) || memory(s, out) || collective(s, out) || arithmetic(s, out)) return;
  throw Unsupported{"'" + s.opcode + "'"};
}

void Decoder::need(const S& s, size_t operands) const { need(s, operands, operands); }
void Decoder::need(const S& s, size_t least, size_t most) const {
  if (s.operands.size() < least || s.operands.size() > most) {
    throw Unsupported{"'" + s.opcode + "' with " + std::to_string(s.operands.size()) + " operands"};
  }
}

Extra& Decoder::extra(Insn& out) {
  code_->extras.emplace_back();
  out.extra = &code_->extras.back();
  return code_->extras.back();
}

uint32_t Decoder::width_of(const O& o) const { return o.kind == Kind::reg ? frame_->width[o.index] : 0; }

uint32_t Decoder::destination(const O& o, uint32_t width) {
  uint32_t actual = 0;
  uint32_t offset = any_destination(o, width, actual);
  if (actual != width) throw Unsupported{"a result of " + std::to_string(width) + " bytes in '" + o.name + "'"};
  return offset;
}

uint32_t Decoder::any_destination(const O& o, uint32_t least, uint32_t& width) {
  if (o.kind == Kind::sink) {
    width = std::max<uint32_t>(least, 2);
    return new_register(width);
  }
  if (o.kind != Kind::reg || o.negated || width_of(o) < std::max<uint32_t>(least, 1)) {
    throw Unsupported{"a result of " + std::to_string(least) + " bytes in '" + o.name + "'"};
  }
  width = width_of(o);
  return frame_->offset[o.index];
}

uint32_t Decoder::source(const O& o, uint32_t width, Type type) {
  switch (o.kind) {
    case Kind::reg:
      if (width_of(o) != width || o.negated)
        throw Unsupported{"an operand of " + std::to_string(width) + " bytes in '" + o.name + "'"};
      return frame_->offset[o.index];
    case Kind::special:
      return special(o, width);
    case Kind::integer: {
      if (type == Type::f32)
        return constant(width, std::bit_cast<uint32_t>(static_cast<float>(static_cast<int64_t>(o.bits))));
      if (type == Type::f64)
        return constant(width, std::bit_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(o.bits))));
      return constant(width, o.bits);
    }
    case Kind::real: {
      bool want_double = width == 8;
      uint64_t bits = o.bits;
      if (width < 4) throw Unsupported{"a float immediate for a 16-bit operand"};
      if (want_double && o.real_bytes == 4)
        bits = std::bit_cast<uint64_t>(double{std::bit_cast<float>(static_cast<uint32_t>(bits))});
      if (!want_double && o.real_bytes == 8)
        bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
      return constant(width, bits);
    }
    case Kind::variable:
    case Kind::global:
    case Kind::param:
      if (width < 4) throw Unsupported{"an address in " + std::to_string(width) + " bytes"};
      return constant(width, symbol_value(o));
    case Kind::function:
      throw Unsupported{"the address of a function"};
    default:
      throw Unsupported{"operand '" + o.name + "'"};
  }
}

uint32_t Decoder::any_source(const O& o, uint32_t least, uint32_t& width) {
  if (o.kind == Kind::reg) {
    width = width_of(o);
    if (width < least || width == 0 || o.negated)
      throw Unsupported{"an operand of " + std::to_string(least) + " bytes in '" + o.name + "'"};
    return frame_->offset[o.index];
  }
  width = std::max<uint32_t>(least, 2);
  return source(o, width);
}

uint32_t Decoder::predicate_source(const O& o, int64_t& flip) {
  if (o.kind == Kind::integer) {
    flip = o.bits != 0 ? 0 : ~int64_t{0};
    return kAllOnes;
  }
  bool fine = o.kind == Kind::reg && frame_->function->registers[o.index].type == Type::pred;
  if (!fine) throw Unsupported{"'" + o.name + "' where a predicate belongs"};
  flip = o.negated ? ~int64_t{0} : 0;
  return frame_->offset[o.index];
}

uint32_t Decoder::predicate_destination(const O& o) {
  if (o.kind == Kind::sink) return new_register(0);
  int64_t flip = 0;
  if (o.kind != Kind::reg) throw Unsupported{"'" + o.name + "' where a predicate belongs"};
  uint32_t offset = predicate_source(o, flip);
  if (flip != 0) throw Unsupported{"a negated result"};
  return offset;
}

uint32_t Decoder::constant(uint32_t width, uint64_t value) {
  if (width < 8) value &= (uint64_t{1} << (width * 8)) - 1;
  auto [known, fresh] = constants_.emplace(std::pair{width, value}, 0);
  if (fresh) {
    known->second = new_register(width);
    code_->constants.push_back({known->second, width, value});
  }
  return known->second;
}

uint32_t Decoder::special(const O& o, uint32_t width) {
  auto found = special_names().find(o.name);
  if (found == special_names().end()) throw Unsupported{"special register '" + o.name + "'"};
  auto [known, fresh] = specials_.emplace(std::pair{o.name, width}, 0);
  if (fresh) {
    known->second = new_register(width);
    code_->specials.push_back({known->second, width, found->second});
  }
  return known->second;
}

uint64_t Decoder::symbol_value(const O& o) const {
  uint64_t offset = static_cast<uint64_t>(o.offset);
  if (o.kind == Kind::param) {
    if (frame_->function->is_entry) return kParamWindow + frame_->function->params[o.index].offset + offset;
    return kLocalWindow + frame_->param[o.index] + offset;
  }
  if (o.kind == Kind::variable) {
    ptx::Space space = frame_->function->variables[o.index].space;
    if (space == ptx::Space::global || space == ptx::Space::constant)
      throw Unsupported{"a .global variable inside a function"};
    uint64_t window = space == ptx::Space::param ? kLocalWindow : 0;
    return window + frame_->variable[o.index] + offset;
  }
  const ptx::Variable& variable = module_.globals[o.index];
  if (variable.space == ptx::Space::shared) {
    for (const ptx::SharedSlot& slot : shared_) {
      if (slot.variable == &variable) return slot.offset + offset;
    }
  }
  if (variable.space == ptx::Space::local) throw Unsupported{"a .local variable of a module"};
  if (addresses_[o.index] == 0) throw Unsupported{"'" + o.name + "', which is not defined in this module"};
  return addresses_[o.index] + offset;
}

}  // namespace kgate::vgpu
