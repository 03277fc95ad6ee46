#include "cli/init_guess.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "candidate/ptx.h"
#include "support/text.h"
#include "trace/demangle.h"

namespace kgate::cli {

namespace {

// ---- the C++ name --------------------------------------------------------------------------------------------------

struct Spelled {
  std::string dtype;  // empty: not one of the contract's
  bool pointer = false, constant = false;
};

constexpr std::array<std::pair<const char*, const char*>, 26> kSpellings{{{"double", "f64"},
                                                                          {"float", "f32"},
                                                                          {"__half", "f16"},
                                                                          {"half", "f16"},
                                                                          {"c10::Half", "f16"},
                                                                          {"__nv_bfloat16", "bf16"},
                                                                          {"c10::BFloat16", "bf16"},
                                                                          {"__nv_fp8_e4m3", "e4m3"},
                                                                          {"c10::Float8_e4m3fn", "e4m3"},
                                                                          {"__nv_fp8_e5m2", "e5m2"},
                                                                          {"c10::Float8_e5m2", "e5m2"},
                                                                          {"bool", "bool"},
                                                                          {"char", "i8"},
                                                                          {"signed char", "i8"},
                                                                          {"unsigned char", "u8"},
                                                                          {"short", "i16"},
                                                                          {"unsigned short", "u16"},
                                                                          {"int", "i32"},
                                                                          {"unsigned int", "u32"},
                                                                          {"unsigned", "u32"},
                                                                          {"long", "i64"},
                                                                          {"long long", "i64"},
                                                                          {"unsigned long", "u64"},
                                                                          {"unsigned long long", "u64"},
                                                                          {"float4", "f32"},
                                                                          {"__half2", "f16"}}};

std::string without(std::string text, std::string_view word) {
  for (size_t at; (at = text.find(word)) != text.npos;) text.erase(at, word.size());
  return text;
}

Spelled spelled(std::string_view text) {
  Spelled out;
  std::string type(text);
  out.pointer = type.find('*') != type.npos;
  out.constant = type.find("const") != type.npos;
  for (const char* word : {"__restrict__", "const", "*"}) type = without(type, word);
  type = std::string(trim(type));
  for (const auto& [name, dtype] : kSpellings)
    if (type == name) out.dtype = dtype;
  return out;
}

// "void axpy<float>(float*, int)" → its two types; nothing for a name that is not C++.
std::vector<Spelled> signature(const std::string& entry) {
  const std::string name = trace::demangle({entry})[0];
  if (name == entry || !name.ends_with(')')) return {};
  std::vector<Spelled> types;
  int depth = 0;
  size_t end = name.size() - 1;
  for (size_t i = end; i-- > 0;) {
    const char c = name[i];
    if (c == ')' || c == '>' || c == ']') ++depth;
    if (depth == 0 && (c == ',' || c == '(')) {
      if (i + 1 < end) types.push_back(spelled(std::string_view(name).substr(i + 1, end - i - 1)));
      end = i;
      if (c == '(') break;
    }
    if (c == '(' || c == '<' || c == '[') --depth;
  }
  std::reverse(types.begin(), types.end());
  return types;
}

// ---- the code ------------------------------------------------------------------------------------------------------

struct Access {
  bool read = false, written = false;
  std::set<std::string> types;  // as PTX names them
};

void registers_of(const ptx::Operand& operand, std::vector<uint32_t>& out) {
  if (operand.kind == ptx::Operand::Kind::reg) out.push_back(operand.index);
  for (const ptx::Operand& item : operand.items) registers_of(item, out);
}

// Which parameters' addresses reach which access: every 64-bit register that is computed from such an address carries
// it, in whatever order the statements stand.
class AddressFlow {
 public:
  AddressFlow(const ptx::Function& function, const std::vector<GuessedParam>& params) : function_(function) {
    carried_.resize(function.registers.size());
    for (size_t i = 0; i < function.params.size() && i < params.size(); ++i)
      if (params[i].pointer) sources_.insert(static_cast<uint32_t>(i));
    bool changed = true;
    while (changed) {
      changed = false;
      for (const ptx::Statement& statement : function.statements) changed |= step(statement);
    }
  }

  std::map<uint32_t, Access> accesses() const {
    std::map<uint32_t, Access> all;
    for (const ptx::Statement& statement : function_.statements) {
      const std::string& code = statement.opcode;
      const bool load = code == "ld" || code == "ldu", store = code == "st", both = code == "atom" || code == "red";
      if ((!load && !store && !both) || statement.modifiers.empty() || is_local(statement)) continue;
      for (const ptx::Operand& operand : statement.operands) {
        if (operand.kind != ptx::Operand::Kind::memory) continue;
        std::vector<uint32_t> bases;
        registers_of(operand, bases);
        for (uint32_t base : bases)
          for (uint32_t param : carried_[base]) {
            all[param].read |= load || both;
            all[param].written |= store || both;
            all[param].types.insert(statement.modifiers.back());
          }
      }
    }
    return all;
  }

 private:
  static bool is_local(const ptx::Statement& statement) {
    for (const std::string& modifier : statement.modifiers)
      if (modifier.starts_with("shared") || modifier.starts_with("local") || modifier.starts_with("param") ||
          modifier == "const")
        return true;
    return false;
  }

  bool step(const ptx::Statement& statement) {
    if (statement.operands.size() < 2 || statement.operands[0].kind != ptx::Operand::Kind::reg) return false;
    const uint32_t to = statement.operands[0].index;
    if (ptx::type_size(function_.registers[to].type) != 8) return false;
    std::set<uint32_t> reaching;
    if (statement.opcode == "ld") {
      const ptx::Operand& from = statement.operands[1];
      for (const ptx::Operand& item : from.items)
        if (item.kind == ptx::Operand::Kind::param && sources_.contains(item.index) && from.offset == 0)
          reaching.insert(item.index);
    } else if (statement.opcode != "atom") {
      std::vector<uint32_t> from;
      for (size_t i = 1; i < statement.operands.size(); ++i) registers_of(statement.operands[i], from);
      for (uint32_t one : from) reaching.insert(carried_[one].begin(), carried_[one].end());
    }
    const size_t before = carried_[to].size();
    carried_[to].insert(reaching.begin(), reaching.end());
    return carried_[to].size() != before;
  }

  const ptx::Function& function_;
  std::set<uint32_t> sources_;
  std::vector<std::set<uint32_t>> carried_;  // by register
};

std::string dtype_of(const std::set<std::string>& types) {
  static const std::map<std::string, std::string> known = {
      {"f64", "f64"}, {"f32", "f32"}, {"f16", "f16"}, {"f16x2", "f16"}, {"bf16", "bf16"}, {"bf16x2", "bf16"},
      {"s8", "i8"},   {"u8", "u8"},   {"s16", "i16"}, {"s32", "i32"},   {"u32", "u32"},   {"s64", "i64"},
      {"u64", "u64"}, {"b64", "u64"}, {"b32", "u32"}, {"b8", "u8"},     {"u16", "f16"},   {"b16", "f16"}};
  std::string dtype;
  for (const std::string& type : types) {
    const auto at = known.find(type);
    if (at == known.end() || (!dtype.empty() && dtype != at->second)) return {};
    dtype = at->second;
  }
  return dtype;
}

std::map<uint32_t, Access> read_code(const Workload& w, const WorkloadKernel& kernel,
                                     const std::vector<GuessedParam>& params) {
  const WorkloadModule& module = w.modules[kernel.module];
  for (const std::string* text : {&module.portable, &module.image}) {
    if (text->empty() || text->starts_with("\x7f"
                                           "ELF"))
      continue;
    const auto parsed = ptx::parse(*text);
    if (!parsed) continue;
    const ptx::Function* function = parsed->find(kernel.entry);
    if (function && !function->is_declaration) return AddressFlow(*function, params).accesses();
  }
  return {};
}

const char* by_size(uint32_t size) { return size == 1 ? "u8" : size == 2 ? "u16" : size == 4 ? "i32" : "i64"; }

}  // namespace

std::vector<GuessedParam> guess_params(const Workload& w, uint32_t index) {
  const WorkloadKernel& kernel = w.kernels[index];
  std::set<uint32_t> addresses;
  for (const LaunchSpec& launch : w.launches)
    if (launch.kernel == index)
      for (const Relocation& relocation : launch.relocations) addresses.insert(relocation.param_offset);
  std::vector<Spelled> types = signature(kernel.entry);
  if (types.size() != kernel.params.size()) types.assign(kernel.params.size(), {});

  std::vector<GuessedParam> params;
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    GuessedParam param;
    std::tie(param.offset, param.size) = kernel.params[i];
    param.pointer = param.size == 8 && (addresses.contains(param.offset) || types[i].pointer);
    const bool number = param.size == 1 || param.size == 2 || param.size == 4 || param.size == 8;
    param.structure = !param.pointer && (!number || (types[i].dtype.empty() && param.offset % param.size != 0));
    params.push_back(std::move(param));
  }
  const auto accesses = read_code(w, kernel, params);
  for (size_t i = 0; i < params.size(); ++i) {
    GuessedParam& param = params[i];
    if (param.structure) continue;
    param.dtype = types[i].dtype;
    if (!param.dtype.empty()) param.why = "dtype by its C++ type";
    if (!param.pointer) {
      if (param.dtype.empty()) param.why = "dtype by its size";
      if (param.dtype.empty() || param.dtype == "tf32") param.dtype = by_size(param.size);
      continue;
    }
    const auto access = accesses.find(static_cast<uint32_t>(i));
    if (access != accesses.end()) {
      const Access& found = access->second;
      if (param.dtype.empty()) param.dtype = dtype_of(found.types);
      if (param.why.empty() && !param.dtype.empty()) param.why = "dtype by the code's loads and stores";
      param.role = found.read && found.written ? "inout" : found.written ? "out" : "in";
      param.why += (param.why.empty() ? "" : ", ") + std::string("role by the code");
    } else if (types[i].pointer) {
      param.role = types[i].constant ? "in" : "inout";
      param.why += (param.why.empty() ? "" : ", ") + std::string("role by its C++ type");
    } else {
      param.role = "inout";
      param.why += (param.why.empty() ? "" : ", ") + std::string("role not known");
    }
    if (param.dtype.empty()) param.dtype = "u8", param.why = "dtype not known, " + param.why;
  }
  return params;
}

}  // namespace kgate::cli
