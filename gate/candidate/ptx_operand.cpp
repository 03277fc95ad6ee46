// Operands, and the resolution of the names in them.
#include <charconv>

#include "candidate/ptx_parser.h"

namespace kgate::ptx {

using Kind = Operand::Kind;

bool is_special_register(std::string_view name) {
  static const std::set<std::string_view> kNames{"%tid",
                                                 "%ntid",
                                                 "%laneid",
                                                 "%warpid",
                                                 "%nwarpid",
                                                 "%ctaid",
                                                 "%nctaid",
                                                 "%smid",
                                                 "%nsmid",
                                                 "%gridid",
                                                 "%clusterid",
                                                 "%nclusterid",
                                                 "%cluster_ctaid",
                                                 "%cluster_nctaid",
                                                 "%cluster_ctarank",
                                                 "%cluster_nctarank",
                                                 "%is_explicit_cluster",
                                                 "%lanemask_eq",
                                                 "%lanemask_le",
                                                 "%lanemask_lt",
                                                 "%lanemask_ge",
                                                 "%lanemask_gt",
                                                 "%clock",
                                                 "%clock_hi",
                                                 "%clock64",
                                                 "%globaltimer",
                                                 "%globaltimer_lo",
                                                 "%globaltimer_hi",
                                                 "%total_smem_size",
                                                 "%aggr_smem_size",
                                                 "%dynamic_smem_size",
                                                 "%reserved_smem_offset_begin",
                                                 "%reserved_smem_offset_end",
                                                 "%reserved_smem_offset_cap",
                                                 "%current_graph_exec"};
  return kNames.count(name) || name.starts_with("%envreg") || name.starts_with("%pm") ||
         name.starts_with("%reserved_smem_offset_");
}

Operand BodyParser::operand() {
  Operand first = simple_operand();
  if (!cursor_.accept('|')) return first;
  Operand pair;
  pair.kind = Kind::pair;
  pair.items.push_back(std::move(first));
  pair.items.push_back(simple_operand());
  return pair;
}

Operand BodyParser::simple_operand() {
  if (cursor_.accept('{')) return group_operand('}', Kind::vector);
  if (cursor_.accept('(')) return group_operand(')', Kind::list);
  if (cursor_.accept('[')) return memory_operand();
  if (cursor_.accept('!')) {
    Operand inner = named_operand();
    inner.negated = true;
    return inner;
  }
  const Token& token = cursor_.peek();
  bool number = token.kind == TokenKind::integer || token.kind == TokenKind::real;
  return number || cursor_.is('-') || cursor_.is('~') ? number_operand() : named_operand();
}

Operand BodyParser::number_operand() {
  bool minus = cursor_.accept('-'), inverse = !minus && cursor_.accept('~');
  const Token& token = cursor_.take();
  Operand out;
  out.name = (minus ? "-" : "") + std::string(token.text);
  out.bits = token.bits;
  if (token.kind == TokenKind::integer) {
    out.kind = Kind::integer;
    if (minus) out.bits = 0 - out.bits;
    if (inverse) out.bits = ~out.bits;
  } else if (token.kind == TokenKind::real && !inverse) {
    out.kind = Kind::real;
    out.real_bytes = token.real_bytes;
    if (minus) out.bits ^= uint64_t{1} << (token.real_bytes * 8 - 1);
  } else {
    throw Mismatch{token.line, "a number was expected before '" + std::string(token.text) + "'"};
  }
  return out;
}

Operand BodyParser::named_operand() {
  Operand out;
  int line = cursor_.peek().line;
  out.name = cursor_.word("an operand");
  if (out.name == "_") return out;
  if (out.name == "WARP_SZ") {
    out.kind = Kind::integer;
    out.bits = 32;
    return out;
  }
  if (!resolve(out)) {
    if (!is_special_register(out.name)) throw Mismatch{line, "Unknown symbol '" + out.name + "'"};
    out.kind = Kind::special;
    if (cursor_.peek().kind == TokenKind::dotted) out.name += cursor_.take().text;
    return out;
  }
  bool symbolic = out.kind == Kind::variable || out.kind == Kind::global || out.kind == Kind::param;
  if (symbolic && (cursor_.is('+') || cursor_.is('-'))) {
    cursor_.accept('+');
    out.offset = cursor_.integer("an offset");
  }
  return out;
}

Operand BodyParser::memory_operand() {
  Operand out;
  out.kind = Kind::memory;
  out.items.push_back(simple_operand());
  if (cursor_.is('+') || cursor_.is('-')) {
    cursor_.accept('+');
    out.offset = cursor_.integer("an offset");
  }
  out.offset += out.items[0].offset;
  out.items[0].offset = 0;
  while (cursor_.accept(',')) out.items.push_back(simple_operand());
  cursor_.expect(']');
  return out;
}

Operand BodyParser::group_operand(char close, Kind kind) {
  Operand out;
  out.kind = kind;
  if (cursor_.accept(close)) return out;
  do {
    if (out.items.size() > 1024) cursor_.fail("more than 1024 elements in an operand");
    if (cursor_.is('{') || cursor_.is('(')) cursor_.fail("a nested vector");
    out.items.push_back(simple_operand());
  } while (cursor_.accept(','));
  cursor_.expect(close);
  return out;
}

bool BodyParser::resolve(Operand& operand) {
  for (size_t i = scopes_.size(); i-- > 0;) {
    if (auto found = scopes_[i].names.find(operand.name); found != scopes_[i].names.end()) {
      operand.kind = found->second.kind;
      operand.index = found->second.index;
      if (operand.kind == Kind::label) labels_used_.insert(operand.index);
      return true;
    }
    if (resolve_range(scopes_[i], operand)) return true;
  }
  auto found = module_names_.find(operand.name);
  if (found == module_names_.end()) return false;
  operand.kind = found->second.kind;
  operand.index = found->second.index;
  if (operand.kind == Kind::global) note_global(operand.index);
  if (operand.kind == Kind::function) function_.calls.push_back(operand.name);
  return true;
}

bool BodyParser::resolve_range(Scope& scope, Operand& operand) {
  size_t digits = operand.name.find_last_not_of("0123456789") + 1;
  if (digits == 0 || digits >= operand.name.size()) return false;
  // %r1<5> declares %r10..%r14, so every split of the trailing digits is a candidate.
  for (size_t cut = digits; cut < operand.name.size(); ++cut) {
    auto found = scope.ranges.find(operand.name.substr(0, cut));
    if (found == scope.ranges.end()) continue;
    if (operand.name[cut] == '0' && cut + 1 != operand.name.size()) continue;
    uint64_t number = 0;
    auto parsed = std::from_chars(operand.name.data() + cut, operand.name.data() + operand.name.size(), number);
    if (parsed.ec != std::errc() || number >= found->second.count) continue;
    operand.kind = Kind::reg;
    operand.index = static_cast<uint32_t>(function_.registers.size());
    function_.registers.push_back({operand.name, found->second.type});
    scope.names[operand.name] = {Kind::reg, operand.index};
    return true;
  }
  return false;
}

void BodyParser::note_global(uint32_t index) {
  for (uint32_t known : function_.globals_used) {
    if (known == index) return;
  }
  function_.globals_used.push_back(index);
}

}  // namespace kgate::ptx
