// Text → tokens in one pass. Words keep `%`, `$` and `_`; `.global` and `.L1::no_allocate` are one token each, so that
// an opcode is a word followed by dotted words.
#include "candidate/ptx_lexer.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>
#include <string>

namespace kgate::ptx {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_word_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
bool is_word(char c) { return is_word_start(c) || is_digit(c); }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> run() {
    while (skip_blanks() && failure_.empty()) {
      Token token;
      token.line = line_;
      token.begin = static_cast<uint32_t>(at_);
      lex(token);
      if (!failure_.empty()) break;
      token.text = text_.substr(token.begin, at_ - token.begin);
      tokens_.push_back(token);
    }
    if (!failure_.empty()) return Failure{failure_, "line " + std::to_string(line_), ""};
    Token end;
    end.line = line_;
    end.begin = static_cast<uint32_t>(text_.size());
    tokens_.push_back(end);
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  bool skip_blanks() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == '\n') ++line_;
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v') {
        ++at_;
      } else if (c == '/' && peek(1) == '/') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '/' && peek(1) == '*') {
        size_t close = text_.find("*/", at_ + 2);
        if (close == std::string_view::npos) {
          failure_ = "a comment is not closed";
          return false;
        }
        for (; at_ < close + 2; ++at_) line_ += text_[at_] == '\n';
      } else if (c == '#' && (at_ == 0 || text_[at_ - 1] == '\n')) {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else {
        return true;
      }
    }
    return false;
  }

  void lex(Token& token) {
    char c = peek();
    if (is_word_start(c)) {
      token.kind = TokenKind::word;
      while (is_word(peek())) ++at_;
    } else if (c == '.' && (is_word_start(peek(1)) || is_digit(peek(1)))) {
      token.kind = TokenKind::dotted;
      ++at_;
      while (is_word(peek()) || (peek() == ':' && peek(1) == ':' && is_word(peek(2))) ||
             (peek() == ':' && at_ > 0 && text_[at_ - 1] == ':' && is_word(peek(1)))) {
        ++at_;
      }
    } else if (is_digit(c)) {
      number(token);
    } else if (c == '"') {
      string(token);
    } else if (std::string_view("{}()[]<>,;:=+-!@|&*/~?^").find(c) != std::string_view::npos) {
      token.kind = TokenKind::punct;
      ++at_;
    } else {
      char shown[40];
      std::snprintf(shown, sizeof shown, "byte 0x%02x at offset %zu", static_cast<unsigned char>(c), at_);
      failure_ = std::string(shown) + " is no PTX";
    }
  }

  void string(Token& token) {
    token.kind = TokenKind::string;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
      if (at_ < text_.size() && text_[at_] == '\n') break;
    }
    if (peek() != '"') {
      failure_ = "a string is not closed";
      return;
    }
    ++at_;
  }

  void number(Token& token) {
    char second = peek(1);
    if (peek() == '0' && (second == 'f' || second == 'F' || second == 'd' || second == 'D')) {
      size_t digits = second == 'f' || second == 'F' ? 8 : 16, found = 0;
      while (is_hex(peek(2 + found))) ++found;
      if (found == digits && !is_word(peek(2 + found))) {
        token.kind = TokenKind::real;
        token.real_bytes = static_cast<uint8_t>(digits / 2);
        std::from_chars(text_.data() + at_ + 2, text_.data() + at_ + 2 + digits, token.bits, 16);
        at_ += 2 + digits;
        return;
      }
    }
    decimal_or_prefixed(token);
    if (is_word(peek())) {
      size_t end = at_;
      while (end < text_.size() && is_word(text_[end])) ++end;
      failure_ =
          "'" + std::string(text_.substr(token.begin, std::min<size_t>(end - token.begin, 40))) + "' is no number";
    }
  }

  void decimal_or_prefixed(Token& token) {
    int base = 10;
    size_t start = at_;
    if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X'))
      base = 16, start += 2;
    else if (peek() == '0' && (peek(1) == 'b' || peek(1) == 'B'))
      base = 2, start += 2;
    else if (peek() == '0' && is_digit(peek(1)))
      base = 8, start += 1;
    const char* first = text_.data() + start;
    const char* last = text_.data() + text_.size();
    token.kind = TokenKind::integer;
    auto [stop, error] = std::from_chars(first, last, token.bits, base);
    if (stop == first || error != std::errc()) {
      failure_ = "a number is malformed or does not fit 64 bits";
      return;
    }
    at_ = static_cast<size_t>(stop - text_.data());
    bool real = base == 10 && ((peek() == '.' && is_digit(peek(1))) ||
                               ((peek() == 'e' || peek() == 'E') &&
                                (is_digit(peek(1)) || ((peek(1) == '-' || peek(1) == '+') && is_digit(peek(2))))));
    if (real) {
      double value = 0;
      auto parsed = std::from_chars(first, last, value);
      token.kind = TokenKind::real;
      token.real_bytes = 8;
      token.bits = std::bit_cast<uint64_t>(value);
      at_ = static_cast<size_t>(parsed.ptr - text_.data());
    } else if (peek() == 'U' || peek() == 'u') {
      ++at_;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  std::string failure_;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view text) { return Lexer(text).run(); }

}  // namespace kgate::ptx
