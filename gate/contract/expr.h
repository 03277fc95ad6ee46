// Integer expressions over named dimensions: + - * / %, cdiv(a,b), min, max, parentheses, and for constraints the
// comparisons == != < <= > >= joined by && and ||. Evaluated in int64 with overflow and division by zero reported.
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
  const std::string& text() const { return text_; }

 private:
  struct Node;
  std::string text_;
  std::shared_ptr<const Node> root_;
};

}  // namespace kgate
