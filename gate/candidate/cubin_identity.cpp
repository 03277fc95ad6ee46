#include "candidate/cubin_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "support/hash.h"

namespace kgate {

namespace {

constexpr std::string_view kText = ".text.";

bool is_text(const ElfSection& section) { return section.name.starts_with(kText); }

// .nv.constant3, .nv.constant4, .nv.global, .nv.global.init: owned by the module. With a further ".<kernel>" they are a kernel's.
bool is_module_data(const ElfSection& section) {
  constexpr std::string_view constant = ".nv.constant";
  if (section.name.starts_with(".nv.global")) return true;
  return section.name.starts_with(constant) && section.name.find('.', constant.size()) == std::string_view::npos;
}

// Parses the decimal number at the end of `text`; its first digit's place, or npos.
size_t trailing_number(std::string_view text, size_t& value) {
  size_t first = text.find_last_not_of("0123456789") + 1;  // npos + 1 == 0: all digits
  if (first == text.size()) return std::string_view::npos;
  auto [end, error] = std::from_chars(text.data() + first, text.data() + text.size(), value);
  return error == std::errc{} ? first : std::string_view::npos;
}

// "__nv_static_25__9b3967c9_4_r_cu_89f90d4c_counter" -> "counter": the number is the length of the file's part.
std::optional<std::string_view> static_variable(std::string_view name) {
  constexpr std::string_view prefix = "__nv_static_";
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  size_t length = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), length);
  if (error != std::errc{}) return std::nullopt;
  size_t skip = static_cast<size_t>(end - name.data()) + 1;  // the '_' after the number
  if (skip > name.size() || length >= name.size() - skip) return std::nullopt;
  name.remove_prefix(skip + length);
  if (name.starts_with('_')) name.remove_prefix(1);
  return name;
}

}  // namespace

std::string canonical_symbol(std::string_view name) {
  if (name.starts_with("_ZZ")) return "";
  if (auto inner = static_variable(name)) return canonical_symbol(*inner);
  for (std::string_view marker : {"_INTERNAL_", "_GLOBAL__N_"}) {  // "_ZN45_INTERNAL_9b3967c9_4_r_cu_...": length, then name
    size_t at = name.find(marker);
    if (at == std::string_view::npos) continue;
    size_t length = 0;
    size_t first = trailing_number(name.substr(0, at), length);
    if (first == std::string_view::npos || length > name.size() - at) continue;
    return std::string(name.substr(0, first)) + std::string(marker) + std::string(name.substr(at + length));
  }
  return std::string(name);
}

std::string CubinIdentity::describe_target(const ElfRelocation& relocation, std::vector<size_t>& callees) const {
  const ElfSymbol& symbol = elf_.symbols()[relocation.symbol];
  std::string target;
  if (symbol.section == 0 || symbol.section >= elf_.sections().size()) {
    target = fmt::format("extern {}", symbol.name);
  } else if (const auto& section = elf_.sections()[symbol.section]; is_text(section)) {
    target = fmt::format("code {} +{}", callees.size(), symbol.value);
    callees.push_back(symbol.section);
  } else {
    bool of_module = is_module_data(section);
    target = fmt::format("data {} +{} {} {}", of_module ? section.name : section.name.substr(0, section.name.find('.', 4)),
                         symbol.value, symbol.size, of_module ? canonical_symbol(symbol.name) : "");
  }
  return fmt::format("{} {} {} {}", relocation.offset, relocation.type, relocation.addend, target);
}

Result<const CubinIdentity::CodeDigest*> CubinIdentity::code(size_t section) {
  if (auto known = code_.find(section); known != code_.end()) return &known->second;
  auto relocations = elf_.relocations_of(section);
  if (!relocations) return relocations.failure();
  CodeDigest digest;
  Sha256 hash;
  hash.add(elf_.sections()[section].content);
  for (const auto& relocation : *relocations) hash.add(describe_target(relocation, digest.callees));
  std::string_view function = elf_.sections()[section].name.substr(kText.size());
  for (char bank = '1'; bank <= '9'; ++bank) {
    auto index = elf_.section_index(fmt::format(".nv.constant{}.{}", bank, function));
    if (!index) continue;
    auto in_bank = elf_.relocations_of(*index);
    if (!in_bank) return in_bank.failure();
    hash.add(std::string(1, bank)).add(elf_.sections()[*index].content);
    for (const auto& relocation : *in_bank) hash.add(describe_target(relocation, digest.callees));
  }
  digest.hex = hash.hex();
  return &code_.emplace(section, std::move(digest)).first->second;
}

Result<const CubinIdentity::CodeDigest*> CubinIdentity::module_data() {
  if (data_) return &*data_;
  CodeDigest digest;
  Sha256 hash;
  const auto& sections = elf_.sections();
  for (size_t i = 0; i < sections.size(); ++i) {
    if (!is_module_data(sections[i])) continue;
    auto relocations = elf_.relocations_of(i);
    if (!relocations) return relocations.failure();
    hash.add(sections[i].name).add(std::to_string(sections[i].size)).add(sections[i].content);
    for (const auto& relocation : *relocations) hash.add(describe_target(relocation, digest.callees));
  }
  std::set<std::string> objects;  // sorted: their order in the symbol table changes with debug information
  for (const auto& symbol : elf_.symbols()) {
    if (symbol.section == 0 || symbol.section >= sections.size() || !is_module_data(sections[symbol.section])) continue;
    if (symbol.size == 0) continue;
    objects.insert(fmt::format("{} {} {} {}", sections[symbol.section].name, symbol.value, symbol.size,
                               canonical_symbol(symbol.name)));
  }
  for (const auto& object : objects) hash.add(object);
  digest.hex = hash.hex();
  data_ = std::move(digest);
  return &*data_;
}

Result<std::string> CubinIdentity::kernel_id(size_t text, std::string_view name, const std::string& figures,
                                             const ParamBank& params) {
  Sha256 hash;
  hash.add("kgate cubin 1").add(figures);
  auto data = module_data();
  if (!data) return data.failure();
  hash.add((*data)->hex);

  if (auto index = elf_.section_index(fmt::format(".nv.constant0.{}", name))) {
    std::string bank(elf_.sections()[*index].content);
    bank.erase(std::min<size_t>(params.base, bank.size()), params.size);
    hash.add(bank);
  }

  // Functions are numbered as they are discovered, so that section numbers and names do not matter.
  std::vector<size_t> order;
  std::map<size_t, size_t> number;
  auto visit = [&](size_t section) {
    auto [at, is_new] = number.try_emplace(section, order.size());
    if (is_new) order.push_back(section);
    return at->second;
  };
  visit(text);
  for (size_t callee : (*data)->callees) hash.add(fmt::format("data calls {}", visit(callee)));
  for (size_t i = 0; i < order.size(); ++i) {
    auto digest = code(order[i]);
    if (!digest) return digest.failure();
    hash.add((*digest)->hex);
    for (size_t callee : (*digest)->callees) hash.add(fmt::format("calls {}", visit(callee)));
  }
  return hash.hex();
}

}  // namespace kgate
