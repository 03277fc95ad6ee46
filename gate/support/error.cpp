#include "support/error.h"

namespace kgate {

const char* exit_name(Exit code) {
  switch (code) {
    case Exit::pass: return "pass";
    case Exit::regression: return "regression";
    case Exit::inconclusive: return "inconclusive";
    case Exit::no_baseline: return "no usable baseline";
    case Exit::environment: return "environment unfit";
    case Exit::broken: return "candidate broken";
    case Exit::usage: return "usage";
    case Exit::bad_input: return "bad input";
    case Exit::internal: return "internal error";
    case Exit::interrupted: return "interrupted";
  }
  return "unknown";
}

Error::Error(Exit code, std::string what, std::string where, std::string hint)
    : code_(code), failure_{std::move(what), std::move(where), std::move(hint)} {
  text_ = failure_.where.empty() ? failure_.what : failure_.where + ": " + failure_.what;
}

}  // namespace kgate
