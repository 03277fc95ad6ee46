// Instructions that touch memory.
#include <algorithm>

#include "vgpu/access.h"
#include "vgpu/decode.h"
#include "vgpu/handlers.h"

namespace kgate::vgpu {

using Kind = ptx::Operand::Kind;
using ptx::type_size;

namespace {

// Hints and orderings that do not change what this machine does: it runs one instruction after the other, without
// caches.
bool is_hint(std::string_view m) {
  static const std::string_view kHints[] = {"weak", "relaxed", "acquire", "release", "acq_rel", "volatile", "mmio",
                                            "cta",  "gpu",     "sys",     "cluster", "nc",      "ca",       "cg",
                                            "cs",   "cv",      "lu",      "wb",      "wt",      "noftz"};
  return std::find(std::begin(kHints), std::end(kHints), m) != std::end(kHints) || m.starts_with("L1::") ||
         m.starts_with("L2::") || m.starts_with("level::");
}

std::optional<AccessSpace> space_named(std::string_view m) {
  if (m == "global") return AccessSpace::global;
  if (m == "shared" || m == "shared::cta") return AccessSpace::shared;
  if (m == "local") return AccessSpace::local;
  if (m == "const") return AccessSpace::constant;
  if (m == "param" || m == "param::entry" || m == "param::func") return AccessSpace::param;
  return std::nullopt;
}

bool is_signed(Type type) { return type == Type::s8 || type == Type::s16 || type == Type::s32 || type == Type::s64; }

}  // namespace

bool Decoder::memory(const S& s, Insn& out) {
  const std::string& op = s.opcode;
  if (op == "ld" || op == "ldu") return load_store(s, out, false), true;
  if (op == "st") return load_store(s, out, true), true;
  if (op == "atom" || op == "red") return atomic(s, out, op == "red"), true;
  if (op == "cp") return cp(s, out), true;
  if (op == "cvta" || op == "isspacep") return cvta(s, out), true;
  if (op == "prefetch" || op == "prefetchu" || op == "applypriority") {
    if (has(s, "tensormap")) throw Unsupported{"prefetch.tensormap"};
    out.handler = nothing_handler();
    return true;
  }
  if (op == "createpolicy") {
    need(s, 2, 4);
    out.d = destination(s.operands[0], 8);
    out.a = constant(8, 0);
    Form form;
    form.op = "mov";
    form.type = form.from = Type::b64;
    return choose(form, out), true;
  }
  return false;
}

void Decoder::address(const O& o, Insn& out) {
  if (o.kind != Kind::memory || o.items.size() != 1) throw Unsupported{"this address"};
  const O& base = o.items[0];
  out.imm = o.offset;
  if (base.kind == Kind::reg) {
    uint32_t width = width_of(base);
    if (width != 4 && width != 8) throw Unsupported{"an address in '" + base.name + "'"};
    out.a = frame_->offset[base.index];
    if (width == 4) out.flags |= kAddress32;
  } else {
    out.a = source(base, 8);
  }
}

void Decoder::vector(const O& o, Insn& out, uint32_t element, bool store) {
  Extra& more = extra(out);
  for (const O& item : o.items) {
    uint32_t width = 0, offset = 0;
    if (item.kind != Kind::sink)
      offset = store ? any_source(item, element, width) : any_destination(item, element, width);
    else if (store)
      throw Unsupported{"a store of '_'"};
    more.regs.push_back(offset);
    more.widths.push_back(static_cast<uint8_t>(width));
  }
}

void Decoder::load_store(const S& s, Insn& out, bool store) {
  need(s, 2, 3);  // a third one is a cache policy
  AccessSpace space = AccessSpace::generic;
  Type type = Type::none;
  uint32_t count = 1;
  for (const std::string& m : s.modifiers) {
    if (auto named = space_named(m))
      space = *named;
    else if (m == "v2" || m == "v4" || m == "v8")
      count = static_cast<uint32_t>(m[1] - '0');
    else if (Type t = ptx::type_named(m); t != Type::none)
      type = t;
    else if (!is_hint(m))
      throw Unsupported{"'" + s.opcode + "' with ." + m};
  }
  uint32_t element = type_size(type);
  if (type == Type::none || type == Type::pred || element > 8) throw Unsupported{"'" + s.opcode + "' of this type"};
  const O &memory = s.operands[store ? 0 : 1], &written = s.operands[store ? 1 : 0];
  bool single = written.kind == Kind::vector && written.items.size() == 1;  // {%r1}: Triton's inline assembly
  const O& data = single ? written.items[0] : written;
  address(memory, out);
  const O& base = memory.items[0];
  bool frame = base.kind == Kind::variable || base.kind == Kind::param;
  bool kernel_param = space == AccessSpace::param && base.kind == Kind::param && frame_->function->is_entry;
  if (kernel_param && !store) {
    const ptx::Param& param = frame_->function->params[base.index];
    uint64_t at = param.offset + static_cast<uint64_t>(memory.offset);
    if (at > frame_->function->param_bytes || uint64_t{element} * count > frame_->function->param_bytes - at) {
      throw Unsupported{"a load past the kernel's parameters"};
    }
    out.imm = static_cast<int64_t>(at);
    out.flags = 0;
    out.handler = load_param_handler(element);
  } else {
    if (space == AccessSpace::param && frame && !kernel_param) {
      space = AccessSpace::local;
      O plain = base;
      plain.offset = 0;
      out.a = constant(8, symbol_value(plain) & ~kWindowMask);
    }
    if (store && (space == AccessSpace::constant || kernel_param)) throw Unsupported{"a store to read-only memory"};
    out.flags |= static_cast<uint32_t>(space) << kSpaceShift;
    out.handler = store ? store_handler(element) : load_handler(element);
  }
  out.flags |= count | (is_signed(type) ? kSignExtend : 0);
  if (data.kind == Kind::vector) {
    if (data.items.size() != count || count == 1)
      throw Unsupported{"a vector of " + std::to_string(data.items.size()) + " elements"};
    return vector(data, out, element, store);
  }
  if (count != 1) throw Unsupported{"a vector access of one register"};
  uint32_t width = 0;
  out.d = store ? any_source(data, element, width) : any_destination(data, element, width);
  out.flags |= width << kWidthShift;
}

void Decoder::atomic(const S& s, Insn& out, bool reduction) {
  static const std::string_view kNames[] = {"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"};
  AccessSpace space = AccessSpace::generic;
  Type type = Type::none;
  std::string_view name;
  for (const std::string& m : s.modifiers) {
    if (auto named = space_named(m))
      space = *named;
    else if (Type t = ptx::type_named(m); t != Type::none)
      type = t;
    else if (std::find(std::begin(kNames), std::end(kNames), m) != std::end(kNames))
      name = m;
    else if (!is_hint(m))
      throw Unsupported{"'" + s.opcode + "' with ." + m};
  }
  if (space != AccessSpace::generic && space != AccessSpace::global && space != AccessSpace::shared)
    throw Unsupported{"an atomic in this space"};
  size_t at = reduction ? 0 : 1, operands = (name == "cas" ? 3 : 2) + at;
  need(s, operands, operands + 1);  // one more is a cache policy
  uint32_t width = type_size(type);
  out.flags = static_cast<uint32_t>(space) << kSpaceShift;
  address(s.operands[at], out);
  out.b = source(s.operands[at + 1], width, type);
  if (name == "cas") out.c = source(s.operands[at + 2], width, type);
  if (!reduction && s.operands[0].kind != Kind::sink) out.d = destination(s.operands[0], width);
  out.handler = atomic_handler(name, type, has(s, "noftz"));
  if (!out.handler) throw Unsupported{std::string(s.opcode) + "." + std::string(name) + " on ." + ptx::type_name(type)};
}

// The copy happens when it is issued; commit and wait then have nothing to do. A kernel that forgets to wait is not
// caught.
void Decoder::cp(const S& s, Insn& out) {
  const auto& m = s.modifiers;
  if (m.empty() || m[0] != "async") throw Unsupported{"'cp' without .async"};
  bool waits = m.size() == 2 && (m[1] == "commit_group" || m[1] == "wait_group" || m[1] == "wait_all");
  if (waits) {
    out.handler = nothing_handler();
    return;
  }
  for (size_t i = 1; i < m.size(); ++i) {
    bool known =
        m[i] == "ca" || m[i] == "cg" || m[i] == "shared" || m[i] == "shared::cta" || m[i] == "global" || is_hint(m[i]);
    if (!known) throw Unsupported{"cp.async." + m[i]};
  }
  need(s, 3, 5);
  const auto& o = s.operands;
  if (o[2].kind != Kind::integer || (o[2].bits != 4 && o[2].bits != 8 && o[2].bits != 16))
    throw Unsupported{"cp.async of this size"};
  uint32_t bytes = static_cast<uint32_t>(o[2].bits), size = constant(4, bytes), ignore = 0;
  size_t left = o.size() - (has(s, "L2::cache_hint") ? 1 : 0);
  for (size_t i = 3; i < left; ++i) {
    bool is_predicate = o[i].kind == Kind::reg && frame_->function->registers[o[i].index].type == Type::pred;
    int64_t flip = 0;
    if (is_predicate)
      ignore = predicate_source(o[i], flip);
    else
      size = source(o[i], 4);
    if (flip != 0) throw Unsupported{"cp.async with a negated predicate"};
  }
  Insn from;
  address(o[1], from);
  if (from.flags & kAddress32) throw Unsupported{"cp.async from a 32-bit address"};
  address(o[0], out);
  if (out.imm < 0 || out.imm > INT32_MAX) throw Unsupported{"cp.async with this displacement"};
  Extra& more = extra(out);
  more.regs = {from.a, ignore};
  more.hidden = bytes;
  out.d = static_cast<uint32_t>(out.imm);
  out.imm = from.imm;
  out.c = size;
  out.flags |= static_cast<uint32_t>(AccessSpace::shared) << kSpaceShift;
  out.handler = copy_async_handler();
}

void Decoder::cvta(const S& s, Insn& out) {
  need(s, 2);
  uint64_t window = 0;
  bool to = false;
  uint32_t width = 8;
  for (const std::string& m : s.modifiers) {
    auto space = space_named(m);
    if (m == "to")
      to = true;
    else if (m == "u32")
      width = 4;
    else if (m == "u64")
      width = 8;
    else if (space == AccessSpace::shared)
      window = kSharedWindow;
    else if (space == AccessSpace::local)
      window = kLocalWindow;
    else if (space == AccessSpace::param)
      window = kParamWindow;
    else if (m == "shared::cluster")
      window = kSharedWindow;  // a cluster has one CTA here
    else if (!space)
      throw Unsupported{"'" + s.opcode + "' with ." + m};
  }
  out.imm = static_cast<int64_t>(window);
  if (s.opcode == "isspacep") {
    out.d = predicate_destination(s.operands[0]);
    out.a = source(s.operands[1], 8);
    out.handler = is_space_handler();
    return;
  }
  if (width != 8) throw Unsupported{"cvta of 32 bits"};
  out.d = destination(s.operands[0], 8);
  out.a = source(s.operands[1], 8);
  out.flags = 8u << kWidthShift;
  out.handler = convert_address_handler(to);
}

}  // namespace kgate::vgpu
