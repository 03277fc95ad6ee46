// Modules for the reader's tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "candidate/ptx.h"

namespace kgate::ptx {

inline const std::string kHeader = ".version 8.0\n.target sm_80\n.address_size 64\n";

inline std::string kernel(const std::string& body) {
  return kHeader +
         ".visible .entry k(.param .u64 a) {\n.reg .pred %p<5>;\n.reg .b32 %r<100>;\n.reg .b64 %rd<10>;\n.reg .f32 "
         "%f<10>;\n" +
         body + "\nret;\n}\n";
}

inline Module must_parse(const std::string& text) {
  auto module = parse(text);
  if (module) return *module;
  ADD_FAILURE() << module.failure().where << ": " << module.failure().what << "\n" << text;
  return {};
}

inline std::vector<Diagnostic> must_fail(const std::string& text) {
  std::vector<Diagnostic> found;
  auto module = parse(text, &found);
  EXPECT_FALSE(module) << text;
  EXPECT_FALSE(found.empty());
  EXPECT_TRUE(module || module.failure().where.starts_with("line "));
  return found;
}

}  // namespace kgate::ptx
