#include "candidate/compile_log.h"

#include "candidate/compile.h"
#include "support.h"

namespace kgate {
namespace {

TEST(CompileLog, errors_of_every_compiler_become_one_line) {
  EXPECT_EQ(first_error("ptxas candidate.ptx, line 7; error   : Arguments mismatch for instruction 'ld'\n"
                        "ptxas fatal   : Ptx assembly aborted due to errors\n"),
            "line 7: Arguments mismatch for instruction 'ld'");
  EXPECT_EQ(first_error("ptxas application ptx input, line 10; error   : Not a name of any known instruction: 'foo'\n"),
            "line 10: Not a name of any known instruction: 'foo'");
  EXPECT_EQ(first_error("ptxas candidate.ptx, line 1; fatal   : Unsupported .version 9.9; current version is '9.0'\n"),
            "line 1: Unsupported .version 9.9; current version is '9.0'");
  EXPECT_EQ(first_error("ptxas fatal   : SM version specified by .target is higher than default SM version assumed\n"),
            "SM version specified by .target is higher than default SM version assumed");
  EXPECT_EQ(first_error("ptxas warning : odd\nptxas error   : Entry function 'k' uses too much shared data\n"),
            "Entry function 'k' uses too much shared data");
  EXPECT_EQ(first_error("k.cu(3): error: identifier \"x\" is undefined\n\n1 error detected in the compilation\n"),
            "line 3: identifier \"x\" is undefined");
}

TEST(CompileLog, a_log_without_a_marked_error_gives_its_first_words) {
  EXPECT_EQ(first_error(""), "");
  EXPECT_EQ(first_error("\n\n  boom\x01 went the compiler\nmore\n"), "boom  went the compiler");
}

TEST(CompileLog, resources_are_read_for_the_entry_that_was_asked_for) {
  const std::string log =
      "ptxas info    : 24 bytes gmem\n"
      "ptxas info    : Compiling entry function 'fill' for 'sm_90'\n"
      "ptxas info    : Function properties for fill\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 10 registers, used 0 barriers\n"
      "ptxas info    : Compiling entry function 'heavy' for 'sm_90'\n"
      "ptxas info    : Function properties for helper\n"
      "    16 bytes stack frame, 1 bytes spill stores, 2 bytes spill loads\n"
      "ptxas info    : Function properties for heavy\n"
      "    288 bytes stack frame, 560 bytes spill stores, 604 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 1 barriers, 288 bytes cumulative stack size, 512 bytes smem, 372 bytes cmem[0]\n"
      "ptxas info    : Compile time = 4.051 ms\n";
  auto heavy = resource_usage(log, "heavy");
  ASSERT_TRUE(heavy);
  EXPECT_EQ(heavy->registers, 32u);
  EXPECT_EQ(heavy->stack_bytes, 288u);
  EXPECT_EQ(heavy->spill_store_bytes, 560u);
  EXPECT_EQ(heavy->spill_load_bytes, 604u);
  EXPECT_EQ(heavy->static_shared, 512u);
  EXPECT_EQ(heavy->barriers, 1u);
  auto fill = resource_usage(log, "fill");
  ASSERT_TRUE(fill);
  EXPECT_EQ(fill->registers, 10u);
  EXPECT_EQ(fill->static_shared, 0u);
  EXPECT_FALSE(resource_usage(log, "helper"));
  EXPECT_FALSE(resource_usage(log, "fil"));
}

TEST(CompileLog, nvjitlink_and_older_ptxas_formats_are_read) {
  auto linked = resource_usage(
      "ptxas info    : Function properties for helper\n"
      "ptxas         .     8 bytes stack frame, 9 bytes spill stores, 9 bytes spill loads\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_90'\n"
      "ptxas info    : Function properties for k\n"
      "ptxas         .     32 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Used 24 registers, used 1 barriers, 512 bytes smem\n"
      "info    : used 99 registers, used 1 barriers, 32 stack, 1536 bytes smem, 600 bytes cmem[0], 0 bytes lmem\n",
      "k");
  ASSERT_TRUE(linked);
  EXPECT_EQ(linked->registers, 24u);
  EXPECT_EQ(linked->stack_bytes, 32u);
  EXPECT_EQ(linked->spill_load_bytes, 8u);
  EXPECT_EQ(linked->static_shared, 512u);
  auto old = resource_usage(
      "ptxas info    : Compiling entry function 'k' for 'sm_70'\n"
      "ptxas info    : Used 8 registers, 256 bytes smem, 328 bytes cmem[0]\n",
      "k");
  ASSERT_TRUE(old);
  EXPECT_EQ(old->registers, 8u);
  EXPECT_EQ(old->static_shared, 256u);
  EXPECT_FALSE(old->spill_store_bytes);
  EXPECT_FALSE(old->barriers);
}

TEST(CompileLog, garbage_numbers_are_no_numbers) {
  auto usage = resource_usage(
      "Compiling entry function 'k' for 'sm_90'\nFunction properties for k\n"
      " 99999999999 bytes stack frame, x bytes spill stores\nUsed many registers\n",
      "k");
  ASSERT_TRUE(usage);
  EXPECT_FALSE(usage->registers);
  EXPECT_FALSE(usage->stack_bytes);
  EXPECT_FALSE(usage->spill_store_bytes);
  EXPECT_FALSE(resource_usage("", "k"));
}

}  // namespace
}  // namespace kgate
