// What follows from the call graph: shared memory, and the canonical text that identifies a kernel's code.
#include <algorithm>

#include "candidate/ptx_parser.h"

namespace kgate::ptx {

namespace {

class Finisher {
 public:
  Finisher(Module& module, const std::vector<Token>& tokens, const TokenRanges& functions,
           const std::vector<FunctionTokens>& globals)
      : module_(module), tokens_(tokens), functions_(functions), globals_(globals) {}

  void run() {
    for (Function& function : module_.functions) {
      if (function.is_declaration) continue;
      std::vector<const Function*> reached = reachable(module_, function);
      function.canonical = canonical(reached);
      shared_memory(function);
    }
  }

 private:
  // Variables whose addresses stand in the initialisers of used ones count as used.
  std::vector<uint32_t> globals_of(const std::vector<const Function*>& reached) const {
    std::vector<uint32_t> out;
    auto add = [&](uint32_t index) {
      if (std::find(out.begin(), out.end(), index) == out.end()) out.push_back(index);
    };
    for (const Function* function : reached) {
      for (uint32_t index : function->globals_used) add(index);
    }
    for (size_t i = 0; i < out.size(); ++i) {
      for (const auto& address : module_.globals[out[i]].addresses) {
        for (uint32_t g = 0; g < module_.globals.size(); ++g) {
          if (module_.globals[g].name == address.symbol) add(g);
        }
      }
    }
    return out;
  }

  void append(std::string& out, FunctionTokens range, std::string_view own_name) const {
    for (size_t i = range.begin; i < range.end && i < tokens_.size(); ++i) {
      const Token& token = tokens_[i];
      if (token.skip) continue;
      bool own = token.kind == TokenKind::word && !own_name.empty() && token.text.starts_with(own_name);
      if (own) out += '@';
      out += own ? token.text.substr(own_name.size()) : token.text;
      out += ' ';
    }
    out += '\n';
  }

  std::string canonical(const std::vector<const Function*>& reached) const {
    std::string out = module_.target + "\n";
    for (const Function* function : reached) {
      if (function != reached[0]) out += function->name + " ";
      auto range = functions_.find(function->name);
      if (range != functions_.end())
        append(out, range->second, function == reached[0] ? function->name : std::string_view{});
    }
    for (uint32_t index : globals_of(reached)) append(out, globals_[index], {});
    return out;
  }

  void shared_memory(Function& function) const {
    for (const SharedSlot& slot : shared_layout(module_, function)) {
      function.uses_dynamic_shared |= slot.dynamic;
      if (!slot.dynamic) function.static_shared = std::max<uint32_t>(function.static_shared, slot.offset + slot.size);
    }
  }

  Module& module_;
  const std::vector<Token>& tokens_;
  const TokenRanges& functions_;
  const std::vector<FunctionTokens>& globals_;
};

}  // namespace

std::vector<const Function*> reachable(const Module& module, const Function& root) {
  std::vector<const Function*> out{&root};
  for (size_t i = 0; i < out.size(); ++i) {
    for (const std::string& name : out[i]->calls) {
      const Function* callee = module.find(name);
      if (callee && std::find(out.begin(), out.end(), callee) == out.end()) out.push_back(callee);
    }
  }
  return out;
}

std::vector<SharedSlot> shared_layout(const Module& module, const Function& root) {
  std::vector<SharedSlot> out;
  uint64_t end = 0;
  auto place = [&](const Variable& variable) {
    for (const SharedSlot& slot : out) {
      if (slot.variable == &variable) return;
    }
    bool dynamic = variable.size == 0;
    uint64_t align = std::max<uint32_t>(variable.align, 1);
    uint64_t offset = dynamic ? 0 : (end + align - 1) / align * align;
    uint64_t size = std::min<uint64_t>(variable.size, 1u << 30);
    if (!dynamic) end = std::min<uint64_t>(offset + size, 1u << 30);
    out.push_back({&variable, static_cast<uint32_t>(offset), static_cast<uint32_t>(size), dynamic});
  };
  std::vector<uint32_t> used;
  for (const Function* function : reachable(module, root)) {
    for (const Variable& variable : function->variables) {
      if (variable.space == Space::shared) place(variable);
    }
    used.insert(used.end(), function->globals_used.begin(), function->globals_used.end());
  }
  std::sort(used.begin(), used.end());
  for (uint32_t index : used) {
    if (module.globals[index].space == Space::shared) place(module.globals[index]);
  }
  for (SharedSlot& slot : out) {
    uint64_t align = std::max<uint64_t>(slot.variable->align, 16);
    if (slot.dynamic) slot.offset = static_cast<uint32_t>((end + align - 1) / align * align);
  }
  return out;
}

void finish_functions(Module& module, const std::vector<Token>& tokens, const TokenRanges& functions,
                      const std::vector<FunctionTokens>& globals) {
  Finisher(module, tokens, functions, globals).run();
}

}  // namespace kgate::ptx
