// Control flow, barriers, warp collectives.
#include <algorithm>

#include "vgpu/barrier.h"
#include "vgpu/decode.h"
#include "vgpu/handlers.h"

namespace kgate::vgpu {

using Kind = ptx::Operand::Kind;

bool Decoder::control(const S& s, Insn& out) {
  const std::string& op = s.opcode;
  auto target = [&](uint32_t statement) { return &code_->insns[frame_->first + statement]; };
  if (op == "bra") {
    need(s, 1);
    if (s.operands[0].kind != Kind::label) throw Unsupported{"a branch to '" + s.operands[0].name + "'"};
    out.target = target(s.operands[0].index);
    out.handler = branch_handler();
  } else if (op == "brx") {
    need(s, 2);
    if (s.operands[1].kind != Kind::table) throw Unsupported{"brx without .branchtargets"};
    out.a = source(s.operands[0], 4);
    Extra& more = extra(out);
    for (uint32_t statement : frame_->function->tables[s.operands[1].index]) more.targets.push_back(target(statement));
    out.handler = branch_table_handler();
  } else if (op == "exit" || (op == "ret" && frame_->function->is_entry)) {
    out.handler = exit_handler();
  } else if (op == "ret") {
    out.a = frame_->return_register;
    out.handler = return_handler();
  } else if (op == "call") {
    call(s, out);
  } else if (op == "trap" || op == "brkpt") {
    extra(out).text = op == "trap" ? "the kernel executed a trap" : "the kernel executed a breakpoint";
    out.handler = trap_handler();
  } else if (op == "bar" || op == "barrier") {
    barrier(s, out);
  } else if (op == "membar" || op == "fence") {
    fence(s, out);
  } else if (op == "nanosleep" || op == "pmevent" || op == "griddepcontrol" || op == "setmaxnreg") {
    out.handler = nothing_handler();
  } else {
    return false;
  }
  return true;
}

void Decoder::fence(const S& s, Insn& out) {
  static const std::string_view kKnown[] = {"sc",    "acq_rel", "acquire", "release",     "cta",
                                            "gl",    "gpu",     "sys",     "cluster",     "proxy",
                                            "async", "alias",   "global",  "shared::cta", "async::generic"};
  for (const std::string& m : s.modifiers) {
    if (std::find(std::begin(kKnown), std::end(kKnown), m) == std::end(kKnown))
      throw Unsupported{"'" + s.opcode + "' with ." + m};
  }
  out.handler = nothing_handler();
}

void Decoder::call(const S& s, Insn& out) {
  size_t at = 0;
  const O *results = nullptr, *arguments = nullptr;
  if (at < s.operands.size() && s.operands[at].kind == Kind::list) results = &s.operands[at++];
  if (at >= s.operands.size() || s.operands[at].kind != Kind::function) throw Unsupported{"an indirect call"};
  const std::string& name = s.operands[at++].name;
  if (at < s.operands.size() && s.operands[at].kind == Kind::list) arguments = &s.operands[at++];
  auto place = [&](const O& o) {
    if (o.kind != Kind::variable || frame_->function->variables[o.index].space != ptx::Space::param) {
      throw Unsupported{"a call with argument '" + o.name + "'"};
    }
    return frame_->variable[o.index];
  };
  const Frame* callee = nullptr;
  for (const Frame& frame : frames_) {
    if (frame.function->name == name) callee = &frame;
  }
  Extra& more = extra(out);
  if (!callee) {
    if (name != "vprintf" && name != "__assertfail")
      throw Unsupported{"a call of '" + name + "', which has no body here"};
    if (arguments)
      for (const O& o : arguments->items) more.before.push_back({place(o), 0, 8});
    if (results)
      for (const O& o : results->items) more.after.push_back({0, place(o), 4});
    out.handler = name == "vprintf" ? print_handler() : assert_handler();
    return;
  }
  for (const ptx::Function* reached : ptx::reachable(module_, *callee->function)) {
    const auto& calls = reached->calls;
    if (std::find(calls.begin(), calls.end(), callee->function->name) != calls.end())
      throw Unsupported{"recursion through '" + name + "'"};
  }
  const ptx::Function& f = *callee->function;
  size_t given = arguments ? arguments->items.size() : 0, taken = results ? results->items.size() : 0;
  if (given != f.params.size() || taken > f.returns.size())
    throw Unsupported{"a call of '" + name + "' with another number of arguments"};
  for (size_t i = 0; i < given; ++i)
    more.before.push_back({place(arguments->items[i]), callee->param[i], f.params[i].size});
  for (size_t i = 0; i < taken; ++i) {
    more.after.push_back({callee->param[f.params.size() + i], place(results->items[i]), f.returns[i].size});
  }
  auto size_of = [&](const O& o) { return frame_->function->variables[o.index].size; };
  for (size_t i = 0; i < given; ++i) {
    if (size_of(arguments->items[i]) != f.params[i].size)
      throw Unsupported{"a call of '" + name + "' with arguments of another size"};
  }
  for (size_t i = 0; i < taken; ++i) {
    if (size_of(results->items[i]) != f.returns[i].size)
      throw Unsupported{"a call of '" + name + "' with a result of another size"};
  }
  more.hidden = callee->return_register;
  out.target = &code_->insns[callee->first];
  out.handler = call_handler();
}

void Decoder::barrier(const S& s, Insn& out) {
  const auto& o = s.operands;
  if (has(s, "cluster")) throw Unsupported{"barrier.cluster"};
  if (has(s, "warp")) {
    need(s, 1);
    out.b = source(o[0], 4);
    out.handler = warp_sync_handler();
    return;
  }
  bool red = has(s, "red"), arrive = has(s, "arrive");
  if (!red && !arrive && !has(s, "sync")) throw Unsupported{"this form of " + s.opcode};
  if (s.opcode == "bar" || has(s, "aligned")) out.flags |= kBarrierAligned;
  if (arrive) out.flags |= kBarrierArrive;
  size_t first = red ? 1 : 0, plain = o.size() - (red ? 1 : 0);
  need(s, red ? 3 : 1, red ? 4 : 2);
  out.a = source(o[first], 4);
  if (plain > first + 1) {
    out.b = source(o[first + 1], 4);
    out.flags |= kBarrierCount;
  } else if (arrive) {
    throw Unsupported{"an arrive without a thread count"};
  }
  if (red) {
    out.flags |= kBarrierRed;
    out.c = predicate_source(o.back(), out.imm);
    if (has(s, "and")) out.flags |= kBarrierAnd;
    if (has(s, "or")) out.flags |= kBarrierOr;
    out.d = has(s, "popc") ? destination(o[0], 4) : predicate_destination(o[0]);
  }
  out.handler = barrier_handler();
}

bool Decoder::collective(const S& s, Insn& out) {
  const std::string& op = s.opcode;
  const auto& o = s.operands;
  auto value_and_predicate = [&](uint32_t& value, uint32_t& holds) {
    const O& value_operand = o[0].kind == Kind::pair ? o[0].items[0] : o[0];
    value = value_operand.kind == Kind::sink ? new_register(4) : destination(value_operand, 4);
    holds = o[0].kind == Kind::pair && o[0].items[1].kind != Kind::sink ? predicate_destination(o[0].items[1]) : 0;
  };
  bool known = op == "shfl" || op == "vote" || op == "match" || op == "redux" || op == "elect" || op == "activemask";
  if (!known) return false;
  if (op != "activemask" && (s.modifiers.empty() || !has(s, "sync"))) throw Unsupported{"'" + op + "' without .sync"};
  if (op == "activemask") {
    need(s, 1);
    out.d = destination(o[0], 4);
    out.handler = active_mask_handler();
  } else if (op == "shfl") {
    need(s, 5);
    uint32_t holds = 0;
    value_and_predicate(out.d, holds);
    out.a = source(o[1], 4), out.b = source(o[2], 4), out.c = source(o[3], 4);
    extra(out).regs = {source(o[4], 4), holds};
    for (const std::string& m : s.modifiers) {
      if (Handler handler = shuffle_handler(m)) out.handler = handler;
    }
  } else if (op == "vote") {
    need(s, 3);
    out.d = has(s, "ballot") ? destination(o[0], 4) : predicate_destination(o[0]);
    out.a = predicate_source(o[1], out.imm);
    out.b = source(o[2], 4);
    for (const std::string& m : s.modifiers) {
      if (Handler handler = vote_handler(m)) out.handler = handler;
    }
  } else if (op == "match") {
    need(s, 3);
    bool wide = has(s, "b64"), all = has(s, "all");
    uint32_t holds = 0;
    value_and_predicate(out.d, holds);
    out.a = source(o[1], wide ? 8 : 4), out.b = source(o[2], 4);
    extra(out).regs = {holds};
    out.handler = all || has(s, "any") ? match_handler(all, wide) : nullptr;
  } else if (op == "redux") {
    need(s, 3);
    out.d = destination(o[0], 4), out.a = source(o[1], 4), out.b = source(o[2], 4);
    if (s.modifiers.size() == 3) out.handler = reduce_handler(s.modifiers[1], ptx::type_named(s.modifiers[2]));
  } else {
    need(s, 2);
    uint32_t holds = 0;
    value_and_predicate(out.d, holds);
    out.b = source(o[1], 4);
    extra(out).regs = {holds};
    out.handler = elect_handler();
  }
  if (!out.handler) throw Unsupported{"this form of " + op};
  return true;
}

}  // namespace kgate::vgpu
