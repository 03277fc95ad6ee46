// The PTX reader: text → Module with every name resolved, so that the virtual GPU decodes it without a symbol table and
// the gate reads parameters, shared memory and launch bounds without a toolkit.
//
// Enters: untrusted text. Leaves: a Module, or a Failure ("line N" in `where`). The reader recovers after each bad
// statement and reports all of them. It accepts any well-formed instruction: whether an opcode is executed is the
// machine's business, not syntax. Source of the grammar: the PTX ISA, and what nvcc 13 and Triton 3 emit.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/dim3.h"
#include "support/error.h"

namespace kgate::ptx {

enum class Type : uint8_t {
  none,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  f16x2,
  bf16,
  bf16x2,
  tf32,
  f32,
  f64,
  e4m3,
  e5m2,
  e4m3x2,
  e5m2x2,
  u16x2,
  s16x2,
  pred,
  opaque,  // opaque: .texref, .samplerref, .surfref
};
Type type_named(std::string_view name);  // without the dot; Type::none when it is not a type
const char* type_name(Type type);
uint32_t type_size(Type type);  // bytes; pred 1, opaque 8

enum class Space : uint8_t { none, global, shared, local, param, constant };

struct Param {
  std::string name;
  uint32_t offset = 0, size = 0, align = 0;  // bytes into the packed parameter block
  bool is_pointer = false;                   // carries a .ptr attribute
  std::string type;                          // "u64", "b8"; arrays: "b8[128]"
};

// A variable of a module or of a function body (a .param there is a call argument).
struct Variable {
  std::string name;
  Space space = Space::none;
  Type type = Type::none;
  uint64_t size = 0;  // bytes; 0 for `extern .shared x[]`
  uint32_t align = 0;
  bool external = false;
  int line = 0;
  std::string init;  // initial bytes, shorter than size: zeros follow
  struct Address {
    uint64_t offset;
    std::string symbol;
    int64_t addend;
    bool generic;
  };
  std::vector<Address> addresses;  // pointers inside `init`
};

struct Register {
  std::string name;
  Type type = Type::none;
};

struct Operand {
  enum class Kind : uint8_t {
    sink,       // _
    reg,        // index: Function::registers
    special,    // name: "%tid.x"
    integer,    // bits
    real,       // bits: of an f32 (real_bytes 4) or an f64 (8)
    label,      // index: the statement it stands before
    table,      // index: Function::tables
    param,      // index: Function::params, counted on into Function::returns; offset
    variable,   // index: Function::variables; offset
    global,     // index: Module::globals; offset
    function,   // name
    prototype,  // a .callprototype
    vector,     // items: {a, b, ...}
    pair,       // items: p|q
    memory,     // items[0]: base (reg, variable, integer, ...), items[1..]: coordinates; offset
    list,       // items: (a, b) of a call
  };
  Kind kind = Kind::sink;
  bool negated = false;  // !p, or -%r in an address
  uint8_t real_bytes = 0;
  uint32_t index = 0;
  int64_t offset = 0;
  uint64_t bits = 0;
  std::string name;  // as written
  std::vector<Operand> items;
};

struct Statement {
  int line = 0;
  uint32_t begin = 0, length = 0;  // its text: Module::text
  int guard = -1;                  // register index of @p, -1 for none
  bool guard_negated = false;
  std::string opcode;                  // "ld"
  std::vector<std::string> modifiers;  // "global", "L1::no_allocate", "v2", "f32"
  std::vector<Operand> operands;
};

struct Function {
  std::string name;
  bool is_entry = false;
  bool is_declaration = false;  // extern or a forward prototype: no body
  int line = 0;
  std::vector<Param> params;   // of an entry: the kernel's parameters
  std::vector<Param> returns;  // of a .func; offsets follow the params'
  uint32_t param_bytes = 0;
  std::optional<Dim3> reqntid, maxntid, reqnctapercluster;
  std::optional<uint32_t> minnctapersm, maxnreg;
  uint32_t static_shared = 0;  // bytes, module-level and own .shared that it and its callees reference
  bool uses_dynamic_shared = false;
  uint32_t local_bytes = 0;  // own .local variables
  std::vector<Register> registers;
  std::vector<Variable> variables;
  std::vector<std::vector<uint32_t>> tables;  // .branchtargets: statement indices
  std::vector<Statement> statements;
  std::vector<std::string> calls;      // names of functions that the body mentions
  std::vector<uint32_t> globals_used;  // Module::globals that the body mentions
  std::string canonical;  // identity: tokens without comments, layout, debug information and the function's
                          // own name; then the same of its callees and of the module variables they use
};

struct Diagnostic {
  int line = 0;
  std::string what;
};

struct Module {
  std::shared_ptr<const std::string> text;
  std::string version;  // "9.0"
  int version_major = 0, version_minor = 0;
  std::string target;  // "sm_90a"
  int target_sm = 0;   // 90
  int address_size = 64;
  std::vector<Function> functions;  // definitions and declarations, in order
  std::vector<Variable> globals;

  const Function* find(std::string_view name) const;  // the definition if there is one, else a declaration
  std::string_view statement_text(const Statement& statement) const;
};

// `root` and every function that it may call, each once.
std::vector<const Function*> reachable(const Module& module, const Function& root);

// Where the .shared variables of `root` and its callees lie, as ptxas 13.0 lays them out: those of bodies first, then
// those of the module in the order of their declarations. Dynamic ones (`extern x[]`) all begin at the end of the
// static ones.
struct SharedSlot {
  const Variable* variable;
  uint32_t offset, size;
  bool dynamic;
};
std::vector<SharedSlot> shared_layout(const Module& module, const Function& root);

// Every diagnostic of one reading goes to `diagnostics` when given; the Failure holds the first and their number.
Result<Module> parse(std::string_view text, std::vector<Diagnostic>* diagnostics = nullptr);

}  // namespace kgate::ptx
