#include "candidate/cubin.h"

#include "candidate/compile.h"
#include "candidate/toolkit.h"
#include "support.h"

namespace kgate {
namespace {

using test::candidate_of;
using test::fixture;
using test::peek;
using test::poke;
using test::section_header;

struct Fixture {
  std::string file, target, toolkit;
};

const Fixture kFixtures[] = {
    {"rows_sm_75", "sm_75", "13.0"},
    {"rows_sm_90", "sm_90", "13.0"},
    {"rows_sm_120", "sm_120", "13.0"},
    {"rows_sm_75_cuda_11_8", "sm_75", "11.8"},
    {"rows_sm_90a_cuda_12_3", "sm_90a", "12.3"},
    {"rows_sm_120a_cuda_12_8", "sm_120a", "12.8"},
};

TEST(Cubin, figures_are_those_that_ptxas_printed) {
  for (const auto& [file, target, toolkit] : kFixtures) {
    SCOPED_TRACE(file);
    Candidate candidate = candidate_of(fixture(file + ".cubin"));
    std::string log = fixture(file + ".log");
    EXPECT_EQ(candidate.kind, CodeKind::cubin);
    EXPECT_EQ(candidate.target, target);
    EXPECT_EQ(candidate.version, toolkit);
    ASSERT_EQ(candidate.entries.size(), 2u);
    for (const auto& entry : candidate.entries) {
      SCOPED_TRACE(entry.name);
      auto usage = resource_usage(log, entry.name);
      ASSERT_TRUE(usage);
      EXPECT_EQ(entry.registers, usage->registers);
      EXPECT_EQ(entry.stack_bytes, usage->stack_bytes);
      EXPECT_EQ(entry.barriers, usage->barriers.value_or(entry.name == "scale_rows" ? 1 : 0));  // 11.8 and 12.3 print none
      EXPECT_EQ(entry.static_shared, usage->static_shared);
    }
  }
}

TEST(Cubin, parameters_have_offsets_and_sizes_in_source_order) {
  for (const auto& [file, target, toolkit] : kFixtures) {
    SCOPED_TRACE(file);
    Candidate candidate = candidate_of(fixture(file + ".cubin"));
    auto rows = candidate.entry("scale_rows");
    ASSERT_TRUE(rows);
    std::vector<std::pair<uint32_t, uint32_t>> layout;
    for (const auto& param : (*rows)->params) layout.emplace_back(param.offset, param.size);
    EXPECT_EQ(layout, (std::vector<std::pair<uint32_t, uint32_t>>{{0, 8}, {8, 8}, {16, 4}, {20, 4}, {24, 48}}));
    EXPECT_EQ((*rows)->param_bytes, 72u);
    EXPECT_EQ((*rows)->maxntid, (Dim3{128, 1, 1}));
    EXPECT_FALSE((*rows)->reqntid);
    auto fill = candidate.entry("fill");
    ASSERT_TRUE(fill);
    EXPECT_EQ((*fill)->param_bytes, 9u);
    EXPECT_FALSE((*fill)->maxntid);
  }
}

// The header of a CUDA 13 cubin rewritten into the layout of the old ABI: the same kernels must come out of both.
std::string as_cuda_12(std::string cubin, uint32_t arch, bool accelerated) {
  poke<uint8_t>(cubin, 7, 0x33);
  poke<uint8_t>(cubin, 8, 7);
  poke<uint32_t>(cubin, 20, 128);
  poke<uint32_t>(cubin, 48, arch << 16 | 0x500 | arch | (accelerated ? 0x800 : 0));
  return cubin;
}

TEST(Cubin, the_header_of_the_old_abi_gives_the_same_kernels) {
  Candidate now = candidate_of(fixture("rows_sm_90.cubin"));
  Candidate then = candidate_of(as_cuda_12(fixture("rows_sm_90.cubin"), 90, false));
  EXPECT_EQ(then.target, "sm_90");
  EXPECT_EQ(then.version, "12.8");
  ASSERT_EQ(then.entries.size(), now.entries.size());
  for (size_t i = 0; i < now.entries.size(); ++i) {
    EXPECT_EQ(then.entries[i].kernel_id, now.entries[i].kernel_id);
    EXPECT_EQ(then.entries[i].registers, now.entries[i].registers);
  }
  EXPECT_EQ(candidate_of(as_cuda_12(fixture("rows_sm_90.cubin"), 90, true)).target, "sm_90a");
}

TEST(Cubin, the_suffix_is_found_without_the_tools_note) {
  std::string cubin = fixture("rows_sm_120a_cuda_12_8.cubin");
  cubin[cubin.find("-arch sm_120a")] = '+';
  EXPECT_EQ(candidate_of(cubin).target, "sm_120a");  // from e_flags
  std::string plain = fixture("rows_sm_90.cubin");
  plain[plain.find("-arch sm_90")] = '+';
  EXPECT_EQ(candidate_of(plain).target, "sm_90");
  auto compat = peek<uint64_t>(plain, section_header(plain, ".nv.compat") + 24);
  ASSERT_EQ(plain.substr(compat, 3), std::string("\x02\x09\x00", 3));
  plain[compat + 2] = 1;
  EXPECT_EQ(candidate_of(plain).target, "sm_90a");
}

TEST(Cubin, registers_come_from_the_section_header_where_the_record_is_missing) {
  std::string cubin = as_cuda_12(fixture("rows_sm_75.cubin"), 75, false);
  size_t info = section_header(cubin, ".nv.info");
  poke<uint64_t>(cubin, info + 32, 0);  // no global records
  size_t text = section_header(cubin, ".text.scale_rows");
  poke<uint64_t>(cubin, text + 8, peek<uint64_t>(cubin, text + 8) | uint64_t{3} << 20);
  Candidate candidate = candidate_of(cubin);
  auto rows = candidate.entry("scale_rows");
  ASSERT_TRUE(rows);
  EXPECT_EQ((*rows)->registers, 11u);
  EXPECT_FALSE((*rows)->stack_bytes);
  EXPECT_EQ((*rows)->barriers, 1u);  // the record wins over the flags
  poke<uint8_t>(cubin, cubin.find(std::string("\x02\x4c\x01\x00", 4)) + 1, 0x7f);
  EXPECT_EQ((*candidate_of(cubin).entry("scale_rows"))->barriers, 3u);
}

class Assembled : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!find_ptxas()) GTEST_SKIP() << "no ptxas here";
  }
};

TEST_P(Assembled, launch_bounds_and_parameters_agree_with_the_ptx) {
  std::string ptx = fixture("blocks.ptx");
  CompileOptions options;
  options.arch = std::atoi(GetParam());
  options.arch_specific = std::string(GetParam()).ends_with('a');
  if (options.arch_specific) {
    ptx = test::replaced(ptx, ".target sm_75", std::string(".target sm_") + GetParam());
    ptx = test::replaced(ptx, ".version 8.1", ".version 9.0");
  }
  CompileResult built = assemble(ptx, options);
  ASSERT_EQ(built.outcome, CompileOutcome::ok) << built.log;
  Candidate source = candidate_of(ptx), code = candidate_of(built.image);
  EXPECT_EQ(code.target, std::string("sm_") + GetParam());
  ASSERT_EQ(code.entries.size(), 2u);
  for (const auto& entry : source.entries) {
    SCOPED_TRACE(entry.name);
    auto other = code.entry(entry.name);
    ASSERT_TRUE(other);
    EXPECT_EQ((*other)->param_bytes, entry.param_bytes);
    ASSERT_EQ((*other)->params.size(), entry.params.size());
    for (size_t i = 0; i < entry.params.size(); ++i) {
      EXPECT_EQ((*other)->params[i].offset, entry.params[i].offset);
      EXPECT_EQ((*other)->params[i].size, entry.params[i].size);
    }
    EXPECT_EQ((*other)->reqntid, entry.reqntid);
    EXPECT_EQ((*other)->maxntid, entry.maxntid);
    auto usage = resource_usage(built.log, entry.name);
    ASSERT_TRUE(usage);
    EXPECT_EQ((*other)->registers, usage->registers);
    EXPECT_EQ((*other)->stack_bytes, usage->stack_bytes);
  }
  EXPECT_EQ((*code.entry("exact"))->reqntid, (Dim3{64, 2, 1}));
  EXPECT_EQ((*code.entry("wide"))->params[1].size, 20'000u);
}

INSTANTIATE_TEST_SUITE_P(EveryArchitecture, Assembled, testing::Values("75", "80", "86", "89", "90", "90a", "100", "120", "120a"));

TEST(Cubin, shared_memory_is_net_in_linked_and_in_relocatable_files) {
  if (!test::nvcc()) GTEST_SKIP() << "no nvcc here";
  std::string source = test::replaced(fixture("rows.cu"), "tile[128]", "tile[700]");
  for (const char* arch : {"-arch=sm_80", "-arch=sm_90", "-arch=sm_120"})
    for (const char* relocatable : {"-rdc=true", "-rdc=false"}) {
      Candidate candidate = candidate_of(test::compile_with_nvcc(source, "rows.cu", {arch, relocatable}));
      EXPECT_EQ((*candidate.entry("scale_rows"))->static_shared, 2800u) << arch << " " << relocatable;
      EXPECT_EQ((*candidate.entry("fill"))->static_shared, 0u) << arch << " " << relocatable;
    }
}

TEST(Cubin, spills_are_part_of_the_stack) {
  if (!test::nvcc() || !find_ptxas()) GTEST_SKIP() << "no nvcc here";
  const char* source =
      "extern \"C\" __global__ void heavy(float* p) { float a[96];\n"
      "#pragma unroll\n for (int i = 0; i < 96; i++) a[i] = p[i * 32];\n __syncthreads();\n"
      "#pragma unroll\n for (int i = 0; i < 96; i++) p[i * 32] = a[95 - i] * a[i]; }\n";
  for (const char* arch : {"-arch=sm_80", "-arch=sm_90"}) {
    Candidate candidate = candidate_of(test::compile_with_nvcc(source, "heavy.cu", {arch, "-maxrregcount=32"}));
    EXPECT_GT((*candidate.entry(""))->stack_bytes.value_or(0), 0u);
    EXPECT_LE((*candidate.entry(""))->registers.value_or(99), 32u);
  }
}

// Hostile contents: each must be a Failure, not a crash and not a guess.
void expect_refused(const std::string& bytes, const std::string& words) {
  auto result = parse_candidate(bytes, "bad.cubin");
  ASSERT_FALSE(result) << words;
  EXPECT_NE(result.failure().what.find(words), std::string::npos) << result.failure().what;
  EXPECT_EQ(result.failure().where, "bad.cubin");
}

TEST(Cubin, damaged_tables_are_refused_with_a_reason) {
  const std::string good = fixture("rows_sm_75.cubin");
  auto damaged = [&](auto change) {
    std::string bytes = good;
    change(bytes);
    return bytes;
  };
  expect_refused(damaged([](auto& b) { poke<uint64_t>(b, 40, ~uint64_t{0} - 63); }), "section table");
  expect_refused(damaged([](auto& b) { poke<uint16_t>(b, 60, 0xffff); }), "section table");
  expect_refused(damaged([](auto& b) { poke<uint16_t>(b, 60, 0); }), "no sections");
  expect_refused(damaged([](auto& b) { poke<uint16_t>(b, 62, 200); }), "names' index");
  expect_refused(damaged([](auto& b) { poke<uint8_t>(b, 7, 3); }), "EI_OSABI");
  expect_refused(damaged([](auto& b) { poke<uint8_t>(b, 4, 1); }), "64-bit");
  expect_refused(damaged([](auto& b) { poke<uint32_t>(b, 48, 0); }), "no architecture");
  expect_refused(damaged([](auto& b) { poke<uint64_t>(b, section_header(b, ".text.fill") + 32, ~uint64_t{0}); }),
                 "outside the file");
  expect_refused(damaged([](auto& b) { poke<uint32_t>(b, section_header(b, ".text.fill"), 0x7fffffff); }),
                 "name table");
  expect_refused(damaged([](auto& b) { poke<uint64_t>(b, section_header(b, ".symtab") + 32, 23); }), "multiple of 24");
  expect_refused(damaged([](auto& b) { poke<uint32_t>(b, section_header(b, ".symtab") + 40, 0); }), "no string table");
  expect_refused(damaged([](auto& b) {  // the kernels' code becomes a section of another name
                   auto at = peek<uint32_t>(b, section_header(b, ".nv.callgraph"));
                   poke<uint32_t>(b, section_header(b, ".text.fill"), at);
                 }),
                 "has no code");
  expect_refused(damaged([](auto& b) {
                   auto at = peek<uint64_t>(b, section_header(b, ".nv.info") + 24);
                   poke<uint32_t>(b, at + 4, 0x00ffffff);
                 }),
                 "names no symbol");
  expect_refused(damaged([](auto& b) {
                   auto at = peek<uint64_t>(b, section_header(b, ".nv.info.fill") + 24);
                   poke<uint16_t>(b, at + 2, 0xfff0);
                 }),
                 "passes the end");
  expect_refused(damaged([](auto& b) {
                   auto at = peek<uint64_t>(b, section_header(b, ".nv.info.fill") + 24);
                   poke<uint8_t>(b, at, 9);
                 }),
                 "unknown format");
}

TEST(Cubin, parameters_that_overlap_or_leave_their_block_are_refused) {
  std::string bytes = fixture("rows_sm_75.cubin");
  size_t info = peek<uint64_t>(bytes, section_header(bytes, ".nv.info.scale_rows") + 24);
  size_t record = bytes.find(std::string("\x04\x17\x0c\x00", 4), info);  // the last parameter comes first
  ASSERT_NE(record, std::string::npos);
  std::string overlapping = bytes, doubled = bytes, beyond = bytes;
  poke<uint16_t>(overlapping, record + 10, 16);
  expect_refused(overlapping, "overlaps");
  poke<uint16_t>(doubled, record + 8, 3);
  expect_refused(doubled, "described twice");
  poke<uint32_t>(beyond, record + 12, 0xffffffff);
  expect_refused(beyond, "parameters end at byte");
}

TEST(Cubin, no_truncation_and_no_flipped_byte_crashes_the_reader) {
  for (const auto& [file, target, toolkit] : kFixtures) {
    const std::string good = fixture(file + ".cubin");
    size_t table_end = peek<uint64_t>(good, 40) + peek<uint16_t>(good, 60) * size_t{64};
    for (size_t size = 0; size < good.size(); ++size) {
      auto result = parse_candidate(good.substr(0, size), "cut");
      if (size < table_end) {
        EXPECT_FALSE(result) << file << " cut to " << size;
      }
    }
    uint32_t state = 12345;
    for (int round = 0; round < 4000; ++round) {
      std::string bytes = good;
      for (int i = 0; i < 4; ++i) {
        state = state * 1664525 + 1013904223;
        bytes[state % bytes.size()] = static_cast<char>(state >> 24);
      }
      (void)parse_candidate(bytes, "flipped");
    }
  }
}

}  // namespace
}  // namespace kgate
