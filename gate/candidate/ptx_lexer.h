// Tokens of PTX text. Internal to the PTX reader.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "candidate/ptx.h"

namespace kgate::ptx {

enum class TokenKind : uint8_t { end, word, dotted, integer, real, string, punct };

struct Token {
  TokenKind kind = TokenKind::end;
  bool skip = false;       // debug information: no part of the identity
  uint8_t real_bytes = 0;  // of a real: 4 or 8
  uint32_t begin = 0;
  int line = 0;
  uint64_t bits = 0;      // of an integer or a real
  std::string_view text;  // a dotted word keeps its dot
};

// The tokens of `text`, closed by one of kind `end`. A byte that is no PTX is a Failure: nothing after it can be
// trusted.
Result<std::vector<Token>> tokenize(std::string_view text);

}  // namespace kgate::ptx
