// The element types that buffer content can have: width and range, by name. One table for validation, content and YAML.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kgate {

enum class ElementKind : uint8_t { floating, integer, boolean };

struct Element {
  const char* name;
  uint32_t bytes;
  ElementKind kind;
  double lowest, highest;  // finite range; of 64-bit integers the doubles that still convert without overflow
};

const Element* element_named(std::string_view name);  // nullptr for an unknown name
std::vector<std::string> element_names();

}  // namespace kgate
