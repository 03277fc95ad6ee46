// Each entry point of the table: is there one in the driver, and does its probe fire, once, under its name?
#include "trace/entry_points.h"

#include <elf.h>

#include <cstring>
#include <map>
#include <regex>
#include <set>

#include "probes/host_event.h"
#include "support/fd.h"
#include "target.h"

namespace kgate {

namespace trace {
void PrintTo(const EntryPoint& entry, std::ostream* out) { *out << entry.name; }
}  // namespace trace

namespace {

using trace::entry_points;
using trace::EntryPoint;
using Use = ProbeSymbol::Use;

// The names that a library exports as functions, read without the code under test.
std::set<std::string> exported(const char* path) {
  std::string file = *read_file(path);
  std::set<std::string> names;
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(file.data());
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(file.data() + header->e_shoff);
  for (int s = 0; s < header->e_shnum; ++s) {
    if (sections[s].sh_type != SHT_DYNSYM) continue;
    const char* strings = file.data() + sections[sections[s].sh_link].sh_offset;
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(file.data() + sections[s].sh_offset);
    for (size_t i = 0; i < sections[s].sh_size / sizeof(Elf64_Sym); ++i)
      if (symbols[i].st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC)
        names.insert(strings + symbols[i].st_name);
  }
  return names;
}

TEST(EntryPoints, no_name_comes_twice_and_they_fit_the_probes) {
  std::set<std::string> names;
  for (const EntryPoint& entry : entry_points()) EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
  EXPECT_LE(names.size(), static_cast<size_t>(KGATE_MAX_SYMBOLS));
}

TEST(EntryPoints, table_is_searched_by_name) {
  ASSERT_NE(trace::find_entry_point("cuMemcpyHtoDAsync_v2_ptsz"), nullptr);
  EXPECT_EQ(trace::find_entry_point("cuMemcpyHtoDAsync_v2_ptsz")->use, Use::copy);
  EXPECT_EQ(trace::find_entry_point("cuLaunchHostFunc")->use, Use::event);
  EXPECT_EQ(trace::find_entry_point("cuMemcpyHtoDAsync_v9"), nullptr);
  EXPECT_EQ(trace::find_entry_point(""), nullptr);
}

TEST(EntryPoints, every_name_of_the_table_is_one_of_the_drivers) {
  if (!*KGATE_LIBCUDA_STUB) GTEST_SKIP() << "no CUDA toolkit with a stub of libcuda";
  std::set<std::string> real = exported(KGATE_LIBCUDA_STUB);
  ASSERT_GT(real.size(), 500u);
  for (const EntryPoint& entry : entry_points()) EXPECT_TRUE(real.contains(entry.name)) << entry.name;
}

// Names that look like work, synchronisation or memory and are not: why each kind is left out.
const std::pair<const char*, const char*> kLeftOut[] = {
    {"they describe or change a graph that has not been launched",
     "cuGraph(Add|Exec|Event|BatchMemOp|Mem|Memcpy|Memset|ExternalSemaphores|Kernel).*|cuGraphRelease.*"},
    {"it moves a graph's own description, once", "cuGraphUpload(_ptsz)?"},
    {"they ask about memory, events and code, or set a property of them",
     "cu.*(GetAttribute|SetAttribute|GetDescriptor|GetMemoryRequirements|GetSparseProperties|GetAccess|SetAccess)(_v2)?"
     "|"
     "cuArrayGetPlane|cuMipmappedArrayGetLevel|cu(Tex|Surf)Ref.*|cuGraphicsSubResource.*|cuGraphicsResource.*|"
     "cuMemGetAllocation.*|cuMemRetainAllocationHandle|cuEventElapsedTime(_v2)?|cu(Device|Mem)(Get|Set)(Default)?"
     "MemPool|"
     "cuMemGetDefaultMemPool|cuMemPoolExport.*|cuMemExportToShareableHandle|cuGetExportTable|cuMulticastGetGranularity|"
     "cu(Module|Library)(Enumerate|Get).*|cuFuncIsLoaded|cuIpcGet.*|cuDeviceGetHostAtomicCapabilities"},
    {"they make and destroy handles",
     "cuEvent(Create|Destroy)(_v2)?|cuIpcOpenEventHandle|cuUserObjectRelease|"
     "cuImportExternalSemaphore|cuDestroyExternalSemaphore"},
    {"contexts: once a process", "cuDevicePrimaryCtxRelease(_v2)?"},
    {"graphics", "cuGraphicsUnmapResources(_ptsz)?"},
    {"membership of a multicast object, not memory", "cuMulticast(AddDevice|Unbind)"},
};

TEST(EntryPoints, whatever_the_driver_exports_of_this_kind_is_in_the_table_or_left_out_for_a_reason) {
  if (!*KGATE_LIBCUDA_STUB) GTEST_SKIP() << "no CUDA toolkit with a stub of libcuda";
  std::regex looks_relevant(
      "cu.*(Launch|Synchronize|Memcpy|Memset|Alloc|Free|Prefetch|Event|Wait|Pool|Array|MemMap|MemCreate|MemAddress|"
      "Unmap|"
      "Release|HostRegister|HostUnregister|Batch|WriteValue|Load|Multicast|ExternalMemory|ExternalSemaphore|Export|"
      "Import|"
      "Upload|Discard).*|cu(Module|Library).*");
  std::vector<std::regex> left_out;
  for (auto [why, names] : kLeftOut) left_out.emplace_back(names);
  std::vector<bool> needed(left_out.size());
  for (const std::string& name : exported(KGATE_LIBCUDA_STUB)) {
    if (!std::regex_match(name, looks_relevant) || trace::find_entry_point(name)) continue;
    bool excused = false;
    for (size_t i = 0; i < left_out.size(); ++i)
      if (std::regex_match(name, left_out[i])) excused = needed[i] = true;
    EXPECT_TRUE(excused) << name << " is neither in the table nor left out for a reason";
  }
  for (size_t i = 0; i < needed.size(); ++i) EXPECT_TRUE(needed[i]) << "leaves nothing out: " << kLeftOut[i].first;
}

struct Seen {
  uint64_t hits = 0, events = 0;
  Use use{};
};

class EachEntryPoint : public ::testing::TestWithParam<EntryPoint> {
 protected:
  // One child calls each entry point once.
  static void SetUpTestSuite() {
    Target target(KGATE_FULL_DRIVER, [](void* handle) {
      for (const EntryPoint& entry : entry_points()) call(handle, entry.name, 1);
    });
    ProbeOptions options;
    options.scheduler = false;
    auto probes = HostProbes::attach(target.pid(), KGATE_FULL_DRIVER, options);
    if (!probes) {
      failure = probes.failure().what + ". " + probes.failure().hint;
      return;
    }
    target.run();
    std::vector<ProbeSymbol> symbols = (*probes)->symbols();
    for (const ProbeSymbol& symbol : symbols) seen[symbol.name] = {symbol.hits, 0, symbol.use};
    for (const HostEvent& event : (*probes)->take())
      if (event.kind == HostEventKind::api) ++seen[symbols.at(event.symbol).name].events;
  }

  static std::string failure;
  static std::map<std::string, Seen> seen;
};
std::string EachEntryPoint::failure;
std::map<std::string, Seen> EachEntryPoint::seen;

TEST_P(EachEntryPoint, fires_once_for_one_call) {
  if (!failure.empty() && !probe_support().ok) GTEST_SKIP() << failure;
  ASSERT_EQ(failure, "");
  ASSERT_TRUE(seen.contains(GetParam().name)) << "is not probed";
  const Seen& found = seen.at(GetParam().name);
  EXPECT_EQ(found.hits, 1u);
  EXPECT_EQ(found.events, 1u);
  EXPECT_EQ(found.use, GetParam().use);
}

INSTANTIATE_TEST_SUITE_P(Driver, EachEntryPoint, ::testing::ValuesIn(entry_points().begin(), entry_points().end()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(EntryPoints, only_the_uses_that_were_asked_for_are_probed) {
  NEED_EBPF();
  Target target(KGATE_FULL_DRIVER, [](void* handle) {
    for (const EntryPoint& entry : entry_points()) call(handle, entry.name, 2);
  });
  ProbeOptions options;
  options.uses = {Use::sync, Use::module};
  auto probes = HostProbes::attach(target.pid(), KGATE_FULL_DRIVER, options);
  ASSERT_TRUE(probes) << probes.failure().what;
  target.run();
  uint64_t expected = 0;
  for (const EntryPoint& entry : entry_points()) expected += entry.use == Use::sync || entry.use == Use::module;
  EXPECT_EQ((*probes)->symbols().size(), expected);
  EXPECT_EQ((*probes)->hits(Use::sync) + (*probes)->hits(Use::module), 2 * expected);
  EXPECT_EQ((*probes)->hits(Use::launch), 0u);
}

}  // namespace
}  // namespace kgate
