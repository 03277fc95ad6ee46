// What the reader says about a module: parameters, bounds, shared memory, identity; and about what is no module.
#include <fstream>
#include <sstream>

#include "ptx_text.h"

namespace kgate::ptx {
namespace {

TEST(PtxReader, entry_parameters_have_offsets_and_sizes) {
  Module m =
      must_parse(kHeader +
                 ".visible .entry k(.param .u8 a, .param .u64 .ptr .global .align 16 b, .param .u64 .ptr .align 1 c,"
                 " .param .align 64 .b8 d[130], .param .f32 e) .reqntid 128, 2\n.minnctapersm 2 .maxnreg 64 { ret; }");
  const Function& f = m.functions.at(0);
  ASSERT_EQ(f.params.size(), 5u);
  EXPECT_EQ(f.params[1].offset, 8u);
  EXPECT_TRUE(f.params[1].is_pointer);
  EXPECT_FALSE(f.params[0].is_pointer);
  EXPECT_EQ(f.params[2].offset, 16u);
  EXPECT_EQ(f.params[2].align, 8u) << "the alignment after .ptr is the pointee's";
  EXPECT_EQ(f.params[3].offset, 64u);
  EXPECT_EQ(f.params[3].size, 130u);
  EXPECT_EQ(f.params[3].type, "b8[130]");
  EXPECT_EQ(f.params[4].offset, 196u);
  EXPECT_EQ(f.param_bytes, 200u);
  EXPECT_EQ(f.reqntid, (Dim3{128, 2, 1}));
  EXPECT_EQ(f.minnctapersm, 2u);
  EXPECT_EQ(f.maxnreg, 64u);
  EXPECT_EQ(m.version, "8.0");
  EXPECT_EQ(m.target_sm, 80);
}

TEST(PtxReader, static_shared_memory_counts_what_the_kernel_and_its_callees_use) {
  Module m = must_parse(
      kHeader +
      ".shared .align 4 .b8 used[100];\n.shared .align 4 .b8 unused[1000];\n.extern .shared .align 16 .b8 dyn[];\n"
      ".shared .align 8 .b8 by_callee[8];\n.func g() { .reg .b32 r; ld.shared.u32 r, [by_callee]; ret; }\n"
      ".entry k() { .shared .align 16 .b8 own[4]; .reg .b32 r; ld.shared.u32 r, [used]; ld.shared.u32 r, [own]; call "
      "g; ret; }\n"
      ".entry d() { .reg .b32 r; mov.u32 r, dyn; ret; }\n");
  EXPECT_EQ(m.find("k")->static_shared, 112u);  // own[4], used[100] at 4, by_callee[8] at 104: the figure of ptxas 13.0
  EXPECT_FALSE(m.find("k")->uses_dynamic_shared);
  EXPECT_EQ(m.find("d")->static_shared, 0u);
  EXPECT_TRUE(m.find("d")->uses_dynamic_shared);
}

TEST(PtxReader, identity_ignores_layout_comments_line_information_and_the_name) {
  std::string plain = kHeader + ".visible .entry k(.param .u64 k_param_0) { .reg .b32 %r<3>; mov.u32 %r1, 1; ret; }";
  std::string dressed = kHeader +
                        "// made by hand\n.visible .entry\n  other(\n .param .u64 other_param_0 ) /* x */ {\n.reg .b32 "
                        "%r<3>;\n.loc 1 3 7\n"
                        "$L__tmp0:\n\tmov.u32 \t%r1, 1;\n.loc 1 4 2, function_name $L__info_string0, inlined_at 1 9 "
                        "3\n ret;\n}\n.file 1 \"a.cu\"\n"
                        ".section .debug_str\n{\n$L__info_string0:\n.b8 95,90,0\n}\n";
  std::string changed = kHeader + ".visible .entry k(.param .u64 k_param_0) { .reg .b32 %r<3>; mov.u32 %r1, 2; ret; }";
  EXPECT_EQ(must_parse(plain).functions[0].canonical, must_parse(dressed).functions[0].canonical);
  EXPECT_NE(must_parse(plain).functions[0].canonical, must_parse(changed).functions[0].canonical);
}

TEST(PtxReader, identity_covers_callees_and_constants) {
  auto module = [](const std::string& value, const std::string& callee) {
    return kHeader + ".const .u32 c[1] = {" + value + "};\n.func f() { .reg .b32 r; mov.u32 r, " + callee +
           "; ret; }\n"
           ".entry k() { .reg .b32 r; ld.const.u32 r, [c]; call f; ret; }";
  };
  auto of = [](const std::string& text) { return must_parse(text).find("k")->canonical; };
  EXPECT_EQ(of(module("1", "1")), of(module("1", "1")));
  EXPECT_NE(of(module("1", "1")), of(module("2", "1")));
  EXPECT_NE(of(module("1", "1")), of(module("1", "2")));
}

TEST(PtxReader, every_bad_statement_is_reported_with_its_line) {
  auto found =
      must_fail(kernel("mov.u32 %r1, %missing;\nadd.u32 %r1, %r1, 1;\nbra NOWHERE;\n@%r1 bra X;\nX: ld.global.u32 %r2, "
                       "[%rd1;\nmov.u32 %r100, 1;"));
  std::vector<int> lines;
  for (const Diagnostic& d : found) lines.push_back(d.line);
  EXPECT_EQ(lines, (std::vector<int>{9, 11, 12, 13, 14}));
  EXPECT_EQ(found[0].what, "Unknown symbol '%missing'");
}

TEST(PtxReader, recovery_is_not_misled_by_braces_in_operands) {
  auto found = must_fail(kernel("foo.bar {%r1, %zz}, [%rd1];\nadd.u32 %r1, %r1, %yy;"));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].line, 10);
}

TEST(PtxReader, an_unknown_opcode_is_the_executor_s_business) {
  Module m = must_parse(kernel("shflbfly.sync.b32 %r1, %r2;\nldu.global.f32 %f1, [%rd1];"));
  EXPECT_EQ(m.functions[0].statements[0].opcode, "shflbfly");
  EXPECT_EQ(m.statement_text(m.functions[0].statements[1]), "ldu.global.f32 %f1, [%rd1]");
}

TEST(PtxReader, what_is_no_ptx_is_named) {
  auto first = [](const std::string& text) { return must_fail(text).at(0).what; };
  EXPECT_NE(first("").find("empty"), std::string::npos);
  EXPECT_NE(first(" \n\t").find("empty"), std::string::npos);
  EXPECT_NE(first(std::string("\x7f"
                              "ELF\x02\x01\x01\x40",
                              8))
                .find("ELF"),
            std::string::npos);
  EXPECT_NE(first(kHeader + std::string("\0.entry", 7)).find("0x00"), std::string::npos);
  EXPECT_NE(first("hello world").find(".version"), std::string::npos);
  EXPECT_NE(first(kHeader).find("no function"), std::string::npos);
  must_fail("\x89PNG\r\n");
  must_fail(".version 8.0\n.entry k() { ret; }");
  must_fail(".version 8.0\n.target gfx90a\n.entry k() { ret; }");
}

TEST(PtxReader, trailing_zeros_of_a_fatbin_are_no_text) { must_parse(kernel("") + std::string(7, '\0')); }

TEST(PtxReader, every_prefix_of_a_module_is_read_or_refused) {
  std::ifstream in(std::string(KGATE_SOURCE_DIR) + "/tests/vgpu_machine/kernels/softmax_lineinfo.ptx");
  std::stringstream text;
  text << in.rdbuf();
  std::string whole = text.str();
  ASSERT_GT(whole.size(), 1000u);
  must_parse(whole);
  size_t refused = 0;
  for (size_t n = 0; n < whole.size(); n += 37) refused += !parse(std::string_view(whole).substr(0, n));
  EXPECT_GT(refused, whole.size() / 37 / 2);
}

TEST(PtxReader, random_damage_never_crashes) {
  std::string whole = kernel(
      "L: mov.b64 {%r1, %r2}, %rd1; @!%p1 bra L; call.uni (a), f, (%r1); .reg .f32 %q<3>; ld.global.v2.u32 {%r1,%r2}, "
      "[%rd1+-8];");
  uint32_t seed = 1;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = whole;
    for (int k = 0; k < 3; ++k) {
      seed = seed * 1664525 + 1013904223;
      size_t at = (seed >> 8) % damaged.size();
      if (seed & 1)
        damaged[at] = static_cast<char>(seed >> 24);
      else if (seed & 2)
        damaged.erase(at, (seed >> 5) % 20);
      else
        damaged.insert(at, 1, "{}[]();,.%<>"[(seed >> 16) % 12]);
    }
    (void)parse(damaged);
  }
}

TEST(PtxReader, hostile_sizes_are_refused_without_being_allocated) {
  must_parse(kernel(".reg .b32 %big<4000000000>; mov.u32 %big3999999999, 1;"));
  must_fail(kHeader + ".global .b8 x[99999999999999999999];\n.entry k() { ret; }");
  must_fail(kHeader + ".global .b8 x[4294967296][4294967296];\n.entry k() { ret; }");
  must_fail(kHeader + ".entry k(.param .b8 x[100000]) { ret; }");
  must_fail(kernel(std::string(500, '{') + std::string(500, '}')));
  must_fail(kHeader + ".global .u32 x[1] = " + std::string(1000, '{') + "1" + std::string(1000, '}') +
            ";\n.entry k() { ret; }");
  must_fail(kHeader + ".global .u32 x[1] = {1, 2};\n.entry k() { ret; }");
}

TEST(PtxReader, duplicate_names_are_refused) {
  must_fail(kernel(".reg .b32 x; .reg .b32 x;"));
  must_fail(kernel("L: L: ret;"));
  must_fail(kHeader + ".entry k() { ret; } .entry k() { ret; }");
  must_fail(kHeader + ".entry k(.param .u32 a, .param .u32 a) { ret; }");
}

}  // namespace
}  // namespace kgate::ptx
