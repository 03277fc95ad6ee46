#include "contract/expr.h"

#include <gtest/gtest.h>

#include <limits>

namespace kgate {

namespace {

const Environment kShape{{"rows", 7}, {"cols", 1000}, {"n", -7}};

int64_t value(std::string_view text) {
  Result<Expr> expr = Expr::parse(text);
  EXPECT_TRUE(expr) << text << ": " << (expr ? "" : expr.failure().what);
  if (!expr) return -999;
  Result<int64_t> result = expr->evaluate(kShape);
  EXPECT_TRUE(result) << text << ": " << (result ? "" : result.failure().what);
  return result ? *result : -999;
}

std::string parse_error(std::string_view text) {
  Result<Expr> expr = Expr::parse(text);
  return expr ? "parsed" : expr.failure().where + ": " + expr.failure().what;
}

std::string evaluate_error(std::string_view text) {
  Result<Expr> expr = Expr::parse(text);
  if (!expr) return "not parsed: " + expr.failure().what;
  Result<int64_t> result = expr->evaluate(kShape);
  return result ? std::to_string(*result) : result.failure().where + ": " + result.failure().what;
}

}  // namespace

TEST(Expr, precedence_is_that_of_c) {
  EXPECT_EQ(value("1 + 2 * 3"), 7);
  EXPECT_EQ(value("(1 + 2) * 3"), 9);
  EXPECT_EQ(value("20 / 2 / 5"), 2);
  EXPECT_EQ(value("10 - 3 - 2"), 5);
  EXPECT_EQ(value("-2 * -3"), 6);
  EXPECT_EQ(value("1 + 1 == 2 && 2 > 1 || 0 == 1"), 1);
  EXPECT_EQ(value("1 || 0 && 0"), 1);
  EXPECT_EQ(value("3 != 3"), 0);
  EXPECT_EQ(value("2 <= 2"), 1);
  EXPECT_EQ(value("cols % 8 == 0"), 1);
}

TEST(Expr, division_truncates_and_cdiv_rounds_up) {
  EXPECT_EQ(value("rows / 2"), 3);
  EXPECT_EQ(value("n / 2"), -3);
  EXPECT_EQ(value("n % 2"), -1);
  EXPECT_EQ(value("cdiv(rows, 4)"), 2);
  EXPECT_EQ(value("cdiv(8, 4)"), 2);
  EXPECT_EQ(value("cdiv(n, 2)"), -3);
  EXPECT_EQ(value("cdiv(n, -2)"), 4);
  EXPECT_EQ(value("cdiv(0, 4)"), 0);
  EXPECT_EQ(value("min(rows, cols) + max(rows, cols)"), 1007);
}

TEST(Expr, names_are_collected_with_their_columns) {
  Result<Expr> expr = Expr::parse("cdiv(rows, 4) * cols + rows");
  ASSERT_TRUE(expr);
  EXPECT_EQ(expr->names(), (std::set<std::string>{"cols", "rows"}));
  EXPECT_EQ(expr->column_of("rows"), 6);
  EXPECT_EQ(expr->column_of("cols"), 17);
  EXPECT_EQ(expr->column_of("depth"), 0);
  EXPECT_EQ(expr->text(), "cdiv(rows, 4) * cols + rows");
}

TEST(Expr, what_is_no_expression_is_refused_with_its_column) {
  EXPECT_EQ(parse_error(""), "column 1: an empty expression");
  EXPECT_EQ(parse_error("1 +"), "column 4: the expression ends too early");
  EXPECT_EQ(parse_error("rows $ 2"), "column 6: unexpected '$'");
  EXPECT_EQ(parse_error("(rows"), "column 6: expected ')'");
  EXPECT_EQ(parse_error("rows cols"), "column 6: unexpected 'c'");
  EXPECT_EQ(parse_error("cdiv(rows)"), "column 10: 'cdiv' takes two arguments: expected ','");
  EXPECT_EQ(parse_error("cdiv(rows, 2, 3)"), "column 13: 'cdiv' takes two arguments: expected ')'");
  EXPECT_EQ(parse_error("cdiv"), "column 5: 'cdiv' is a function: expected '('");
  EXPECT_EQ(parse_error("pow(2, 3)"), "column 1: unknown function 'pow'");
  EXPECT_EQ(parse_error("rows * 010"), "column 8: \"010\" starts with 0, which some readers take for octal");
  EXPECT_EQ(parse_error("0x10"), "column 1: \"0x10\" is not decimal");
  EXPECT_EQ(parse_error("9223372036854775808"), "column 1: \"9223372036854775808\" does not fit 64 bits");
  EXPECT_EQ(parse_error("1.5"), "column 2: unexpected '.'");
  EXPECT_EQ(parse_error("1 < rows < 5"), "column 10: comparisons do not chain");
  EXPECT_EQ(parse_error(std::string("a\0b", 3)), "column 2: unexpected ' '");
}

TEST(Expr, nesting_and_length_are_bounded) {
  EXPECT_EQ(parse_error(std::string(500, '(') + "1" + std::string(500, ')')),
            "column 65: nested deeper than 64 levels");
  EXPECT_EQ(parse_error(std::string(500, '-') + "1"), "column 65: nested deeper than 64 levels");
  EXPECT_EQ(parse_error(std::string(2000, '1')), "column 1: an expression of more than 1024 characters");
  std::string sum = "1";
  for (int i = 0; i < 500; ++i) sum += "+1";
  EXPECT_EQ(value(sum), 501);
}

TEST(Expr, overflow_and_division_by_zero_are_failures) {
  EXPECT_EQ(evaluate_error("9223372036854775807 + 1"), "column 21: the result does not fit 64 bits");
  EXPECT_EQ(evaluate_error("-9223372036854775807 - 2"), "column 22: the result does not fit 64 bits");
  EXPECT_EQ(evaluate_error("9223372036854775807 * 2"), "column 21: the result does not fit 64 bits");
  EXPECT_EQ(evaluate_error("(-9223372036854775807 - 1) / -1"), "column 28: the result does not fit 64 bits");
  EXPECT_EQ(evaluate_error("(-9223372036854775807 - 1) % -1"), "column 28: the result does not fit 64 bits");
  EXPECT_EQ(evaluate_error("-(-9223372036854775807 - 1)"), "column 1: the result does not fit 64 bits");
  EXPECT_EQ(evaluate_error("rows / (rows - 7)"), "column 6: division by zero");
  EXPECT_EQ(evaluate_error("rows % 0"), "column 6: division by zero");
  EXPECT_EQ(evaluate_error("cdiv(1, 0)"), "column 1: division by zero");
  EXPECT_EQ(evaluate_error("0 == 1 && 1 / 0 == 1"), "0");
  EXPECT_EQ(evaluate_error("1 == 1 || 1 / 0 == 1"), "1");
}

TEST(Expr, an_unknown_name_suggests_the_nearest) {
  Result<int64_t> result = Expr::parse("2 * row")->evaluate(kShape);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.failure().what, "unknown name 'row'");
  EXPECT_EQ(result.failure().where, "column 5");
  EXPECT_EQ(result.failure().hint, "did you mean 'rows'?");
}

TEST(Expr, one_that_was_never_given_has_no_value) {
  EXPECT_FALSE(Expr().evaluate(kShape));
  EXPECT_TRUE(Expr().names().empty());
  EXPECT_EQ(*Expr::constant(-5).evaluate({}), -5);
}

}  // namespace kgate
