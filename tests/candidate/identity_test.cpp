#include "candidate/cubin_identity.h"

#include "candidate/compile.h"
#include "candidate/toolkit.h"
#include "support.h"

namespace kgate {
namespace {

using test::candidate_of;
using test::compile_with_nvcc;
using test::fixture;
using test::replaced;

std::string id_of(const std::string& bytes, const std::string& entry) {
  return (*candidate_of(bytes).entry(entry).value_or_throw(Exit::internal)).kernel_id;
}

TEST(KernelId, a_symbols_name_loses_what_comes_from_the_file) {
  EXPECT_EQ(canonical_symbol("table"), "table");
  EXPECT_EQ(canonical_symbol("__nv_static_25__9b3967c9_4_r_cu_89f90d4c_counter"), "counter");
  EXPECT_EQ(canonical_symbol("_ZN40_INTERNAL_9b3967c9_4_r_cu_89f90d4c_1234567counterE"),
            canonical_symbol("_ZN44_INTERNAL_1b3967c9_8_other_cu_89f90d4c_1234567counterE"));
  EXPECT_EQ(canonical_symbol("_ZZ10scale_rowsPfE4tile"), "");
  EXPECT_EQ(canonical_symbol("__nv_static_99_x"), "__nv_static_99_x");
  EXPECT_EQ(canonical_symbol("__nv_static_99999999999999999999_x"), "__nv_static_99999999999999999999_x");
  EXPECT_EQ(canonical_symbol("_INTERNAL_"), "_INTERNAL_");
}

TEST(KernelId, every_byte_of_the_code_counts) {
  for (const char* file : {"rows_sm_75.cubin", "rows_sm_90.cubin", "rows_sm_120.cubin"}) {
    std::string good = fixture(file), bytes = good;
    std::string id = id_of(good, "fill");
    size_t header = test::section_header(good, ".text.fill");
    auto at = test::peek<uint64_t>(good, header + 24), size = test::peek<uint64_t>(good, header + 32);
    for (size_t i = 0; i < size; i += 7) {
      bytes = good;
      bytes[at + i] ^= 1;
      EXPECT_NE(id_of(bytes, "fill"), id) << i;
      EXPECT_EQ(id_of(bytes, "scale_rows"), id_of(good, "scale_rows")) << i;
    }
  }
}

TEST(KernelId, the_constants_of_the_module_count) {
  std::string bytes = fixture("rows_sm_90.cubin");
  auto at = test::peek<uint64_t>(bytes, test::section_header(bytes, ".nv.constant3") + 24);
  std::string id = id_of(bytes, "scale_rows");
  bytes[at + 2] ^= 1;
  EXPECT_NE(id_of(bytes, "scale_rows"), id);
}

class CompiledIdentity : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!test::nvcc()) GTEST_SKIP() << "no nvcc here";
  }
  std::string build(const std::string& source, const std::string& file = "rows.cu", std::vector<std::string> more = {}) {
    more.push_back(std::string("-arch=sm_") + GetParam());
    return compile_with_nvcc(source, file, more);
  }
};

TEST_P(CompiledIdentity, names_files_and_line_information_do_not_count) {
  std::string source = fixture("rows.cu");
  std::string id = id_of(build(source), "scale_rows");
  EXPECT_EQ(id_of(build(source, "rows.cu", {"-lineinfo"}), "scale_rows"), id);
  EXPECT_EQ(id_of(build("\n\n// moved\n" + source, "elsewhere.cu"), "scale_rows"), id);
  EXPECT_EQ(id_of(build(replaced(source, "scale_rows", "another_name")), "another_name"), id);
  EXPECT_EQ(id_of(build(replaced(source, "polish", "p")), "scale_rows"), id);
}

TEST_P(CompiledIdentity, constants_code_launch_bounds_and_globals_count) {
  std::string source = fixture("rows.cu");
  std::string id = id_of(build(source), "scale_rows");
  auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = replaced(source, from, to);
    EXPECT_NE(text, source) << from;
    return id_of(build(text), "scale_rows");
  };
  EXPECT_NE(changed("3.14159274f", "3.14159297f"), id);
  EXPECT_NE(changed("4.f}", "5.f}"), id);
  EXPECT_NE(changed("x * x +", "x * x -"), id);
  EXPECT_NE(changed("__launch_bounds__(128)", "__launch_bounds__(256)"), id);
  EXPECT_NE(changed("tile[128]", "tile[160]"), id);
}

TEST_P(CompiledIdentity, separately_compiled_callees_are_followed_through_relocations) {
  const std::string source =
      "static __device__ int counter; static __constant__ float bias[3] = {1, 2, 3};\n"
      "__device__ __noinline__ float leaf(float x) { return x * 3 + bias[(int)x]; }\n"
      "__device__ __noinline__ float middle(float x) { return leaf(x - 1) + counter; }\n"
      "extern \"C\" __global__ void calls(float* p) { p[0] = middle(p[1]); atomicAdd(&counter, 1); }\n";
  std::string id = id_of(build(source, "a.cu", {"-rdc=true"}), "calls");
  EXPECT_EQ(id_of(build(source, "another.cu", {"-rdc=true"}), "calls"), id);
  EXPECT_EQ(id_of(build(replaced(source, "leaf", "lowest"), "a.cu", {"-rdc=true"}), "calls"), id);
  EXPECT_NE(id_of(build(replaced(source, "x * 3", "x * 5"), "a.cu", {"-rdc=true"}), "calls"), id);
  EXPECT_NE(id_of(build(replaced(source, "&counter, 1", "&counter, 2"), "a.cu", {"-rdc=true"}), "calls"), id);
  EXPECT_NE(id_of(build(replaced(source, "{1, 2, 3}", "{1, 2, 4}"), "a.cu", {"-rdc=true"}), "calls"), id);
}

INSTANTIATE_TEST_SUITE_P(EveryArchitecture, CompiledIdentity, testing::Values("75", "90", "120"));

TEST(KernelId, ptx_identity_masks_the_name_and_sees_a_changed_constant) {
  std::string ptx = fixture("blocks.ptx");
  std::string id = id_of(ptx, "exact");
  EXPECT_EQ(id_of(replaced(ptx, "exact", "renamed"), "renamed"), id);
  EXPECT_EQ(id_of("// more comments\n\n" + ptx, "exact"), id);
  EXPECT_NE(id_of(replaced(ptx, "64, 2, 1", "64, 4, 1"), "exact"), id);
  EXPECT_NE(id_of(replaced(ptx, "cvt.u32.u16", "cvt.s32.s16"), "exact"), id);
  EXPECT_NE(id_of(ptx, "wide"), id);
}

TEST(KernelId, two_ptx_texts_of_one_machine_code_have_one_identity_once_assembled) {
  if (!find_ptxas()) GTEST_SKIP() << "no ptxas here";
  std::string ptx = fixture("blocks.ptx");
  std::string other = replaced(ptx, "%r1", "%r0");
  EXPECT_NE(id_of(ptx, "exact"), id_of(other, "exact"));
  EXPECT_EQ(id_of(assemble(ptx, {}).image, "exact"), id_of(assemble(other, {}).image, "exact"));
}

}  // namespace
}  // namespace kgate
