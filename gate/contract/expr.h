// Integer expressions over named dimensions: + - * / %, cdiv(a,b), min, max, parentheses, and for constraints the
// comparisons == != < <= > >= joined by && and ||. Evaluated in int64 with overflow and division by zero reported.
// Precedence is C's; `/` and `%` truncate towards zero as in C, cdiv rounds up; && and || stop at the first that
// decides.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "support/error.h"

namespace kgate {

using Environment = std::map<std::string, int64_t, std::less<>>;

class Expr {
 public:
  static Result<Expr> parse(std::string_view text);  // where = "column N"
  static Expr constant(int64_t value);
  Result<int64_t> evaluate(const Environment& environment) const;  // unknown names are a failure with a did-you-mean
  std::set<std::string> names() const;
  int column_of(std::string_view name) const;  // 1-based, of its first use; 0 if it is not used
  const std::string& text() const { return text_; }

 private:
  friend class ExprParser;
  struct Node;
  std::string text_;
  std::shared_ptr<const Node> root_;
};

// A letter or '_', then letters, digits and '_'; at most 64 characters; not the name of a function.
bool is_variable_name(std::string_view text);

}  // namespace kgate
