// The shape of libkgate_vgpu.so: what it exports, and that probes can sit on it cheaply and exactly.
#include <dlfcn.h>

#include <map>
#include <set>
#include <string>

#include "samples.h"
#include "support/process.h"
#include "support/text.h"
#include "vgpu/driver_exports.h"

namespace kgate {
namespace {

struct Row {
  const char *asked, *exported, *per_thread;
};
constexpr Row kRows[] = {
#define KGATE_ROW(asked, exported) {#asked, #exported, #exported},
#define KGATE_ROW2(asked, exported, per_thread) {#asked, #exported, #per_thread},
    KGATE_EXPORTS(KGATE_ROW, KGATE_ROW2)
#undef KGATE_ROW
#undef KGATE_ROW2
};

class Exports : public ::testing::Test {
 protected:
  std::unique_ptr<gpu::Driver> driver = open_virtual();
};

TEST_F(Exports, get_proc_address_gives_the_exported_addresses) {
  auto get = reinterpret_cast<gpu::CUresult (*)(const char*, void**, int, uint64_t, unsigned*)>(
      driver->symbol("cuGetProcAddress_v2"));
  ASSERT_NE(get, nullptr);
  for (const Row& row : kRows) {
    void *plain = nullptr, *per_thread = nullptr;
    unsigned status = 99;
    EXPECT_EQ(get(row.asked, &plain, 13000, gpu::CU_GET_PROC_ADDRESS_DEFAULT, &status), gpu::CUDA_SUCCESS);
    EXPECT_EQ(status, gpu::CU_GET_PROC_ADDRESS_SUCCESS);
    get(row.asked, &per_thread, 13000, gpu::CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status);
    EXPECT_EQ(plain, driver->symbol(row.exported)) << row.asked;
    EXPECT_EQ(per_thread, driver->symbol(row.per_thread)) << row.asked;
    EXPECT_NE(plain, nullptr) << row.exported;
  }
#define KGATE_ROW(asked, exported, version) {#asked, #exported, version},
#define KGATE_ROW2(asked, exported, per_thread, version) KGATE_ROW(asked, exported, version)
  struct Old {
    const char *asked, *exported;
    int version;
  };
  for (const Old& old : std::initializer_list<Old>{KGATE_OLD_EXPORTS(KGATE_ROW, KGATE_ROW2)}) {
    void *older = nullptr, *newer = nullptr;
    unsigned status = 99;
    get(old.asked, &older, old.version - 1, gpu::CU_GET_PROC_ADDRESS_DEFAULT, &status);
    get(old.asked, &newer, old.version, gpu::CU_GET_PROC_ADDRESS_DEFAULT, &status);
    EXPECT_EQ(older, driver->symbol(old.exported)) << old.asked;
    EXPECT_NE(older, nullptr) << old.asked;
    EXPECT_NE(older, newer) << old.asked;
  }
#undef KGATE_ROW
#undef KGATE_ROW2
  void* absent = &absent;
  unsigned status = 99;
  EXPECT_EQ(get("cuTexObjectCreate", &absent, 13000, 0, &status), gpu::CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(absent, nullptr);
  EXPECT_EQ(status, gpu::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

// A probe on an instruction that the kernel cannot emulate costs a single step: 20 us in a virtual machine.
TEST_F(Exports, what_the_tracer_probes_has_its_own_address_and_starts_with_a_push) {
#if defined(__x86_64__)
  int probed = 0;
  std::map<const void*, std::string> owner;
  for (const Row& row : kRows) {
    for (const char* name : {row.exported, row.per_thread}) {
      const void* address = driver->symbol(name);
      ASSERT_NE(address, nullptr) << name;
      auto [it, added] = owner.emplace(address, name);
      EXPECT_EQ(it->second, name) << "share one address";
      std::string_view view = name;
      if (!view.starts_with("cuLaunch") && view.find("Synchronize") == view.npos && !view.starts_with("cuMemcpy") &&
          !view.starts_with("cuMemset") && !view.starts_with("cuStreamWait")) {
        continue;
      }
      ++probed;
      EXPECT_EQ(*static_cast<const unsigned char*>(address), 0x55) << name << " does not start with push %rbp";
    }
  }
  EXPECT_GE(probed, 35);
#else
  GTEST_SKIP() << "x86-64 only";
#endif
}

TEST_F(Exports, nothing_but_driver_cupti_and_kgate_names_is_visible) {
  if (!find_program("nm")) GTEST_SKIP() << "no nm";
  auto out = run_captured({.argv = {"nm", "-D", "--defined-only", "--format=posix", KGATE_TEST_VGPU},
                           .environment = {},
                           .descriptors = {},
                           .limits = {}},
                          std::chrono::seconds(20));
  ASSERT_TRUE(out && out->status.ok());
  int seen = 0;
  for (std::string_view line : split_lines(out->output)) {
    std::string_view name = line.substr(0, line.find(' '));
    if (name.empty()) continue;
    ++seen;
    EXPECT_TRUE(name.starts_with("cu") || name.starts_with("kgate_vgpu_")) << name;
  }
  EXPECT_GT(seen, 100);
}

TEST_F(Exports, the_abi_structs_are_checked_by_size) {
  auto fault = reinterpret_cast<int (*)(void*, size_t)>(driver->symbol("kgate_vgpu_last_fault"));
  auto counters = reinterpret_cast<int (*)(void*, size_t)>(driver->symbol("kgate_vgpu_last_counters"));
  char room[4096];
  EXPECT_EQ(fault(room, 7), -1);
  EXPECT_EQ(fault(nullptr, 7), -1);
  EXPECT_EQ(counters(room, sizeof room), -1);
}

}  // namespace
}  // namespace kgate
