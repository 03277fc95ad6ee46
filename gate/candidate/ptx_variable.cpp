// Declarations of variables: prefixes, extents, initial values; and the directives that only locate code.
#include <bit>
#include <cstring>

#include "candidate/ptx_parser.h"
#include "support/text.h"

namespace kgate::ptx {

std::optional<Space> space_directive(std::string_view dotted) {
  if (dotted == ".global") return Space::global;
  if (dotted == ".shared" || dotted == ".shared::cta") return Space::shared;
  if (dotted == ".local") return Space::local;
  if (dotted == ".param") return Space::param;
  if (dotted == ".const") return Space::constant;
  return std::nullopt;
}

// .loc FILE LINE COLUMN[, function_name L[+N], inlined_at FILE LINE COLUMN]   .file N "name"[, time, size]
void skip_location(Cursor& cursor) {
  size_t from = cursor.position();
  bool file = cursor.take().text == ".file";
  while (cursor.peek().kind == TokenKind::integer) cursor.take();
  if (file && cursor.peek().kind == TokenKind::string) cursor.take();
  while (cursor.accept(',')) {
    if (cursor.peek().kind == TokenKind::word) {
      cursor.take();
      if (cursor.peek().kind == TokenKind::word) cursor.take();
      if (cursor.accept('+')) cursor.integer("an offset");
    }
    while (cursor.peek().kind == TokenKind::integer) cursor.take();
  }
  cursor.mark_skipped(from);
}

Prefix declaration_prefix(Cursor& cursor) {
  Prefix out;
  bool pointee = false;
  while (cursor.peek().kind == TokenKind::dotted) {
    std::string_view text = cursor.peek().text;
    if (cursor.accept(".align")) {
      int64_t align = cursor.integer("an alignment");
      if (align <= 0 || align > 1 << 20 || !std::has_single_bit(static_cast<uint64_t>(align)))
        cursor.fail("a bad alignment");
      if (!pointee) out.align = static_cast<uint32_t>(align);
    } else if (cursor.accept(".attribute")) {
      cursor.expect('(');
      while (!cursor.at_end() && !cursor.accept(')')) cursor.take();
    } else if (text == ".v2" || text == ".v4" || text == ".v8") {
      out.lanes = static_cast<uint32_t>(text[2] - '0');
      cursor.take();
    } else if (text == ".ptr") {
      out.pointer = pointee = true;
      cursor.take();
    } else if (Type type = type_named(text.substr(1)); type != Type::none) {
      out.type = type;
      cursor.take();
    } else if (space_directive(text) && pointee) {
      cursor.take();
    } else {
      cursor.fail("'" + std::string(text) + "' does not belong into a declaration");
    }
  }
  if (out.type == Type::none) cursor.fail("a declaration names no type");
  return out;
}

// [2][3] → 6; [] → 0 elements and `open`.
uint64_t dimensions(Cursor& cursor, bool& is_array, bool& open) {
  uint64_t count = 1;
  while (cursor.accept('[')) {
    is_array = true;
    if (cursor.accept(']')) {
      open = true;
      continue;
    }
    int64_t extent = cursor.integer("an array extent");
    if (extent < 0 || (extent && count > (uint64_t{1} << 40) / static_cast<uint64_t>(extent)))
      cursor.fail("an array is too large");
    count *= static_cast<uint64_t>(extent);
    cursor.expect(']');
  }
  return count;
}

namespace {

class Initialiser {
 public:
  Initialiser(Cursor& cursor, Variable& variable)
      : cursor_(cursor), variable_(variable), size_(type_size(variable.type)) {}

  void run(int depth = 0) {
    if (depth > 16) cursor_.fail("an initialiser nests too deeply");
    if (!cursor_.accept('{')) return element();
    if (cursor_.accept('}')) return;
    do run(depth + 1);
    while (cursor_.accept(','));
    cursor_.expect('}');
  }

 private:
  void element() {
    bool minus = cursor_.accept('-');
    const Token& token = cursor_.peek();
    if (token.kind == TokenKind::word) return address();
    uint64_t bits = token.bits;
    if (token.kind == TokenKind::real) {
      bool wide = variable_.type == Type::f64;
      if (token.real_bytes == 8 && !wide)
        bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
      if (token.real_bytes == 4 && wide)
        bits = std::bit_cast<uint64_t>(double{std::bit_cast<float>(static_cast<uint32_t>(bits))});
      if (minus) bits ^= uint64_t{1} << (wide ? 63 : 31);
    } else if (token.kind == TokenKind::integer) {
      if (minus) bits = 0 - bits;
      if (cursor_.is('(', 1)) cursor_.fail("masked addresses in initialisers are not supported");
    } else {
      cursor_.fail("an initial value was expected before '" + sanitize(token.text, 40) + "'");
    }
    cursor_.take();
    append(bits);
  }

  void address() {
    bool generic = cursor_.accept("generic");
    if (generic) cursor_.expect('(');
    Variable::Address out{variable_.init.size(), cursor_.word("a symbol"), 0, generic};
    if (generic) cursor_.expect(')');
    if (cursor_.is('+') || cursor_.is('-')) {
      cursor_.accept('+');
      out.addend = cursor_.integer("an offset");
    }
    variable_.addresses.push_back(out);
    append(0);
  }

  void append(uint64_t bits) {
    char bytes[16] = {};
    std::memcpy(bytes, &bits, sizeof bits);
    variable_.init.append(bytes, size_);
  }

  Cursor& cursor_;
  Variable& variable_;
  uint32_t size_;
};

}  // namespace

std::vector<Variable> variable_declarations(Cursor& cursor, Space space, bool external) {
  std::vector<Variable> out;
  Prefix prefix = declaration_prefix(cursor);
  do {
    Variable variable;
    variable.line = cursor.peek().line;
    variable.name = cursor.word("a variable name");
    variable.space = space;
    variable.type = prefix.type;
    variable.external = external;
    uint64_t element = uint64_t{type_size(prefix.type)} * prefix.lanes, number = 1;
    variable.align = prefix.align ? prefix.align : static_cast<uint32_t>(element);
    bool is_array = false, open = false;
    if (cursor.accept('<')) {  // .param .b32 p<4> declares p0 … p3
      number = static_cast<uint64_t>(cursor.integer("a count"));
      if (number > 4096) cursor.fail("too many variables in one declaration");
      cursor.expect('>');
    }
    uint64_t count = dimensions(cursor, is_array, open);
    if (cursor.accept('=')) {
      Initialiser(cursor, variable).run();
      if (open) count = variable.init.size() / element, open = false;
    }
    variable.size = open ? 0 : count * element;
    if (variable.init.size() > variable.size)
      cursor.fail("'" + variable.name + "' has more initial values than elements");
    std::string base = variable.name;
    for (uint64_t i = 0; i < number; ++i) {
      if (number > 1) variable.name = base + std::to_string(i);
      out.push_back(variable);
    }
  } while (cursor.accept(','));
  cursor.expect(';');
  return out;
}

}  // namespace kgate::ptx
