// Which instructions are emulated: arch/x86/kernel/uprobes.c, push_setup_xol_ops and branch_setup_xol_ops; measured
// costs in docs/tracing.md.
#include "trace/probe_symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "support/fd.h"

namespace kgate::trace {

namespace {

uint8_t at(std::span<const std::byte> code, size_t index) {
  return index < code.size() ? std::to_integer<uint8_t>(code[index]) : 0;
}

bool emulated(std::span<const std::byte> code) {
  uint8_t first = at(code, 0), second = at(code, 1);
  if (first >= 0x50 && first <= 0x57) return true;                                    // push %r
  if (first == 0x41 && second >= 0x50 && second <= 0x57) return true;                 // push %r8 ... %r15
  if (first == 0x90 || first == 0xe9 || first == 0xeb || first == 0xe8) return true;  // nop, jmp, call
  static constexpr uint8_t kNop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
  return code.size() >= sizeof kNop5 && std::memcmp(code.data(), kNop5, sizeof kNop5) == 0;
}

// Bounds-checked views of an ELF file.
class Elf {
 public:
  explicit Elf(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  bool read(uint64_t offset, T* out) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return false;
    std::memcpy(out, bytes_.data() + offset, sizeof(T));
    return true;
  }
  std::string text(uint64_t offset, uint64_t end) const {
    end = std::min<uint64_t>(end, bytes_.size());
    if (offset >= end) return {};
    const char* from = reinterpret_cast<const char*>(bytes_.data()) + offset;
    return std::string(from, strnlen(from, end - offset));
  }
  std::span<const std::byte> code(uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    return bytes_.subspan(offset, std::min<uint64_t>(16, bytes_.size() - offset));
  }

  std::string open() {
    if (!read(0, &header_) || std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0) return "not an ELF file";
    if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB ||
        header_.e_machine != EM_X86_64)
      return "not an x86-64 library: kgate's probes know no other machine";
    for (uint64_t i = 0; i < header_.e_phnum; ++i) {
      Elf64_Phdr segment;
      if (!read(header_.e_phoff + i * sizeof segment, &segment)) return "damaged program headers";
      if (segment.p_type == PT_LOAD) segments_.push_back(segment);
    }
    for (uint64_t i = 0; i < header_.e_shnum; ++i) {
      Elf64_Shdr section, strings;
      if (!read(header_.e_shoff + i * sizeof section, &section)) return "damaged section headers";
      if (section.sh_type != SHT_DYNSYM) continue;
      if (section.sh_link >= header_.e_shnum || !read(header_.e_shoff + section.sh_link * sizeof strings, &strings))
        return "damaged section headers";
      symbols_ = section;
      strings_ = strings;
      return {};
    }
    return "no dynamic symbols";
  }

  uint64_t symbol_count() const { return std::min<uint64_t>(symbols_.sh_size, bytes_.size()) / sizeof(Elf64_Sym); }
  bool symbol(uint64_t index, Elf64_Sym* out) const { return read(symbols_.sh_offset + index * sizeof *out, out); }
  std::string name(const Elf64_Sym& symbol) const {
    return text(strings_.sh_offset + symbol.st_name, strings_.sh_offset + strings_.sh_size);
  }

  // Only addresses in executable segments have an offset worth probing.
  bool file_offset(uint64_t address, uint64_t* offset) const {
    for (const Elf64_Phdr& s : segments_)
      if ((s.p_flags & PF_X) && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz) {
        *offset = address - s.p_vaddr + s.p_offset;
        return *offset < bytes_.size();
      }
    return false;
  }

 private:
  std::span<const std::byte> bytes_;
  Elf64_Ehdr header_{};
  Elf64_Shdr symbols_{}, strings_{};
  std::vector<Elf64_Phdr> segments_;
};

}  // namespace

ProbeSymbol::Cost probe_cost(std::span<const std::byte> code) {
  static constexpr uint8_t kEndbr64[kEndbrBytes] = {0xf3, 0x0f, 0x1e, 0xfa};
  if (emulated(code)) return ProbeSymbol::Cost::emulated;
  if (code.size() > kEndbrBytes && std::memcmp(code.data(), kEndbr64, kEndbrBytes) == 0 &&
      emulated(code.subspan(kEndbrBytes)))
    return ProbeSymbol::Cost::emulated_after_endbr;
  return ProbeSymbol::Cost::single_step;
}

Result<std::string> library_file(int pid, const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  std::string stem = name.substr(0, name.find(".so")) + ".so";
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    size_t path = line.find('/');
    if (path == std::string::npos) continue;
    std::string file = line.substr(path), base = file.substr(file.rfind('/') + 1);
    if (base == name || base == stem || base.starts_with(stem + ".")) return file;
  }
  return Failure{"process " + std::to_string(pid) + " has not loaded " + name, "eBPF", {}};
}

Result<Fd> open_library(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return Failure{std::string("cannot open: ") + std::strerror(errno), path, {}};
  return fd;
}

namespace {

// By place in `wanted`; two names may have one address.
Result<std::map<size_t, ProbeSymbol>> find_names(const Fd& library, const std::string& path,
                                                 std::span<const EntryPoint> wanted) {
  struct stat st {};
  if (::fstat(library.get(), &st) != 0) return Failure{std::string("cannot read: ") + std::strerror(errno), path, {}};
  if (!S_ISREG(st.st_mode) || st.st_size == 0) return Failure{"not a library", path, {}};
  auto mapping = Mapping::of(library, static_cast<size_t>(st.st_size), false);
  if (!mapping) return mapping.failure();
  Elf elf(mapping->bytes());
  if (std::string problem = elf.open(); !problem.empty()) return Failure{problem, path, {}};

  std::unordered_map<std::string_view, size_t> rank;
  for (size_t i = 0; i < wanted.size(); ++i) rank.emplace(wanted[i].name, i);
  std::map<size_t, ProbeSymbol> found;
  for (uint64_t i = 1; i < elf.symbol_count(); ++i) {
    Elf64_Sym symbol;
    uint64_t offset = 0;
    if (!elf.symbol(i, &symbol)) break;
    if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
    std::string name = elf.name(symbol);
    auto want = rank.find(name);
    if (want == rank.end() || !elf.file_offset(symbol.st_value, &offset)) continue;
    ProbeSymbol probe{name, wanted[want->second].use, probe_cost(elf.code(offset)), offset, 0};
    if (probe.cost == ProbeSymbol::Cost::emulated_after_endbr) probe.file_offset += kEndbrBytes;
    found.emplace(want->second, std::move(probe));
  }
  return found;
}

}  // namespace

Result<std::vector<ProbeSymbol>> find_probe_symbols(const Fd& library, const std::string& path,
                                                    std::span<const EntryPoint> wanted) {
  auto names = find_names(library, path, wanted);
  if (!names) return names.failure();
  std::vector<ProbeSymbol> found;
  std::unordered_set<uint64_t> offsets;
  for (auto& [_, probe] : *names)
    if (offsets.insert(probe.file_offset).second) found.push_back(std::move(probe));
  return found;
}

Result<std::vector<ProbeSymbol>> find_probe_symbols(const std::string& path, std::span<const EntryPoint> wanted) {
  auto library = open_library(path);
  if (!library) return library.failure();
  return find_probe_symbols(*library, path, wanted);
}

Result<EntryPointSurvey> survey_entry_points(const std::string& path) {
  auto library = open_library(path);
  if (!library) return library.failure();
  auto names = find_names(*library, path, entry_points());
  if (!names) return names.failure();
  EntryPointSurvey survey;
  survey.exported = names->size();
  std::unordered_set<uint64_t> offsets;
  for (const auto& [_, probe] : *names) {
    ++survey.by_use[static_cast<size_t>(probe.use)];
    survey.emulated += probe.cost == ProbeSymbol::Cost::emulated;
    survey.emulated_after_endbr += probe.cost == ProbeSymbol::Cost::emulated_after_endbr;
    survey.single_step += probe.cost == ProbeSymbol::Cost::single_step;
    if (probe.cost == ProbeSymbol::Cost::single_step) survey.single_stepped.push_back(probe.name);
    survey.aliases += !offsets.insert(probe.file_offset).second;
  }
  for (size_t i = 0; i < entry_points().size(); ++i)
    if (!names->contains(i)) survey.absent.push_back(entry_points()[i].name);
  return survey;
}

}  // namespace kgate::trace
