// Text for people.

#include "support/text.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/error.h"

namespace kgate {
namespace {

TEST(DidYouMean, finds_the_nearest_and_only_what_is_near) {
  EXPECT_EQ(did_you_mean("softmax_row", {"rmsnorm_rows", "softmax_rows"}), "softmax_rows");
  EXPECT_EQ(did_you_mean("chek", {"check", "query"}), "check");
  EXPECT_EQ(did_you_mean("entirely_else", {"check", "query"}), std::nullopt);
  EXPECT_EQ(did_you_mean("x", {}), std::nullopt);
}

TEST(Glob, stars_and_question_marks) {
  EXPECT_TRUE(glob_match("softmax*", "softmax_rows"));
  EXPECT_TRUE(glob_match("*rows", "softmax_rows"));
  EXPECT_TRUE(glob_match("s*x?r*s", "softmax_rows"));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_FALSE(glob_match("softmax", "softmax_rows"));
  EXPECT_FALSE(glob_match("?", ""));
  EXPECT_FALSE(glob_match(std::string(40, '*') + "b", std::string(5000, 'a')));
}

TEST(Format, scales_with_the_unit) {
  EXPECT_EQ(format_ns(812), "812 ns");
  EXPECT_EQ(format_ns(3200), "3.20 us");
  EXPECT_EQ(format_ns(1.5e6), "1.50 ms");
  EXPECT_EQ(format_ns(-3200), "-3.20 us");
  EXPECT_EQ(format_ns(std::nan("")), "not a number");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_count(12300), "12.30 k");
  EXPECT_EQ(format_percent(0.0312), "+3.12 %");
}

TEST(Sanitize, leaves_one_printable_line) {
  EXPECT_EQ(sanitize("a\x1b[31m\nb\tc"), "a [31m b c");
  EXPECT_EQ(sanitize(std::string(500, 'x'), 10), "xxxxxxxxxx...");
}

TEST(Lines, split_at_line_ends_of_both_kinds) {
  EXPECT_EQ(split_lines("a\r\nb\n\nc"), (std::vector<std::string_view>{"a", "b", "", "c"}));
  EXPECT_EQ(trim(" \t x y \n"), "x y");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(Error, carries_what_where_and_hint) {
  Error error(Exit::bad_input, "is empty", "file.ptx", "give a kernel");
  EXPECT_STREQ(error.what(), "file.ptx: is empty");
  EXPECT_EQ(error.failure().hint, "give a kernel");
  Result<int> failed = Failure{"no", "here", ""};
  EXPECT_THROW((void)std::move(failed).value_or_throw(Exit::usage), Error);
}

}  // namespace
}  // namespace kgate
