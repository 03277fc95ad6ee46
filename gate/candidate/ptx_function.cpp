// Bodies: blocks, declarations, labels, instructions. Registers and labels are block scoped, since inline assembly
// opens blocks of its own; the Function that comes out is flat, with names resolved.
#include "candidate/ptx_parser.h"

namespace kgate::ptx {

using Kind = Operand::Kind;

namespace {
constexpr size_t kDeepestNesting = 64;
}

void BodyParser::run() {
  scopes_.emplace_back();
  scopes_.back().id = next_scope_++;
  for (size_t i = 0; i < function_.params.size(); ++i) {
    scopes_.back().names[function_.params[i].name] = {Kind::param, static_cast<uint32_t>(i)};
  }
  for (size_t i = 0; i < function_.returns.size(); ++i) {
    scopes_.back().names[function_.returns[i].name] = {Kind::param, static_cast<uint32_t>(function_.params.size() + i)};
  }
  open_scope();
  while (scopes_.size() > 1) {
    if (cursor_.at_end()) {
      cursor_.report(cursor_.peek().line, "the body of '" + function_.name + "' is not closed");
      return;
    }
    if (cursor_.too_many()) return;
    size_t before = cursor_.position();
    try {
      statement();
    } catch (const Mismatch& mismatch) {
      cursor_.report(mismatch.line, mismatch.what);
      cursor_.seek(before);
      cursor_.skip_past_statement();
      if (cursor_.position() == before && !cursor_.is('}')) cursor_.take();
    }
  }
  finish_labels();
}

// Labels may be used before they stand, so those of a block are known when it opens.
void BodyParser::open_scope() {
  if (scopes_.size() > kDeepestNesting) cursor_.fail("blocks nest too deeply");
  scopes_.emplace_back();
  scopes_.back().id = next_scope_++;
  int depth = 0;
  for (size_t ahead = cursor_.position(); ahead < cursor_.tokens().size(); ++ahead) {
    const Token& token = cursor_.tokens()[ahead];
    if (token.kind == TokenKind::punct) {
      if (token.text[0] == '{') ++depth;
      if (token.text[0] == '}' && depth-- == 0) break;
      continue;
    }
    if (depth != 0 || token.kind != TokenKind::word) continue;
    const Token& next = cursor_.tokens()[ahead + 1];
    if (next.kind != TokenKind::punct || next.text[0] != ':') continue;
    std::string name(token.text);
    const Token& after = cursor_.tokens()[std::min(ahead + 2, cursor_.tokens().size() - 1)];
    Symbol symbol{Kind::label, static_cast<uint32_t>(label_statement_.size())};
    if (after.text == ".branchtargets" || after.text == ".calltargets") {
      symbol = {Kind::table, static_cast<uint32_t>(function_.tables.size())};
      function_.tables.emplace_back();
    } else if (after.text == ".callprototype") {
      symbol = {Kind::prototype, 0};
    } else {
      label_statement_.push_back(-1);
      label_token_.push_back(ahead);
    }
    if (!scopes_.back().names.emplace(name, symbol).second)
      cursor_.report(token.line, "label '" + name + "' stands twice");
  }
}

void BodyParser::statement() {
  if (cursor_.accept('}')) {
    scopes_.pop_back();
  } else if (cursor_.accept('{')) {
    open_scope();
  } else if (cursor_.accept(';')) {
  } else if (cursor_.peek().kind == TokenKind::word && cursor_.is(':', 1)) {
    block_statement();
  } else if (cursor_.is(".loc") || cursor_.is(".file")) {
    skip_location(cursor_);
  } else if (cursor_.accept(".reg")) {
    register_declaration();
  } else if (cursor_.is(".pragma")) {
    size_t from = cursor_.position();
    cursor_.skip_past_statement();
    cursor_.mark_skipped(from);
  } else if (auto space = space_directive(cursor_.peek().text); space && cursor_.peek().kind == TokenKind::dotted) {
    cursor_.take();
    for (Variable& variable : variable_declarations(cursor_, *space, false)) {
      Symbol symbol{Kind::variable, static_cast<uint32_t>(function_.variables.size())};
      if (!scopes_.back().names.emplace(variable.name, symbol).second) {
        cursor_.report(variable.line, "'" + variable.name + "' is declared twice");
      }
      function_.variables.push_back(std::move(variable));
    }
  } else if (cursor_.peek().kind == TokenKind::word || cursor_.is('@')) {
    instruction();
  } else {
    cursor_.fail("a statement was expected before '" + std::string(cursor_.peek().text) + "'");
  }
}

void BodyParser::block_statement() {
  std::string name(cursor_.take().text);
  cursor_.expect(':');
  Symbol symbol = scopes_.back().names.at(name);
  if (symbol.kind == Kind::label) {
    label_statement_[symbol.index] = static_cast<int64_t>(function_.statements.size());
  } else if (symbol.kind == Kind::prototype) {
    cursor_.skip_past_statement();
  } else {
    cursor_.take();
    do {
      Operand target = named_operand();
      if (target.kind != Kind::label) cursor_.fail("'" + target.name + "' is no label");
      function_.tables[symbol.index].push_back(target.index);
    } while (cursor_.accept(','));
    cursor_.expect(';');
  }
}

void BodyParser::register_declaration() {
  while (cursor_.is(".v2") || cursor_.is(".v4") || cursor_.is(".align")) {
    if (!cursor_.accept(".align")) cursor_.fail("vector registers are not supported");
    cursor_.integer("an alignment");
  }
  std::string_view dotted = cursor_.peek().text;
  Type type = cursor_.peek().kind == TokenKind::dotted ? type_named(dotted.substr(1)) : Type::none;
  if (type == Type::none) cursor_.fail("a register type was expected before '" + std::string(dotted) + "'");
  cursor_.take();
  do {
    int line = cursor_.peek().line;
    std::string name = cursor_.word("a register name");
    Scope& scope = scopes_.back();
    bool fresh;
    if (cursor_.accept('<')) {
      int64_t count = cursor_.integer("a register count");
      if (count < 0) cursor_.fail("a register count is negative");
      cursor_.expect('>');
      fresh = scope.ranges.emplace(name, RegisterRange{static_cast<uint64_t>(count), type, scope.id}).second;
    } else {
      fresh = scope.names.emplace(name, Symbol{Kind::reg, static_cast<uint32_t>(function_.registers.size())}).second;
      function_.registers.push_back({name, type});
    }
    if (!fresh) cursor_.report(line, "register '" + name + "' is declared twice");
  } while (cursor_.accept(','));
  cursor_.expect(';');
}

void BodyParser::guard(Statement& statement) {
  if (!cursor_.accept('@')) return;
  statement.guard_negated = cursor_.accept('!');
  Operand predicate = named_operand();
  bool is_predicate = predicate.kind == Kind::reg && function_.registers[predicate.index].type == Type::pred;
  if (!is_predicate) cursor_.fail("the guard '" + predicate.name + "' is no predicate register");
  statement.guard = static_cast<int>(predicate.index);
}

void BodyParser::instruction() {
  Statement statement;
  statement.line = cursor_.peek().line;
  statement.begin = cursor_.peek().begin;
  guard(statement);
  statement.opcode = cursor_.word("an instruction");
  if (statement.opcode[0] == '%' || statement.opcode[0] == '$') {
    cursor_.fail("'" + statement.opcode + "' is no instruction");
  }
  while (cursor_.peek().kind == TokenKind::dotted) {
    statement.modifiers.emplace_back(cursor_.take().text.substr(1));
  }
  if (!cursor_.is(';')) {
    do {
      statement.operands.push_back(operand());
      if (statement.operands.size() > 64) cursor_.fail("too many operands");
    } while (cursor_.accept(','));
  }
  statement.length = cursor_.peek().begin - statement.begin;
  cursor_.expect(';');
  function_.statements.push_back(std::move(statement));
}

void BodyParser::finish_labels() {
  auto place = [&](uint32_t label) {
    return static_cast<uint32_t>(label_statement_[label] < 0 ? int64_t(function_.statements.size())
                                                             : label_statement_[label]);
  };
  for (Statement& statement : function_.statements) {
    for (Operand& operand : statement.operands) {
      if (operand.kind == Kind::label) operand.index = place(operand.index);
    }
  }
  for (auto& table : function_.tables) {
    for (uint32_t& label : table) label = place(label);
  }
  for (uint32_t label = 0; label < label_token_.size(); ++label) {
    if (labels_used_.count(label)) continue;
    cursor_.tokens()[label_token_[label]].skip = true;
    cursor_.tokens()[label_token_[label] + 1].skip = true;
  }
}

}  // namespace kgate::ptx
