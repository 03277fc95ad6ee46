// The parts of the PTX parser that its files share. Internal to the PTX reader.
//
// Cursor walks the tokens and collects diagnostics; a production that meets a syntax error throws Mismatch, which the
// nearest statement or declaration catches, reports and recovers from. Nothing of it leaves parse().
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "candidate/ptx.h"
#include "candidate/ptx_lexer.h"

namespace kgate::ptx {

struct Mismatch {
  int line;
  std::string what;
};

class Cursor {
 public:
  explicit Cursor(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool at_end() const { return peek().kind == TokenKind::end; }
  bool is(char punct, size_t ahead = 0) const {
    const Token& token = peek(ahead);
    return token.kind == TokenKind::punct && token.text[0] == punct;
  }
  bool is(std::string_view text) const { return peek().kind != TokenKind::string && peek().text == text; }
  bool accept(char punct) { return is(punct) ? (take(), true) : false; }
  bool accept(std::string_view text) { return is(text) ? (take(), true) : false; }
  void expect(char punct);
  std::string word(const char* what);  // a word, or a Mismatch that asks for `what`
  int64_t integer(const char* what);   // with an optional sign
  [[noreturn]] void fail(const std::string& what) const;

  void report(int line, std::string what);
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  bool too_many() const { return diagnostics_.size() >= kMostDiagnostics; }

  size_t position() const { return at_; }
  void seek(size_t position) { at_ = position; }
  void skip_past_statement();      // to after the next ';' of this level, or before the closing '}'
  void mark_skipped(size_t from);  // tokens [from, position()) are debug information
  std::vector<Token>& tokens() { return tokens_; }

  static constexpr size_t kMostDiagnostics = 200;

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
  std::vector<Diagnostic> diagnostics_;
};

// A name visible in a block: what it is and where it lives in the Function.
struct Symbol {
  Operand::Kind kind = Operand::Kind::sink;
  uint32_t index = 0;
};

struct RegisterRange {  // %r<5>: registers are made when they are first used
  uint64_t count = 0;
  Type type = Type::none;
  uint64_t scope = 0;
};

struct Scope {
  uint64_t id = 0;
  std::unordered_map<std::string, Symbol> names;
  std::unordered_map<std::string, RegisterRange> ranges;
};

using ModuleNames = std::unordered_map<std::string, Symbol>;

// Parses one body, from after its '{' to its '}'. Operands are resolved against the scopes, then the module's names.
class BodyParser {
 public:
  BodyParser(Cursor& cursor, Module& module, Function& function, const ModuleNames& names)
      : cursor_(cursor), module_(module), function_(function), module_names_(names) {}
  void run();

 private:
  void open_scope();
  void statement();
  void block_statement();
  void register_declaration();
  void table_directive();
  void instruction();
  void guard(Statement& statement);
  void finish_labels();

  Operand operand();
  Operand simple_operand();
  Operand number_operand();
  Operand named_operand();
  Operand memory_operand();
  Operand group_operand(char close, Operand::Kind kind);
  bool resolve(Operand& operand);
  bool resolve_range(Scope& scope, Operand& operand);
  void note_global(uint32_t index);

  Cursor& cursor_;
  Module& module_;
  Function& function_;
  const ModuleNames& module_names_;
  std::vector<Scope> scopes_;
  uint64_t next_scope_ = 0;
  std::vector<int64_t> label_statement_;  // label id → statement, -1 until it is met
  std::vector<size_t> label_token_;
  std::set<uint32_t> labels_used_;
};

// What stands between the space and the name of a declaration.
struct Prefix {
  Type type = Type::none;
  uint32_t align = 0, lanes = 1;
  bool pointer = false;
};
Prefix declaration_prefix(Cursor& cursor);
uint64_t dimensions(Cursor& cursor, bool& is_array, bool& open);  // [2][3] → 6; [] → `open`
inline uint64_t round_up(uint64_t value, uint64_t align) { return align ? (value + align - 1) / align * align : value; }

// `.global .align 4 .b8 x[16] = {…}` from after the space's directive: one or more declarators up to the ';'.
std::vector<Variable> variable_declarations(Cursor& cursor, Space space, bool external);
void skip_location(Cursor& cursor);  // .loc …, .file …
bool is_special_register(std::string_view name);
std::optional<Space> space_directive(std::string_view dotted);

struct FunctionTokens {
  size_t begin = 0, end = 0;  // of the definition, from after the name
};
using TokenRanges = std::map<std::string, FunctionTokens>;

// Fills Function::canonical, static_shared and uses_dynamic_shared over the call graph.
void finish_functions(Module& module, const std::vector<Token>& tokens, const TokenRanges& functions,
                      const std::vector<FunctionTokens>& globals);

}  // namespace kgate::ptx
