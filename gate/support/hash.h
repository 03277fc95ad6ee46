// SHA-256, as lower-case hex. Identity of files, code and contents everywhere in kgate.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kgate {

std::string sha256(std::string_view bytes);

// Incremental, for identities made of several parts. add() frames each part with its length, so that
// ("ab","c") and ("a","bc") differ.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256& add(std::string_view part);
  std::string hex();  // ends the computation

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kgate
