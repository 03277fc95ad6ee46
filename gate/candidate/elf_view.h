// A bounds-checked view of an ELF64 little-endian file: sections, symbols, relocations.
//
// Why an own reader: the input is untrusted, and libelf neither promises to survive hostile files nor knows that NVIDIA's
// processor-specific section types (.nv.global, .nv.shared) carry a size but no bytes. Every offset is checked once, in
// open(); afterwards the views cannot reach outside the file. The file must outlive the view.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "support/error.h"

namespace kgate {

struct ElfHeader {
  uint8_t os_abi = 0, abi_version = 0;
  uint16_t type = 0, machine = 0;
  uint32_t version = 0, flags = 0;
};

struct ElfSection {
  std::string_view name;
  std::string_view content;  // empty where the type says that the file holds no bytes
  uint32_t type = 0, link = 0, info = 0;
  uint64_t flags = 0, size = 0;
};

struct ElfSymbol {
  std::string_view name;
  uint8_t type = 0;     // STT_*
  uint8_t binding = 0;  // STB_*
  uint8_t other = 0;
  uint16_t section = 0;  // 0: undefined
  uint64_t value = 0, size = 0;
};

struct ElfRelocation {
  uint64_t offset = 0;
  uint32_t type = 0, symbol = 0;
  int64_t addend = 0;
};

class ElfView {
 public:
  static constexpr uint8_t kFunction = 2;
  static constexpr uint8_t kLocal = 0, kGlobal = 1;

  static Result<ElfView> open(std::string_view file);

  const ElfHeader& header() const { return header_; }
  const std::vector<ElfSection>& sections() const { return sections_; }
  const std::vector<ElfSymbol>& symbols() const { return symbols_; }
  const ElfSection* section(std::string_view name) const;
  std::optional<size_t> section_index(std::string_view name) const;

  // Of section `index`, in file order, from every SHT_REL and SHT_RELA section that applies to it.
  Result<std::vector<ElfRelocation>> relocations_of(size_t index) const;

 private:
  Result<std::monostate> read_sections(std::string_view file);
  Result<std::monostate> read_symbols();

  ElfHeader header_;
  std::vector<ElfSection> sections_;
  std::vector<ElfSymbol> symbols_;
  std::unordered_map<std::string_view, size_t> by_name_;
  std::vector<std::vector<size_t>> relocating_;  // section → the relocation sections that apply to it
};

// Little-endian loads; the caller has checked the bounds.
uint16_t load_u16(std::string_view bytes, size_t at);
uint32_t load_u32(std::string_view bytes, size_t at);
uint64_t load_u64(std::string_view bytes, size_t at);

}  // namespace kgate
