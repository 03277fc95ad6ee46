// Syntax that compilers emit, and how it comes out.
#include "ptx_text.h"

namespace kgate::ptx {
namespace {

using Kind = Operand::Kind;

const Function& body(const Module& m) { return m.functions.back(); }

TEST(PtxSyntax, registers_and_labels_are_scoped_by_blocks) {
  Module m =
      must_parse(kernel("{\n.reg .pred p;\nLAB_WAIT:\nsetp.eq.u32 p, %r1, 0;\n@p bra LAB_WAIT;\n}\n{\n.reg .b64 "
                        "p;\nLAB_WAIT:\nmov.b64 p, %rd1;\nbra.uni LAB_WAIT;\n}"));
  const Function& f = body(m);
  EXPECT_EQ(f.statements[1].operands[0].index, 0u);
  EXPECT_EQ(f.statements[3].operands[0].index, 2u);
  EXPECT_NE(f.statements[0].operands[0].index, f.statements[2].operands[0].index);
  EXPECT_EQ(f.registers[f.statements[2].operands[0].index].type, Type::b64);
  must_fail(kernel("{ .reg .b32 inner; } mov.u32 inner, 1;"));
}

TEST(PtxSyntax, guards_pairs_sinks_and_negation) {
  Module m =
      must_parse(kernel("@!%p1 setp.lt.and.u32 %p2|%p3, %r1, -7, !%p4;\nshfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, "
                        "-1;\nmov.b64 {_, %r1}, %rd1;"));
  const auto& s = body(m).statements;
  EXPECT_GE(s[0].guard, 0);
  EXPECT_TRUE(s[0].guard_negated);
  EXPECT_EQ(s[0].operands[0].kind, Kind::pair);
  EXPECT_EQ(s[0].operands[2].bits, uint64_t(-7));
  EXPECT_TRUE(s[0].operands[3].negated);
  EXPECT_EQ(s[2].operands[0].items[0].kind, Kind::sink);
  EXPECT_EQ(s[0].modifiers, (std::vector<std::string>{"lt", "and", "u32"}));
}

TEST(PtxSyntax, numbers) {
  Module m = must_parse(
      kernel("mov.u32 %r1, 0x1FU;\nmov.u32 %r1, 017;\nmov.u32 %r1, 0b101;\nmov.f32 %f1, 0f3F800000;\nmov.f32 %f1, "
             "0d3FF0000000000000;\n"
             "mov.f32 %f1, 1.5e-3;\nmov.f32 %f1, -2.0;\nmov.u64 %rd1, 18446744073709551615;\nmov.u32 %r1, WARP_SZ;"));
  const auto& s = body(m).statements;
  EXPECT_EQ(s[0].operands[1].bits, 31u);
  EXPECT_EQ(s[1].operands[1].bits, 15u);
  EXPECT_EQ(s[2].operands[1].bits, 5u);
  EXPECT_EQ(s[3].operands[1].bits, 0x3f800000u);
  EXPECT_EQ(s[3].operands[1].real_bytes, 4);
  EXPECT_EQ(s[4].operands[1].real_bytes, 8);
  EXPECT_EQ(s[6].operands[1].bits, 0xc000000000000000u);
  EXPECT_EQ(s[7].operands[1].bits, ~uint64_t{0});
  EXPECT_EQ(s[8].operands[1].bits, 32u);
  must_fail(kernel("mov.u32 %r1, 0x;"));
  must_fail(kernel("mov.u32 %r1, 12abc;"));
  must_fail(kernel("mov.u64 %rd1, 18446744073709551616;"));
}

TEST(PtxSyntax, addresses) {
  Module m = must_parse(
      kHeader +
      ".extern .shared .align 16 .b8 global_smem[];\n.entry k() { .reg .b32 r<5>; .reg .b64 p;\nmov.b32 r1, "
      "global_smem;\n"
      "ld.shared.b32 r1, [global_smem+1024];\nld.global.b32 r1, [p+-8];\nld.global.b32 r1, [p - 8];\nld.b32 r1, [16];\n"
      "add.s32 r1, r2, global_smem+4;\ncp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[r1], [p, {r2, r3}], [r4];\nret; }");
  const auto& s = body(m).statements;
  EXPECT_EQ(s[1].operands[1].offset, 1024);
  EXPECT_EQ(s[2].operands[1].offset, -8);
  EXPECT_EQ(s[3].operands[1].offset, -8);
  EXPECT_EQ(s[4].operands[1].items[0].bits, 16u);
  EXPECT_EQ(s[5].operands[2].offset, 4);
  EXPECT_EQ(s[6].operands[1].items.size(), 2u);
  EXPECT_EQ(s[6].modifiers[4], "shared::cluster");
}

TEST(PtxSyntax, calls_prototypes_and_branch_tables) {
  Module m = must_parse(kHeader +
                        ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n.extern .func "
                        "__assertfail(.param .b64 a) .noreturn;\n"
                        ".weak .func (.param .align 8 .b8 o[16]) f(.param .b32 x, .param .b64 y) { ret; }\n"
                        ".visible .entry k() { .reg .b32 i; .reg .b64 fp;\n{ .param .b32 a; .param .b64 b; .param "
                        ".align 8 .b8 o[16];\ncall.uni (o),\nf,\n(\na,\nb\n);\n}\n"
                        "proto : .callprototype (.param .b32 _) _ (.param .b64 _, .param .b64 _);\n"
                        "$L_brx: .branchtargets A, B;\nbrx.idx i, $L_brx;\nA: bra B;\nB: ret; }");
  const Function& f = body(m);
  EXPECT_EQ(f.statements[0].operands[1].name, "f");
  EXPECT_EQ(f.tables[0], (std::vector<uint32_t>{2, 3}));
  EXPECT_EQ(f.calls, (std::vector<std::string>{"f"}));
  EXPECT_EQ(m.find("f")->returns[0].size, 16u);
  EXPECT_TRUE(m.find("vprintf")->is_declaration);
}

TEST(PtxSyntax, debug_information_pragmas_and_attributes_pass) {
  must_parse(
      ".version 8.7\n.target sm_90a, debug\n.address_size 64\n\t.file\t1 \"x.cu\", 1700000000, 4096\n.extern .shared "
      ".align 16 .b8 s[];\n"
      ".global .attribute(.managed) .align 4 .u32 managed;\n.visible .entry k(\n\t.param .u64 .ptr .global .align 1 "
      "p\n)\n.reqntid 128\n.maxntid 128, 1, 1\n.explicitcluster\n.reqnctapercluster 2\n{\n"
      ".pragma \"nounroll\";\n.pragma \"used_bytes_mask 3855\";\n.loc 1 0 22\n.loc 1 5 3, function_name $L__info0, "
      "inlined_at 1 9 1\n.loc 1 5 3, function_name $L__info0+4, inlined_at 1 9 1\n"
      "ret;\n$L__func_end0:\n}\n.section\t.debug_abbrev\n\t{\n.b8 1\n.b8 17,1,2\n.b32 $L__func_end0\n\t}\n.section "
      ".debug_loc { }\n");
}

TEST(PtxSyntax, initialised_variables) {
  Module m = must_parse(kHeader +
                        ".global .align 1 .b8 text[4] = {104, 105, 0};\n.const .align 8 .f64 d[2] = "
                        "{0d3FF0000000000000, -2.0};\n.global .u32 grid[2][2] = {{1, 2}, {3, 4}};\n"
                        ".visible .global .align 8 .u64 where[2] = {generic(text)+1, grid};\n.global .f32 open[] = "
                        "{1.0, 2.0, 3.0};\n.entry k() { ret; }");
  EXPECT_EQ(m.globals[0].init, std::string("hi\0", 3));
  EXPECT_EQ(m.globals[0].size, 4u);
  EXPECT_EQ(m.globals[2].init.size(), 16u);
  EXPECT_EQ(m.globals[3].addresses[0].symbol, "text");
  EXPECT_EQ(m.globals[3].addresses[0].addend, 1);
  EXPECT_TRUE(m.globals[3].addresses[0].generic);
  EXPECT_EQ(m.globals[4].size, 12u);
}

TEST(PtxSyntax, inline_assembly_of_generators) {
  must_parse(
      kernel("// begin inline asm\n@%p1 st.global.v4.b32 [ %rd1 + 0 ], { %r1, %r2, %r3, %r4 };\n// end inline "
             "asm\nmov.u32 %r1, %tid.x;\nmov.u64 %rd1, %globaltimer;\n"
             "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd1, %rd2, %p1, 1, 1, 0, "
             "0;\ncp.async.cg.shared.global [%r1], [%rd1], 16, %r2, %p1;\n"
             "ld.global.L1::evict_last.L2::cache_hint.v2.b32 {%r1, %r2}, [%rd1], %rd2;\n{}\n;\nadd.f32 %f1, %f2, "
             "0f00000000;"));
}

}  // namespace
}  // namespace kgate::ptx
