// A recursive-descent parser and an evaluator over a small immutable tree. Contracts are untrusted input: depth and
// length are bounded, and every operation that can overflow says so instead.
#include "contract/expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "contract/quantity.h"
#include "support/text.h"

namespace kgate {

namespace {

enum class Op { constant, name, negate, add, sub, mul, div, mod, cdiv, min, max, eq, ne, lt, le, gt, ge, land, lor };

constexpr size_t kMaxLength = 1024;
constexpr int kMaxDepth = 64;

struct Binary {
  std::string_view sign;
  Op op;
  int level;  // binds tighter the higher
};
// Longer signs first where one is the other's prefix.
constexpr Binary kBinaries[] = {
    {"||", Op::lor, 1}, {"&&", Op::land, 2}, {"==", Op::eq, 3}, {"!=", Op::ne, 3}, {"<=", Op::le, 4},
    {">=", Op::ge, 4},  {"<", Op::lt, 4},    {">", Op::gt, 4},  {"+", Op::add, 5}, {"-", Op::sub, 5},
    {"*", Op::mul, 6},  {"/", Op::div, 6},   {"%", Op::mod, 6},
};
constexpr int kUnaryLevel = 7;

struct Function {
  const char* name;
  Op op;
};
constexpr Function kFunctions[] = {{"cdiv", Op::cdiv}, {"min", Op::min}, {"max", Op::max}};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

Result<int64_t> apply(Op op, int64_t a, int64_t b) {
  int64_t out = 0;
  bool overflow = false;
  switch (op) {
    case Op::add:
      overflow = __builtin_add_overflow(a, b, &out);
      break;
    case Op::sub:
      overflow = __builtin_sub_overflow(a, b, &out);
      break;
    case Op::mul:
      overflow = __builtin_mul_overflow(a, b, &out);
      break;
    case Op::div:
    case Op::mod:
    case Op::cdiv:
      if (b == 0) return Failure{"division by zero", {}, {}};
      if (a == std::numeric_limits<int64_t>::min() && b == -1)
        overflow = true;
      else if (op == Op::mod)
        out = a % b;
      else
        out = a / b + (op == Op::cdiv && a % b != 0 && (a < 0) == (b < 0) ? 1 : 0);
      break;
    case Op::min:
      out = std::min(a, b);
      break;
    case Op::max:
      out = std::max(a, b);
      break;
    case Op::eq:
      out = a == b;
      break;
    case Op::ne:
      out = a != b;
      break;
    case Op::lt:
      out = a < b;
      break;
    case Op::le:
      out = a <= b;
      break;
    case Op::gt:
      out = a > b;
      break;
    case Op::ge:
      out = a >= b;
      break;
    default:
      return Failure{"not an operation", {}, {}};
  }
  if (overflow) return Failure{"the result does not fit 64 bits", {}, {}};
  return out;
}

}  // namespace

struct Expr::Node {
  Op op = Op::constant;
  int64_t value = 0;
  std::string name;
  int column = 0;  // 1-based
  std::vector<std::shared_ptr<const Node>> args;

  Result<int64_t> evaluate(const Environment& environment) const {
    if (op == Op::constant) return value;
    if (op == Op::name) {
      auto found = environment.find(name);
      if (found != environment.end()) return found->second;
      std::vector<std::string> known;
      for (const auto& [key, unused] : environment) known.push_back(key);
      auto near = did_you_mean(name, known);
      return Failure{fmt::format("unknown name '{}'", name), fmt::format("column {}", column),
                     near ? fmt::format("did you mean '{}'?", *near) : ""};
    }
    Result<int64_t> left = args[0]->evaluate(environment);
    if (!left) return left;
    if (op == Op::negate) return located(apply(Op::sub, 0, *left));
    if (op == Op::land && *left == 0) return 0;
    if (op == Op::lor && *left != 0) return 1;
    Result<int64_t> right = args[1]->evaluate(environment);
    if (!right) return right;
    if (op == Op::land || op == Op::lor) return *right != 0;
    return located(apply(op, *left, *right));
  }

  Result<int64_t> located(Result<int64_t> result) const {
    if (result) return result;
    return Failure{result.failure().what, fmt::format("column {}", column), {}};
  }

  template <typename Visit>
  void each_name(const Visit& visit) const {
    if (op == Op::name) visit(*this);
    for (const auto& arg : args) arg->each_name(visit);
  }
};

class ExprParser {
 public:
  using NodePtr = std::shared_ptr<const Expr::Node>;
  explicit ExprParser(std::string_view text) : text_(text) {}

  NodePtr parse() {
    if (text_.size() > kMaxLength) return fail(fmt::format("an expression of more than {} characters", kMaxLength));
    NodePtr root = binary(1);
    skip_blanks();
    if (root && at_ < text_.size()) return fail(fmt::format("unexpected '{}'", sanitize(text_.substr(at_, 1))));
    return root;
  }
  const Failure& failure() const { return failure_; }

 private:
  NodePtr fail(std::string what, std::string hint = {}) {
    if (failure_.what.empty()) failure_ = {std::move(what), fmt::format("column {}", at_ + 1), std::move(hint)};
    return nullptr;
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  static NodePtr make(Op op, size_t at, std::vector<NodePtr> args) {
    auto node = std::make_shared<Expr::Node>();
    node->op = op;
    node->column = static_cast<int>(at) + 1;
    node->args = std::move(args);
    return node;
  }

  const Binary* peek_binary() {
    skip_blanks();
    for (const Binary& binary : kBinaries)
      if (text_.substr(at_).starts_with(binary.sign)) return &binary;
    return nullptr;
  }

  // A chain of operators of one level is a loop, so only nesting and not length deepens the parser; the tree it builds
  // leans left by one node an operator, which the length limit bounds.
  NodePtr binary(int level) {
    if (level == kUnaryLevel) return unary();
    NodePtr left = binary(level + 1);
    for (int links = 0; left; ++links) {
      const Binary* found = peek_binary();
      if (!found || found->level != level) return left;
      bool comparison = level == 3 || level == 4;
      if (comparison && links > 0) return fail("comparisons do not chain", "join two comparisons with &&");
      size_t at = at_;
      at_ += found->sign.size();
      NodePtr right = binary(level + 1);
      if (!right) return nullptr;
      left = make(found->op, at, {left, right});
    }
    return left;
  }

  NodePtr unary() {
    skip_blanks();
    size_t at = at_;
    if (++depth_ > kMaxDepth) return fail(fmt::format("nested deeper than {} levels", kMaxDepth));
    NodePtr node;
    if (take('-')) {
      node = unary();
      if (node) node = make(Op::negate, at, {node});
    } else if (take('(')) {
      node = binary(1);
      if (node && !take(')')) node = fail("expected ')'");
    } else {
      node = primary();
    }
    --depth_;
    return node;
  }

  NodePtr primary() {
    size_t at = at_, end = at_;
    if (at >= text_.size()) return fail(text_.empty() ? "an empty expression" : "the expression ends too early");
    while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
    std::string_view word = text_.substr(at, end - at);
    if (word.empty()) return fail(fmt::format("unexpected '{}'", sanitize(text_.substr(at, 1))));
    if (is_digit(word[0])) {
      Result<int64_t> value = parse_integer(word);
      if (!value) return fail(value.failure().what, value.failure().hint);
      at_ = end;
      auto node = std::make_shared<Expr::Node>();
      node->value = *value;
      node->column = static_cast<int>(at) + 1;
      return node;
    }
    for (const Function& function : kFunctions)
      if (word == function.name) return call(function, at, end);
    at_ = end;
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '(') {
      at_ = at;
      return fail(fmt::format("unknown function '{}'", sanitize(word, 60)), "the functions are cdiv, min and max");
    }
    auto node = std::make_shared<Expr::Node>();
    node->op = Op::name;
    node->name = word;
    node->column = static_cast<int>(at) + 1;
    return node;
  }

  NodePtr call(const Function& function, size_t at, size_t end) {
    at_ = end;
    if (!take('(')) return fail(fmt::format("'{}' is a function: expected '('", function.name));
    NodePtr left = binary(1);
    if (!left) return nullptr;
    if (!take(',')) return fail(fmt::format("'{}' takes two arguments: expected ','", function.name));
    NodePtr right = binary(1);
    if (!right) return nullptr;
    if (!take(')')) return fail(fmt::format("'{}' takes two arguments: expected ')'", function.name));
    return make(function.op, at, {left, right});
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  Failure failure_;
};

Result<Expr> Expr::parse(std::string_view text) {
  ExprParser parser(text);
  auto root = parser.parse();
  if (!root) return parser.failure();
  Expr expr;
  expr.text_ = text;
  expr.root_ = std::move(root);
  return expr;
}

Expr Expr::constant(int64_t value) {
  auto node = std::make_shared<Node>();
  node->value = value;
  Expr expr;
  expr.text_ = std::to_string(value);
  expr.root_ = std::move(node);
  return expr;
}

Result<int64_t> Expr::evaluate(const Environment& environment) const {
  if (!root_) return Failure{"an expression that was never given", {}, {}};
  return root_->evaluate(environment);
}

std::set<std::string> Expr::names() const {
  std::set<std::string> found;
  if (root_) root_->each_name([&](const Node& node) { found.insert(node.name); });
  return found;
}

int Expr::column_of(std::string_view name) const {
  int column = 0;
  if (root_)
    root_->each_name([&](const Node& node) {
      if (node.name == name && column == 0) column = node.column;
    });
  return column;
}

bool is_variable_name(std::string_view text) {
  if (text.empty() || text.size() > 64 || !is_letter(text[0])) return false;
  for (char c : text)
    if (!is_letter(c) && !is_digit(c)) return false;
  for (const Function& function : kFunctions)
    if (text == function.name) return false;
  return true;
}

}  // namespace kgate
