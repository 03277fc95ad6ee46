#include "candidate/candidate.h"

#include <sys/stat.h>
#include <unistd.h>

#include "candidate/describe.h"
#include "support.h"

namespace kgate {
namespace {

using namespace std::string_literals;
using test::candidate_of;
using test::fixture;

// The failure of bytes that are no candidate.
std::string refusal(const std::string& bytes) {
  auto result = parse_candidate(bytes, "file");
  if (result) return "accepted";
  EXPECT_EQ(result.failure().where.substr(0, 4), "file");
  return result.failure().what;
}

std::string elf_for(uint16_t machine) {
  std::string bytes = fixture("rows_sm_75.cubin").substr(0, 64);
  test::poke(bytes, 18, machine);
  return bytes;
}

TEST(Candidate, foreign_files_are_refused_by_name) {
  EXPECT_EQ(refusal(elf_for(224)), "unsupported target: AMD GPU code (HSACO)");
  EXPECT_NE(refusal(elf_for(62)).find("x86-64"), std::string::npos);
  EXPECT_NE(refusal(elf_for(243)).find("ELF machine 243"), std::string::npos);
  EXPECT_EQ(refusal("\x50\xed\x55\xba rest"), "a fatbin, not a kernel");
  EXPECT_EQ(refusal("BC\xc0\xde rest"), "LLVM bitcode, not a kernel");
  EXPECT_EQ(refusal("!<arch>\nx.o/"), "an ar archive, not a kernel");
  EXPECT_EQ(refusal("\x1f\x8b\x08 rest"), "gzip data, not a kernel");
  EXPECT_EQ(refusal("\x28\xb5\x2f\xfd rest"), "zstd data, not a kernel");
  EXPECT_EQ(refusal("\x03\x02\x23\x07 rest"), "SPIR-V, not a kernel");
  EXPECT_EQ(refusal("SQLite format 3\0"s), "a SQLite file, not a kernel");
  EXPECT_EQ(refusal("; x\ntarget triple = \"nvptx64\"\n"), "LLVM IR");
  EXPECT_EQ(refusal("\t.amdgcn_target \"amdgcn--gfx90a\"\n"), "AMD GPU assembly");
  EXPECT_EQ(refusal("extern \"C\" __global__ void k() {}\n"), "CUDA C++ without the suffix .cu");
  EXPECT_EQ(refusal("{\"name\": \"k\"}"), "JSON");
}

TEST(Candidate, empty_blank_random_and_truncated_input_is_refused) {
  EXPECT_EQ(refusal(""), "the file is empty");
  EXPECT_EQ(refusal(" \n\t\n"), "the file is blank");
  EXPECT_EQ(refusal("hello\n"), "text that is not PTX: it has no .version line");
  EXPECT_EQ(refusal("\x7f" "ELF"), "the ELF file is truncated");
  std::string random(4096, '\0');
  uint32_t state = 7;
  for (auto& c : random) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  EXPECT_EQ(refusal(random), "neither PTX nor a cubin: unknown binary data");
  EXPECT_NE(refusal(".version 8.0\n.target sm_80\n" + random), "accepted");
}

TEST(Candidate, broken_ptx_is_refused_with_its_line) {
  auto result = parse_candidate(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k( {\n", "k.ptx");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.failure().where.substr(0, 6), "k.ptx:");
  const std::string header = ".version 8.0\n.target sm_80\n.address_size 64\n";
  EXPECT_NE(refusal(header), "accepted");
  EXPECT_EQ(refusal(header + ".visible .func f() { ret; }\n"), "the PTX defines no .entry");
}

TEST(Candidate, paths_that_cannot_be_read_are_failures) {
  TempDir folder("kgate-test");
  auto missing = read_candidate(folder.path() / "absent.ptx");
  ASSERT_FALSE(missing);
  EXPECT_NE((missing.failure().where + missing.failure().what).find("absent.ptx"), std::string::npos);
  EXPECT_FALSE(read_candidate(folder.path()));
  if (::geteuid() != 0) {
    auto path = folder.path() / "secret.ptx";
    write_file_atomic(path, fixture("blocks.ptx")).value_or_throw(Exit::internal);
    ::chmod(path.c_str(), 0);
    EXPECT_FALSE(read_candidate(path));
  }
}

TEST(Candidate, content_decides_and_the_suffix_only_for_cuda) {
  TempDir folder("kgate-test");
  auto wrong = folder.path() / "kernel.ptx";
  write_file_atomic(wrong, fixture("rows_sm_90.cubin")).value_or_throw(Exit::internal);
  auto cubin = read_candidate(wrong);
  ASSERT_TRUE(cubin);
  EXPECT_EQ(cubin->kind, CodeKind::cubin);
  auto source = read_candidate(test::fixture_path("rows.cu"));
  ASSERT_TRUE(source);
  EXPECT_EQ(source->kind, CodeKind::cuda_source);
  EXPECT_TRUE(source->entries.empty());
  auto binary = folder.path() / "kernel.cu";
  write_file_atomic(binary, fixture("rows_sm_90.cubin")).value_or_throw(Exit::internal);
  EXPECT_FALSE(read_candidate(binary));
}

TEST(Candidate, ptx_gives_its_entries_and_may_be_padded_with_zeros) {
  Candidate candidate = candidate_of(fixture("blocks.ptx") + std::string(8, '\0'));
  EXPECT_EQ(candidate.kind, CodeKind::ptx);
  EXPECT_EQ(candidate.version, "8.1");
  EXPECT_EQ(candidate.target, "sm_75");
  const Entry& exact = **candidate.entry("exact");
  ASSERT_EQ(exact.params.size(), 3u);
  EXPECT_EQ(exact.params[1].offset, 8u);
  EXPECT_EQ(exact.params[1].size, 24u);
  EXPECT_EQ(exact.param_bytes, 33u);
  EXPECT_EQ(exact.reqntid, (Dim3{64, 2, 1}));
  EXPECT_EQ(exact.line, 5);
  EXPECT_FALSE(exact.registers);
  EXPECT_EQ(exact.kernel_id.size(), 64u);
}

TEST(Candidate, an_entry_is_found_by_name_and_a_slip_gets_a_hint) {
  Candidate candidate = candidate_of(fixture("rows_sm_90.cubin"));
  EXPECT_EQ((*candidate.entry("fill"))->name, "fill");
  auto slip = candidate.entry("scale_row");
  ASSERT_FALSE(slip);
  EXPECT_EQ(slip.failure().hint, "did you mean 'scale_rows'?");
  auto none = candidate.entry("");
  ASSERT_FALSE(none);
  EXPECT_NE(none.failure().what.find("scale_rows"), std::string::npos);
  EXPECT_NE(none.failure().what.find("fill"), std::string::npos);
  candidate.entries.pop_back();
  EXPECT_TRUE(candidate.entry(""));
  candidate.entries.clear();
  EXPECT_FALSE(candidate.entry(""));
}

TEST(Candidate, the_description_shows_every_entry_with_its_parameters) {
  Candidate candidate = candidate_of(fixture("rows_sm_90.cubin"));
  std::string text = describe_candidate(candidate);
  for (const char* part : {"cubin for sm_90", "toolkit 13.0", "scale_rows", "5 (72 B)", "128x1x1", "512", "@24       48 B",
                           candidate.sha256.c_str()})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_NE(text.find(candidate.entries[0].kernel_id.substr(0, 12)), std::string::npos);
  EXPECT_NE(describe_candidate(candidate_of(fixture("blocks.ptx"))).find("PTX ISA 8.1"), std::string::npos);
}

TEST(Candidate, the_json_survives_names_that_are_not_utf8) {
  Candidate candidate = candidate_of(fixture("rows_sm_75.cubin"));
  std::string json = candidate_json(candidate);
  for (const char* part : {"\"kind\": \"cubin\"", "\"registers\": 11", "\"static_shared\": 512", "\"reqntid\": null"})
    EXPECT_NE(json.find(part), std::string::npos) << part << "\n" << json;
  candidate.entries[0].name = "k\xff\xfe";
  EXPECT_NE(candidate_json(candidate).find("\"name\""), std::string::npos);
}

}  // namespace
}  // namespace kgate
