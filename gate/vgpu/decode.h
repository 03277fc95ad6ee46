// From a parsed entry to Code: register file layout, constants, one Insn a statement. A form that is not executed
// becomes an instruction that faults when a thread reaches it.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "vgpu/form.h"
#include "vgpu/warp.h"

namespace kgate::vgpu {

// Why a statement cannot be executed here; caught per statement.
struct Unsupported {
  std::string what;
};

class Decoder {
 public:
  // `addresses`: where the module's .global and .const variables lie, by their index.
  Decoder(const ptx::Module& module, const ptx::Function& entry, const std::vector<uint64_t>& addresses);
  std::unique_ptr<Code> run();

 private:
  using S = ptx::Statement;
  using O = ptx::Operand;
  struct Frame {
    const ptx::Function* function = nullptr;
    std::vector<uint32_t> offset, width;  // of registers
    std::vector<uint32_t> variable;       // local-memory or shared offset of body variables
    std::vector<uint32_t> param;          // local-memory offset of a .func's parameters, then returns
    uint32_t return_register = 0;
    uint32_t first = 0;  // its first instruction
  };

  // decode.cpp: layout and operands
  void lay_out(const ptx::Function& function);
  uint32_t new_register(uint32_t width);
  void decode_function(const Frame& frame);
  void decode_statement(const S& s, Insn& out);
  uint32_t width_of(const O& o) const;  // of a register operand
  uint32_t destination(const O& o, uint32_t width);
  uint32_t source(const O& o, uint32_t width, Type type = Type::none);
  uint32_t any_source(const O& o, uint32_t least, uint32_t& width);  // a register at least that wide
  uint32_t any_destination(const O& o, uint32_t least, uint32_t& width);
  uint32_t predicate_source(const O& o, int64_t& flip);
  uint32_t predicate_destination(const O& o);
  uint32_t constant(uint32_t width, uint64_t value);
  uint32_t special(const O& o, uint32_t width);
  uint64_t symbol_value(const O& o) const;
  Extra& extra(Insn& out);
  void need(const S& s, size_t operands) const;
  void need(const S& s, size_t least, size_t most) const;

  // decode_arithmetic.cpp
  bool arithmetic(const S& s, Insn& out);
  void mov(const S& s, Insn& out);
  void cvt(const S& s, Insn& out);
  void setp(const S& s, const Form& form, Insn& out);
  void carry(const S& s, const Form& form, Insn& out);
  Form form_of(const S& s) const;
  void choose(const Form& form, Insn& out) const;

  // decode_memory.cpp
  bool memory(const S& s, Insn& out);
  void load_store(const S& s, Insn& out, bool store);
  void address(const O& o, Insn& out);
  void vector(const O& o, Insn& out, uint32_t element, bool store);
  void atomic(const S& s, Insn& out, bool reduction);
  void cp(const S& s, Insn& out);
  void cvta(const S& s, Insn& out);

  // decode_control.cpp
  bool control(const S& s, Insn& out);
  void call(const S& s, Insn& out);
  void barrier(const S& s, Insn& out);
  void fence(const S& s, Insn& out);
  bool collective(const S& s, Insn& out);

  const ptx::Module& module_;
  const ptx::Function& entry_;
  const std::vector<uint64_t>& addresses_;
  std::unique_ptr<Code> code_;
  std::vector<Frame> frames_;
  const Frame* frame_ = nullptr;  // being decoded
  std::vector<ptx::SharedSlot> shared_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> constants_;
  std::map<std::pair<std::string, uint32_t>, uint32_t> specials_;
  uint32_t next_predicate_ = 8, predicates_end_ = 64;
  bool recursive_ = false;
};

bool has(const ptx::Statement& s, std::string_view modifier);

}  // namespace kgate::vgpu
