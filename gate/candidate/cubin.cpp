#include "candidate/cubin.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <unordered_map>

#include "candidate/cubin_identity.h"
#include "candidate/cubin_info.h"
#include "candidate/elf_view.h"
#include "support/text.h"

namespace kgate {

namespace {

constexpr uint8_t kOldOsAbi = 0x33, kNewOsAbi = 0x41;  // CUDA <= 12, CUDA 13
constexpr uint8_t kEntryFlag = 0x10;                   // st_other of a kernel
constexpr uint32_t kOldAccelerated = 0x800;            // e_flags of sm_90a and the like in the old ABI
constexpr uint32_t kNewAccelerated = 0x8;              // the same in the new ABI; CUDA 12.8 sets it, CUDA 13 no longer does
constexpr uint32_t kReservedShared = 0x400;            // that linking for sm_90+ adds to .nv.shared.<kernel>
constexpr uint32_t kNobits = 8;                        // its type once linked; relocatable files have a CUDA type there
constexpr uint32_t kMaxParamBytes = 32'764;            // CUDA's limit since 12.1

struct GlobalInfo {
  std::unordered_map<uint32_t, uint32_t> registers, frame;  // by symbol index
};

Failure in_section(std::string_view section, Failure failure) {
  failure.what = fmt::format("section {}: {}", sanitize(section), failure.what);
  if (failure.hint.empty()) failure.hint = "the cubin is damaged";
  return failure;
}

bool old_abi(const ElfView& elf) { return elf.header().os_abi == kOldOsAbi; }

// The letter after "-arch sm_<arch>" in the command line that .note.nv.tkinfo keeps.
std::string suffix_in_tool_note(const ElfView& elf, int arch) {
  const ElfSection* note = elf.section(".note.nv.tkinfo");
  if (!note) return {};
  std::string wanted = fmt::format("-arch sm_{}", arch);
  size_t at = note->content.find(wanted);
  if (at == std::string_view::npos || at + wanted.size() >= note->content.size()) return {};
  char letter = note->content[at + wanted.size()];
  return letter == 'a' || letter == 'f' ? std::string(1, letter) : std::string();
}

// .nv.compat: {format, attribute, u16 value}; attribute 9 is 1 for an `a` target.
bool accelerated_in_compat(const ElfView& elf) {
  const ElfSection* compat = elf.section(".nv.compat");
  if (!compat) return false;
  for (size_t at = 0; at + 4 <= compat->content.size();) {
    auto format = static_cast<uint8_t>(compat->content[at]);
    if (format == 2 && compat->content[at + 1] == 9) return compat->content[at + 2] == 1;
    at += 4 + (format == 4 ? (size_t{load_u16(compat->content, at + 2)} + 3) / 4 * 4 : 0);
  }
  return false;
}

// "release 13.0" in .note.nv.tkinfo.
std::string release_in_tool_note(const ElfView& elf) {
  constexpr std::string_view word = "release ";
  const ElfSection* note = elf.section(".note.nv.tkinfo");
  size_t at = note ? note->content.find(word) : std::string_view::npos;
  if (at == std::string_view::npos) return {};
  std::string_view rest = note->content.substr(at + word.size());
  return std::string(rest.substr(0, std::min<size_t>(rest.find_first_not_of("0123456789."), 8)));
}

void read_target(const ElfView& elf, Cubin& cubin) {
  uint32_t flags = elf.header().flags;
  std::string suffix;
  if (old_abi(elf)) {
    cubin.arch = static_cast<int>(flags & 0xff);
    if (flags & kOldAccelerated) suffix = "a";
    uint32_t toolkit = elf.header().version;  // x 10
    if (toolkit >= 60 && toolkit < 1000) cubin.toolkit = fmt::format("{}.{}", toolkit / 10, toolkit % 10);
  } else {
    cubin.arch = static_cast<int>(flags >> 8 & 0xff);
    suffix = suffix_in_tool_note(elf, cubin.arch);
    if (suffix.empty() && (flags & kNewAccelerated || accelerated_in_compat(elf))) suffix = "a";
    cubin.toolkit = release_in_tool_note(elf);
  }
  cubin.target = fmt::format("sm_{}{}", cubin.arch, suffix);
}

Result<GlobalInfo> read_global_info(const ElfView& elf) {
  GlobalInfo info;
  const ElfSection* section = elf.section(".nv.info");
  if (!section) return info;
  auto records = read_info_records(section->content);
  if (!records) return in_section(section->name, records.failure());
  for (const auto& record : *records) {
    bool registers = record.attribute == InfoAttribute::regcount;
    if (!registers && record.attribute != InfoAttribute::frame_size) continue;
    if (record.payload.size() < 8) return in_section(section->name, {"a record for a symbol is too short", {}, {}});
    uint32_t symbol = load_u32(record.payload, 0);
    if (symbol >= elf.symbols().size()) return in_section(section->name, {"a record names no symbol", {}, {}});
    (registers ? info.registers : info.frame)[symbol] = load_u32(record.payload, 4);
  }
  return info;
}

struct KernelInfo {
  std::vector<std::pair<uint16_t, EntryParam>> params;  // with the ordinal
  std::optional<uint32_t> param_bytes;
  ParamBank bank;
  std::optional<Dim3> reqntid, maxntid, cluster;
  std::optional<uint32_t> barriers;
};

Result<EntryParam> read_param(const InfoRecord& record) {
  if (record.payload.size() < 12) return Failure{"a parameter record is too short", {}, {}};
  uint32_t word = load_u32(record.payload, 8);
  EntryParam param;
  param.offset = load_u16(record.payload, 6);
  param.size = record.attribute == InfoAttribute::kparam_info ? word >> 18 : word;
  // The low byte is the log2 of the alignment in .nv.info of kparam_info; compilers leave it 0, which then says nothing.
  uint32_t log_align = record.attribute == InfoAttribute::kparam_info ? word & 0xff : 0;
  if (log_align > 0 && log_align < 16) param.align = 1u << log_align;
  return param;
}

Result<Dim3> read_extent(const InfoRecord& record) {
  if (record.payload.size() < 12) return Failure{"a record with three extents is too short", {}, {}};
  return Dim3{load_u32(record.payload, 0), load_u32(record.payload, 4), load_u32(record.payload, 8)};
}

Result<std::monostate> take_record(const InfoRecord& record, KernelInfo& info) {
  auto extent_into = [&](std::optional<Dim3>& slot) -> Result<std::monostate> {
    auto extent = read_extent(record);
    if (!extent) return extent.failure();
    slot = *extent;
    return std::monostate{};
  };
  switch (record.attribute) {
    case InfoAttribute::kparam_info:
    case InfoAttribute::kparam_info_v2: {
      auto param = read_param(record);
      if (!param) return param.failure();
      info.params.emplace_back(load_u16(record.payload, 4), *param);
      return std::monostate{};
    }
    case InfoAttribute::cbank_param_size: info.param_bytes = record.value; return std::monostate{};
    case InfoAttribute::param_cbank:
      if (record.payload.size() < 8) return Failure{"the parameter bank's record is too short", {}, {}};
      info.bank = {load_u16(record.payload, 4), load_u16(record.payload, 6)};
      return std::monostate{};
    case InfoAttribute::max_threads: return extent_into(info.maxntid);
    case InfoAttribute::reqntid: return extent_into(info.reqntid);
    case InfoAttribute::cta_per_cluster: return extent_into(info.cluster);
    case InfoAttribute::num_barriers: info.barriers = record.value & 0xff; return std::monostate{};
    default: return std::monostate{};
  }
}

// Sorted by ordinal; refused unless they are 0..n-1 and lie one after the other in the block.
Result<std::monostate> settle_params(KernelInfo& info, Entry& entry) {
  std::stable_sort(info.params.begin(), info.params.end(), [](auto& a, auto& b) { return a.first < b.first; });
  uint64_t end = 0;
  for (size_t i = 0; i < info.params.size(); ++i) {
    const auto& [ordinal, param] = info.params[i];
    if (ordinal != i) return Failure{fmt::format("parameter {} is missing or described twice", i), {}, {}};
    if (param.offset < end) return Failure{fmt::format("parameter {} overlaps the one before it", i), {}, {}};
    end = uint64_t{param.offset} + param.size;
    entry.params.push_back(param);
  }
  uint64_t total = info.param_bytes ? *info.param_bytes : std::max<uint64_t>(end, info.bank.size);
  if (end > total || total > kMaxParamBytes)
    return Failure{fmt::format("parameters end at byte {} of a block of {} bytes", end, total), {}, {}};
  entry.param_bytes = static_cast<uint32_t>(total);
  return std::monostate{};
}

Result<KernelInfo> read_kernel_info(const ElfView& elf, const std::string& name) {
  KernelInfo info;
  const ElfSection* section = elf.section(".nv.info." + name);
  if (!section) return info;
  auto records = read_info_records(section->content);
  if (!records) return in_section(section->name, records.failure());
  for (const auto& record : *records)
    if (auto taken = take_record(record, info); !taken) return in_section(section->name, taken.failure());
  return info;
}

Result<uint32_t> static_shared(const ElfView& elf, const std::string& name, int arch) {
  const ElfSection* section = elf.section(".nv.shared." + name);
  if (!section) return uint32_t{0};
  if (section->size > UINT32_MAX) return in_section(section->name, {"impossible size", {}, {}});
  auto size = static_cast<uint32_t>(section->size);
  bool has_reserve = arch >= 90 && section->type == kNobits && size >= kReservedShared;
  return has_reserve ? size - kReservedShared : size;
}

std::string figures(const Cubin& cubin, const Entry& entry, const KernelInfo& info) {
  std::string text = fmt::format("sm_{} regs {} shared {} stack {} barriers {} params {}", cubin.arch,
                                 entry.registers.value_or(0), entry.static_shared, entry.stack_bytes.value_or(0),
                                 entry.barriers.value_or(0), entry.param_bytes);
  for (const auto& param : entry.params) text += fmt::format(" {}+{}", param.offset, param.size);
  for (const auto& extent : {info.reqntid, info.maxntid, info.cluster})
    text += extent ? fmt::format(" [{} {} {}]", extent->x, extent->y, extent->z) : " []";
  return text;
}

Result<Entry> read_entry(const ElfView& elf, const Cubin& cubin, const GlobalInfo& global, size_t index,
                         CubinIdentity& identity) {
  const ElfSymbol& symbol = elf.symbols()[index];
  const ElfSection& text = elf.sections()[symbol.section];
  Entry entry;
  entry.name = symbol.name;
  auto info = read_kernel_info(elf, entry.name);
  if (!info) return info.failure();
  if (auto settled = settle_params(*info, entry); !settled)
    return in_section(".nv.info." + entry.name, settled.failure());
  entry.reqntid = info->reqntid;
  entry.maxntid = info->maxntid;
  auto shared = static_shared(elf, entry.name, cubin.arch);
  if (!shared) return shared.failure();
  entry.static_shared = *shared;

  auto key = static_cast<uint32_t>(index);
  if (auto found = global.registers.find(key); found != global.registers.end())
    entry.registers = found->second;
  else if (cubin.arch < 90 && text.info >> 24)
    entry.registers = text.info >> 24;
  if (auto found = global.frame.find(key); found != global.frame.end()) entry.stack_bytes = found->second;
  // Before the record existed the number of barriers stood in bits 20 to 26 of the section's flags.
  entry.barriers = info->barriers ? *info->barriers
                                  : old_abi(elf) ? static_cast<uint32_t>(text.flags >> 20 & 0x7f) : 0;

  auto id = identity.kernel_id(symbol.section, entry.name, figures(cubin, entry, *info), info->bank);
  if (!id) return id.failure();
  entry.kernel_id = *id;
  return entry;
}

}  // namespace

Result<Cubin> read_cubin(std::string_view bytes) {
  auto elf = ElfView::open(bytes);
  if (!elf) return elf.failure();
  const ElfHeader& header = elf->header();
  if (header.machine != kMachineCuda)
    return Failure{fmt::format("ELF machine {} is not NVIDIA CUDA", header.machine), {}, {}};
  if (header.os_abi != kOldOsAbi && header.os_abi != kNewOsAbi)
    return Failure{fmt::format("unknown cubin ABI: EI_OSABI 0x{:02x}, EI_ABIVERSION {}", header.os_abi, header.abi_version),
                   {}, "known are 0x33 (CUDA 12 and older) and 0x41 (CUDA 13)"};
  Cubin cubin;
  read_target(*elf, cubin);
  if (cubin.arch < 20) return Failure{fmt::format("the header names no architecture (e_flags 0x{:x})", header.flags), {}, {}};
  auto global = read_global_info(*elf);
  if (!global) return global.failure();
  CubinIdentity identity(*elf);
  std::set<std::string_view> names;
  for (size_t i = 0; i < elf->symbols().size(); ++i) {
    const ElfSymbol& symbol = elf->symbols()[i];
    if (symbol.type != ElfView::kFunction || !(symbol.other & kEntryFlag)) continue;
    if (symbol.section >= elf->sections().size() || !elf->sections()[symbol.section].name.starts_with(".text."))
      return Failure{fmt::format("kernel '{}' has no code", sanitize(symbol.name)), {}, "the cubin is damaged"};
    if (!names.insert(symbol.name).second)
      return Failure{fmt::format("kernel '{}' is defined twice", sanitize(symbol.name)), {}, "the cubin is damaged"};
    auto entry = read_entry(*elf, cubin, *global, i, identity);
    if (!entry) return entry.failure();
    cubin.entries.push_back(std::move(*entry));
  }
  if (cubin.entries.empty()) return Failure{"the cubin holds no kernel", {}, "give a file with a __global__ function"};
  return cubin;
}

}  // namespace kgate
