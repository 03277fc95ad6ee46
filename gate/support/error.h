// Errors. Recoverable failures are values (Result<T>); what ends the run is one exception type, Error, caught once in
// main. Both carry the same three texts, because every failure says what happened, where, and what to do next.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace kgate {

// Exit codes: docs/exit-codes in README. They survive wrappers: 2 is make's, 100-127 are CLI11's, timeout's and docker's.
enum class Exit : int {
  pass = 0,
  regression = 1,
  inconclusive = 3,
  no_baseline = 4,
  environment = 5,
  broken = 6,
  usage = 64,
  bad_input = 65,
  internal = 70,
  interrupted = 130,
};

const char* exit_name(Exit code);  // "pass", "regression", ...

// What failed, where ("file:line:column", a path, or empty) and a hint (one imperative sentence, or empty).
struct Failure {
  std::string what;
  std::string where;
  std::string hint;
};

// Ends the run with `code`. what() is "where: what".
class Error : public std::exception {
 public:
  Error(Exit code, std::string what, std::string where = {}, std::string hint = {});
  Error(Exit code, Failure failure) : Error(code, failure.what, failure.where, failure.hint) {}

  Exit code() const { return code_; }
  const Failure& failure() const { return failure_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  Exit code_;
  Failure failure_;
  std::string text_;
};

// A value or a Failure. `if (auto r = f(); r) use(*r); else report(r.failure());`
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}          // NOLINT: implicit by design
  Result(Failure failure) : state_(std::in_place_index<1>, std::move(failure)) {}  // NOLINT

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() { return std::get<0>(state_); }
  const T& operator*() const { return std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  const Failure& failure() const { return std::get<1>(state_); }

  // The value, or an Error with `code`.
  T value_or_throw(Exit code) && {
    if (state_.index() == 1) throw Error(code, std::get<1>(state_));
    return std::move(std::get<0>(state_));
  }

 private:
  std::variant<T, Failure> state_;
};

}  // namespace kgate
