#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "support/fd.h"
#include "trace/probe_symbols.h"

namespace kgate::trace {
namespace {

using Cost = ProbeSymbol::Cost;

Cost cost(std::initializer_list<int> bytes) {
  std::vector<std::byte> code;
  for (int b : bytes) code.push_back(static_cast<std::byte>(b));
  return probe_cost(code);
}

TEST(ProbeCost, pushes_nops_and_jumps_are_emulated) {
  EXPECT_EQ(cost({0x55}), Cost::emulated);
  EXPECT_EQ(cost({0x41, 0x57}), Cost::emulated);
  EXPECT_EQ(cost({0x0f, 0x1f, 0x44, 0x00, 0x00}), Cost::emulated);
  EXPECT_EQ(cost({0xe9, 0, 0, 0, 0}), Cost::emulated);
}

TEST(ProbeCost, other_instructions_are_single_stepped) {
  EXPECT_EQ(cost({0x48, 0x89, 0xf8}), Cost::single_step);        // mov %rdi,%rax
  EXPECT_EQ(cost({0x48, 0x83, 0xec, 0x18}), Cost::single_step);  // sub $0x18,%rsp
  EXPECT_EQ(cost({0x41, 0x89, 0xf8}), Cost::single_step);
  EXPECT_EQ(cost({}), Cost::single_step);
  EXPECT_EQ(cost({0x0f, 0x1f}), Cost::single_step);
}

TEST(ProbeCost, endbr64_is_passed_over_when_the_next_instruction_is_cheap) {
  EXPECT_EQ(cost({0xf3, 0x0f, 0x1e, 0xfa, 0x55}), Cost::emulated_after_endbr);
  EXPECT_EQ(cost({0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89, 0xf8}), Cost::single_step);
  EXPECT_EQ(cost({0xf3, 0x0f, 0x1e, 0xfa}), Cost::single_step);
}

const ProbeSymbol* find(const std::vector<ProbeSymbol>& symbols, const std::string& name) {
  auto at = std::find_if(symbols.begin(), symbols.end(), [&](const ProbeSymbol& s) { return s.name == name; });
  return at == symbols.end() ? nullptr : &*at;
}

TEST(ProbeSymbols, entry_points_are_found_with_class_and_offset) {
  auto symbols = find_probe_symbols(KGATE_FAKE_DRIVER, entry_points());
  ASSERT_TRUE(symbols) << symbols.failure().what;
  ASSERT_NE(find(*symbols, "cuLaunchKernel"), nullptr);
  EXPECT_EQ(find(*symbols, "cuLaunchKernel")->cost, Cost::emulated);
  EXPECT_EQ(find(*symbols, "cuLaunchKernelEx")->cost, Cost::emulated_after_endbr);
  EXPECT_EQ(find(*symbols, "cuEventSynchronize")->cost, Cost::single_step);
  EXPECT_EQ(find(*symbols, "not_of_interest"), nullptr);
  std::string file = *read_file(KGATE_FAKE_DRIVER);
  EXPECT_EQ(static_cast<uint8_t>(file[find(*symbols, "cuLaunchKernelEx")->file_offset]), 0x55);  // push, behind endbr64
}

TEST(ProbeSymbols, survey_counts_the_entry_points_of_a_library_by_class_and_use) {
  auto survey = survey_entry_points(KGATE_FAKE_DRIVER);
  ASSERT_TRUE(survey) << survey.failure().what;
  EXPECT_EQ(survey->exported, 7u);
  EXPECT_EQ(survey->aliases, 1u);  // cuCtxSynchronize and its _v2
  EXPECT_EQ(survey->emulated, 5u);
  EXPECT_EQ(survey->emulated_after_endbr, 1u);
  EXPECT_EQ(survey->single_stepped, std::vector<std::string>{"cuEventSynchronize"});
  EXPECT_EQ(survey->absent.size(), entry_points().size() - 7);
  EXPECT_EQ(survey->by_use[static_cast<size_t>(ProbeSymbol::Use::sync)], 4u);
  EXPECT_FALSE(survey_entry_points("/nonexistent.so"));
  auto full = survey_entry_points(KGATE_FULL_DRIVER);
  ASSERT_TRUE(full);
  EXPECT_EQ(full->emulated, entry_points().size());
  EXPECT_TRUE(full->absent.empty());
}

TEST(ProbeSymbols, two_names_of_one_function_are_probed_once) {
  auto symbols = find_probe_symbols(KGATE_FAKE_DRIVER, entry_points());
  ASSERT_TRUE(symbols);
  EXPECT_NE(find(*symbols, "cuCtxSynchronize"), nullptr);  // the first of the table gives the name
  EXPECT_EQ(find(*symbols, "cuCtxSynchronize_v2"), nullptr);
}

TEST(ProbeSymbols, whatever_is_no_library_is_refused_with_a_reason) {
  TempDir dir;
  auto refused = [&](const std::string& path) {
    auto symbols = find_probe_symbols(path, entry_points());
    return symbols ? std::string() : symbols.failure().what;
  };
  std::ofstream(dir.path() / "text")
      << "hello, this is no ELF file, although it is long enough to be looked at as one of them";
  std::ofstream(dir.path() / "empty");
  EXPECT_NE(refused(dir.path() / "text").find("not an ELF"), std::string::npos);
  EXPECT_FALSE(refused(dir.path() / "empty").empty());
  EXPECT_FALSE(refused(dir.path()).empty());
  EXPECT_FALSE(refused("/nonexistent.so").empty());
}

TEST(ProbeSymbols, damaged_libraries_never_crash_the_reader) {
  std::string whole = *read_file(KGATE_FAKE_DRIVER);
  TempDir dir;
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    std::string bad = whole;
    size_t reach = i % 2 ? bad.size() : 64;  // every second time only the header
    for (int k = 0; k < 8; ++k) bad[random() % reach] = static_cast<char>(random());
    if (i % 5 == 0) bad.resize(random() % bad.size());
    std::ofstream(dir.path() / "bad.so", std::ios::binary) << bad;
    auto symbols = find_probe_symbols(dir.path() / "bad.so", entry_points());
    if (!symbols) continue;
    for (const ProbeSymbol& s : *symbols) EXPECT_LE(s.file_offset, bad.size() + kEndbrBytes);
  }
}

}  // namespace
}  // namespace kgate::trace
