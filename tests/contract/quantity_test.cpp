#include "contract/quantity.h"

#include <gtest/gtest.h>

namespace kgate {

namespace {
template <typename T>
std::string said(const Result<T>& result) {
  if (result) return "accepted";
  return result.failure().what + (result.failure().hint.empty() ? "" : "; " + result.failure().hint);
}
}  // namespace

TEST(Quantity, units_scale) {
  EXPECT_EQ(*parse_percent("5%"), 0.05);
  EXPECT_EQ(*parse_percent("7%"), 0.07);
  EXPECT_EQ(*parse_percent("0.5 %"), 0.005);
  EXPECT_EQ(*parse_duration_ns("2us"), 2000);
  EXPECT_EQ(*parse_duration_ns("1.5ms"), 1.5e6);
  EXPECT_EQ(*parse_duration_ns("3s"), 3e9);
  EXPECT_EQ(*parse_duration_ns("0"), 0);
  EXPECT_EQ(*parse_bytes("64B"), 64);
  EXPECT_EQ(*parse_bytes("64KiB"), 65536);
  EXPECT_EQ(*parse_bytes("1.5KiB"), 1536);
  EXPECT_EQ(*parse_bytes("0"), 0);
  EXPECT_EQ(*parse_rate("2000/s"), 2000);
}

TEST(Quantity, a_bare_number_is_refused_where_a_unit_is_needed) {
  EXPECT_EQ(said(parse_percent("5")), "\"5\" has no unit; write 5%");
  EXPECT_EQ(said(parse_percent("0")), "\"0\" has no unit; write 0%");
  EXPECT_EQ(said(parse_duration_ns("5")), "\"5\" has no unit; write 5ns or 5us or 5ms or 5s");
  EXPECT_EQ(said(parse_bytes("5")), "\"5\" has no unit; write 5B or 5KiB or 5MiB or 5GiB");
  EXPECT_EQ(said(parse_rate("5")), "\"5\" has no unit; write 5/s");
}

TEST(Quantity, other_units_are_refused_by_name) {
  EXPECT_EQ(said(parse_duration_ns("5min")), "\"5min\": unknown unit \"min\"; a duration ends in ns, us, ms, s");
  EXPECT_EQ(said(parse_bytes("5KB")), "\"5KB\": unknown unit \"KB\"; a size ends in B, KiB, MiB, GiB");
  EXPECT_EQ(said(parse_percent("5us")), "\"5us\": unknown unit \"us\"; a percentage ends in %");
  EXPECT_EQ(said(parse_percent("fast")), "\"fast\" is not a percentage; write for example 5%");
  EXPECT_EQ(said(parse_percent("")), "\"\" is not a percentage; write for example 5%");
  EXPECT_EQ(said(parse_bytes("0.5B")), "\"0.5B\" is not a whole number of bytes");
}

TEST(Quantity, negative_and_zero_rates_are_refused) {
  EXPECT_EQ(said(parse_percent("-5%")), "\"-5%\" is negative; write 0 or more");
  EXPECT_EQ(said(parse_duration_ns("-0")), "\"-0\" is negative; write 0 or more");
  EXPECT_EQ(said(parse_rate("0/s")), "\"0/s\" is not above 0");
}

TEST(Quantity, numbers_have_one_way_to_be_written) {
  EXPECT_EQ(*parse_number("2e-3"), 2e-3);
  EXPECT_EQ(*parse_number("-1.25"), -1.25);
  EXPECT_EQ(*parse_number("0"), 0);
  EXPECT_EQ(*parse_number("0e5"), 0);
  EXPECT_EQ(*parse_integer("-12"), -12);
  EXPECT_EQ(said(parse_integer("010")), "\"010\" starts with 0, which some readers take for octal; write 10");
  EXPECT_EQ(said(parse_integer("-007")), "\"-007\" starts with 0, which some readers take for octal; write 7");
  EXPECT_EQ(said(parse_number("010")), "\"010\" starts with 0, which some readers take for octal; write 10");
  EXPECT_EQ(said(parse_integer("0x1F")), "\"0x1F\" is not decimal; write the number in decimal");
  EXPECT_EQ(said(parse_integer("1_000")), "\"1_000\" has an underscore; write the digits without");
  EXPECT_EQ(said(parse_integer("+5")), "\"+5\" has a plus sign; write it without");
  EXPECT_EQ(said(parse_number(".5")), "\".5\" has no digit before the point; write 0.5");
  EXPECT_EQ(said(parse_integer("1e3")), "\"1e3\" is not an integer");
  EXPECT_EQ(said(parse_integer("")), "\"\" is not an integer");
  EXPECT_EQ(said(parse_integer("-")), "\"-\" is not an integer");
  EXPECT_EQ(said(parse_integer("99999999999999999999")), "\"99999999999999999999\" does not fit 64 bits");
  EXPECT_EQ(said(parse_number("1e")), "\"1e\" is not a number");
  EXPECT_EQ(said(parse_number("1:30")), "\"1:30\" is not a number");
}

TEST(Quantity, what_is_not_finite_is_refused) {
  for (const char* text : {".nan", "NaN", ".inf", "-.Inf", "inf", "-infinity"})
    EXPECT_EQ(said(parse_number(text)), "\"" + std::string(text) + "\" is not finite; write a finite number");
  EXPECT_EQ(said(parse_number("1e999")), "\"1e999\" does not fit a double; write a finite number");
  EXPECT_EQ(said(parse_number("1e-999")), "\"1e-999\" does not fit a double; write a finite number");
  EXPECT_EQ(said(parse_percent("1e999%")), "\"1e999\" does not fit a double; write a finite number");
}

}  // namespace kgate
