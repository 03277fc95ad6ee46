#include "candidate/elf_view.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "support/text.h"

namespace kgate {

namespace {

static_assert(std::endian::native == std::endian::little, "the loads below copy bytes");

constexpr size_t kHeaderBytes = 64, kSectionHeaderBytes = 64, kSymbolBytes = 24;
constexpr uint32_t kSymtab = 2, kStrtab = 3, kRela = 4, kNobits = 8, kRel = 9;
// Processor-specific types that only reserve space: CUDA_GLOBAL, CUDA_LOCAL, CUDA_SHARED.
constexpr uint32_t kCudaGlobal = 0x70000007, kCudaLocal = 0x70000009, kCudaShared = 0x7000000a;

bool has_no_bytes(uint32_t type) {
  return type == 0 || type == kNobits || type == kCudaGlobal || type == kCudaLocal || type == kCudaShared;
}

bool inside(uint64_t offset, uint64_t size, uint64_t total) { return offset <= total && size <= total - offset; }

Failure broken(std::string what) { return {std::move(what), {}, "the file is truncated or damaged"}; }

std::optional<std::string_view> text_at(std::string_view table, uint64_t offset) {
  if (offset >= table.size()) return std::nullopt;
  size_t end = table.find('\0', offset);
  if (end == std::string_view::npos) return std::nullopt;
  return table.substr(offset, end - offset);
}

template <typename T>
T load(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

uint16_t load_u16(std::string_view bytes, size_t at) { return load<uint16_t>(bytes, at); }
uint32_t load_u32(std::string_view bytes, size_t at) { return load<uint32_t>(bytes, at); }
uint64_t load_u64(std::string_view bytes, size_t at) { return load<uint64_t>(bytes, at); }

Result<ElfView> ElfView::open(std::string_view file) {
  if (file.size() < kHeaderBytes) return broken(fmt::format("an ELF header needs 64 bytes, the file has {}", file.size()));
  if (file.substr(0, 4) != "\x7f" "ELF") return broken("not an ELF file");
  if (file[4] != 2 || file[5] != 1) return broken("not a 64-bit little-endian ELF file");
  ElfView view;
  view.header_ = {static_cast<uint8_t>(file[7]), static_cast<uint8_t>(file[8]), load_u16(file, 16), load_u16(file, 18),
                  load_u32(file, 20), load_u32(file, 48)};
  if (auto read = view.read_sections(file); !read) return read.failure();
  if (auto read = view.read_symbols(); !read) return read.failure();
  return view;
}

Result<std::monostate> ElfView::read_sections(std::string_view file) {
  uint64_t table = load_u64(file, 40);
  size_t entry_bytes = load_u16(file, 58), count = load_u16(file, 60), names_at = load_u16(file, 62);
  if (count == 0) return broken("the ELF file has no sections");
  if (entry_bytes != kSectionHeaderBytes) return broken(fmt::format("section headers of {} bytes", entry_bytes));
  if (!inside(table, count * kSectionHeaderBytes, file.size()))
    return broken(fmt::format("the section table (offset {}, {} sections) lies outside the file of {} bytes", table, count,
                              file.size()));
  if (names_at >= count) return broken("the section names' index is out of range");

  std::vector<uint32_t> name_offsets;
  for (size_t i = 0; i < count; ++i) {
    size_t at = table + i * kSectionHeaderBytes;
    ElfSection section;
    name_offsets.push_back(load_u32(file, at));
    section.type = load_u32(file, at + 4);
    section.flags = load_u64(file, at + 8);
    uint64_t offset = load_u64(file, at + 24);
    section.size = load_u64(file, at + 32);
    section.link = load_u32(file, at + 40);
    section.info = load_u32(file, at + 44);
    if (!has_no_bytes(section.type)) {
      if (!inside(offset, section.size, file.size()))
        return broken(fmt::format("section {} (offset {}, {} bytes) lies outside the file of {} bytes", i, offset,
                                  section.size, file.size()));
      section.content = file.substr(offset, section.size);
    }
    sections_.push_back(section);
  }
  relocating_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    auto name = text_at(sections_[names_at].content, name_offsets[i]);
    if (!name) return broken(fmt::format("section {} has its name outside the name table", i));
    sections_[i].name = *name;
    by_name_.try_emplace(*name, i);
    bool relocates = sections_[i].type == kRel || sections_[i].type == kRela;
    if (relocates && sections_[i].info < count) relocating_[sections_[i].info].push_back(i);
  }
  return std::monostate{};
}

Result<std::monostate> ElfView::read_symbols() {
  const ElfSection* table = nullptr;
  for (const auto& section : sections_) {
    if (section.type != kSymtab) continue;
    if (table) return broken("more than one symbol table");
    table = &section;
  }
  if (!table) return std::monostate{};
  if (table->size % kSymbolBytes != 0) return broken("the symbol table's size is not a multiple of 24");
  if (table->link >= sections_.size() || sections_[table->link].type != kStrtab)
    return broken("the symbol table names no string table");
  std::string_view names = sections_[table->link].content;
  for (size_t at = 0; at < table->content.size(); at += kSymbolBytes) {
    auto name = text_at(names, load_u32(table->content, at));
    if (!name) return broken(fmt::format("symbol {} has its name outside the string table", at / kSymbolBytes));
    auto info = static_cast<uint8_t>(table->content[at + 4]);
    symbols_.push_back({*name, static_cast<uint8_t>(info & 15), static_cast<uint8_t>(info >> 4),
                        static_cast<uint8_t>(table->content[at + 5]), load_u16(table->content, at + 6),
                        load_u64(table->content, at + 8), load_u64(table->content, at + 16)});
  }
  return std::monostate{};
}

std::optional<size_t> ElfView::section_index(std::string_view name) const {
  auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

const ElfSection* ElfView::section(std::string_view name) const {
  auto index = section_index(name);
  return index ? &sections_[*index] : nullptr;
}

Result<std::vector<ElfRelocation>> ElfView::relocations_of(size_t index) const {
  std::vector<ElfRelocation> relocations;
  for (size_t section : relocating_[index]) {
    std::string_view content = sections_[section].content;
    size_t entry_bytes = sections_[section].type == kRela ? 24 : 16;
    if (content.size() % entry_bytes != 0)
      return broken(fmt::format("section {} has a broken relocation table", sanitize(sections_[section].name)));
    for (size_t at = 0; at < content.size(); at += entry_bytes) {
      ElfRelocation relocation{load_u64(content, at), load_u32(content, at + 8), load_u32(content, at + 12), 0};
      if (entry_bytes == 24) relocation.addend = static_cast<int64_t>(load_u64(content, at + 16));
      if (relocation.symbol >= symbols_.size())
        return broken(fmt::format("section {} relocates against symbol {} of {}", sanitize(sections_[section].name),
                                  relocation.symbol, symbols_.size()));
      relocations.push_back(relocation);
    }
  }
  return relocations;
}

}  // namespace kgate
