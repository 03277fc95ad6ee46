// Modules: directives, variables, function headers, recovery.
#include <bit>
#include <cctype>
#include <cstring>
#include <limits>

#include "candidate/ptx_parser.h"
#include "support/text.h"

namespace kgate::ptx {

using Kind = Operand::Kind;

void Cursor::expect(char punct) {
  if (!accept(punct)) fail(std::string("'") + punct + "' was expected before '" + sanitize(peek().text, 40) + "'");
}

std::string Cursor::word(const char* what) {
  if (peek().kind != TokenKind::word) {
    fail(std::string(what) + " was expected " +
         (at_end() ? "before the end of the file" : "before '" + sanitize(peek().text, 40) + "'"));
  }
  return std::string(take().text);
}

int64_t Cursor::integer(const char* what) {
  bool minus = accept('-');
  if (peek().kind != TokenKind::integer)
    fail(std::string(what) + " was expected before '" + sanitize(peek().text, 40) + "'");
  uint64_t bits = take().bits;
  return static_cast<int64_t>(minus ? 0 - bits : bits);
}

void Cursor::fail(const std::string& what) const { throw Mismatch{peek().line, what}; }

void Cursor::report(int line, std::string what) {
  if (!too_many()) diagnostics_.push_back({line, std::move(what)});
}

void Cursor::skip_past_statement() {
  int depth = 0;
  for (; !at_end(); take()) {
    if (is('{')) ++depth;
    if (is('}') && depth-- == 0) return;
    if (depth <= 0 && is(';')) {
      take();
      return;
    }
  }
}

void Cursor::mark_skipped(size_t from) {
  for (size_t i = from; i < at_; ++i) tokens_[i].skip = true;
}

namespace {

class ModuleParser {
 public:
  ModuleParser(Cursor& cursor, Module& module) : cursor_(cursor), module_(module) {}

  void run() {
    preamble();
    while (!cursor_.at_end() && !cursor_.too_many()) {
      size_t before = cursor_.position();
      try {
        item();
      } catch (const Mismatch& mismatch) {
        cursor_.report(mismatch.line, mismatch.what);
        recover(before);
      }
    }
    if (module_.functions.empty() && cursor_.diagnostics().empty()) {
      cursor_.report(cursor_.peek().line, "the module has no function");
    }
    if (cursor_.diagnostics().empty()) finish_functions(module_, cursor_.tokens(), ranges_, global_ranges_);
  }

 private:
  void preamble() {
    try {
      if (!cursor_.accept(".version")) cursor_.fail("a PTX module begins with .version");
      const Token& version = cursor_.take();
      if (version.kind != TokenKind::real) cursor_.fail("a version like 8.0 was expected");
      module_.version = version.text;
      size_t dot = module_.version.find('.');
      module_.version_major = std::stoi(module_.version.substr(0, std::min<size_t>(dot, 6)));
      module_.version_minor = dot < module_.version.size() ? std::stoi(module_.version.substr(dot + 1, 6)) : 0;
    } catch (const Mismatch& mismatch) {
      cursor_.report(mismatch.line, mismatch.what);
    } catch (const std::exception&) {
      cursor_.report(cursor_.peek().line, "a bad version");
    }
    if (!cursor_.is(".target")) cursor_.report(cursor_.peek().line, ".target must follow .version");
  }

  // After an error at module level: to the next directive that can open an item, over whatever braces lie between.
  void recover(size_t before) {
    if (cursor_.position() == before) cursor_.take();
    static const std::set<std::string_view> kOpeners{".entry", ".func",   ".visible", ".weak", ".extern", ".global",
                                                     ".const", ".shared", ".section", ".file", ".alias"};
    int depth = 0;
    for (; !cursor_.at_end(); cursor_.take()) {
      if (cursor_.is('{')) ++depth;
      if (cursor_.is('}')) --depth;
      bool dotted = cursor_.peek().kind == TokenKind::dotted;
      if (dotted && (cursor_.is(".entry") || cursor_.is(".visible"))) return;
      if (depth <= 0 && dotted && kOpeners.count(cursor_.peek().text)) return;
    }
  }

  void item() {
    if (cursor_.accept(".target")) return target();
    if (cursor_.accept(".address_size")) return address_size();
    if (cursor_.is(".file") || cursor_.is(".loc")) return skip_location(cursor_);
    if (cursor_.accept(".section")) return section();
    if (cursor_.is(".pragma") || cursor_.is(".alias")) return cursor_.skip_past_statement();
    if (cursor_.accept(';')) return;
    bool external = false;
    while (cursor_.is(".extern") || cursor_.is(".visible") || cursor_.is(".weak") || cursor_.is(".common")) {
      external |= cursor_.take().text == ".extern";
    }
    if (cursor_.accept(".entry")) return function(true, external);
    if (cursor_.accept(".func")) return function(false, external);
    if (auto space = space_directive(cursor_.peek().text); space && cursor_.peek().kind == TokenKind::dotted) {
      return globals(*space, external);
    }
    std::string shown = sanitize(cursor_.peek().text, 40);
    cursor_.fail("'" + shown + "' is no directive of a module");
  }

  void target() {
    module_.target = cursor_.word("a target");
    while (cursor_.accept(',')) cursor_.word("a target option");
    if (!module_.target.starts_with("sm_")) cursor_.fail("target '" + sanitize(module_.target, 40) + "' is not sm_NN");
    for (size_t i = 3;
         i < module_.target.size() && std::isdigit(static_cast<unsigned char>(module_.target[i])) && i < 8; ++i) {
      module_.target_sm = module_.target_sm * 10 + (module_.target[i] - '0');
    }
  }

  void address_size() {
    module_.address_size = static_cast<int>(cursor_.integer("an address size"));
    if (module_.address_size != 64) cursor_.report(cursor_.peek().line, "only .address_size 64 is supported");
  }

  void section() {
    size_t from = cursor_.position() - 1;
    while (!cursor_.at_end() && !cursor_.is('{')) cursor_.take();
    int depth = 0;
    do {
      if (cursor_.is('{')) ++depth;
      if (cursor_.is('}')) --depth;
      if (cursor_.at_end()) cursor_.fail("a section is not closed");
      cursor_.take();
    } while (depth > 0);
    cursor_.mark_skipped(from);
  }

  void globals(Space space, bool external) {
    size_t from = cursor_.position();
    cursor_.take();
    if (space == Space::param) cursor_.fail(".param stands only in functions");
    for (Variable& variable : variable_declarations(cursor_, space, external)) {
      auto [known, fresh] =
          names_.emplace(variable.name, Symbol{Kind::global, static_cast<uint32_t>(module_.globals.size())});
      if (!fresh) {
        if (known->second.kind != Kind::global)
          cursor_.report(variable.line, "'" + variable.name + "' is declared twice");
        else if (module_.globals[known->second.index].external)
          module_.globals[known->second.index] = variable;
        continue;
      }
      module_.globals.push_back(std::move(variable));
      global_ranges_.push_back({from, cursor_.position()});
    }
  }

  void parameter_list(std::vector<Param>& params, uint32_t& bytes) {
    if (!cursor_.accept('(') || cursor_.accept(')')) return;
    do {
      if (!cursor_.accept(".param"))
        cursor_.fail("a .param was expected before '" + sanitize(cursor_.peek().text, 40) + "'");
      Prefix prefix = declaration_prefix(cursor_);
      Param param;
      param.name = cursor_.word("a parameter name");
      bool is_array = false, open = false;
      uint64_t count = dimensions(cursor_, is_array, open);
      uint64_t element = uint64_t{type_size(prefix.type)} * prefix.lanes, size = open ? 0 : element * count;
      if (size > 65536 || bytes + size > 65536) cursor_.fail("parameters take more than 64 KiB");
      param.type = type_name(prefix.type);
      if (is_array) param.type += "[" + std::to_string(count) + "]";
      param.size = static_cast<uint32_t>(size);
      param.align = prefix.align ? prefix.align : static_cast<uint32_t>(element);
      param.is_pointer = prefix.pointer;
      param.offset = static_cast<uint32_t>(round_up(bytes, param.align));
      bytes = param.offset + param.size;
      params.push_back(std::move(param));
    } while (cursor_.accept(','));
    cursor_.expect(')');
  }

  Dim3 extents() {
    Dim3 out;
    uint32_t* axes[] = {&out.x, &out.y, &out.z};
    for (int axis = 0; axis < 3; ++axis) {
      if (axis > 0 && !cursor_.accept(',')) break;
      int64_t value = cursor_.integer("an extent");
      if (value < 0 || value > std::numeric_limits<int32_t>::max()) cursor_.fail("a bad extent");
      *axes[axis] = static_cast<uint32_t>(value);
    }
    return out;
  }

  void attributes(Function& function) {
    while (cursor_.peek().kind == TokenKind::dotted) {
      if (cursor_.accept(".reqntid"))
        function.reqntid = extents();
      else if (cursor_.accept(".maxntid"))
        function.maxntid = extents();
      else if (cursor_.accept(".reqnctapercluster"))
        function.reqnctapercluster = extents();
      else if (cursor_.accept(".minnctapersm"))
        function.minnctapersm = static_cast<uint32_t>(cursor_.integer("a count"));
      else if (cursor_.accept(".maxnreg"))
        function.maxnreg = static_cast<uint32_t>(cursor_.integer("a count"));
      else if (cursor_.accept(".maxnctapersm") || cursor_.accept(".maxclusterrank") ||
               cursor_.accept(".abi_preserve") || cursor_.accept(".abi_preserve_control"))
        cursor_.integer("a count");
      else if (cursor_.accept(".noreturn") || cursor_.accept(".explicitcluster") ||
               cursor_.accept(".blocksareclusters") || cursor_.accept(".unique"))
        continue;
      else if (cursor_.is(".pragma"))
        cursor_.skip_past_statement();
      else if (cursor_.accept(".attribute"))
        while (!cursor_.at_end() && !cursor_.accept(')')) cursor_.take();
      else
        cursor_.fail("'" + sanitize(cursor_.peek().text, 40) + "' is no attribute of a function");
    }
  }

  void function(bool is_entry, bool external) {
    Function out;
    out.is_entry = is_entry;
    uint32_t return_bytes = 0;
    if (!is_entry) {
      attributes(out);
      if (cursor_.is('(')) parameter_list(out.returns, return_bytes);
    }
    out.line = cursor_.peek().line;
    out.name = cursor_.word("a function name");
    size_t from = cursor_.position();
    parameter_list(out.params, out.param_bytes);
    uint32_t shift = static_cast<uint32_t>(round_up(out.param_bytes, 16));
    for (Param& value : out.returns) value.offset += shift;
    if (is_entry && out.param_bytes > 32764)
      cursor_.report(out.line, "parameters of '" + out.name + "' take more than 32764 bytes");
    attributes(out);
    check_names(out);
    if (cursor_.accept(';') || (external && !cursor_.is('{'))) {
      out.is_declaration = true;
      module_.functions.push_back(std::move(out));
      return;
    }
    cursor_.expect('{');
    BodyParser(cursor_, module_, out, names_).run();
    ranges_[out.name] = {from, cursor_.position()};
    for (const Variable& variable : out.variables) {
      if (variable.space == Space::local) {
        out.local_bytes = static_cast<uint32_t>(std::min<uint64_t>(
            round_up(out.local_bytes, variable.align) + std::min<uint64_t>(variable.size, 1u << 30), 1u << 30));
      }
    }
    module_.functions.push_back(std::move(out));
  }

  void check_names(const Function& function) {
    auto [known, fresh] = names_.emplace(function.name, Symbol{Kind::function, 0});
    if (!fresh && known->second.kind != Kind::function)
      cursor_.report(function.line, "'" + function.name + "' is declared twice");
    if (ranges_.count(function.name)) cursor_.report(function.line, "'" + function.name + "' is defined twice");
    std::set<std::string_view> seen;
    for (const auto* list : {&function.params, &function.returns}) {
      for (const Param& param : *list) {
        if (param.name != "_" && !seen.insert(param.name).second) {
          cursor_.report(function.line, "parameter '" + param.name + "' of '" + function.name + "' is declared twice");
        }
      }
    }
  }

  Cursor& cursor_;
  Module& module_;
  ModuleNames names_;
  TokenRanges ranges_;
  std::vector<FunctionTokens> global_ranges_;
};

std::string foreign_format(std::string_view text) {
  if (text.starts_with("\x7f"
                       "ELF"))
    return "an ELF object, not PTX text";
  if (text.starts_with("\x50\xed\x55\xba") || text.starts_with("\xb1\x43\x62\x46")) return "a fatbin, not PTX text";
  if (text.starts_with("BC\xc0\xde")) return "LLVM bitcode, not PTX text";
  if (trim(text).empty()) return "an empty file";
  return {};
}

}  // namespace

const Function* Module::find(std::string_view name) const {
  const Function* declaration = nullptr;
  for (const Function& function : functions) {
    if (function.name != name) continue;
    if (!function.is_declaration) return &function;
    declaration = &function;
  }
  return declaration;
}

std::string_view Module::statement_text(const Statement& statement) const {
  return std::string_view(*text).substr(statement.begin, statement.length);
}

Result<Module> parse(std::string_view text, std::vector<Diagnostic>* diagnostics) {
  while (!text.empty() && text.back() == '\0') text.remove_suffix(1);
  auto refuse = [&](int line, const std::string& what) {
    if (diagnostics) diagnostics->push_back({line, what});
    return Failure{what, "line " + std::to_string(line), ""};
  };
  if (std::string foreign = foreign_format(text); !foreign.empty()) return refuse(1, foreign);
  if (text.size() > (size_t{1} << 30)) return refuse(1, "more than 1 GiB of PTX");
  Module module;
  module.text = std::make_shared<const std::string>(text);
  auto tokens = tokenize(*module.text);
  if (!tokens) {
    if (diagnostics) diagnostics->push_back({std::atoi(tokens.failure().where.c_str() + 5), tokens.failure().what});
    return tokens.failure();
  }
  Cursor cursor(std::move(*tokens));
  ModuleParser(cursor, module).run();
  const auto& found = cursor.diagnostics();
  if (found.empty()) return module;
  if (diagnostics) diagnostics->insert(diagnostics->end(), found.begin(), found.end());
  std::string what = sanitize(found[0].what, 300);
  if (found.size() > 1) {
    what += " (and " + std::to_string(found.size() - 1) + (cursor.too_many() ? " or more" : "") +
            (found.size() == 2 ? " other error)" : " other errors)");
  }
  return Failure{what, "line " + std::to_string(found[0].line), ""};
}

}  // namespace kgate::ptx
