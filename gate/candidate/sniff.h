// Tells PTX from cubin by content, and names everything else: a wrong file deserves a better answer than "syntax error".
#pragma once

#include <string_view>

#include "candidate/candidate.h"

namespace kgate {

// ptx or cubin, or a Failure that says what the file is instead and how to get a kernel out of it.
Result<CodeKind> sniff(std::string_view bytes);

}  // namespace kgate
